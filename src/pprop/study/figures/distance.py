"""The improvement of one model over another by distance from the training nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import reject
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.study.figures.hops import hops_from
from pprop.study.figures.looks import LOOKS
from pprop.study.figures.style import fix_layout, light_grid, new_panels, styled
from pprop.study.stats.estimate import Estimate
from pprop.study.store.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Distance", "Ring", "distance_data", "draw_distance"]

RESAMPLES = 1000
FEWEST = 1.0  # nodes that the last ring holds on average


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
) -> Distance:
    """Return how much more often `better` is right than `baseline`, by distance from the training nodes.

    With c(s, h) the number of nodes at h hops of split s that a model gets right, on average over its initialisations,
    and n(s, h) the number of nodes, the improvement is sum over s of (c1 - c2) / sum over s of n: all nodes of all
    splits count alike, and both models are judged on the same ones. Splits that only one model has are left out. The
    interval is a percentile bootstrap over splits. The farthest rings are merged until the last one holds at least one
    node on average.

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

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from types import SimpleNamespace as Run  # stands for a Row
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))
    >>> graph = Graph.from_scipy(path, labels=[0, 0, 1, 1])
    >>> split = Split(np.array([0]), np.array([], dtype=int), np.array([1, 2, 3]))
    >>> key = Run(seeds=Run(split=7, init=0))
    >>> appnp, gcn = Run(key=key, predictions=np.array([0, 0, 1, 1])), Run(key=key, predictions=np.array([0, 0, 0, 1]))
    >>> distance = distance_data("a path", graph, {7: split}, [appnp], [gcn])
    >>> [(ring.name, ring.nodes, ring.improvement.mean) for ring in distance.rings]
    [('1', 1.0, 0.0), ('2', 1.0, 100.0), ('3', 1.0, 0.0)]
    """
    if graph.labels is None:
        reject("graph", "distance_data", "a graph with labels", "a graph without")
    better, baseline = ([row for row in rows if len(row.predictions)] for rows in (better, baseline))
    seeds = sorted({row.key.seeds.split for row in better} & {row.key.seeds.split for row in baseline})
    if not seeds:
        reject("better", "distance_data", "rows of a split that 'baseline' has too", "none")
    # One row for each split, one column for each number of hops from 0.
    hops = {seed: hops_from(graph, splits[seed].train)[splits[seed].evaluation] for seed in seeds}
    width = max(int(far.max(initial=0)) for far in hops.values()) + 1
    nodes = np.stack([np.bincount(far[far >= 0], minlength=width) for far in hops.values()]).astype(np.float64)
    gains = _right(graph.labels, splits, hops, better, width) - _right(graph.labels, splits, hops, baseline, width)
    rings = [
        Ring(first, last, float(nodes[:, first : last + 1].sum(1).mean()), _improvement(gains, nodes, first, last))
        for first, last in _merge(nodes.mean(axis=0))
    ]
    count = [sum(row.key.seeds.split in hops for row in rows) for rows in (better, baseline)]
    return Distance(dataset, tuple(rings), (count[0], count[1]))


def _right(
    labels: NDArray[np.int64],
    splits: Mapping[int, Split],
    hops: Mapping[int, NDArray[np.int64]],
    rows: Sequence[Row],
    width: int,
) -> NDArray[np.float64]:
    """Return c(s, h), shape (splits, width)."""
    by_split: dict[int, list[NDArray[np.float64]]] = {seed: [] for seed in hops}
    for row in rows:
        seed = row.key.seeds.split
        if seed not in hops:
            continue
        at = splits[seed].evaluation
        right = (row.predictions[at] == labels[at]) & (hops[seed] >= 0)
        by_split[seed].append(np.bincount(hops[seed][right], minlength=width).astype(np.float64))
    return np.stack([np.mean(counts, axis=0) for counts in by_split.values()])


def _merge(nodes: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the first and last hop of each ring, given the mean number of nodes at each hop from 0."""
    rings = [(hop, hop) for hop in range(1, len(nodes))]
    while len(rings) > 1 and nodes[rings[-1][0] :].sum() < FEWEST:
        rings[-2:] = [(rings[-2][0], rings[-1][1])]
    return rings


def _improvement(gains: NDArray[np.float64], nodes: NDArray[np.float64], first: int, last: int) -> Estimate:
    gain, count = gains[:, first : last + 1].sum(axis=1), nodes[:, first : last + 1].sum(axis=1)
    random, n_splits = np.random.default_rng(0), len(gain)
    picked = random.integers(n_splits, size=(RESAMPLES, n_splits))
    totals = count[picked].sum(axis=1)
    with_nodes = totals > 0  # a ring far out may be empty in every split that was picked
    means = 100 * gain[picked].sum(axis=1)[with_nodes] / totals[with_nodes]
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(100 * gain.sum() / count.sum()), float(low), float(high), n_splits)


def draw_distance(panels: Sequence[Distance], columns: int | None = None) -> Figure:
    """Draw a panel for each dataset: the improvement at each distance, and below it the mean number of nodes."""
    with styled():
        figure, places = new_panels(len(panels), columns, height=2.2)
        for panel, axes in zip(panels, places, strict=True):
            _draw_panel(axes, panel)
            if axes.get_subplotspec().is_first_col():
                axes.set_ylabel("improvement (points)")
        fix_layout(figure)
    return figure


def _draw_panel(axes: Any, panel: Distance) -> None:
    look, points = LOOKS["APPNP"], [ring.improvement for ring in panel.rings]
    x = list(range(1, len(points) + 1))
    axes.axhline(0, color="0.35", linewidth=0.7, zorder=1)
    reach = np.array([point.below_and_above for point in points]).T
    axes.errorbar(
        x,
        [point.mean for point in points],
        yerr=reach,
        fmt="o",
        markersize=4,
        color=look.colour,
        elinewidth=1.1,
        capsize=2,
        zorder=3,
    )
    axes.set_xticks(x, [f"{ring.name}\n{ring.nodes:.0f}" for ring in panel.rings], fontsize=7)
    axes.set_xlim(0.5, len(x) + 0.5)
    axes.set_xlabel("hops from training nodes; mean number of nodes")
    axes.locator_params(axis="y", nbins=6, steps=(1, 2, 2.5, 5, 10))
    light_grid(axes, "y")
    axes.set_title(panel.dataset, loc="left")
