"""Which revision of a model on a backend a run is of: declared, not read off the sources.

A run is identified by its data, settings, seeds and the revision of its model on its backend. ``revisions.toml`` declares the
present ones. Runs from before there were revisions are stored under a hash of sources instead; ``ledger.csv``, to which
lines are only ever appended, says which revision each hash is, and on what evidence.
"""

from __future__ import annotations

import csv
import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pprop._errors import InputError, PpropError
from pprop.datasets import DATASETS, DatasetInfo, load_dataset
from pprop.datasets.files import VARIABLE, bundled_folder, cache_folder, git_blob_id
from pprop.study.cell import Cell
from pprop.study.user_source import find_function, user_source


@cache
def declared_revisions() -> Mapping[str, Mapping[str, int]]:
    """Return the present revision of each model on each backend.

    >>> sorted(declared_revisions()["bootstrapped_fp"])
    ['numpy', 'torch']
    """
    return tomllib.loads(_beside("revisions.toml"))


def revision_of(model: str, backend: str) -> str:
    """Return the name of the present revision of a model on a backend.

    >>> revision_of("appnp", "triton")
    'triton-2'
    """
    try:
        return f"{backend}-{declared_revisions()[model][backend]}"
    except KeyError:
        raise InputError(
            f"The model {model!r} has no declared revision on the backend {backend!r}. Declare one in revisions.toml."
        ) from None


def user_revision(backend: str, source: str) -> str:
    """Return the name of the revision of a user's model: any model of the library may be part of it, so all count.

    Parameters
    ----------
    backend
        The one that computes.
    source
        Hash of the user's modules.

    Examples
    --------
    >>> user_revision("reference", "0123456789ab")
    'reference-12+0123456789ab'
    """
    places = (backend, "numpy", "torch")  # the last two: models that need none of the kernels
    total = sum(number for each in declared_revisions().values() for place, number in each.items() if place in places)
    return f"{backend}-{total}+{source}"


def recorded_revision(name: str) -> str:
    """Return the revision that a row is stored under: by its own name, or by the hash of sources of an older row.

    A hash that the ledger does not know is a separate revision.

    >>> recorded_revision("numba-1"), recorded_revision("b05626726efa"), recorded_revision("0123456789ab")
    ('numba-1', 'triton-1', '0123456789ab')
    """
    return _ledger()[name]["revision"] if name in _ledger() else name


def recorded_cpu(name: str) -> str:
    """Return the kind of CPU that rows stored under a hash of sources were made on; empty where it was none, or unknown.

    >>> recorded_cpu("b3cd4d9ba2f3"), recorded_cpu("a228144f3809")
    ('aarch64 neoverse-n1', '')
    """
    return _ledger()[name]["cpu"] if name in _ledger() else ""


@cache
def stored_names(revision: str) -> tuple[str, ...]:
    """Return all names that rows of a revision may be stored under; hashes of several models may be among them.

    >>> stored_names("numpy-3")
    ('numpy-3', 'f5c1fd055d36')
    """
    return (revision, *(code for code, entry in _ledger().items() if entry["revision"] == revision))


@cache
def _ledger() -> Mapping[str, Mapping[str, str]]:
    return {entry["code"]: entry for entry in csv.DictReader(_beside("ledger.csv").splitlines())}


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def current_revision(cell: Cell, backend: str) -> str:
    """Return the revision that a cell, also of a user's model, would be computed with now.

    It is empty where the model is no longer computed by that backend: no row of it is of the present revision.

    >>> current_revision(Cell("mlp", {}, "citeseer"), "numba")
    'numba-1'
    """
    if ":" not in cell.model:
        return revision_of(cell.model, backend) if backend in declared_revisions()[cell.model] else ""
    return user_revision(backend, user_source(find_function(cell.model)[0]))


def current_data(dataset: str) -> str | None:
    """Return the fingerprint of a dataset as it is on this machine; None where it is not. Nothing is downloaded.

    >>> current_data("citeseer") == load_dataset("citeseer").fingerprint, current_data("of my own")
    (True, None)
    """
    if dataset not in DATASETS or not _is_here(DATASETS[dataset]):
        return None
    try:
        return load_dataset(dataset).fingerprint
    except PpropError:  # a damaged file, or a user's folder that is not there
        return None


def _is_here(info: DatasetInfo) -> bool:
    own, cached = Path(os.environ.get(VARIABLE) or bundled_folder()), cache_folder() / info.file_name
    if any((folder / info.file_name).is_file() for folder in (own, bundled_folder())):
        return True
    return cached.is_file() and git_blob_id(cached) == info.git_blob
