"""The improvement of one model over another by distance from the training nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import dijkstra

from pprop._errors import DatasetError
from pprop._validate import check_positions, reject
from pprop.datasets import DATASETS, Split
from pprop.graph import Graph
from pprop.study.figures.gather import DrawnFigure, FigureRows, runs_note
from pprop.study.figures.style import POINTS, Figure, light_grid, new_panels
from pprop.study.graphs import protocol_of
from pprop.study.stats.estimate import Estimate
from pprop.study.store.row import Row
from pprop.study.tables.entries import dataset_title

_Ints: TypeAlias = NDArray[np.int64]

RESAMPLES = 1000
FEWEST = 10.0  # nodes that the last ring holds on average: the interval of fewer says nothing


@final
@dataclass(frozen=True)
class Ring:
    """The evaluation nodes at one distance, or at several where few are that far.

    Attributes
    ----------
    first, last
        Hops from the nearest training node.
    nodes
        How many nodes there are, on average over the splits.
    improvement
        In percentage points; its `runs` are splits.

    Examples
    --------
    >>> Ring(7, 9, 2.5, Estimate(3.0, 1.0, 5.0, 20)).name
    '7+'
    """

    first: int
    last: int
    nodes: float
    improvement: Estimate

    @property
    def name(self) -> str:
        """The distance as it is written on the axis."""
        return str(self.first) if self.first == self.last else f"{self.first}+"


@final
@dataclass(frozen=True)
class Distance:
    """One panel: the rings of one dataset from near to far, and the number of runs of the two models."""

    dataset: str
    rings: tuple[Ring, ...]
    runs: tuple[int, int]


def distance_data(
    dataset: str,
    graph: Graph,
    splits: Mapping[int, Split],
    better: Sequence[Row],
    baseline: Sequence[Row],
    fewest: float = FEWEST,
) -> Distance:
    """Return how much more often `better` is right than `baseline`, by distance from the training nodes.

    With c(s, h) the number of nodes at h hops of split s that a model gets right, on average over its initialisations,
    and n(s, h) the number of nodes, the improvement is sum over s of (c1 - c2) / sum over s of n: all nodes of all
    splits count alike, and both models are judged on the same ones. Splits that only one model has are left out. The
    interval is a percentile bootstrap over splits. The farthest rings are merged until the last one holds at least
    `fewest` nodes on average.

    Parameters
    ----------
    dataset
        Name for the panel.
    graph
        With labels.
    splits
        By their seed: every split that the rows name.
    better, baseline
        The rows of the two models; of each the seeds and the predictions are read. Rows without predictions are left
        out.
    fewest
        Nodes of the last ring.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))
    >>> graph = Graph.from_scipy(path, labels=[0, 0, 1, 1])
    >>> split = Split(np.array([0]), np.array([], dtype=int), np.array([1, 2, 3]))
    >>> key = Run(seeds=Run(split=7, init=0))
    >>> appnp, gcn = Run(key=key, predictions=np.array([0, 0, 1, 1])), Run(key=key, predictions=np.array([0, 0, 0, 1]))
    >>> distance = distance_data("a path", graph, {7: split}, [appnp], [gcn], fewest=1)
    >>> [(ring.name, ring.nodes, ring.improvement.mean) for ring in distance.rings]
    [('1', 1.0, 0.0), ('2', 1.0, 100.0), ('3', 1.0, 0.0)]
    """
    better, baseline = ([row for row in rows if len(row.predictions)] for rows in (better, baseline))
    gains, nodes = gains_by_hop(graph, splits, better, baseline)
    rings = [
        Ring(first, last, float(nodes[:, first : last + 1].sum(1).mean()), _improvement(gains, nodes, first, last))
        for first, last in _merge(nodes.mean(axis=0), fewest)
    ]
    shared = _shared_splits(better, baseline)
    n_better, n_baseline = (sum(row.key.seeds.split in shared for row in rows) for rows in (better, baseline))
    return Distance(dataset, tuple(rings), (n_better, n_baseline))


def gains_by_hop(
    graph: Graph, splits: Mapping[int, Split], better: Sequence[Row], baseline: Sequence[Row]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return by split and number of hops how many nodes more `better` gets right than `baseline`, and how many there are.

    Parameters
    ----------
    graph, splits, better, baseline
        As for `distance_data`; every row has predictions.

    Returns
    -------
    gains, nodes
        Shape (splits, hops from 0): means over initialisations of the splits that both have, in the order of their seeds.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))
    >>> graph = Graph.from_scipy(path, labels=[0, 0, 1, 1])
    >>> splits = {7: Split(np.array([0]), np.array([], dtype=int), np.array([1, 2, 3]))}
    >>> key = Run(seeds=Run(split=7, init=0))
    >>> appnp, gcn = Run(key=key, predictions=np.array([0, 0, 1, 1])), Run(key=key, predictions=np.array([0, 0, 0, 1]))
    >>> gains_by_hop(graph, splits, [appnp], [gcn])
    (array([[0., 0., 1., 0.]]), array([[0., 1., 1., 1.]]))
    """
    if graph.labels is None:
        reject("graph", "gains_by_hop", "a graph with labels", "a graph without")
    seeds = _shared_splits(better, baseline)
    if not seeds:
        reject("better", "gains_by_hop", "rows of a split that 'baseline' has too", "none")
    hops = {seed: hops_from(graph, splits[seed].train)[splits[seed].evaluation] for seed in seeds}
    width = max(int(far.max(initial=0)) for far in hops.values()) + 1
    nodes = np.stack([np.bincount(far[far >= 0], minlength=width) for far in hops.values()]).astype(np.float64)
    right = (_right(graph.labels, splits, hops, rows, width) for rows in (better, baseline))
    return next(right) - next(right), nodes


