"""One reader for graphs in files: it finds out which format a file has, and reads it with that format's own reader."""

from __future__ import annotations

import gzip
import inspect
import io
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, final
from xml.etree.ElementTree import ParseError, iterparse

import numpy as np

from pprop._errors import FormatError, GraphError, InputError, PpropError, Remedy, together
from pprop._optional import require
from pprop._validate import check_bool, counted, describe, reject
from pprop.graph.attributes import canonical_csr, symmetrized
from pprop.graph.convert.matrix_market import parse_matrix_market
from pprop.graph.convert.networks import from_networkx
from pprop.graph.edges import read_edges
from pprop.graph.files import check_memory, existing_file, path_of, read_file
from pprop.graph.folder import GraphFolder
from pprop.graph.graph import Graph
from pprop.graph.npz import read_npz

FUNCTION = "read_graph"
BLOCK = 2**20
XML_BYTES = 30  # of memory for a byte of GraphML
LONGEST_REASON = 160
TABLE_OPTIONS = tuple(inspect.signature(read_edges).parameters)[2:]  # but path and nodes
NODE_OPTIONS = ("id_column", "label_column", "label_kind", "feature_columns", "features", "degree", "missing_labels")


@final
@dataclass(frozen=True)
class Format:
    """A format of graphs: what people call it, its reader, and the options that it takes; those about a node table too."""

    title: str
    read: Callable[..., Graph]
    options: tuple[str, ...]
    takes_nodes: bool

    def check(self, nodes: object, options: Mapping[str, object]) -> None:
        """Refuse a node table and options that the format has no use for, all at once."""
        taken = (*self.options, *(NODE_OPTIONS if self.takes_nodes and nodes is not None else ()))
        errors: list[PpropError] = []
        for name, value in options.items():
            if name not in taken:
                lacks = " without a node table" if name in NODE_OPTIONS and self.takes_nodes else ""
                errors.append(self._useless(name, value, lacks))
        remedies = [Remedy("Its options are: {all}.", taken)] if errors else []
        if nodes is not None and not self.takes_nodes:
            errors.append(self._useless("nodes", nodes))
            if "label_column" in taken:
                names = ("label_column", "feature_columns")
                remedies.append(Remedy("Its nodes have attributes of their own, which are named by: {all}.", names))
            else:
                remedies.append(Remedy("It has features and labels."))
        if errors:
            raise together(errors, *remedies)

    def _useless(self, name: str, value: object, lacks: str = "") -> InputError:
        expected = f"left out for {self.title}{lacks}"
        return InputError(parameter=name, function=FUNCTION, expected=expected, found=describe(value))


def read_graph(path: str | PathLike[str], nodes: str | PathLike[str] | None = None, **options: Any) -> Graph:
    r"""Read a graph from a file of any known format.

    =====================================================  ============================================================
    ``.csv``, ``.tsv``, ``.tab`` (``.gz``, ``.zst``),      Edge tables, see `read_edges`: all its options.
    ``.parquet``
    ``.npz``                                               The layout of `write_npz`, or a matrix that
                                                           ``scipy.sparse.save_npz`` wrote: ``directed``, ``name``.
    ``.mtx`` (``.gz``)                                     A Matrix Market file: ``directed``, ``name``.
    ``.graphml`` (``.gz``)                                 GraphML, read by networkx: ``weight``, ``directed``, ``name``,
                                                           ``label_column``, ``label_kind`` and ``feature_columns``
                                                           (attributes of its nodes, see `Graph.from_networkx`).
    a folder                                               That `write_folder` or `build_graph` wrote, mapped from the disk,
                                                           see `GraphFolder`: ``name``.
    =====================================================  ============================================================

    Entry (i, j) of a matrix is what node i receives from node j.

    Parameters
    ----------
    path
        The file.
    nodes
        A table of the nodes with features and labels. That of a matrix has a row for each node, in the order of the
        matrix, and if it has the column `id_column` the ids are there.
    options
        Those of the format, and with a node table ``id_column``, ``label_column``, ``label_kind``,
        ``feature_columns`` and ``missing_labels``; as in `read_edges`. Of a matrix, ``directed=None`` makes the graph
        undirected exactly when it is symmetric.

    Raises
    ------
    FormatError
        The file is damaged or not what its suffix says.
    InputError
        The format is unknown, or has no use for an option.
    MissingDependencyError
        A GraphML file, and networkx is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "path.mtx")
    >>> _ = file.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n5 5 4\n2 1\n3 2\n4 3\n5 4\n")
    >>> read_graph(file)
    Graph(5 nodes, 4 edges, undirected)
    >>> folder.cleanup()
    """
    place = path_of(path, "path", FUNCTION)
    file = place if os.path.isdir(place) else existing_file(path, "path", FUNCTION)
    form = format_of(file)
    form.check(nodes, options)
    return form.read(file, **options) if nodes is None else form.read(file, nodes, **options)


