"""Where the file of a dataset is: a folder of one's own, the cache, the package, or the network, in this order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import final

from pprop._errors import DatasetError
from pprop.datasets.fetch import cache_folder, fetch, git_blob_id
from pprop.datasets.registry import DatasetInfo

__all__ = ["Located", "locate"]

VARIABLE = "PPROP_DATA"


@final
@dataclass(frozen=True)
class Located:
    """A file of a dataset, and which of ``"PPROP_DATA"``, ``"cache"``, ``"bundled"`` and ``"download"`` gave it."""

    path: Path
    origin: str


def locate(info: DatasetInfo) -> Located:
    """Find the file of a dataset, downloading it if it is nowhere on this machine.

    A file in the folder named by ``PPROP_DATA`` is taken as it is. One in the cache counts only if it is the authors'
    file, to the last bit; a damaged one is passed over and, after a download, replaced.

    Examples
    --------
    >>> from pprop.datasets.registry import DATASETS
    >>> locate(DATASETS["citeseer"]).path.name
    'citeseer.npz'
    """
    own = _own_folder()
    if own is not None and (own / info.file_name).is_file():
        return Located(own / info.file_name, VARIABLE)
    cached = cache_folder() / info.file_name
    if cached.is_file() and git_blob_id(cached) == info.git_blob:
        return Located(cached, "cache")
    bundled = bundled_folder() / info.file_name
    if bundled.is_file():
        return Located(bundled, "bundled")
    return Located(fetch(info), "download")


def bundled_folder() -> Path:
    """Return the folder of the graphs that come with the package.

    >>> [file.name for file in bundled_folder().glob("*.npz")]
    ['citeseer.npz']
    """
    return Path(str(resources.files("pprop.datasets"))) / "bundled"


def _own_folder() -> Path | None:
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    if not Path(name).is_dir():
        raise DatasetError(f"The environment variable {VARIABLE} must name an existing folder. Got {name!r} instead.")
    return Path(name)
