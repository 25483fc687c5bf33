"""Graphs in the npz layout of the paper's authors: CSR parts as plain arrays, no pickled objects."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import FormatError, GraphError
from pprop._validate import describe, reject
from pprop.graph.archive import (
    CSR_PARTS,
    DAMAGE,
    CooMembers,
    CsrMembers,
    Member,
    damage,
    open_csr,
    open_member,
    open_saved,
)
from pprop.graph.attributes import canonical_csr, symmetrized
from pprop.graph.files import atomic_writer, check_memory, existing_file
from pprop.graph.graph import Graph

# Keys of arrays with one entry per node, feature or class, and the fields of a Graph that they are.
LISTS = {"labels": "labels", "node_names": "ids", "attr_names": "feature_names", "class_names": "class_names"}


def read_npz(path: str | PathLike[str], *, directed: bool | None = None) -> Graph:
    """Read a graph from an npz file in the authors' layout, or a matrix that `scipy.sparse.save_npz` wrote.

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
    adjacency = open_csr(archive, file, "adj_matrix") or open_saved(archive, file)
    if adjacency is None:
        raise damage(file, "no array under 'adj_matrix.data'")
    n, columns = adjacency.shape
    if n != columns or n == 0:
        raise damage(file, f"an 'adj_matrix' of shape {adjacency.shape}, not square or empty,")
    members: dict[str, CsrMembers | CooMembers | Member] = {"adjacency": adjacency}
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
