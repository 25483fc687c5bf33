"""Where the file of a dataset is: the folder in PPROP_DATA, the cache, the package, or a verified download."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any, final

from pprop._errors import DatasetError, MissingDependencyError
from pprop.datasets.registry import DatasetInfo

VARIABLE = "PPROP_DATA"


def cache_folder() -> Path:
    """Return the folder of downloaded files: ``pprop`` in ``XDG_CACHE_HOME``, or in ``.cache`` at home.

    >>> cache_folder().name
    'pprop'
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pprop"


def git_blob_id(path: Path) -> str:
    """Return the id under which git keeps the content of a file: sha1 over ``blob``, its size, a null byte and itself.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "empty")
    ...     file.touch()
    ...     git_blob_id(file)
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def fetch(info: DatasetInfo) -> Path:
    """Download the authors' file of a dataset into the cache and return its path there.

    The file is checked (git's id, and sha256 where known) under a temporary name in the cache before it takes its own.

    Raises
    ------
    DatasetError
        The file cannot be downloaded; the message says where to put a copy.
    """
    folder = cache_folder()
    target = folder / info.file_name
    remedy = (
        f"Put the file from {info.url} at {target}, or into a folder of your own named by the environment variable "
        f"{VARIABLE}."
    )
    try:
        pooch: Any = import_module("pooch")  # here, because it is slow to import and needed for a download alone
    except ImportError as error:
        raise MissingDependencyError(
            f"Downloading the dataset {info.name!r} needs 'pooch'. Install it with: pip install pooch. Or: {remedy}"
        ) from error
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as workplace:
            fetched: str = pooch.retrieve(
                info.url,
                known_hash=None if info.sha256 is None else f"sha256:{info.sha256}",
                fname=info.file_name,
                path=workplace,
                # the files are small; read at once, the connection is closed even when the server refuses
                downloader=pooch.HTTPDownloader(timeout=30, stream=False),
            )
            found = git_blob_id(Path(fetched))
            if found != info.git_blob:  # pooch cannot check git's ids itself
                raise ValueError(f"the file has the git blob id {found}, not {info.git_blob}")
            os.replace(fetched, target)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's wrong digests are ValueErrors
        why = "its content is not the authors'" if isinstance(error, ValueError) else "the download failed"
        raise DatasetError(f"The dataset {info.name!r} could not be downloaded: {why}. {remedy}") from error
    return target


@final
@dataclass(frozen=True)
class Located:
    """A file of a dataset, and which of ``"PPROP_DATA"``, ``"cache"``, ``"bundled"`` and ``"download"`` gave it."""

    path: Path
    origin: str


def found_here(info: DatasetInfo) -> Located | None:
    """Find the file of a dataset on this machine, in the order of `load_dataset`; None: it has to be downloaded.

    A file in the folder named by ``PPROP_DATA`` is taken as it is. One in the cache counts only if it is the authors'
    file, to the last bit; a damaged one is passed over and, after a download, replaced.

    Examples
    --------
    >>> from pprop.datasets.registry import DATASETS
    >>> found_here(DATASETS["citeseer"]).path.name
    'citeseer.npz'
    """
    own = os.environ.get(VARIABLE)
    cached, bundled = cache_folder() / info.file_name, bundled_folder() / info.file_name
    if own and Path(own, info.file_name).is_file():
        return Located(Path(own, info.file_name), VARIABLE)
    if cached.is_file() and git_blob_id(cached) == info.git_blob:
        return Located(cached, "cache")
    return Located(bundled, "bundled") if bundled.is_file() else None


def locate(info: DatasetInfo) -> Located:
    """Find the file of a dataset, downloading it if it is not on this machine."""
    own = os.environ.get(VARIABLE)
    if own and not Path(own).is_dir():
        raise DatasetError(f"The environment variable {VARIABLE} must name an existing folder. Got {own!r} instead.")
    return found_here(info) or Located(fetch(info), "download")


def bundled_folder() -> Path:
    """Return the folder of the graphs that come with the package.

    >>> [file.name for file in bundled_folder().glob("*.npz")]
    ['citeseer.npz']
    """
    return Path(str(resources.files("pprop.datasets"))) / "bundled"


def example_tables() -> tuple[Path, Path]:
    """Return the edge list and the node table of the bundled example, which ``examples/recipes`` describes.

    >>> [file.name for file in example_tables()]
    ['edges.csv', 'nodes.csv']
    """
    folder = bundled_folder() / "recipes"
    return folder / "edges.csv", folder / "nodes.csv"
