"""What is wrong or noteworthy about a graph, in words and with counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from scipy import sparse

from pprop._errors import PpropError
from pprop.cli.graphs import GraphInput
from pprop.cli.text import counted, listed
from pprop.graph import Graph

__all__ = ["Finding", "inspect", "inspect_graph"]

FEW = 5  # labelled nodes of a class: fewer cannot be divided into training, stopping and test nodes
DOMINANT = 0.9


@final
@dataclass(frozen=True)
class Finding:
    """One sentence about a graph; `count` is how many nodes, edges or rows it speaks of."""

    level: Literal["problem", "warning", "note"]
    what: str
    count: int


def inspect(source: GraphInput) -> tuple[Graph | None, list[Finding]]:
    """Return the graph, or None where it cannot be read, and everything there is to say about it."""
    findings: list[Finding] = []
    try:
        if source.is_table:
            from pprop.cli.check_tables import inspect_tables

            findings += inspect_tables(source)
        if any(finding.level == "problem" for finding in findings):
            return None, findings
        graph = source.read()
    except PpropError as error:
        return None, [*findings, Finding("problem", " ".join(str(error).split()), 1)]
    return graph, [*findings, *inspect_graph(graph)]


def inspect_graph(graph: Graph) -> list[Finding]:
    """Return what there is to say about a graph that was read.

    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[1, 1, 0], [1, 0, 0], [0, 0, 0]]), labels=[0, -1, 1])
    >>> for finding in inspect_graph(pair):
    ...     print(finding.level, "|", finding.what)
    note | 1 self-loop; it keeps its weight, and a node without one gets one of weight 1.
    warning | 1 node without edges: its prediction stays as the network makes it.
    note | 2 components; the largest has 2 of 3 nodes, and nothing spreads from one to another.
    note | No ids: nodes are named by their positions, 0 to 2.
    warning | No features: the models need them; 'pprop propagate' does not.
    note | 1 of 3 nodes has no label.
    warning | 2 of 2 classes have fewer than 5 labelled nodes ('0': 1, '1': 1).
    """
    return [*_structure(graph), *_ids(graph), *_features(graph), *_labels(graph)]


def _structure(graph: Graph) -> Iterator[Finding]:
    adjacency = graph.adjacency
    if graph.directed:
        one_way = adjacency.nnz - int(adjacency.sign().multiply(adjacency.T.sign()).nnz)
        yield Finding(
            "note",
            f"Directed: {counted(one_way, 'edge')} of {adjacency.nnz:,} without the edge back.",
            one_way,
        )
    if graph.weights is not None:
        low, high = graph.weights.min(), graph.weights.max()
        yield Finding("note", f"Weighted: from {low:g} to {high:g}.", graph.n_edges)
    loops = int(np.count_nonzero(adjacency.diagonal()))
    if loops:
        keeps = "it keeps its weight" if loops == 1 else "they keep their weight"
        yield Finding(
            "note", f"{counted(loops, 'self-loop')}; {keeps}, and a node without one gets one of weight 1.", loops
        )
    pairs = adjacency.tocoo()
    apart = pairs.row != pairs.col
    isolated = graph.n_nodes - len(np.union1d(pairs.row[apart], pairs.col[apart]))
    if isolated:
        stays = "its prediction stays as the network makes it"
        if isolated > 1:
            stays = "their predictions stay as the network makes them"
        yield Finding("warning", f"{counted(isolated, 'node')} without edges: {stays}.", isolated)
    n_components, component = sparse.csgraph.connected_components(adjacency, directed=True, connection="weak")
    if n_components > 1:
        largest = int(np.bincount(component).max())
        yield Finding(
            "note",
            f"{n_components:,} components; the largest has {largest:,} of {counted(graph.n_nodes, 'node')}, "
            "and nothing spreads from one to another.",
            int(n_components),
        )


def _ids(graph: Graph) -> Iterator[Finding]:
    if graph.ids is None:
        yield Finding("note", f"No ids: nodes are named by their positions, 0 to {graph.n_nodes - 1}.", graph.n_nodes)
    elif graph.ids.dtype.kind == "U":
        spaced = [key for key in graph.ids.tolist() if key != key.strip()]
        if spaced:
            yield Finding(
                "warning", f"{counted(len(spaced), 'id')} with spaces at an end ({listed(spaced, 3)}).", len(spaced)
            )


def _features(graph: Graph) -> Iterator[Finding]:
    if graph.features is None:
        yield Finding("warning", "No features: the models need them; 'pprop propagate' does not.", graph.n_nodes)
        return
    if graph.features.ndim != 2:
        return
    sizes: Any = abs(sparse.csr_array(graph.features))
    row_sums, column_sums = np.asarray(sizes.sum(axis=1)), np.asarray(sizes.sum(axis=0))
    empty = int(np.count_nonzero(row_sums == 0))
    if empty:
        has = "has" if empty == 1 else "have"
        text = f"{empty:,} of {counted(graph.n_nodes, 'node')} {has} no features (all zero)."
        yield Finding("warning", text, empty)
    unused = int(np.count_nonzero(column_sums == 0))
    if unused:
        yield Finding("note", f"{unused:,} of {counted(len(column_sums), 'feature')} are zero everywhere.", unused)
    if len(column_sums) == 1:
        yield Finding(
            "warning",
            "Only one feature: the models divide each node's features by their sum, which leaves a single one without "
            "its size.",
            1,
        )
    total = float(column_sums.sum())
    if len(column_sums) > 1 and total and float(column_sums.max()) > DOMINANT * total:
        index = int(column_sums.argmax())
        name = repr(graph.feature_names[index]) if graph.feature_names is not None else f"number {index}"
        share = float(column_sums.max()) / total
        yield Finding(
            "warning",
            f"Feature {name} makes up {share:.0%} of all feature values, and the models divide each node's features "
            "by their sum: bring the columns to a common scale.",
            1,
        )


def _labels(graph: Graph) -> Iterator[Finding]:
    if graph.labels is None:
        yield Finding("warning", "No labels: training needs some; 'pprop propagate' does not.", graph.n_nodes)
        return
    missing = int(np.count_nonzero(graph.labels < 0))
    if missing:
        has = "has" if missing == 1 else "have"
        yield Finding("note", f"{missing:,} of {counted(graph.n_nodes, 'node')} {has} no label.", missing)
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.n_classes)
    names = graph.class_names or tuple(str(index) for index in range(graph.n_classes))
    few = [f"{names[index]!r}: {sizes[index]}" for index in np.flatnonzero(sizes < FEW)]
    if few:
        more = f" and {len(few) - FEW} more" if len(few) > FEW else ""
        yield Finding(
            "warning",
            f"{len(few):,} of {counted(len(sizes), 'class', 'classes')} {'has' if len(few) == 1 else 'have'} fewer than "
            f"{FEW} labelled nodes ({', '.join(few[:FEW])}{more}).",
            len(few),
        )
    if len(sizes) == 1:
        yield Finding("warning", "There is only one class, so there is nothing to tell apart.", 1)
