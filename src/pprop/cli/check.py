"""What is wrong or noteworthy about a graph: first about its tables, then about the graph made of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import PYTHON, InputError, PpropError, SeveralErrors, Words, is_for_commands, sentence_of
from pprop._validate import counted, listed
from pprop.cli.graphs import GraphInput
from pprop.graph import Graph
from pprop.graph.tables.keys import code_texts

CHANCE = 1e-3  # that a column determines the label without having to do with it: above it nothing is said
FEW = 5  # labelled nodes of a class: fewer cannot be divided into training, stopping and test nodes


@final
@dataclass(frozen=True)
class Finding:
    """One sentence about a graph; `count` is how many nodes, edges or rows it speaks of."""

    level: Literal["problem", "warning", "note"]
    what: str
    count: int


_problem, _warning, _note = (partial(Finding, level) for level in ("problem", "warning", "note"))


def inspect(source: GraphInput, words: Words = PYTHON) -> tuple[Graph | None, list[Finding]]:
    """Return the graph, or None where it cannot be read, and the findings about it."""
    findings: list[Finding] = []
    try:
        source.check()
        if source.is_table:
            findings += _inspect_tables(source)
        if any(finding.level == "problem" for finding in findings):
            return None, findings
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            graph = source.read()
    except PpropError as error:
        return None, [*findings, *_wrong(error, words)]
    shown = (one for one in told if issubclass(one.category, UserWarning) and is_for_commands(one.message))
    said = dict.fromkeys(sentence_of(one.message, words) for one in shown)
    return graph, [*findings, *(_warning(what, 1) for what in said), *inspect_graph(graph)]


def _wrong(error: PpropError, words: Words) -> list[Finding]:
    """Return an error as a problem, or several as one each; the last has what to do about them all."""
    if not isinstance(error, SeveralErrors):
        return [_problem(" ".join(error.sentence(words).split()), 1)]
    *most, last = (finding for each in error.errors for finding in _wrong(each, words))
    what = " ".join([last.what, *map(words.remedy, error.remedies)]).strip()
    return [*most, _problem(what, 1)]


def checked(source: GraphInput, words: Words) -> tuple[Graph, list[Finding]]:
    """Return a graph that can be read, and the findings about it, none about a dataset; or raise what keeps it from that."""
    source.check_files()
    graph, findings = (None, list[Finding]()) if source.path is None else inspect(source, words)
    if graph is None:
        graph = source.read()
        for finding in findings:
            if finding.level == "problem":  # one that the reader has no words for
                raise InputError(finding.what)
    return graph, findings


def inspect_graph(graph: Graph) -> list[Finding]:
    """Return the findings about a graph that was read.

    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[1, 1, 0], [1, 0, 0], [0, 0, 0]]), labels=[0, -1, 1])
    >>> for finding in inspect_graph(pair):
    ...     print(finding.level, "|", finding.what)
    note | 1 self-loop; it keeps its weight, and a node without one gets one of weight 1.
    warning | 1 node without edges: its prediction stays as the network makes it.
    note | 2 components; the largest has 2 of 3 nodes, and nothing spreads from one to another.
    note | No ids: nodes are named by their positions, 0 to 2.
    warning | No features: --model label-propagation and 'pprop propagate' need none, --structure makes some of the graph.
    note | 1 of 3 nodes has no label.
    warning | 2 of 2 classes have fewer than 5 labelled nodes ('0': 1, '1': 1).
    """
    return [*_structure(graph), *_ids(graph), *_features(graph), *_labels(graph), *_leaks(graph)]


def _structure(graph: Graph) -> Iterator[Finding]:
    adjacency = graph.adjacency
    if graph.directed:
        one_way = adjacency.nnz - int(adjacency.sign().multiply(adjacency.T.sign()).nnz)
        yield _note(f"Directed: {counted(one_way, 'edge')} of {adjacency.nnz:,} without the edge back.", one_way)
    if graph.weights is not None:
        low, high = graph.weights.min(), graph.weights.max()
        yield _note(f"Weighted: from {low:g} to {high:g}.", graph.n_edges)
    loops = int(np.count_nonzero(adjacency.diagonal()))
    if loops:
        keeps = "it keeps its weight" if loops == 1 else "they keep their weight"
        yield _note(f"{counted(loops, 'self-loop')}; {keeps}, and a node without one gets one of weight 1.", loops)
    pairs = adjacency.tocoo()
    apart = pairs.row != pairs.col
    isolated = graph.n_nodes - len(np.union1d(pairs.row[apart], pairs.col[apart]))
    if isolated:
        several = "their predictions stay as the network makes them"
        stays = "its prediction stays as the network makes it" if isolated == 1 else several
        yield _warning(f"{counted(isolated, 'node')} without edges: {stays}.", isolated)
    n_components, component = sparse.csgraph.connected_components(adjacency, directed=True, connection="weak")
    if n_components > 1:
        size = f"{n_components:,} components; the largest has {int(np.bincount(component).max()):,} of "
        nodes = counted(graph.n_nodes, "node")
        yield _note(f"{size}{nodes}, and nothing spreads from one to another.", int(n_components))


def _ids(graph: Graph) -> Iterator[Finding]:
    if graph.ids is None:
        yield _note(f"No ids: nodes are named by their positions, 0 to {graph.n_nodes - 1}.", graph.n_nodes)
    elif graph.ids.dtype.kind == "U":
        spaced = [key for key in graph.ids.tolist() if key != key.strip()]
        if spaced:
            yield _warning(f"{counted(len(spaced), 'id')} with spaces at an end ({listed(spaced, 3)}).", len(spaced))


def _features(graph: Graph) -> Iterator[Finding]:
    if graph.features is None:
        remedy = "--model label-propagation and 'pprop propagate' need none, --structure makes some of the graph"
        yield _warning(f"No features: {remedy}.", graph.n_nodes)
        return
    features = graph.features
    if features.ndim != 2:
        return
    if isinstance(features, np.ndarray):
        in_rows, in_columns = features.any(axis=1), features.any(axis=0)
    else:  # which stores no zeros
        in_rows, in_columns = np.diff(features.indptr), np.bincount(features.indices, minlength=features.shape[1])
    empty = int(np.count_nonzero(in_rows == 0))
    if empty:
        yield _warning(f"{_have(empty, counted(graph.n_nodes, 'node'))} no features (all zero).", empty)
    unused = int(np.count_nonzero(in_columns == 0))
    if unused:
        yield _note(f"{unused:,} of {counted(features.shape[1], 'feature')} are zero everywhere.", unused)


def _labels(graph: Graph) -> Iterator[Finding]:
    if graph.labels is None:
        yield _warning("No labels: training needs some (--label-column); 'pprop propagate' does not.", graph.n_nodes)
        return
    missing = int(np.count_nonzero(graph.labels < 0))
    if missing:
        yield _note(f"{_have(missing, counted(graph.n_nodes, 'node'))} no label.", missing)
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.n_classes)
    names = graph.class_names or tuple(str(index) for index in range(graph.n_classes))
    few = [f"{names[index]!r}: {sizes[index]}" for index in np.flatnonzero(sizes < FEW)]
    if few:
        more = f" and {len(few) - FEW} more" if len(few) > FEW else ""
        have = _have(len(few), counted(len(sizes), "class", "classes"))
        yield _warning(f"{have} fewer than {FEW} labelled nodes ({', '.join(few[:FEW])}{more}).", len(few))
    if len(sizes) == 1:
        yield _warning("There is only one class, so there is nothing to tell apart.", 1)


def _leaks(graph: Graph) -> Iterator[Finding]:
    """Yield the columns that determine the label: probably what was written down when the label became known.

    A column of v values does so by chance with probability at most c^v / m, where m is the number of ways to deal the
    labels of c classes out to the labelled nodes: v values can stand for classes in c^v ways, each of which is one of m.
    Few labels and rare classes raise no alarm, therefore, nor do columns of more than twice as many values as classes,
    which may well be causes.
    """
    if graph.recipe is None or graph.features is None or graph.labels is None:
        return
    known = np.flatnonzero(graph.labels >= 0)
    labels, c = graph.labels[known], max(graph.n_classes, 2)
    ways = math.lgamma(len(labels) + 1) - sum(math.lgamma(size + 1) for size in np.bincount(labels).tolist())
    most = min(2 * c, (ways + math.log(CHANCE)) / math.log(c))
    rows, start = graph.features[known], 0
    for name, encoder in graph.recipe.encoders.items():
        width = len(encoder.feature_names(name))
        part, start = rows[:, start : start + width], start + width
        if encoder.kind in ("text", "embedding"):
            continue
        block: NDArray[Any] = part if isinstance(part, np.ndarray) else part.toarray()
        absent = block[:, -1] == 1 if encoder.missing else np.zeros(len(block), dtype=bool)
        values = block.argmax(axis=1) if encoder.kind == "category" else np.where(absent, np.nan, block[:, 0])
        alone = f"Column {name!r} alone" if _determine(values, labels, most) else ""
        if alone or _determine(absent, labels, most):
            what = (
                f"{alone or f'Whether {name!r} is missing'} determines the label of all {len(labels):,} labelled nodes"
            )
            remedy = f"If it is not known when you predict, leave it out: --column {name}=unused"
            yield _warning(f"{what}. {remedy}.", len(labels))


def _determine(values: NDArray[Any], labels: NDArray[Any], most: float) -> bool:
    """Whether nodes of the same value have the same label, and there are at most so many values."""
    if len(np.unique(values[:1000])) > most:
        return False
    found, codes = np.unique(values, return_inverse=True)
    label = np.zeros(len(found), dtype=labels.dtype)
    label[codes] = labels
    return len(found) <= most and bool((label[codes] == labels).all())


def _inspect_tables(source: GraphInput) -> Iterator[Finding]:
    """Yield what both tables show and the graph made of them hides: rows that are repeated, unknown or empty."""
    assert source.path is not None
    given, name = source.tables, source.path.name
    edges, node_table = source.edge_table(), source.node_table()
    ends = edges.texts(given.source, "source"), edges.texts(given.target, "target")
    nodes = None if node_table is None else node_table.texts(given.id_column, "id_column")
    keys, codes = code_texts(*ends, *([] if nodes is None else [nodes]))
    if nodes is not None:
        of, counts = Path(given.nodes or "").name, np.bincount(codes[2], minlength=len(keys))
        nameless = np.flatnonzero(codes[2] == 0)
        if nameless.size:
            yield _problem(f"{_rows(of, nameless)} without an id under {given.id_column!r}.", nameless.size)
        repeated = np.flatnonzero(counts[1:] > 1) + 1
        if repeated.size:
            which = f"{counted(repeated.size, 'id')} of {of} in more than one row"
            yield _problem(f"{which} ({listed(_texts(keys, repeated), 3)}).", repeated.size)
    empty = np.flatnonzero((codes[0] == 0) | (codes[1] == 0))
    if empty.size:
        yield _problem(f"{_rows(name, empty)} without an id at an end.", empty.size)
    if nodes is not None:
        known = np.zeros(len(keys), dtype=bool)
        known[codes[2]] = True
        yield from _unknown_ends(keys, (codes[0], codes[1]), known, source)
    yield from _repeats(codes[0], codes[1], name, source)


def _unknown_ends(
    keys: Any, ends: tuple[NDArray[np.int32], NDArray[np.int32]], known: NDArray[np.bool_], source: GraphInput
) -> Iterator[Finding]:
    assert source.path is not None
    name, known_ids = source.path.name, int(np.count_nonzero(known[1:]))
    known[0] = True  # an end without an id is another problem
    strange = np.flatnonzero(~(known[ends[0]] & known[ends[1]]))
    if not strange.size:
        return
    unknown = np.concatenate([end[~known[end]] for end in ends])
    ids = np.unique(unknown)
    which = f"{counted(ids.size, 'id')} that the node table does not have ({listed(_texts(keys, ids), 3)})"
    rows = f"{_rows(name, strange)} with {which}"
    if source.tables.unknown_nodes == "error":  # else reading the tables counts them
        yield _problem(f"{rows}.", strange.size)
    if len(unknown) == 2 * len(ends[0]):
        yield _problem(f"No id of {name} is in the node table: are these the right columns?", known_ids)


def _repeats(
    sources: NDArray[np.int32], targets: NDArray[np.int32], name: str, source: GraphInput
) -> Iterator[Finding]:
    pairs = np.unique(sources.astype(np.int64) << 32 | targets)
    repeated = len(sources) - len(pairs)
    if repeated:
        merged = "their weights are added" if source.tables.weight is not None else "each edge counts once"
        repeats = "repeats" if repeated == 1 else "repeat"
        yield _note(f"{counted(repeated, 'row')} of {name} {repeats} an earlier one; {merged}.", repeated)
    if source.tables.directed:
        return  # inspect_graph counts edges without the edge back
    low, high = pairs >> 32, pairs & 0xFFFFFFFF
    proper = low != high
    both = int(np.isin(high[proper] << 32 | low[proper], pairs[proper], assume_unique=True).sum()) // 2
    single = int(proper.sum()) - 2 * both
    if both and single:
        listed_once = f"{counted(single, 'edge')} listed in one direction and {both:,} in both"
        yield _note(f"{listed_once}; all are read as undirected.", single)


def _texts(keys: Any, codes: NDArray[Any]) -> list[str]:
    return keys.take(codes).to_pylist()


def _have(some: int, every: str) -> str:
    return f"{some:,} of {every} {'has' if some == 1 else 'have'}"


def _rows(name: str, rows: NDArray[np.int64]) -> str:
    """Return how many rows, and the first of them, numbered from 1 below the header."""
    return f"{counted(rows.size, 'row')} of {name} (first: row {rows[0] + 1})"