def format_of(file: Path) -> Format:
    """Return the format of a file by its suffix."""
    from pprop.graph.tables.readers import table_suffix

    if file.is_dir():
        return Format("a graph folder", _read_folder, ("name",), takes_nodes=False)
    if table_suffix(file) is not None:
        return Format("a table", read_edges, TABLE_OPTIONS, takes_nodes=True)
    suffix, inner = file.suffix.lower(), Path(file.stem).suffix.lower()
    match inner if suffix == ".gz" else suffix:
        case ".mtx":
            return Format("a Matrix Market file", _read_matrix_market, ("directed", "name"), takes_nodes=True)
        case ".npz" if suffix == ".npz":
            return Format("an npz file", _read_archive, ("directed", "name"), takes_nodes=True)
        case ".graphml":
            options = ("weight", "directed", "name", "label_column", "label_kind", "feature_columns")
            return Format("a GraphML file", _read_graphml, options, takes_nodes=False)
        case _:
            known = ".csv, .tsv, .parquet, .npz, .mtx or .graphml (.gz is fine for all but .parquet and .npz)"
            reject("path", FUNCTION, f"a file whose name ends in {known}", repr(str(file)), error=FormatError)


def _read_folder(file: Path, *, name: Any = None) -> Graph:
    graph = GraphFolder.open(file).graph()
    return graph if name is None else graph.replace(name=name)


def _read_archive(file: Path, nodes: object = None, *, directed: Any = None, name: Any = None, **about: Any) -> Graph:
    graph = read_npz(file, directed=directed)
    return _finished(graph, file, nodes, name, about)


def _read_matrix_market(
    file: Path, nodes: object = None, *, directed: Any = None, name: Any = None, **about: Any
) -> Graph:
    """Read a matrix of which entry (i, j) is what i receives from j."""
    if directed is not None:
        directed = check_bool(directed, "directed", FUNCTION)
    try:
        matrix = parse_matrix_market(_content(file), file)
    except FormatError:
        raise
    except ValueError as error:
        got = f"{str(file)!r} with damaged or other content ({_short(error)})"
        reject("path", FUNCTION, "a sound Matrix Market file, as its suffix says", got, error=FormatError)
    try:
        if directed is None:
            directed = symmetrized(canonical_csr(matrix, "Graph.from_scipy")) is None
        graph = Graph.from_scipy(matrix, directed=directed)
    except GraphError as error:
        raise FormatError(f"The file {str(file)!r} holds no valid graph. {error}") from error
    return _finished(graph, file, nodes, name, about)


def _read_graphml(
    file: Path,
    *,
    weight: Any = "weight",
    directed: Any = None,
    name: Any = None,
    label_column: Any = None,
    label_kind: Any = "auto",
    feature_columns: Any = None,
) -> Graph:
    """Read GraphML by networkx. Ids are integers where all of them are written as Python prints integers."""
    networkx: Any = require("networkx", extra="convert", purpose="Reading GraphML files")
    content = _content(file)
    check_memory(file, XML_BYTES * len(content))
    if b"<!ENTITY" in content:  # which can stand for a text as long as one likes
        got = f"{str(file)!r} with entities of its own, which are never read,"
        reject("path", FUNCTION, "a plain GraphML file", got, error=FormatError)
    try:
        _check_ends(content)
        network = networkx.read_graphml(io.BytesIO(content))
    except (ParseError, networkx.NetworkXException, ValueError, KeyError, TypeError, AttributeError) as error:
        got = f"{str(file)!r} with damaged or other content ({_short(error)})"
        reject("path", FUNCTION, "a sound GraphML file, as its suffix says", got, error=FormatError)
    keys: list[Any] = list(network)
    if all(isinstance(key, str) and _is_integer(key) for key in keys):
        network = networkx.relabel_nodes(network, {key: int(key) for key in keys}, copy=True)
    fields = from_networkx(
        network,
        weight=weight,
        label=label_column,
        label_kind=label_kind,
        features=feature_columns,
        directed=directed,
        function=FUNCTION,
    )
    fields["name"] = name if name is not None else fields["name"] or _stem(file)
    return Graph.from_scipy(**fields)


