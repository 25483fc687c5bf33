"""The figure of models against APPNP over the labels per class: what the splits have in common cancels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pprop.study.figures.estimate import estimate
from pprop.study.figures.lines import Axis, Lines, Panel, Series, draw_lines
from pprop.study.figures.looks import looks_of
from pprop.study.figures.sweeps import LABELS
from pprop.study.row import Row
from pprop.study.statistics import split_gaps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LOWEST", "draw_leads", "leads_data"]

AGAINST = "APPNP"
LOWEST = -8.0
"""Points below which the figure is cut off: models that far behind would press the others into one line."""


def leads_data(rows: Mapping[str, Mapping[tuple[str, int], Sequence[Row]]]) -> Lines | None:
    """Return the test accuracy of each model minus that of APPNP, split by split, in points; None where there is none.

    Parameters
    ----------
    rows
        The runs by dataset and (model, training nodes per class).

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
    panels: list[Panel] = []
    for dataset, points in rows.items():
        accuracies = {place: {run.key.seeds: 100 * run.accuracy for run in runs} for place, runs in points.items()}
        found: dict[str, dict[float, list[float]]] = {}
        for (name, x), ours in sorted(accuracies.items(), key=lambda item: item[0][1]):
            gaps = [*split_gaps(ours, accuracies.get((AGAINST, x), {})).values()]
            if name != AGAINST and gaps:
                found.setdefault(name, {})[float(x)] = gaps
        series = tuple(
            Series(name, tuple(found[name]), tuple(estimate(gaps) for gaps in found[name].values()))
            for name in looks_of(found)
        )
        if series:
            panels.append(Panel(dataset, series))
    return Lines(tuple(panels), "test") if panels else None


def draw_leads(lines: Lines, columns: int | None = None) -> Figure:
    """Draw the differences over the number of training nodes per class, down to `LOWEST`."""
    return draw_lines(lines, Axis(LABELS.label, LABELS.ticks, heights=f"points from {AGAINST}", lowest=LOWEST), columns)
