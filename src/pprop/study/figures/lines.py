"""Lines over one setting, a panel for each dataset: means with their intervals as bands, limits as dashed lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from pprop._validate import reject
from pprop.study.cell import Splits
from pprop.study.figures.style import Figure, Look, fix_layout, light_grid, looks_of, new_panels, styled
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row

LABEL_GAP = 9.0  # points between the middles of two such names


@final
@dataclass(frozen=True)
class Series:
    """One line: at each of `x`, in ascending order, an estimate in per cent; and where the line tends to, if known."""

    name: str
    x: tuple[float, ...]
    estimates: tuple[Estimate, ...]
    limit: Estimate | None = None


@final
@dataclass(frozen=True)
class Panel:
    """The lines of one dataset."""

    dataset: str
    series: tuple[Series, ...]


@final
@dataclass(frozen=True)
class Lines:
    """What such a figure shows: its panels, and the nodes on which the accuracies were measured."""

    panels: tuple[Panel, ...]
    splits: Splits


@final
@dataclass(frozen=True)
class Axis:
    """The setting under the lines.

    Attributes
    ----------
    label
        Its name.
    ticks
        Where it is marked.
    log
        Whether equal factors, rather than equal differences, are equally far apart.
    name_ends
        Whether the lines are named at their right end, where few of them end apart, rather than in a legend.
    heights
        What the lines are of; the accuracy on the kind of splits where it is empty.
    lowest
        Where the panels are cut off below, if at all.

    Examples
    --------
    >>> Axis("layers", (1, 2, 3), log=False).name_ends
    False
    """

    label: str
    ticks: tuple[float, ...]
    log: bool = True
    name_ends: bool = False
    heights: str = ""
    lowest: float | None = None


def lines_data(
    rows: Mapping[str, Mapping[tuple[str, float], Sequence[Row]]], splits: Splits, function: str = "lines_data"
) -> Lines:
    """Return what the figure shows: the mean accuracy of each point's runs, in per cent, and its interval.

    Parameters
    ----------
    rows
        By dataset and (series, x) the runs of that point; x = inf is the limit of its series. Points without runs are
        left out.
    splits
        The kind of splits that the accuracies belong to.
    function
        Named in the message where there is nothing to show.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row, of which only the accuracy is read
    >>> rows = {"Cora-ML": {("APPNP", 2): [Run(accuracy=0.8)], ("APPNP", 1): [Run(accuracy=0.7), Run(accuracy=0.8)]}}
    >>> series = lines_data(rows, "validation").panels[0].series[0]
    >>> series.name, series.x, [(point.mean, point.runs) for point in series.estimates]
    ('APPNP', (1.0, 2.0), [(75.0, 2), (80.0, 1)])
    """
    panels: list[Panel] = []
    for dataset, points in rows.items():
        by_series: dict[str, dict[float, Estimate]] = {}
        for (name, x), runs in sorted(points.items(), key=lambda item: item[0][1]):
            if runs:
                by_series.setdefault(name, {})[float(x)] = estimate([100 * run.accuracy for run in runs])
        series = tuple(_series(name, by_series[name]) for name in looks_of(by_series))
        if series:
            panels.append(Panel(dataset, series))
    if not panels:
        reject("rows", function, "a mapping with at least one run", "none")
    return Lines(tuple(panels), splits)


def _series(name: str, points: dict[float, Estimate]) -> Series:
    limit = points.pop(math.inf, None)
    return Series(name, tuple(points), tuple(points.values()), limit)


def draw_lines(lines: Lines, axis: Axis, columns: int | None = None) -> Figure:
    """Draw a panel for each dataset, in `columns` columns; by default two where there is more than one panel."""
    with styled():
        figure, places = new_panels(len(lines.panels), columns, height=2.3)
        looks = looks_of(series.name for panel in lines.panels for series in panel.series)
        for panel, axes in zip(lines.panels, places, strict=True):
            for series in panel.series:
                _draw_series(axes, series, looks[series.name])
            axes.set_title(panel.dataset, loc="left")
            _set_axis(axes, axis, _reach(lines, axis))
            if axes.get_subplotspec().is_first_col():
                axes.set_ylabel(axis.heights or f"{lines.splits} accuracy (%)")
        if axis.name_ends:
            _name_lines(figure, lines, places, looks)
        elif len(looks) > 1:
            _draw_legend(figure, looks)
        fix_layout(figure)
    return figure


def _draw_series(axes: Any, series: Series, look: Look) -> None:
    means = [point.mean for point in series.estimates]
    lows, highs = [point.low for point in series.estimates], [point.high for point in series.estimates]
    if len(series.x) == 1:  # a band has no width there
        axes.vlines(series.x, lows, highs, color=look.colour, linewidth=1.1, zorder=2)
    axes.fill_between(series.x, lows, highs, color=look.colour, alpha=0.18, linewidth=0, zorder=2)
    marks = {"markersize": 4.2, "markeredgewidth": 0.4, "markeredgecolor": "white"}
    axes.plot(series.x, means, **look.line, **marks, linewidth=1.1, label=series.name, zorder=3)
    if series.limit is not None:
        axes.axhline(series.limit.mean, color=look.colour, linewidth=0.9, linestyle=(0, (6, 3)), zorder=1)
        axes.axhspan(series.limit.low, series.limit.high, color=look.colour, alpha=0.1, linewidth=0, zorder=1)


def _reach(lines: Lines, axis: Axis) -> tuple[float, float]:
    """Return the ends of the setting's axis, the same in all panels."""
    places = [*axis.ticks, *(x for panel in lines.panels for series in panel.series for x in series.x)]
    low, high = min(places), max(places)
    if axis.log:
        factor = (high / low) ** 0.04
        return low / factor, high * factor
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _set_axis(axes: Any, axis: Axis, reach: tuple[float, float]) -> None:
    if axis.log:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(axis.ticks, [f"{tick:g}" for tick in axis.ticks])
    axes.set_xlim(reach)
    axes.set_xlabel(axis.label)
    if axis.lowest is not None:
        axes.set_ylim(bottom=max(axis.lowest, axes.get_ylim()[0]))
    axes.locator_params(axis="y", nbins=6, steps=(1, 2, 2.5, 5, 10))
    light_grid(axes, "y")


