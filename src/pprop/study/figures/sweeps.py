"""The figures over one setting: labels per class, propagation steps, teleport probability, depth of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pprop.study.cell import Splits
from pprop.study.figures.lines import Axis, Lines, draw_lines, lines_data
from pprop.study.store.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "alpha_data",
    "depth_data",
    "draw_alpha",
    "draw_depth",
    "draw_labels",
    "draw_steps",
    "labels_data",
    "name_alphas",
    "steps_data",
]

LABELS = Axis("training nodes per class", (1, 2, 5, 10, 20, 40, 60))
STEPS = Axis("propagation steps K", (1, 2, 5, 10, 20, 50, 100), name_ends=True)
ALPHA = Axis("teleport probability α", (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
DEPTH = Axis("layers of the network", (1, 2, 3, 4, 5), log=False)


def labels_data(rows: Mapping[str, Mapping[tuple[str, float], Sequence[Row]]], splits: Splits = "test") -> Lines:
    """Return the accuracy of each model over the number of training nodes per class.

    Parameters
    ----------
    rows
        The runs by dataset and (model, training nodes per class).
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # stands for a Row, of which only the accuracy is read
    >>> lines = labels_data({"Cora-ML": {("GCN", 1): [Run(accuracy=0.5)], ("APPNP", 1): [Run(accuracy=0.6)]}})
    >>> [(series.name, series.x, series.estimates[0].mean) for series in lines.panels[0].series]
    [('GCN', (1.0,), 50.0), ('APPNP', (1.0,), 60.0)]
    """
    return lines_data(rows, splits, "labels_data")


def steps_data(rows: Mapping[str, Mapping[tuple[float, float], Sequence[Row]]], splits: Splits = "validation") -> Lines:
    """Return the accuracy of APPNP over the number of propagation steps K, one series for each alpha.

    Parameters
    ----------
    rows
        The runs by dataset and (alpha, K). K = inf stands for the limit: PPNP, or for alpha = 0 the stationary
        distribution.
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run
    >>> rows = {"Cora-ML": {(0.1, 10): [Run(accuracy=0.75)], (0.1, float("inf")): [Run(accuracy=0.875)]}}
    >>> series = steps_data(rows).panels[0].series[0]
    >>> series.name, series.x, series.limit.mean
    ('α = 0.1', (10.0,), 87.5)
    """
    return lines_data(name_alphas(rows), splits, "steps_data")


def name_alphas(
    rows: Mapping[str, Mapping[tuple[float, float], Sequence[Row]]],
) -> dict[str, dict[tuple[str, float], Sequence[Row]]]:
    """Return the runs by (series, K) instead of (alpha, K).

    >>> name_alphas({"Cora-ML": {(0.1, 10.0): []}})
    {'Cora-ML': {('α = 0.1', 10.0): []}}
    """
    return {
        dataset: {(f"α = {alpha:g}", K): runs for (alpha, K), runs in points.items()}
        for dataset, points in rows.items()
    }


def alpha_data(rows: Mapping[str, Mapping[tuple[str, float], Sequence[Row]]], splits: Splits = "validation") -> Lines:
    """Return the accuracy of APPNP and PPNP over the teleport probability alpha.

    Parameters
    ----------
    rows
        The runs by dataset and (model, alpha).
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run
    >>> alpha_data({"PubMed": {("PPNP", 0.2): [Run(accuracy=0.75)]}}).panels[0].series[0].x
    (0.2,)
    """
    return lines_data(rows, splits, "alpha_data")


def depth_data(rows: Mapping[str, Mapping[int, Sequence[Row]]], splits: Splits = "validation") -> Lines:
    """Return the accuracy of APPNP over the number of layers of its network.

    Parameters
    ----------
    rows
        The runs by dataset and number of layers.
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run
    >>> depth_data({"PubMed": {2: [Run(accuracy=0.75)], 1: [Run(accuracy=0.5)]}}).panels[0].series[0].x
    (1.0, 2.0)
    """
    named = {
        dataset: {("APPNP", float(layers)): runs for layers, runs in points.items()} for dataset, points in rows.items()
    }
    return lines_data(named, splits, "depth_data")


def draw_labels(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the accuracies over the number of training nodes per class."""
    return draw_lines(lines, LABELS, columns)


def draw_steps(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the accuracies over the number of propagation steps."""
    return draw_lines(lines, STEPS, columns)


def draw_alpha(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the accuracies over the teleport probability."""
    return draw_lines(lines, ALPHA, columns)


def draw_depth(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the accuracies over the depth of the network."""
    return draw_lines(lines, DEPTH, columns)