def _shared_splits(better: Sequence[Row], baseline: Sequence[Row]) -> list[int]:
    return sorted({row.key.seeds.split for row in better} & {row.key.seeds.split for row in baseline})


def _right(
    labels: _Ints, splits: Mapping[int, Split], hops: Mapping[int, _Ints], rows: Sequence[Row], width: int
) -> NDArray[np.float64]:
    """Return c(s, h), shape (splits, width)."""
    counts: dict[int, list[_Ints]] = {seed: [] for seed in hops}
    for row in rows:
        if (seed := row.key.seeds.split) in hops:
            at = splits[seed].evaluation
            right = (row.predictions[at] == labels[at]) & (hops[seed] >= 0)
            counts[seed].append(np.bincount(hops[seed][right], minlength=width))
    return np.stack([np.mean(each, axis=0) for each in counts.values()])


def _merge(nodes: NDArray[np.float64], fewest: float) -> list[tuple[int, int]]:
    """Return the first and last hop of each ring, given the mean number of nodes at each hop from 0."""
    rings = [(hop, hop) for hop in range(1, len(nodes))]
    while len(rings) > 1 and nodes[rings[-1][0] :].sum() < fewest:
        rings[-2:] = [(rings[-2][0], rings[-1][1])]
    return rings


def _improvement(gains: NDArray[np.float64], nodes: NDArray[np.float64], first: int, last: int) -> Estimate:
    gain, count = gains[:, first : last + 1].sum(axis=1), nodes[:, first : last + 1].sum(axis=1)
    n_splits = len(gain)
    picked = np.random.default_rng(0).integers(n_splits, size=(RESAMPLES, n_splits))
    totals = count[picked].sum(axis=1)
    with_nodes = totals > 0  # a ring far out may be empty in every split that was picked
    means = 100 * gain[picked].sum(axis=1)[with_nodes] / totals[with_nodes]
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(100 * gain.sum() / count.sum()), float(low), float(high), n_splits)


def draw_distance(panels: Sequence[Distance], columns: int | None = None) -> Figure:
    """Draw a panel for each dataset: the improvement at each distance, and below it the mean number of nodes."""
    with new_panels(len(panels), columns, height=2.2) as (figure, places):
        for panel, axes in zip(panels, places, strict=True):
            _draw_panel(axes, panel)
            if axes.get_subplotspec().is_first_col():
                axes.set_ylabel("improvement (points)")
    return figure


