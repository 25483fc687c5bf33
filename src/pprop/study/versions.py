"""Which revision a cell would be computed with now, and on which data."""

from __future__ import annotations

import os
from pathlib import Path

from pprop._errors import PpropError
from pprop.datasets import DATASETS, DatasetInfo, load_dataset
from pprop.datasets.fetch import cache_folder, git_blob_id
from pprop.datasets.locate import VARIABLE, bundled_folder
from pprop.study.cell import Cell
from pprop.study.own_source import find_function, own_source
from pprop.study.revisions import declared_revisions, own_revision, revision_of

__all__ = ["current_data", "current_revision"]


def current_revision(cell: Cell, backend: str) -> str:
    """Return the revision that a cell, also of one's own model, would be computed with now.

    It is empty where the model is no longer computed by that backend: no row of it is of the present revision.

    >>> current_revision(Cell("mlp", {}, "citeseer"), "numba")
    'numba-1'
    """
    if ":" not in cell.model:
        return revision_of(cell.model, backend) if backend in declared_revisions()[cell.model] else ""
    return own_revision(backend, own_source(find_function(cell.model)[0]))


def current_data(dataset: str) -> str | None:
    """Return the fingerprint of a dataset as it is on this machine; None where it is not. Nothing is downloaded.

    >>> current_data("citeseer") == load_dataset("citeseer").fingerprint, current_data("of my own")
    (True, None)
    """
    if dataset not in DATASETS or not _is_here(DATASETS[dataset]):
        return None
    try:
        return load_dataset(dataset).fingerprint
    except PpropError:  # a damaged file, or a folder of one's own that is not there
        return None


def _is_here(info: DatasetInfo) -> bool:
    own, cached = Path(os.environ.get(VARIABLE) or bundled_folder()), cache_folder() / info.file_name
    if any((folder / info.file_name).is_file() for folder in (own, bundled_folder())):
        return True
    return cached.is_file() and git_blob_id(cached) == info.git_blob
