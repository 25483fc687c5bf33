"""Arrays out of an npz file from a stranger: header first, then arithmetic, then memory. Nothing is ever unpickled.

An npz file is a zip archive of npy files; an npy file is a short text header (dtype, order, shape) and the raw numbers.
Both the archive and the header can lie about sizes. A `Member` is opened by its header alone, so that all the shapes of
a file can be compared with each other and with what the archive really holds before the first array is made.
"""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError

__all__ = ["Member", "damage", "open_archive", "open_member"]

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
LARGEST_RATIO = 1032  # deflate packs at most 1032 bytes into one
HEADER = re.compile(  # real numbers, text, or objects, which are refused later and in their own words
    r"\{\s*'descr':\s*'(?P<dtype>[<>|=]?(?:b1|[iu][1248]|f[248]|U\d{1,8}|O\d*))',"
    r"\s*'fortran_order':\s*(?P<fortran>True|False),"
    r"\s*'shape':\s*\((?P<shape>[\d, L]*)\)\s*,?\s*\}\s*"
)
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


def damage(path: Path, what: str) -> FormatError:
    """Return the error for a file that does not hold what it should.

    >>> raise damage(Path("a.npz"), "an archive cut short")
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: The 'path' parameter of read_npz must be a sound npz file. Got 'a.npz' with an archive cut short instead.
    """
    return FormatError(
        f"The 'path' parameter of read_npz must be a sound npz file. Got {str(path)!r} with {what} instead."
    )


@final
@dataclass(frozen=True)
class Member:
    """One array of an archive, known by its header: nothing of `shape` has been allocated yet."""

    path: Path
    key: str
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo
    offset: int
    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]

    @property
    def pickled(self) -> bool:
        """Whether the array holds Python objects, which would have to be unpickled."""
        return self.dtype.hasobject

    @property
    def n_bytes(self) -> int:
        """What the header claims, in exact integers."""
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self) -> NDArray[Any]:
        """Return the array, in the machine's byte order. The archive's checksum is verified on the way."""
        if self.pickled:
            raise damage(self.path, f"pickled objects under {self.key!r}, which are never loaded,")
        held = self.info.file_size - self.offset
        if self.n_bytes != held or self.info.file_size > LARGEST_RATIO * self.info.compress_size + LONGEST_HEADER:
            raise damage(
                self.path, f"a header under {self.key!r} that claims {self.n_bytes} bytes where the archive has {held}"
            )
        with unharmed(self.path, self.key), self.archive.open(self.info) as stream:
            stream.read(self.offset)  # not seek, which may switch the checksum off
            content = stream.read()
            array = np.frombuffer(content, dtype=self.dtype)
            array = array.reshape(self.shape, order="F" if self.fortran else "C")
        return array.astype(self.dtype.newbyteorder("="), copy=False)


@contextmanager
def unharmed(path: Path, key: str) -> Generator[None]:
    """Turn whatever a damaged archive makes zipfile, zlib or numpy raise into one sentence."""
    try:
        yield
    except FormatError:
        raise
    except DAMAGE as error:
        raise damage(path, f"damaged data under {key!r}") from error


@contextmanager
def open_archive(path: Path) -> Generator[zipfile.ZipFile]:
    """Open `path` as a zip archive, or say that it is none."""
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE as error:
        raise FormatError(
            "The 'path' parameter of read_npz must be an npz file (a zip archive of arrays). "
            f"Got {str(path)!r}, which is cut short or something else, instead."
        ) from error
    with archive:
        yield archive


def open_member(archive: zipfile.ZipFile, path: Path, key: str) -> Member | None:
    """Read the header of the array under `key`; None where the archive has no such array."""
    try:
        info = archive.getinfo(f"{key}.npy")
    except KeyError:
        return None
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise damage(path, f"an unusual compression of {key!r}")
    with unharmed(path, key), archive.open(info) as stream:
        text, offset = _header_text(stream)
        match = HEADER.fullmatch(text)
        if match is None:
            raise damage(path, f"no plain array under {key!r}")
        dtype = np.dtype("O" if "O" in match["dtype"] else match["dtype"])
        shape = tuple(int(size.strip().rstrip("L")) for size in match["shape"].split(",") if size.strip())
    return Member(path, key, archive, info, offset, dtype, match["fortran"] == "True", shape)


def _header_text(stream: IO[bytes]) -> tuple[str, int]:
    start = stream.read(8)
    wide = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}.get(start[6:], 0)
    size = int.from_bytes(stream.read(wide), "little")
    if start[:6] != MAGIC or not 0 < size <= LONGEST_HEADER:
        raise ValueError("not an npy header")
    text = stream.read(size)
    if len(text) != size:
        raise EOFError("header cut short")
    return text.decode("latin-1"), 8 + wide + size