def _check_ends(content: bytes) -> None:
    """Raise ValueError for an edge without an end, or whose end is no node of the file: networkx would invent a node."""
    nodes: set[str | None] = set()
    ends: list[dict[str, str]] = []
    for _, element in iterparse(io.BytesIO(content)):
        match element.tag.rpartition("}")[2]:
            case "node":
                nodes.add(element.get("id"))
            case "edge":
                ends.append({"source": element.get("source", ""), "target": element.get("target", "")})
                if missing := [end for end in ("source", "target") if element.get(end) is None]:
                    raise ValueError(f"edge {len(ends)} has no {missing[0]}")
            case _:
                continue
        element.clear()
    for number, edge in enumerate(ends, 1):
        for end, node in edge.items():
            if node not in nodes:
                raise ValueError(f"the {end} of edge {number} is {node!r}, which is no node of the file")


def _finished(graph: Graph, file: Path, nodes: object, name: object, about: dict[str, Any]) -> Graph:
    """Return a graph with the name wanted, and with what the node table says about its nodes."""
    changes: dict[str, Any] = {"name": _stem(file) if name is None else name}
    if nodes is not None:
        changes |= _of_table(graph, file, nodes, **about)
    return graph.replace(**changes)


def _of_table(graph: Graph, file: Path, nodes: object, **about: Any) -> dict[str, Any]:
    """Return the fields of a Graph that a node table tells, row by row in the order of the graph's nodes."""
    from pprop.graph.tables.arrow import pa
    from pprop.graph.tables.build import TableColumns
    from pprop.graph.tables.frames import table_of
    from pprop.graph.tables.readers import read_table

    if graph.features is not None or graph.labels is not None or graph.ids is not None:
        expected = f"left out for {str(file)!r}, which has features, labels or ids of its own"
        reject("nodes", FUNCTION, expected, describe(nodes))
    table = read_table(nodes, "nodes", FUNCTION)
    if table.n_rows != graph.n_nodes:
        expected = f"a table with a row for each of the {graph.n_nodes} nodes of {str(file)!r}"
        table.complain(expected, counted(table.n_rows, "row"))
    columns = TableColumns(FUNCTION, **about)
    named = columns.id_column in table.columns or "id_column" in about
    if not named:  # by position
        positions = pa.chunked_array([np.arange(graph.n_nodes)])
        names = (*table.names, columns.id_column)
        table = replace(table, columns={**table.columns, columns.id_column: positions}, names=names)
    none = table_of({"source": np.empty(0, np.int64), "target": np.empty(0, np.int64)}, "path", FUNCTION)
    parts = columns.parts(none, table)
    return {field: parts[field] for field in parts if field not in ("csr", "directed") and (named or field != "ids")}


def _content(file: Path) -> bytes:
    """Return what is in a file, decompressed, as far as memory goes."""
    content = read_file(file)
    if file.suffix.lower() != ".gz":
        return content
    blocks: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while block := stream.read(BLOCK):
                size += len(block)
                check_memory(file, size)  # a few bytes can become gigabytes
                blocks.append(block)
    except (OSError, EOFError, zlib.error):
        got = f"{str(file)!r} with damaged or other content"
        reject("path", FUNCTION, "a sound gzip file, as its suffix says", got, error=FormatError)
    return b"".join(blocks)


def _stem(file: Path) -> str:
    return Path(file.stem).stem if file.suffix.lower() == ".gz" else file.stem


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."
