"""Small graphs as tables of Spark, and as graphs of pprop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pprop
from pprop import Graph, GraphFolder

N = 60


@dataclass
class Tables:
    """Edges with a hub, edges listed twice and in both directions, a self-loop, and nodes without edges."""

    edges: Any
    predictions: Any
    H: NDArray[np.float64]
    ids: list[Any]

    def graph(self, place: Path, *, directed: bool, weight: str | None) -> Graph:
        """The graph that `read_edges` reads, nodes in the order of `ids`."""
        rows = [tuple(row) for row in self.edges.collect()]
        (place / "edges.csv").write_text("source,target,weight\n" + "".join(f"{s},{t},{w!r}\n" for s, t, w in rows))
        (place / "nodes.csv").write_text("id\n" + "".join(f"{one}\n" for one in self.ids))
        return pprop.read_edges(place / "edges.csv", place / "nodes.csv", directed=directed, weight=weight)


def make_tables(spark: Any, kind: str = "string", seed: int = 0) -> Tables:
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, N - 4, 200), rng.integers(0, N - 4, 200)
    target[:50] = 7
    source[60:70], target[60:70] = target[70:80], source[70:80]  # in the other direction, too
    source[80:85], target[80:85] = source[85:90], target[85:90]  # again
    source[90] = target[90]
    weights = rng.random(200).round(3) + 0.001
    H = rng.standard_normal((N, 3))
    ids: list[Any] = (
        [f"n{k}ä" if k % 2 else f"n{k}" for k in range(N)] if kind == "string" else [7 * k for k in range(N)]
    )
    rows = [(ids[s], ids[t], float(w)) for s, t, w in zip(source, target, weights, strict=True)]
    edges = spark.createDataFrame(rows, f"source {kind}, target {kind}, weight double")
    given = [(ids[k], *map(float, H[k])) for k in rng.permutation(N)]
    predictions = spark.createDataFrame(given, f"id {kind}, a double, b double, `c.d` double")
    return Tables(edges, predictions, H, ids)


def rows_by_id(frame: Any, ids: list[Any]) -> NDArray[np.float64]:
    """Return the numbers of a frame in the order of ids."""
    found = {row[0]: tuple(row)[1:] for row in frame.collect()}
    assert sorted(found) == sorted(ids)
    return np.array([found[one] for one in ids])


def in_order(folder: GraphFolder, ids: list[Any]) -> Any:
    """Return the adjacency of a folder, nodes in the order of ids."""
    graph = folder.graph()
    place = {one: k for k, one in enumerate([] if graph.ids is None else graph.ids.tolist())}
    order = np.array([place[one] for one in ids])
    return graph.adjacency[order][:, order].toarray()
