"""The figures over one setting: training nodes per class (labels), propagation steps, teleport probability, depth.

Labels are shown as differences from APPNP, split by split, so that what the splits have in common cancels; steps also as
differences of APPNP from PPNP, its limit. Every line is named at its right end, and every tick says how many runs there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from pprop._validate import reject
from pprop.study.cell import Cell, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures.gather import DrawnFigure, RowsOf, Spot, collect, percent_over_splits, runs_note
from pprop.study.figures.style import Figure, Look, light_grid, looks_of, new_panels, push_apart
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.stats.paired import split_gaps
from pprop.study.store.row import Row
from pprop.study.tables.entries import model_title

LABEL_GAP = 9.0  # points between the middles of two names at the ends of lines
UNSEEDED = ("Bt. FP", "Bt. FP, tuned")  # series that have one run for each split

# The series of a point, and where it is on the axis.
Place = tuple[str, float]
RowsByPlace = Mapping[str, Mapping[Place, Sequence[Row]]]


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
    """The lines of one dataset, and where they are differences, those that they are differences from."""

    dataset: str
    series: tuple[Series, ...]
    base: Series | None = None


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
    heights
        What the lines are of; the accuracy on the kind of splits where it is empty.
    lowest
        Where the panels are cut off below, if at all.
    reach
        How far the panels reach below the highest mean at most.
    """

    label: str
    ticks: tuple[float, ...]
    log: bool = True
    heights: str = ""
    lowest: float = -math.inf
    reach: float = math.inf


def lines_data(
    rows: RowsByPlace, splits: Splits, against: Callable[[Place], Place] | None = None, base: str = ""
) -> Lines:
    """Return what the figure shows: the mean accuracy of each point's runs, in per cent, and its interval.

    Parameters
    ----------
    rows
        By dataset and place (series, x) the runs of that point; x = inf is the limit of its series. Points without runs
        are left out.
    splits
        The kind of splits that the accuracies belong to.
    against
        The place that a place is compared with: shown are then differences in points, split by split, where both have
        runs. A place that is compared with itself is not shown.
    base
        The series that others are compared with, whose accuracies are kept with the differences.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> from pprop.study.cell import Seeds
    >>> def runs(*accuracies):
    ...     return [Run(key=Run(seeds=Seeds(split, 0)), accuracy=each) for split, each in enumerate(accuracies)]
    >>> rows = {"Cora-ML": {("APPNP", 2): runs(0.875), ("APPNP", 1): runs(0.75, 0.625), ("GCN", 1): runs(0.5, 0.625)}}
    >>> series = lines_data(rows, "validation").panels[0].series[1]
    >>> series.name, series.x, [(point.mean, point.runs) for point in series.estimates]
    ('APPNP', (1.0, 2.0), [(68.75, 2), (87.5, 1)])
    >>> lines = lines_data(rows, "validation", lambda place: ("APPNP", place[1]))
    >>> [(series.name, series.x, series.estimates[0].mean) for series in lines.panels[0].series]
    [('GCN', (1.0,), -12.5)]
    """
    panels: list[Panel] = []
    for dataset, points in rows.items():
        of_base = {
            float(x): percent_over_splits(runs) for (name, x), runs in sorted(points.items()) if name == base and runs
        }
        by_series: dict[str, dict[float, Estimate]] = {}
        for place, runs in sorted(points.items(), key=lambda item: item[0][1]):
            if against is None:
                found = percent_over_splits(runs) if runs else None
            else:
                gaps = _gaps(points, place, against(place))
                found = replace(estimate(gaps), runs=len(runs)) if gaps else None
            if found is not None:
                by_series.setdefault(place[0], {})[float(place[1])] = found
        series = tuple(_series(name, by_series[name]) for name in looks_of(by_series))
        if series:
            panels.append(Panel(dataset, series, _series(base, of_base) if of_base else None))
    return Lines(tuple(panels), splits)


def _gaps(points: Mapping[Place, Sequence[Row]], place: Place, other: Place) -> list[float]:
    ours, theirs = ({run.key.seeds: 100 * run.accuracy for run in points.get(at, ())} for at in (place, other))
    return [] if place == other else [*split_gaps(ours, theirs).values()]