def _draw_panel(axes: Any, panel: Distance) -> None:
    points = [ring.improvement for ring in panel.rings]
    x = list(range(1, len(points) + 1))
    axes.axhline(0, color="0.35", linewidth=0.7, zorder=1)
    reach = np.array([point.below_and_above for point in points]).T
    axes.errorbar(x, [point.mean for point in points], yerr=reach, markersize=4, capsize=2, **POINTS)
    axes.set_xticks(x, [f"{ring.name}\n{ring.nodes:.0f}" for ring in panel.rings], fontsize=7)
    axes.set(xlim=(0.5, len(x) + 0.5), xlabel="hops from training nodes; mean number of nodes", title=panel.dataset)
    axes.locator_params(axis="y", nbins=6, steps=(1, 2, 2.5, 5, 10))
    light_grid(axes, "y")


def distance_figure(found: FigureRows, graph_of: Callable[[str], Graph]) -> tuple[list[DrawnFigure], str]:
    """Return the figure of APPNP against GCN, if there is one, and a sentence about the datasets that it lacks.

    Parameters
    ----------
    found
        The rows of the accuracy table, with predictions.
    graph_of
        The graph of a dataset; it may raise `DatasetError`.

    Examples
    --------
    >>> distance_figure(FigureRows(), lambda name: None)
    ([], '')
    """
    panels: list[Distance] = []
    missing: dict[str, list[str]] = {}
    papers = {dataset_title(name): name for name in DATASETS}  # a user's graph has no other title than its name
    for title, dataset in (papers | {name: name for name in found.rows if name not in papers}).items():
        rows = found.rows.get(title, {})
        better, baseline = rows.get("APPNP", []), rows.get("GCN", [])
        seeds = {row.key.seeds.split for row in better} & {row.key.seeds.split for row in baseline}
        if not seeds:
            continue
        try:
            graph = graph_of(dataset)
        except DatasetError:
            missing.setdefault("whose graph is not on this machine", []).append(title)
            continue
        if {row.key.data for row in (*better, *baseline)} != {graph.fingerprint}:
            # node i of the predictions may be another node here
            missing.setdefault("whose graph here is not the one of the rows", []).append(title)
            continue
        protocol = protocol_of(graph)
        splits = {seed: protocol.split(graph, seed) for seed in seeds}
        panels.append(distance_data(title, graph, splits, better, baseline))
    reasons = [f"{', '.join(titles)}, {reason}" for reason, titles in missing.items()]
    without = f"Without {', and without '.join(reasons)}." if reasons else ""
    if not panels:
        return [], without
    models = ("APPNP", "GCN")
    counts = {(model, each.dataset, ""): each.runs[index] for each in panels for index, model in enumerate(models)}
    caption = (
        "APPNP minus GCN in points, by a node's distance from the nearest training node, with 95 % intervals "
        "over splits. Below each distance: the mean number of test nodes "
        f"there; the farthest are pooled until there are {FEWEST:g}. {runs_note(counts, 'of each model')}"
    )
    draw = partial(draw_distance, panels)
    names = (*found.origins["APPNP"], *found.origins["GCN"])
    title = "Improvement over GCN by distance from the training nodes"
    return [DrawnFigure("distance", title, f"{caption} {without}".strip(), panels, draw, names)], without


def hops_from(graph: Graph, nodes: ArrayLike) -> NDArray[np.int64]:
    """Return the number of edges from the nearest of `nodes` to each node.

    Parameters
    ----------
    graph
        Edges are followed in the direction in which predictions travel; weights do not count.
    nodes
        Positions of the nodes to start from, shape (m,).

    Returns
    -------
    array of int64, shape (n,)
        0 for `nodes` themselves, -1 for nodes that cannot be reached.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> hops_from(path, [1])
    array([1, 0, 1, 2, 3])
    """
    starts = check_positions(nodes, "nodes", "hops_from", n_nodes=graph.n_nodes)
    hops: Any = dijkstra(graph.adjacency.T, indices=starts, unweighted=True, min_only=True)
    return np.where(np.isinf(hops), -1, hops).astype(np.int64)