def _draw_legend(figure: Figure, looks: Mapping[str, Look]) -> None:
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        handles.update({str(line.get_label()): line for line in axes.lines if line.get_label() in looks})
    columns = 3 if figure.get_figwidth() < 5 else 5 if len(looks) <= 5 else (len(looks) + 1) // 2
    named = [name for name in looks if name in handles]
    figure.legend([handles[name] for name in named], named, loc="outside upper center", ncols=columns, handlelength=2.6)


def _name_lines(figure: Figure, lines: Lines, places: Sequence[Any], looks: Mapping[str, Look]) -> None:
    """Write each line's name at its right end, pushed apart where the ends meet."""
    figure.draw_without_rendering()  # the axes get their heights
    for panel, axes in zip(lines.panels, places, strict=True):
        height = axes.get_window_extent().height * 72 / figure.dpi
        low, high = axes.get_ylim()
        ends = sorted(end for series in panel.series for end in _ends(series, (high - low) * LABEL_GAP / height))
        wanted = [(place - low) / (high - low) * height for place, _, _ in ends]
        for (_, text, name), at in zip(ends, push_apart(wanted, LABEL_GAP), strict=True):
            beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
            place = {"xy": (1.0, at / height), "xycoords": "axes fraction"}
            axes.annotate(text, **place, **beside, color=looks[name].colour, fontsize=7.5)


def _ends(series: Series, near: float) -> list[tuple[float, str, str]]:
    """Return (height, text, series) of what is written beside a line; its limit only where it is not `near` the end."""
    ends = [(point.mean, series.name, series.name) for point in series.estimates[-1:]]
    if series.limit is not None and not (ends and abs(ends[0][0] - series.limit.mean) < near):
        ends.append((series.limit.mean, "limit" if ends else f"{series.name}, limit", series.name))
    return ends


def push_apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, as close as may be to the ascending places `wanted`.

    Neighbours that are too close form a block around the mean of what they want; blocks that meet become one.

    Examples
    --------
    >>> push_apart([1.0, 2.0, 50.0], gap=9)
    [-3.0, 6.0, 50.0]
    """
    blocks: list[list[float]] = []
    for place in wanted:
        blocks.append([place])
        while len(blocks) > 1 and _span(blocks[-1], gap)[0] - _span(blocks[-2], gap)[1] < gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [_span(block, gap)[0] + gap * index for block in blocks for index in range(len(block))]


def _span(block: Sequence[float], gap: float) -> tuple[float, float]:
    middle, half = sum(block) / len(block), gap * (len(block) - 1) / 2
    return middle - half, middle + half
