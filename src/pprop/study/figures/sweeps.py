"""The figures over one setting: training nodes per class (labels), propagation steps, teleport probability, depth.

Labels and steps also as differences, split by split, so that what the splits have in common cancels: models against APPNP
over the labels, and APPNP against PPNP, its limit, over the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from pprop.study.cell import Cell, Splits
from pprop.study.experiment import Experiment
from pprop.study.figures.gather import Drawn, RowsOf, collect, runs_note
from pprop.study.figures.lines import Axis, Lines, Panel, Series, draw_lines, lines_data
from pprop.study.figures.style import Figure, looks_of
from pprop.study.stats.estimate import estimate
from pprop.study.stats.paired import split_gaps
from pprop.study.store.row import Row
from pprop.study.tables.entries import model_title

_Place = tuple[str, float]
_Rows = Mapping[str, Mapping[_Place, Sequence[Row]]]
_RowsOfSteps = Mapping[str, Mapping[tuple[float, float], Sequence[Row]]]

LABELS = Axis("training nodes per class", (1, 2, 5, 10, 20, 40, 60))
STEPS = Axis("propagation steps K", (1, 2, 5, 10, 20, 50, 100), name_ends=True)
ALPHA = Axis("teleport probability α", (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
DEPTH = Axis("layers of the network", (1, 2, 3, 4, 5), log=False)
AGAINST = "APPNP"
# Points below which the figure is cut off: models that far behind would press the others into one line.
LOWEST = -8.0


def labels_data(rows: _Rows, splits: Splits = "test") -> Lines:
    """Return the accuracy of each model over the number of training nodes per class.

    Parameters
    ----------
    rows
        The runs by dataset and (model, training nodes per class).
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row, of which only the accuracy is read
    >>> lines = labels_data({"Cora-ML": {("GCN", 1): [Run(accuracy=0.5)], ("APPNP", 1): [Run(accuracy=0.6)]}})
    >>> [(series.name, series.x, series.estimates[0].mean) for series in lines.panels[0].series]
    [('GCN', (1.0,), 50.0), ('APPNP', (1.0,), 60.0)]
    """
    return lines_data(rows, splits, "labels_data")


def steps_data(rows: _RowsOfSteps, splits: Splits = "validation") -> Lines:
    """Return the accuracy of APPNP over the number of propagation steps K, one series for each alpha.

    Parameters
    ----------
    rows
        The runs by dataset and (alpha, K). K = inf is the limit: PPNP, or for alpha = 0 the stationary
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
    return lines_data(_name_alphas(rows), splits, "steps_data")


def _name_alphas(rows: _RowsOfSteps) -> _Rows:
    """Return the runs by (series, K) instead of (alpha, K)."""
    return {
        dataset: {(f"α = {alpha:g}", K): runs for (alpha, K), runs in points.items()}
        for dataset, points in rows.items()
    }


def alpha_data(rows: _Rows, splits: Splits = "validation") -> Lines:
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


def leads_data(rows: _Rows, splits: Splits = "test") -> Lines | None:
    """Return the accuracy of each model minus that of APPNP, split by split, in points; None where there is none.

    Parameters
    ----------
    rows
        The runs by dataset and (model, training nodes per class).
    splits
        What the accuracies were measured on.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> from pprop.study.cell import Seeds
    >>> def runs(*accuracies):
    ...     return [Run(key=Run(seeds=Seeds(split, 0)), accuracy=each) for split, each in enumerate(accuracies)]
    >>> lines = leads_data({"Cora-ML": {("GCN", 1): runs(0.5, 0.75), ("APPNP", 1): runs(0.625, 0.75)}})
    >>> [(series.name, series.estimates[0].mean) for series in lines.panels[0].series]
    [('GCN', -6.25)]
    """
    return _differences(rows, splits, lambda place: (AGAINST, place[1]))


