"""Arrays and CSR matrices in an untrusted npz file: header first, then arithmetic, then memory. Nothing is unpickled.

An npz file is a zip archive of npy files; an npy file is a short text header (dtype, order, shape) and the raw numbers.
Both the archive and the header can be wrong about sizes. A `Member` is opened by its header alone, so that all the
shapes of a file can be compared with each other and with the size of the archive before the first array is made. A CSR
matrix is spread over four arrays, which must agree before any of them is used.
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
from scipy import sparse

from pprop._errors import FormatError
from pprop._validate import reject

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
CSR_PARTS = ("data", "indices", "indptr", "shape")
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
    def n_bytes(self) -> int:
        """What the header claims, in exact integers."""
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self) -> NDArray[Any]:
        """Return the array, in the machine's byte order. The archive's checksum is verified on the way."""
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
    """Turn every error that a damaged archive causes in zipfile, zlib or numpy into one sentence."""
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
    except DAMAGE:
        got = f"{str(path)!r}, which is cut short or something else,"
        reject("path", "read_npz", "an npz file (a zip archive of arrays)", got, error=FormatError)
    with archive:
        yield archive


def open_member(archive: zipfile.ZipFile, path: Path, key: str, *, skip_pickled: bool = False) -> Member | None:
    """Read the header of the array under `key`; None where the archive has no such array.

    A single pickled object without a shape, which is how the authors' files store None, counts as absent. An array of
    them is refused, or with `skip_pickled` absent too.
    """
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
    if dtype.hasobject:
        if skip_pickled or shape == ():
            return None
        raise damage(path, f"pickled objects under {key!r}, which are never loaded,")
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


@final
@dataclass(frozen=True)
class CsrMembers:
    """Headers of ``data`` (e,), ``indices`` (e,) and ``indptr`` (rows + 1,) that fit together, and the true shape."""

    path: Path
    key: str
    data: Member
    indices: Member
    indptr: Member
    shape: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        """What the three arrays will take."""
        return self.data.n_bytes + self.indices.n_bytes + self.indptr.n_bytes

    def read(self) -> sparse.csr_array:
        """Return the matrix, shape (rows, columns), once every pointer and index is known to be in range."""
        columns = self.shape[1]
        indptr = self.indptr.read().astype(np.int64, copy=False)
        entries = self.data.shape[0]
        if indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
            raise damage(self.path, f"an inconsistent '{self.key}.indptr', which must rise from 0 to {entries},")
        indices = self.indices.read()
        outside = (indices < 0) | (indices >= columns)
        if outside.any():
            bad = indices[outside][0]
            raise damage(self.path, f"the index {bad} in '{self.key}.indices', outside 0 to {columns - 1},")
        data = self.data.read()
        if data.dtype == np.float16:  # scipy has no half precision
            data = data.astype(np.float32)
        return sparse.csr_array((data, indices, indptr), shape=self.shape)


def open_csr(archive: zipfile.ZipFile, path: Path, key: str) -> CsrMembers | None:
    """Open the four arrays under `key` by their headers; None where the archive has none of them."""
    found = {part: open_member(archive, path, f"{key}.{part}") for part in CSR_PARTS}
    if not any(found.values()):
        return None
    members: dict[str, Member] = {}
    for part, member in found.items():
        if member is None:
            raise damage(path, f"no array under '{key}.{part}'")
        allowed = "buif" if part == "data" else "iu"
        if len(member.shape) != 1 or member.dtype.kind not in allowed:
            raise damage(path, f"'{key}.{part}' of shape {member.shape} and dtype {member.dtype}")
        members[part] = member
    shape = _shape(members["shape"], path)
    rows, columns = shape
    entries = members["data"].shape[0]
    if members["indptr"].shape[0] != rows + 1:
        raise damage(path, f"{members['indptr'].shape[0]} pointers in '{key}.indptr' for {rows} rows")
    if members["indices"].shape[0] != entries:
        raise damage(path, f"{members['indices'].shape[0]} indices but {entries} values in '{key}'")
    if entries > rows * columns:
        raise damage(path, f"{entries} entries in a '{key}' of shape {shape}")
    return CsrMembers(path, key, members["data"], members["indices"], members["indptr"], shape)


def _shape(member: Member, path: Path) -> tuple[int, int]:
    if member.shape != (2,):
        raise damage(path, f"{member.key!r} of length {member.shape[0]} where two numbers belong")
    rows, columns = (int(size) for size in member.read())
    limit = np.iinfo(np.int32).max
    if not (0 <= rows <= limit and 0 <= columns <= limit):
        raise damage(path, f"the absurd size ({rows}, {columns}) under {member.key!r}")
    return rows, columns
