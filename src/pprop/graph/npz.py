"""Graphs in the npz layout of the paper's authors: CSR parts as plain arrays, no pickled objects.

An npz file is a zip archive of npy files; an npy file is a short text header (dtype, order, shape) and the raw numbers.
Both the archive and the header of an untrusted file can be wrong about sizes. A `Member` is opened by its header alone,
so that all the shapes of a file can be compared with each other and with the size of the archive before the first array
is made. A CSR matrix is spread over four arrays, which must agree before any of them is used. Nothing is unpickled.
"""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import FormatError, GraphError
from pprop._validate import describe, reject
from pprop.graph.attributes import canonical_csr, symmetrized
from pprop.graph.files import atomic_writer, check_memory, existing_file
from pprop.graph.graph import Graph

# Keys of arrays with one entry per node, feature or class, and the fields of a Graph that they are.
LISTS = {"labels": "labels", "node_names": "ids", "attr_names": "feature_names", "class_names": "class_names"}
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


def read_npz(path: str | PathLike[str], *, directed: bool | None = None) -> Graph:
    """Read a graph from an npz file in the authors' layout.

    Keys: ``adj_matrix.{data,indices,indptr,shape}`` (CSR, shape (n, n)); optional are
    ``attr_matrix.{data,indices,indptr,shape}`` (CSR, shape (n, f)) or a dense ``attr_matrix`` (n, f),
    ``labels`` (n,) of any integer type, ``node_names`` (n,), ``attr_names`` (f,) and ``class_names`` (c,).
    Other keys are not touched. Nothing is unpickled: pickled features or labels are refused, pickled names left out,
    and a lone pickled object, which is how these files store None, counts as absent. All sizes are checked against
    each other and against the file before memory is taken.

    Parameters
    ----------
    path
        The file.
    directed
        None makes the graph undirected exactly when its matrix is symmetric (weights to rounding), True keeps
        directions in any case, and False demands a symmetric matrix. (The layout has no place for this fact.)

    Returns
    -------
    Graph
        Its ``name`` is the file's name without the suffix. Entry (i, j) of the matrix stays entry (i, j).

    Raises
    ------
    FormatError
        The file is damaged, hostile, or holds no graph.

    Examples
    --------
    >>> import tempfile, scipy.sparse as sp
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> ring = sp.csr_array([[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [1, 0, 0, 1, 0]])
    >>> write_npz(Graph.from_scipy(ring, labels=[0, 0, 1, 1, -1]), Path(folder.name, "ring.npz"))
    >>> read_npz(Path(folder.name, "ring.npz"))
    Graph(5 nodes, 5 edges, undirected, 2 classes)
    >>> folder.cleanup()
    """
    if directed is not None and not isinstance(directed, bool | np.bool_):
        reject("directed", "read_npz", "True, False or None", describe(directed))
    file = existing_file(path, "path", "read_npz")
    try:
        archive = zipfile.ZipFile(file)
    except DAMAGE:
        got = f"{str(file)!r}, which is cut short or something else,"
        reject("path", "read_npz", "an npz file (a zip archive of arrays)", got, error=FormatError)
    with archive:
        fields = _read_fields(archive, file)
    try:
        symmetric = symmetrized(canonical_csr(fields["adjacency"], "Graph.from_scipy")) is not None
        if directed is False and not symmetric:
            expected, got = "True or None for a matrix that differs from its transpose", f"False for {str(file)!r}"
            remedy = "Call .undirected() on the result to ignore directions."
            reject("directed", "read_npz", expected, got, remedy=remedy)
        keep_directions = not symmetric if directed is None else bool(directed)
        return Graph.from_scipy(directed=keep_directions, name=file.stem, **fields)
    except GraphError as error:
        raise FormatError(f"The file {str(file)!r} holds no valid graph. {error}") from error


