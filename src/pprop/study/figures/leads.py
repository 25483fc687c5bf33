"""Figures of differences, split by split: what the splits have in common cancels.

Models against APPNP over the labels per class, and APPNP against PPNP, its limit, over the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pprop.study.cell import Splits
from pprop.study.figures.lines import Axis, Lines, Panel, Series, draw_lines
from pprop.study.figures.looks import looks_of
from pprop.study.figures.sweeps import LABELS, STEPS, name_alphas
from pprop.study.stats.estimate import estimate
from pprop.study.stats.paired import split_gaps
from pprop.study.store.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LOWEST", "draw_leads", "draw_steps_leads", "leads_data", "steps_leads_data"]

_Place = tuple[str, float]

AGAINST = "APPNP"
LOWEST = -8.0
"""Points below which the figure is cut off: models that far behind would press the others into one line."""


def leads_data(rows: Mapping[str, Mapping[tuple[str, float], Sequence[Row]]], splits: Splits = "test") -> Lines | None:
    """Return the accuracy of each model minus that of APPNP, split by split, in points; None where there is none.

    Parameters
    ----------
    rows
        The runs by dataset and (model, training nodes per class).
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # stands for a Row
    >>> from pprop.study.cell import Seeds
    >>> def runs(*accuracies):
    ...     return [Run(key=Run(seeds=Seeds(split, 0)), accuracy=each) for split, each in enumerate(accuracies)]
    >>> lines = leads_data({"Cora-ML": {("GCN", 1): runs(0.5, 0.75), ("APPNP", 1): runs(0.625, 0.75)}})
    >>> [(series.name, series.estimates[0].mean) for series in lines.panels[0].series]
    [('GCN', -6.25)]
    """
    return _differences(rows, splits, lambda place: (AGAINST, place[1]))


def steps_leads_data(
    rows: Mapping[str, Mapping[tuple[float, float], Sequence[Row]]], splits: Splits = "validation"
) -> Lines | None:
    """Return the accuracy of APPNP minus that of PPNP, its limit, split by split, in points; None where there is none.

    Parameters
    ----------
    rows
        The runs by dataset and (alpha, K); K = inf stands for PPNP. Those with alpha = 0, whose limit is no model, are
        left out.
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run
    >>> from pprop.study.cell import Seeds
    >>> def runs(*accuracies):
    ...     return [Run(key=Run(seeds=Seeds(split, 0)), accuracy=each) for split, each in enumerate(accuracies)]
    >>> lines = steps_leads_data({"Cora-ML": {(0.1, 2): runs(0.5, 0.75), (0.1, float("inf")): runs(0.75, 0.75)}})
    >>> [(series.name, series.x, series.estimates[0].mean) for series in lines.panels[0].series]
    [('α = 0.1', (2.0,), -12.5)]
    """
    with_teleport = {
        dataset: {place: runs for place, runs in points.items() if place[0] > 0} for dataset, points in rows.items()
    }
    return _differences(name_alphas(with_teleport), splits, lambda place: (place[0], math.inf))


def _differences(
    rows: Mapping[str, Mapping[_Place, Sequence[Row]]], splits: Splits, against: Callable[[_Place], _Place]
) -> Lines | None:
    """Return each place minus the one it is held against, which itself is not shown."""
    panels: list[Panel] = []
    for dataset, points in rows.items():
        accuracies = {place: {run.key.seeds: 100 * run.accuracy for run in runs} for place, runs in points.items()}
        found: dict[str, dict[float, list[float]]] = {}
        for place, ours in sorted(accuracies.items(), key=lambda item: item[0][1]):
            other = against(place)
            gaps = [*split_gaps(ours, accuracies.get(other, {})).values()]
            if place != other and gaps:
                found.setdefault(place[0], {})[float(place[1])] = gaps
        series = tuple(
            Series(name, tuple(found[name]), tuple(estimate(gaps) for gaps in found[name].values()))
            for name in looks_of(found)
        )
        if series:
            panels.append(Panel(dataset, series))
    return Lines(tuple(panels), splits) if panels else None


def draw_leads(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the differences over the number of training nodes per class, down to `LOWEST`."""
    return draw_lines(lines, Axis(LABELS.label, LABELS.ticks, heights=f"points from {AGAINST}", lowest=LOWEST), columns)


def draw_steps_leads(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the differences over the number of propagation steps."""
    return draw_lines(lines, Axis(STEPS.label, STEPS.ticks, heights="points from PPNP"), columns)
