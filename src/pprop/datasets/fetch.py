"""Verified downloads of the authors' files into the cache."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Any, final

from pprop._errors import DatasetError, MissingDependencyError
from pprop.datasets.registry import DatasetInfo

__all__ = ["GitBlob", "cache_folder", "fetch", "git_blob_id"]


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


@final
class GitBlob:
    """A processor for pooch, which cannot check git's ids itself: lets the right file pass and removes any other."""

    def __init__(self, expected: str) -> None:
        self.expected = expected

    def __call__(self, fname: str, action: str, pooch: object) -> str:
        """Return `fname` if its content has the expected id."""
        found = git_blob_id(Path(fname))
        if found != self.expected:
            Path(fname).unlink()
            raise ValueError(f"the file has the git blob id {found}, not {self.expected}")
        return fname


def fetch(info: DatasetInfo) -> Path:
    """Download the authors' file of a dataset into the cache and return its path there.

    The file is checked (git's id, and sha256 where known) under a temporary name in the cache before it takes its own.

    Raises
    ------
    DatasetError
        The file cannot be had from here; the message says where to put it by hand.
    """
    folder = cache_folder()
    target = folder / info.file_name
    remedy = (
        f"Put the file from {info.url} at {target}, or into a folder of your own named by the environment variable "
        "PPROP_DATA."
    )
    pooch = _import_pooch(info, remedy)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as workplace:
            fetched: str = pooch.retrieve(
                info.url,
                known_hash=None if info.sha256 is None else f"sha256:{info.sha256}",
                fname=info.file_name,
                path=workplace,
                processor=GitBlob(info.git_blob),
                # the files are small; read at once, the connection is closed even when the server refuses
                downloader=pooch.HTTPDownloader(timeout=30, stream=False),
            )
            os.replace(fetched, target)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's wrong digests are ValueErrors
        why = "its content is not the authors'" if isinstance(error, ValueError) else "the download failed"
        raise DatasetError(f"The dataset {info.name!r} could not be downloaded: {why}. {remedy}") from error
    return target


def _import_pooch(info: DatasetInfo, remedy: str) -> Any:
    try:
        import pooch  # here, because it is slow to import and needed for a download alone
    except ImportError as error:
        raise MissingDependencyError(
            f"Downloading the dataset {info.name!r} needs 'pooch'. Install it with: pip install pooch. Or: {remedy}"
        ) from error
    pooch.get_logger().setLevel(logging.WARNING)
    return pooch