def _series(name: str, points: dict[float, Estimate]) -> Series:
    limit = points.pop(math.inf, None)
    return Series(name, tuple(points), tuple(points.values()), limit)


def draw_lines(lines: Lines, axis: Axis, columns: int | None = None) -> Figure:
    """Draw a panel for each dataset, in `columns` columns; by default two where there is more than one panel."""
    if not lines.panels:
        reject("lines", "draw_lines", "lines of at least one run", "none")
    with new_panels(len(lines.panels), columns, height=2.3) as (figure, places):
        looks = looks_of(series.name for panel in lines.panels for series in panel.series)
        for panel, axes in zip(lines.panels, places, strict=True):
            for series in panel.series:
                _draw_series(axes, series, looks[series.name])
            _set_axis(axes, axis, _reach(lines, axis), panel)
            base = "" if panel.base is None else f"; {panel.base.name} (%)"
            axes.set(title=panel.dataset, xlabel=f"{axis.label}{base}; runs")
            if axes.get_subplotspec().is_first_col():
                axes.set_ylabel(axis.heights or f"{lines.splits} accuracy (%)")
        _name_lines(figure, lines, places, looks)
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


def _set_axis(axes: Any, axis: Axis, reach: tuple[float, float], panel: Panel) -> None:
    if axis.log:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(axis.ticks, [_tick(tick, panel) for tick in axis.ticks], fontsize=6 if panel.base else None)
    axes.set_xlim(reach)
    if math.isfinite(axis.reach):
        points = [point for series in panel.series for point in (*series.estimates, series.limit) if point]
        highest = max(point.mean for point in points)
        shown = [point for point in points if point.mean >= highest - axis.reach]
        low, high = min(point.low for point in shown), max(point.high for point in shown)
        if high > low:
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axes.set_ylim(bottom=max(axis.lowest, axes.get_ylim()[0]))
    axes.locator_params(axis="y", nbins=6, steps=(1, 2, 2.5, 5, 10))
    light_grid(axes, "y")
    if axis.heights:  # what the differences are from
        axes.axhline(0, color="0.35", linewidth=0.8, zorder=1.5)


def _tick(tick: float, panel: Panel) -> str:
    """Return what is below a tick: its value, the accuracy there that differences are from, and the runs of a seeded line, at least."""
    seeded = [series for series in panel.series if series.name not in UNSEEDED]
    of_series = [dict(zip(series.x, series.estimates, strict=True)) for series in seeded]
    runs = sorted({points[tick].runs for points in of_series if tick in points})
    base = {} if panel.base is None else dict(zip(panel.base.x, panel.base.estimates, strict=True))
    lines = [f"{tick:g}", *([f"{base[tick].mean:.1f}"] if tick in base else [])]
    return "\n".join([*lines, *([f"{runs[0]}{'+' * (len(runs) > 1)}"] if runs else [])])


def _name_lines(figure: Figure, lines: Lines, places: Sequence[Any], looks: Mapping[str, Look]) -> None:
    """Write each line's name at its right end, pushed apart where the ends meet."""
    figure.draw_without_rendering()  # the axes get their heights
    for panel, axes in zip(lines.panels, places, strict=True):
        height = axes.get_window_extent().height * 72 / figure.dpi
        low, high = axes.get_ylim()
        ends = sorted(end for series in panel.series for end in _ends(series, (high - low) * LABEL_GAP / height, low))
        wanted = [(max(place, low) - low) / (high - low) * height for place, _, _ in ends]
        for (_, text, name), at in zip(ends, push_apart(wanted, LABEL_GAP), strict=True):
            beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
            place = {"xy": (1.0, at / height), "xycoords": "axes fraction"}
            axes.annotate(text, **place, **beside, color=looks[name].colour, fontsize=7.5)