def write_npz(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to an npz file in the authors' layout, compressed, all at once or not at all.

    The same graph gives the same bytes. The layout has no place for ``directed``, ``name`` and ``recommended``.

    Parameters
    ----------
    graph
        Weights are written as float64, or as float32 ones where the graph has none; ids as ``node_names``.
    path
        The file, replaced only when the new one is complete and on the disk. No suffix is added.

    Examples
    --------
    >>> import tempfile, scipy.sparse as sp
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = Graph.from_scipy(path, ids=list("abcde"))
    >>> write_npz(graph, Path(folder.name, "path.npz"))
    >>> read_npz(Path(folder.name, "path.npz")) == graph
    True
    >>> folder.cleanup()
    """
    if not isinstance(graph, Graph):
        reject("graph", "write_npz", "a Graph", describe(graph))
    adjacency = graph.adjacency
    if graph.weights is None:
        adjacency = adjacency.astype(np.float32)
    arrays = _csr_parts("adj_matrix", adjacency)
    if isinstance(graph.features, np.ndarray):
        arrays["attr_matrix"] = graph.features
    elif graph.features is not None:
        arrays |= _csr_parts("attr_matrix", graph.features)
    lists: dict[str, Any] = {key: getattr(graph, field) for key, field in LISTS.items()}
    arrays |= {key: np.asarray(value) for key, value in lists.items() if value is not None and len(value)}
    with atomic_writer(path, "path", "write_npz") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def _csr_parts(key: str, matrix: sparse.csr_array) -> dict[str, NDArray[Any]]:
    parts = (matrix.data, matrix.indices, matrix.indptr, np.asarray(matrix.shape, dtype=np.int64))
    return {f"{key}.{part}": array for part, array in zip(CSR_PARTS, parts, strict=True)}


def _read_fields(archive: zipfile.ZipFile, file: Path) -> dict[str, Any]:
    """Open all headers, compare them with each other, and only then read the arrays."""
    adjacency = open_csr(archive, file, "adj_matrix")
    if adjacency is None:
        raise damage(file, "no array under 'adj_matrix.data'")
    n, columns = adjacency.shape
    if n != columns or n == 0:
        raise damage(file, f"an 'adj_matrix' of shape {adjacency.shape}, not square or empty,")
    members: dict[str, CsrMembers | Member] = {"adjacency": adjacency}
    width = None
    features = open_member(archive, file, "attr_matrix") or open_csr(archive, file, "attr_matrix")
    if features is not None:
        if isinstance(features, Member) and (len(features.shape) < 2 or features.dtype.kind not in "buif"):
            raise damage(file, f"an 'attr_matrix' of shape {features.shape} and dtype {features.dtype}")
        if features.shape[0] != n:
            raise damage(file, f"an 'attr_matrix' of {features.shape[0]} rows for {n} nodes")
        members["features"] = features
        width = features.shape[1]
    for (key, field), kinds, length in zip(LISTS.items(), ("iu", "iuU", "U", "U"), (n, n, width, None), strict=True):
        listed = open_member(archive, file, key, skip_pickled=key != "labels")
        if listed is None:
            continue
        if len(listed.shape) != 1 or listed.dtype.kind not in kinds:
            raise damage(file, f"{key!r} of shape {listed.shape} and dtype {listed.dtype}")
        if length is not None and listed.shape[0] != length:
            raise damage(file, f"{listed.shape[0]} {key!r} where {length} belong")
        members[field] = listed
    check_memory(file, sum(member.n_bytes for member in members.values()))
    return {field: member.read() for field, member in members.items()}


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
    """Headers of ``data`` (e,), ``indices`` (e,) and ``indptr`` (rows + 1,) that fit together, and the true shape."""

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
            raise damage(self.data.path, f"an inconsistent '{self.key}.indptr', which must rise from 0 to {entries},")
        indices = self.indices.read()
        outside = (indices < 0) | (indices >= columns)
        if outside.any():
            bad = indices[outside][0]
            raise damage(self.data.path, f"the index {bad} in '{self.key}.indices', outside 0 to {columns - 1},")
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
    if members["shape"].shape != (2,):
        raise damage(path, f"'{key}.shape' of length {members['shape'].shape[0]} where two numbers belong")
    rows, columns = shape = tuple(int(size) for size in members["shape"].read())
    if min(shape) < 0 or max(shape) > np.iinfo(np.int32).max:
        raise damage(path, f"the absurd size {shape} under '{key}.shape'")
    entries = members["data"].shape[0]
    if members["indptr"].shape[0] != rows + 1:
        raise damage(path, f"{members['indptr'].shape[0]} pointers in '{key}.indptr' for {rows} rows")
    if members["indices"].shape[0] != entries:
        raise damage(path, f"{members['indices'].shape[0]} indices but {entries} values in '{key}'")
    if entries > rows * columns:
        raise damage(path, f"{entries} entries in a '{key}' of shape {shape}")
    return CsrMembers(key, members["data"], members["indices"], members["indptr"], (rows, columns))
