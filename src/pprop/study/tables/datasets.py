"""The table of datasets: sizes, label rates and average shortest paths, recomputed beside the printed ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pprop._errors import PpropError
from pprop._validate import reject
from pprop.datasets import DATASETS, load_dataset
from pprop.datasets.registry import sizes_of
from pprop.graph import Graph
from pprop.graph.files import read_json
from pprop.study.tables.entries import dataset_title
from pprop.study.tables.table import Cells, Number, Table, number

# Where a study's folder keeps the averages: the larger graphs need half a minute.
CACHE = "shortest_paths.json"

# The paper's label rates and average shortest paths.
PRINTED = {"citeseer": (0.036, 9.31), "cora_ml": (0.047, 5.27), "pubmed": (0.003, 6.34), "ms_academic": (0.016, 5.43)}
# Nodes of the full graphs, to which the printed label rates refer; the others are connected as they come.
FULL_SIZES = {"citeseer": 3312, "cora_ml": 2995}
BLOCK = 16  # words of 64 start nodes each that are searched from at once: few enough for a processor's cache

_Words: TypeAlias = NDArray[np.uint64]
_BITS_IN = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def dataset_table(names: Sequence[str], folder: Path | None = None) -> Table:
    """Return the table for the datasets in `names`; those whose file is not here are named below it.

    Parameters
    ----------
    names
        For `load_dataset`.
    folder
        A study's folder, which keeps the average shortest paths for the next time; None computes them anew.

    Examples
    --------
    >>> [str(value) for value in dataset_table(["citeseer"]).groups[0].rows[0]]
    ['Citeseer', '6', '3703', '2110', '3668', '0.057', '0.036', '0.036', '9.31', '9.31']
    """
    rows: list[Cells] = []
    notes: list[str] = []
    for name in names:
        try:
            graph = load_dataset(name)
        except (PpropError, OSError) as error:
            notes.append(f"{dataset_title(name)} could not be loaded here: {' '.join(str(error).split())}")
            continue
        rows.append(_row(name, graph, folder))
        if name in DATASETS and sizes_of(graph) != DATASETS[name].sizes:
            notes.append(f"{dataset_title(name)}: the sizes differ from the paper's, {DATASETS[name].sizes}.")
    heads = (
        "Dataset:text | Classes | Features | Nodes | Edges | Label rate | Label rate of the full graph | "
        "Label rate, paper | Average shortest path | Average shortest path, paper"
    )
    return Table.of("Datasets: the largest component of each", heads, {None: rows}, notes)


def cached_shortest_path(graph: Graph, folder: Path | None) -> float:
    """Return the average shortest path of a graph, from the study's folder if it is known there.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> cached_shortest_path(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), None)
    1.0
    """
    if folder is None:
        return mean_shortest_path(graph)
    path = folder / CACHE
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # a cache that is not there, or is not readable, is written anew
        found = read_json(path)
        known = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    value = known.get(graph.fingerprint)
    if not isinstance(value, float):
        value = known[graph.fingerprint] = mean_shortest_path(graph)
        with suppress(OSError):  # a study that may only be read has its report all the same
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(known, sort_keys=True), encoding="utf-8")
            part.replace(path)
    return value


def _row(name: str, graph: Graph, folder: Path | None) -> Cells:
    sizes = sizes_of(graph)
    labelled = 20 * graph.n_classes
    rate, path = PRINTED.get(name, (None, None))
    return (
        dataset_title(name),
        *(Number(sizes[key], 0) for key in ("classes", "features", "nodes", "edges")),
        Number(labelled / graph.n_nodes, 3),
        Number(labelled / FULL_SIZES.get(name, graph.n_nodes), 3),
        number(rate, 3),
        Number(cached_shortest_path(graph, folder)),
        number(path),
    )


def mean_shortest_path(graph: Graph) -> float:
    """Return the average number of edges on the shortest path between two different nodes that are connected.

    Exact. Every node is a start: bit s of a node's words says whether start s has reached it, so that one pass over the
    edges is a step of 1024 searches.

    Parameters
    ----------
    graph
        Undirected, at least one edge; weights do not count.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> mean_shortest_path(path)
    2.0
    """
    if graph.directed or not graph.n_entries:
        reject("graph", "mean_shortest_path", "undirected and have edges", graph)
    hops = pairs = 0
    for start in range(0, graph.n_nodes, 64 * BLOCK):
        nodes = np.arange(start, min(start + 64 * BLOCK, graph.n_nodes))
        reached = np.zeros((graph.n_nodes, -(-len(nodes) // 64)), dtype=np.uint64)
        word, bit = np.divmod(nodes - start, 64)
        reached[nodes, word] = np.left_shift(np.uint64(1), bit.astype(np.uint64))
        before, distance = len(nodes), 0
        while True:
            reached = _step(graph, reached)
            now, distance = int(_BITS_IN[reached.view(np.uint16)].sum(dtype=np.int64)), distance + 1
            if now == before:
                break
            hops, pairs, before = hops + distance * (now - before), pairs + now - before, now
    return hops / pairs


def _step(graph: Graph, reached: _Words) -> _Words:
    """Return the words of each node joined with those of its neighbours, shape (n, words)."""
    joined = reached.copy()
    rows = np.flatnonzero(np.diff(graph.indptr))  # reduceat gives an empty row its neighbour's value
    if len(rows):
        joined[rows] |= np.bitwise_or.reduceat(reached[graph.indices], graph.indptr[rows], axis=0)
    return joined