def _ends(series: Series, near: float, low: float) -> list[tuple[float, str, str]]:
    """Return (height, text, series) of what is written beside a line; its limit only where it is not `near` the end.

    What ends below `low`, where the panel is cut off, has its height as a number.
    """

    def text(words: str, height: float) -> str:
        return words if height >= low else f"{words} \u2193 {height:.0f}".replace("-", "\u2212")

    limit = series.limit
    ends = [(point.mean, text(series.name, point.mean), series.name) for point in series.estimates[-1:]]
    if limit is not None and not (ends and abs(ends[0][0] - limit.mean) < near):
        ends.append((limit.mean, text("limit" if ends else f"{series.name}, limit", limit.mean), series.name))
    return ends


# Cut off below: models that far behind would press the others into one line.
LABELS = Axis("training nodes per class", (1, 2, 5, 10, 20, 40, 60), heights="points from APPNP", lowest=-8.0)
STEPS = Axis("propagation steps K", (1, 2, 5, 10, 20, 50, 100), reach=15.0)
STEPS_LEAD = replace(STEPS, heights="points from PPNP")
ALPHA = Axis("teleport probability α", (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
DEPTH = Axis("layers of the network", (1, 2, 3, 4, 5), log=False)
NO_TELEPORT = "α = 0"


def labels_place(cell: Cell) -> Place:
    """Return the model and the training nodes per class.

    >>> labels_place(Cell("gcn", {}, "citeseer", per_class=5))
    ('GCN', 5)
    """
    return model_title(cell), cell.per_class


def steps_place(cell: Cell) -> Place | None:
    """Return alpha, as the series is named, and K: infinite for PPNP and for the limit without teleport.

    >>> steps_place(Cell("appnp", {"alpha": 0.0, "steps": "limit"}, "citeseer"))
    ('α = 0', inf)
    """
    if cell.model not in ("appnp", "ppnp"):
        return None
    steps: Any = "limit" if cell.model == "ppnp" else cell.settings["steps"]
    return f"α = {cell.settings['alpha']:g}", math.inf if steps == "limit" else float(steps)


def alpha_place(cell: Cell) -> Place | None:
    """Return the model and alpha.

    >>> alpha_place(Cell("ppnp", {"alpha": 0.2}, "citeseer"))
    ('PPNP', 0.2)
    """
    return (model_title(cell), cell.settings["alpha"]) if "alpha" in cell.settings else None


def depth_place(cell: Cell) -> Place | None:
    """Return the model and the number of layers, which is one more than there are hidden ones; only APPNP is shown.

    >>> depth_place(Cell("appnp", {"hidden": [64, 64]}, "citeseer"))
    ('APPNP', 3)
    """
    return ("APPNP", len(cell.settings["hidden"]) + 1) if cell.model == "appnp" else None


def from_appnp(place: Place) -> Place:
    """Return the place of APPNP, with which the other models are compared.

    >>> from_appnp(("GCN", 5))
    ('APPNP', 5)
    """
    return "APPNP", place[1]


def from_ppnp(place: Place) -> Place:
    """Return the place of PPNP, with which each number of steps is compared; without teleport the limit is no model.

    >>> from_ppnp(("α = 0.1", 10)), from_ppnp(("α = 0", 10))
    (('α = 0.1', inf), ('α = 0', 10))
    """
    return place if place[0] == NO_TELEPORT else (place[0], math.inf)


@final
@dataclass(frozen=True)
class _Sweep:
    """One of these figures: what its experiments show, its title, where a cell is placed, and the axis.

    With `against` and `splits`, the kind of splits, it is a figure of differences; `base` is what they are from, if it is
    one series.
    """

    shows: str
    title: str
    place: Callable[[Cell], Place | None]
    axis: Axis
    against: Callable[[Place], Place] | None = None
    splits: Splits | None = None
    base: str = ""


_BY_STEPS = "over the number of propagation steps"
_SWEEPS = {
    "labels": _Sweep(
        "labels", "Lead of APPNP over the number of training nodes", labels_place, LABELS, from_appnp, "test", "APPNP"
    ),
    "steps": _Sweep("steps", f"Accuracy {_BY_STEPS}", steps_place, STEPS),
    "steps_lead": _Sweep("steps", f"Distance from PPNP {_BY_STEPS}", steps_place, STEPS_LEAD, from_ppnp, "validation"),
    "alpha": _Sweep("alpha", "Accuracy over the teleport probability", alpha_place, ALPHA),
    "depth": _Sweep("depth", "Accuracy over the depth of the network", depth_place, DEPTH),
}
_BANDS = "with 95 % intervals over splits"
_GAPS = f"split by split, {_BANDS}"
_CAPTIONS = {
    "labels": f"Each model minus APPNP, {_GAPS}. Below the axis are APPNP's own accuracy and the "
    "number of runs per point. The plot ends 8 points below APPNP.",
    "steps": f"Means of APPNP trained with K steps, {_BANDS}. Dashed lines are the limit of many "
    "steps, which is PPNP for α > 0. The plot ends 15 points below the best accuracy. If a line ends below the plot, its name has an "
    "arrow and its last accuracy.",
    "steps_lead": f"APPNP with K steps minus PPNP with the same α, {_GAPS}.",
    "alpha": f"Means {_BANDS}.",
    "depth": f"Means of APPNP {_BANDS}.",
}


def sweep_figures(experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[DrawnFigure]:
    """Yield those of the figures that have rows; with the kind of splits in their names where there are both kinds.

    >>> list(sweep_figures([], lambda cell: []))
    []
    """
    for name, sweep in _SWEEPS.items():
        kinds: tuple[Splits, ...] = (sweep.splits,) if sweep.splits else ("test", "validation")
        of_sweep = [one for one in experiments if one.shows == sweep.shows]
        found = {splits: collect(of_sweep, rows_of, sweep.place, splits) for splits in kinds}
        shown: list[Splits] = [splits for splits in kinds if found[splits].rows]
        for splits in shown:
            lines = lines_data(found[splits].rows, splits, sweep.against, sweep.base)
            if lines.panels:
                more = f"{_capped(lines, sweep, of_sweep, rows_of)} {_runs(lines)}{found[splits].note}"
                full_name = name if len(shown) == 1 else f"{name}_{splits}"
                draw, caption = partial(draw_lines, lines, sweep.axis), f"{_CAPTIONS[name]}{more}"
                yield DrawnFigure(full_name, sweep.title, caption, lines, draw, found[splits].experiments)


def _capped(lines: Lines, sweep: _Sweep, experiments: Sequence[Experiment], rows_of: RowsOf) -> str:
    """Name the limits that are drawn whose runs ended at the most epochs that were allowed, and not by early stopping."""
    drawn = {series.name for panel in lines.panels for series in panel.series if series.limit is not None}
    cells = {point.cell.config: point.cell for one in experiments for point in one.points}
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for cell in cells.values():
        name, x = sweep.place(cell) or ("", 0.0)
        if name in drawn and math.isinf(x) and cell.splits == lines.splits:
            most: int = cell.settings["max_epochs"]
            ended, made = counts.get((name, most), (0, 0))
            runs = rows_of(cell)
            counts[name, most] = ended + sum(row.epochs >= most for row in runs), made + len(runs)
    return "".join(
        f" {ended} of {made} runs of {name} with the limit ended at the cap of {most:,} epochs."
        for (name, most), (ended, made) in counts.items()
        if ended
    )


def _runs(lines: Lines) -> str:
    """Say how many runs there are; of a model without a seed, that there is one for each split."""
    counts: dict[Spot, int] = {}
    limits: dict[Spot, int] = {}
    single: dict[str, None] = {}
    for dataset, series in ((panel.dataset, series) for panel in lines.panels for series in panel.series):
        if series.name in UNSEEDED:
            single[f"{series.name}: one per split."] = None
            continue
        points = zip(series.x, series.estimates, strict=True)
        counts |= {(series.name, dataset, f"{x:g}"): point.runs for x, point in points}
        if series.limit is not None:
            limits[series.name, dataset, "the limit"] = series.limit.runs
    at: dict[tuple[str, str], set[int]] = {}
    for (_, dataset, x), runs in counts.items():
        at.setdefault((dataset, x), set()).add(runs)
    more = (
        ["A + below a tick means that some lines have more runs there."]
        if any(len(each) > 1 for each in at.values())
        else []
    )
    return " ".join([*([runs_note(counts | limits)] if counts or limits else []), *more, *single])