def steps_leads_data(rows: _RowsOfSteps, splits: Splits = "validation") -> Lines | None:
    """Return the accuracy of APPNP minus that of PPNP, its limit, split by split, in points; None where there is none.

    Parameters
    ----------
    rows
        The runs by dataset and (alpha, K); K = inf is PPNP. Those with alpha = 0, whose limit is no model, are
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
    return _differences(_name_alphas(with_teleport), splits, lambda place: (place[0], math.inf))


def _differences(rows: _Rows, splits: Splits, against: Callable[[_Place], _Place]) -> Lines | None:
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


def labels_place(cell: Cell) -> tuple[str, int]:
    """Return the model and the training nodes per class.

    >>> labels_place(Cell("gcn", {}, "citeseer", per_class=5))
    ('GCN', 5)
    """
    return model_title(cell), cell.per_class


def steps_place(cell: Cell) -> tuple[float, float] | None:
    """Return alpha and K, infinite for PPNP and for the limit without teleport.

    >>> steps_place(Cell("appnp", {"alpha": 0.0, "steps": "limit"}, "citeseer"))
    (0.0, inf)
    """
    if cell.model not in ("appnp", "ppnp"):
        return None
    steps: Any = "limit" if cell.model == "ppnp" else cell.settings["steps"]
    return cell.settings["alpha"], math.inf if steps == "limit" else float(steps)


def alpha_place(cell: Cell) -> tuple[str, float] | None:
    """Return the model and alpha.

    >>> alpha_place(Cell("ppnp", {"alpha": 0.2}, "citeseer"))
    ('PPNP', 0.2)
    """
    return (model_title(cell), cell.settings["alpha"]) if "alpha" in cell.settings else None


def depth_place(cell: Cell) -> int | None:
    """Return the number of layers: one more than there are hidden ones.

    >>> depth_place(Cell("appnp", {"hidden": [64, 64]}, "citeseer"))
    3
    """
    return len(cell.settings["hidden"]) + 1 if cell.model == "appnp" else None


@final
@dataclass(frozen=True)
class _Sweep:
    """One of these figures: what its experiments show, where a cell is placed, its two functions, and its caption.

    With `splits`, the kind of splits, it is a figure of differences.
    """

    name: str
    shows: str
    title: str
    place: Callable[[Cell], Hashable | None]
    data: Callable[..., Lines | None]
    draw: Callable[[Lines], Figure]
    caption: str
    splits: Splits | None = None


_BANDS = "with their 95 % bootstrap intervals as bands"
_SWEEPS = (
    _Sweep(
        "labels",
        "labels",
        "Accuracy over the number of training nodes",
        labels_place,
        labels_data,
        draw_labels,
        f"Mean accuracies over the number of training nodes per class (logarithmic), {_BANDS}. With 20 they are the runs of "
        "the accuracy table.",
    ),
    _Sweep(
        "labels_lead",
        "labels",
        "Lead of APPNP over the number of training nodes",
        labels_place,
        leads_data,
        draw_leads,
        "Accuracy of each model minus that of APPNP over the number of training nodes per class (logarithmic), split by "
        "split, with 95 % bootstrap intervals over splits as bands: above zero a model is better than APPNP. Cut off below "
        f"{abs(LOWEST):g} points behind it.",
        splits="test",
    ),
    _Sweep(
        "steps",
        "steps",
        "Accuracy over the number of propagation steps",
        steps_place,
        steps_data,
        draw_steps,
        f"Mean accuracies of APPNP, trained anew at each number of propagation steps K (logarithmic), {_BANDS}. "
        "Dashed: the limit of many steps, which is PPNP for α > 0, and for α = 0 the same prediction for all nodes "
        "up to a factor.",
    ),
    _Sweep(
        "steps_lead",
        "steps",
        "Distance from PPNP over the number of propagation steps",
        steps_place,
        steps_leads_data,
        draw_steps_leads,
        "Accuracy of APPNP at each number of propagation steps K (logarithmic) minus that of PPNP with the same α, split by "
        "split, with 95 % bootstrap intervals over splits as bands: above zero APPNP is better.",
        splits="validation",
    ),
    _Sweep(
        "alpha",
        "alpha",
        "Accuracy over the teleport probability",
        alpha_place,
        alpha_data,
        draw_alpha,
        f"Mean accuracies over the teleport probability α (logarithmic), {_BANDS}.",
    ),
    _Sweep(
        "depth",
        "depth",
        "Accuracy over the depth of the network",
        depth_place,
        depth_data,
        draw_depth,
        f"Mean accuracies of APPNP over the number of layers of its network, {_BANDS}.",
    ),
)


def sweep_figures(experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[Drawn]:
    """Yield those of the figures that have rows; with the kind of splits in their names where there are both kinds.

    >>> list(sweep_figures([], lambda cell: []))
    []
    """
    for sweep in _SWEEPS:
        kinds: tuple[Splits, ...] = (sweep.splits,) if sweep.splits else ("test", "validation")
        of_sweep = [one for one in experiments if one.shows == sweep.shows]
        found = {splits: collect(of_sweep, rows_of, sweep.place, splits) for splits in kinds}
        shown = [splits for splits in kinds if found[splits].rows]
        for splits in shown:
            lines = sweep.data(found[splits].rows, splits=splits)
            if lines is not None:
                caption = sweep.caption if sweep.splits else f"{sweep.caption}{_runs(sweep, lines)}{found[splits].note}"
                name = sweep.name if len(shown) == 1 else f"{sweep.name}_{splits}"
                draw = partial(sweep.draw, lines)
                yield Drawn(name, sweep.title, caption, lines, draw, found[splits].experiments)


def _runs(sweep: _Sweep, lines: Lines) -> str:
    """Say how many runs there are, and over alpha where the mean of each model is highest."""
    counts: dict[tuple[str, str, str], int] = {}
    limits: dict[tuple[str, str, str], int] = {}
    best: dict[str, list[str]] = {}
    for dataset, series in ((panel.dataset, series) for panel in lines.panels for series in panel.series):
        points = [*zip(series.x, series.estimates, strict=True)]
        counts |= {(series.name, dataset, f"{x:g}"): point.runs for x, point in points}
        if series.limit is not None:
            limits[series.name, dataset, "the limit"] = series.limit.runs
        if points and sweep.name == "alpha":
            x = max(points, key=lambda point: point[1].mean)[0]
            best.setdefault(series.name, []).append(f"{x:g} on {dataset}")
    highest = "; ".join(f"{name} at α = {', '.join(places)}" for name, places in best.items())
    return f"{f' Highest means: {highest}.' if highest else ''} {runs_note(counts | limits)}"
