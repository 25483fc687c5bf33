"""Where a dataset would be read from, found without downloading it."""

from __future__ import annotations

import os
from pathlib import Path

from pprop.datasets import DatasetInfo
from pprop.datasets.fetch import cache_folder, git_blob_id
from pprop.datasets.locate import VARIABLE, bundled_folder

__all__ = ["where"]


def where(info: DatasetInfo) -> str:
    """Return in which of the places, in the order of `load_dataset`, the file of a dataset is.

    >>> from pprop.datasets import DATASETS
    >>> where(DATASETS["citeseer"]) != "to be downloaded"
    True
    """
    own = os.environ.get(VARIABLE)
    if own and Path(own, info.file_name).is_file():
        return VARIABLE
    cached = cache_folder() / info.file_name
    if cached.is_file() and git_blob_id(cached) == info.git_blob:
        return "cache"
    return "bundled" if (bundled_folder() / info.file_name).is_file() else "to be downloaded"
