"""Arrays in an npz archive that nobody vouches for.

An npz file is a zip archive of npy files; an npy file is a short text header (dtype, order, shape) and the raw numbers.
Both the archive and the header of an untrusted file can be wrong about sizes. A `Member` is opened by its header alone,
so that all the shapes of a file can be compared with each other and with the size of the archive before the first array
is made. A sparse matrix is spread over several arrays, which must agree before any of them is used. Nothing is unpickled.
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

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
CSR_PARTS = ("data", "indices", "indptr", "shape")
COO_PARTS = ("data", "row", "col", "shape")
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
    """Headers of ``data`` (e,), ``indices`` (e,) and ``indptr`` (rows + 1,) that fit together, and the true shape.

    In the transposed form (CSC) rows are columns and columns rows.
    """

    key: str
    data: Member
    indices: Member
    indptr: Member
    shape: tuple[int, int]
    transposed: bool = False

    @property
    def n_bytes(self) -> int:
        """What the three arrays will take."""
        return self.data.n_bytes + self.indices.n_bytes + self.indptr.n_bytes

    def read(self) -> sparse.csr_array:
        """Return the matrix, shape (rows, columns), once every pointer and index is known to be in range."""
        indptr = self.indptr.read().astype(np.int64, copy=False)
        entries = self.data.shape[0]
        if indptr[0] != 0 or indptr[-1] != entries or (indptr[1:] < indptr[:-1]).any():
            raise damage(self.data.path, f"an inconsistent {self.indptr.key!r}, which must rise from 0 to {entries},")
        indices = _read_indices(self.indices, self.shape[0 if self.transposed else 1])
        values = _read_values(self.data)
        if not self.transposed:
            return sparse.csr_array((values, indices, indptr), shape=self.shape)
        return sparse.csc_array((values, indices, indptr), shape=self.shape).tocsr()


@final
@dataclass(frozen=True)
class CooMembers:
    """Headers of ``data``, ``row`` and ``col``, each (e,), and the true shape."""

    data: Member
    row: Member
    col: Member
    shape: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        """What the three arrays will take, and the pointers that take their place."""
        return self.data.n_bytes + self.row.n_bytes + self.col.n_bytes + 8 * (self.shape[0] + 1)

    def read(self) -> sparse.csr_array:
        """Return the matrix, shape (rows, columns), once every index is known to be in range."""
        places = _read_indices(self.row, self.shape[0]), _read_indices(self.col, self.shape[1])
        return sparse.coo_array((_read_values(self.data), places), shape=self.shape).tocsr()


def _read_indices(member: Member, end: int) -> NDArray[Any]:
    indices = member.read()
    outside = (indices < 0) | (indices >= end)
    if outside.any():
        bad = indices[outside][0]
        raise damage(member.path, f"the index {bad} in {member.key!r}, outside 0 to {end - 1},")
    return indices


def _read_values(member: Member) -> NDArray[Any]:
    values = member.read()
    return values.astype(np.float32) if values.dtype == np.float16 else values  # scipy has no half precision


def open_csr(archive: zipfile.ZipFile, path: Path, key: str, *, transposed: bool = False) -> CsrMembers | None:
    """Open the four arrays under `key` by their headers; None where the archive has none of them."""
    members = _open_parts(archive, path, key, CSR_PARTS)
    if members is None:
        return None
    shape = _shape(members["shape"])
    lines = shape[1 if transposed else 0]
    entries, indptr = members["data"].shape[0], members["indptr"]
    if indptr.shape[0] != lines + 1:
        raise damage(
            path, f"{indptr.shape[0]} pointers in {indptr.key!r} for {lines} {'columns' if transposed else 'rows'}"
        )
    if members["indices"].shape[0] != entries:
        raise damage(path, f"{members['indices'].shape[0]} indices but {entries} values in {key or 'data'!r}")
    if entries > shape[0] * shape[1]:
        raise damage(path, f"{entries} entries in a {key or 'matrix'!r} of shape {shape}")
    return CsrMembers(key, members["data"], members["indices"], indptr, shape, transposed)


def open_saved(archive: zipfile.ZipFile, path: Path) -> CsrMembers | CooMembers | None:
    """Open a matrix that `scipy.sparse.save_npz` wrote by its headers; None where the archive is something else."""
    if not {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist()):
        return None
    with unharmed(path, "format"), archive.open("format.npy") as stream:
        _header_text(stream)
        form = stream.read(100).replace(b"\0", b"").decode("ascii")  # as bytes or, by old versions, as text
    match form:
        case "csr" | "csc":
            return open_csr(archive, path, "", transposed=form == "csc")
        case "coo":
            members = _open_parts(archive, path, "", COO_PARTS)
            assert members is not None
            entries = [members[part].shape[0] for part in COO_PARTS[:3]]
            if len(set(entries)) > 1:
                raise damage(path, f"{entries[1]} rows and {entries[2]} columns for {entries[0]} values")
            return CooMembers(members["data"], members["row"], members["col"], _shape(members["shape"]))
        case _:
            remedy = "scipy.sparse.save_npz(path, matrix.tocsr()) writes one that can be read"
            raise damage(path, f"a matrix in the form {form[:20]!r} ({remedy})")


def _open_parts(archive: zipfile.ZipFile, path: Path, key: str, parts: tuple[str, ...]) -> dict[str, Member] | None:
    names = {part: f"{key}.{part}" if key else part for part in parts}
    found = {part: open_member(archive, path, name) for part, name in names.items()}
    if not any(found.values()):
        return None
    members: dict[str, Member] = {}
    for part, member in found.items():
        if member is None:
            raise damage(path, f"no array under {names[part]!r}")
        allowed = "buif" if part == "data" else "iu"
        if len(member.shape) != 1 or member.dtype.kind not in allowed:
            raise damage(path, f"{names[part]!r} of shape {member.shape} and dtype {member.dtype}")
        members[part] = member
    return members


def _shape(member: Member) -> tuple[int, int]:
    if member.shape != (2,):
        raise damage(member.path, f"{member.key!r} of length {member.shape[0]} where two numbers belong")
    rows, columns = (int(size) for size in member.read())
    if min(rows, columns) < 0 or max(rows, columns) > np.iinfo(np.int32).max:
        raise damage(member.path, f"the absurd size {(rows, columns)} under {member.key!r}")
    return rows, columns
