"""Figures of accuracies on each dataset: every run of several models, and four ways to use propagation with their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import reject
from pprop.study.cell import MODELS, Cell
from pprop.study.experiment import Experiment
from pprop.study.figures.gather import DrawnFigure, FigureRows, RowsOf, collect, percent_over_splits, runs_note
from pprop.study.figures.style import POINTS, Figure, Look, light_grid, looks_of, new_panels
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row
from pprop.study.tables.entries import model_title

BAND = 0.22  # half the height over which the points of a model are spread
MOST_POINTS = 40  # of one colour at full strength
ROW_HEIGHT = 0.3  # inches

# When predictions are propagated, in the paper's order, by what is trained and what is evaluated.
_WAY_OF = {
    ("mlp", "model"): "never",
    ("appnp", "network"): "training",
    ("mlp", "propagated"): "inference",
    ("appnp", "model"): "both",
}
WAYS = tuple(_WAY_OF.values())
_TRAINED = {way: MODELS[model].title for (model, _), way in _WAY_OF.items()}


@final
@dataclass(frozen=True)
class Distribution:
    """One row of the figure: the accuracies of a model's runs in per cent, shape (R,), and what they amount to.

    Attributes
    ----------
    model
        Its name.
    values, offsets
        The runs, and where above or below the row's middle each is drawn, in [-1, 1], shape (R,).
    estimate, over_splits
        The mean of the runs and its bootstrap interval over runs; the same with whole splits resampled, where splits are known.
    """

    model: str
    values: NDArray[np.float64]
    offsets: NDArray[np.float64]
    estimate: Estimate
    over_splits: Estimate | None = None


@final
@dataclass(frozen=True)
class Distributions:
    """One panel of the figure: the models on one dataset."""

    dataset: str
    models: tuple[Distribution, ...]


def distribution_data(accuracies: Mapping[str, ArrayLike]) -> list[Distribution]:
    """Return what the figure shows of one dataset: per model its runs, their mean, and the interval of the mean.

    Parameters
    ----------
    accuracies
        Shares of right predictions by model, each of shape (R,).

    Examples
    --------
    >>> rows = distribution_data({"MLP": [0.62, 0.64], "APPNP": [0.75, 0.76]})
    >>> [(row.model, round(row.estimate.mean, 2)) for row in rows]
    [('MLP', 63.0), ('APPNP', 75.5)]
    """
    if not accuracies:
        reject("accuracies", "distribution_data", "a mapping with at least one model", "none")
    percent = {model: 100 * np.asarray(shares, dtype=np.float64) for model, shares in accuracies.items()}
    return [Distribution(model, each, _offsets(len(each)), estimate(each)) for model, each in percent.items()]


def distributions_data(rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> list[Distributions]:
    """Return what the figure shows of several datasets: `rows` has the runs by dataset and model.

    Models stand in the same order everywhere; one without runs is left out.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row, of which the accuracy and the seeds are read
    >>> from pprop.study.cell import Seeds
    >>> good, bad = (Run(accuracy=share, key=Run(seeds=Seeds(7, 0))) for share in (0.75, 0.5))
    >>> panels = distributions_data({"Cora-ML": {"APPNP": [good], "GCN": [bad], "JK": []}})
    >>> [(row.model, row.estimate.mean) for row in panels[0].models]
    [('GCN', 50.0), ('APPNP', 75.0)]
    """
    order = looks_of(model for models in rows.values() for model in models)
    panels: list[Distributions] = []
    for dataset, models in rows.items():
        runs = {model: models[model] for model in order if models.get(model)}
        if runs:
            found = distribution_data({model: [run.accuracy for run in each] for model, each in runs.items()})
            panels.append(
                Distributions(
                    dataset, tuple(replace(row, over_splits=percent_over_splits(runs[row.model])) for row in found)
                )
            )
    return panels


def draw_distribution(rows: Sequence[Distribution], title: str | None = None) -> Figure:
    """Draw one dataset: models from top to bottom, a point for each run, a tick and a bar for mean and interval."""
    return draw_distributions([Distributions(title or "", tuple(rows))])


def draw_distributions(panels: Sequence[Distributions], columns: int | None = None) -> Figure:
    """Draw a panel for each dataset, in `columns` columns; by default two where there is more than one panel."""
    most = max(len(panel.models) for panel in panels)
    with new_panels(len(panels), columns, height=0.62 + ROW_HEIGHT * max(most, 2)) as (figure, places):
        looks = looks_of(row.model for panel in panels for row in panel.models)
        for panel, axes in zip(panels, places, strict=True):
            left = left_end(panel.models)
            for index, row in enumerate(panel.models):
                _draw_row(axes, index, row, looks[row.model], left)
            _set_rows(axes, [row.model for row in panel.models], (max(len(panel.models), 2) - 0.45, -0.55), ticks=7)
            axes.margins(x=0.04)
            axes.set(xlabel="test accuracy (%)", title=panel.dataset)
            _beside(axes, "mean", -0.55, 4, va="bottom", color="0.35")
    return figure


def _set_rows(axes: Any, names: Sequence[str], ends: tuple[float, float], ticks: int) -> None:
    """Name the rows of a panel from top to bottom, and mark at most so many values below it."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(ends)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=ticks, steps=(1, 2, 5, 10))
    axes.spines["left"].set_visible(False)
    light_grid(axes, "x")


def _draw_row(axes: Any, index: int, row: Distribution, look: Look, left: float) -> None:
    _beside(axes, f"{row.estimate.mean:.1f}", index)
    shown = row.values >= left
    if np.quantile(row.values, 0.25) < left:
        _draw_beyond(axes, index, np.sort(row.values), look)
        return
    if not shown.all():
        _draw_beyond(axes, index, np.sort(row.values[~shown]), look)
    strength = min(1.0, MOST_POINTS / len(row.values))
    dots = {"s": 7, "color": look.colour, "alpha": max(0.25, 0.7 * strength), "linewidths": 0}
    axes.scatter(row.values[shown], index + 0.14 + BAND * row.offsets[shown], **dots, zorder=2)
    point, above = row.estimate, index - 0.26
    if row.over_splits is not None:
        ends = [row.over_splits.low, row.over_splits.high]
        axes.plot(ends, [above] * 2, color=look.colour, linewidth=0.5, solid_capstyle="butt", zorder=3)
    axes.plot([point.low, point.high], [above] * 2, color=look.colour, linewidth=1.4, solid_capstyle="butt", zorder=3)
    for at, size, width in ((point.low, 4, 1.2), (point.high, 4, 1.2), (point.mean, 7, 1.6)):
        axes.plot(at, above, marker="|", markersize=size, markeredgewidth=width, color=look.colour, zorder=4)


def left_end(rows: Sequence[Distribution]) -> float:
    """Return where a panel begins: no model far behind the others, and no run far behind its model, may press the others.

    The lowest model is left of it where there are three others, a quarter of its runs is below all that is shown of them
    and three quarters are below their medians, and it would widen the panel by a quarter.

    >>> left_end(distribution_data({"MLP": [0.62, 0.64], "GCN": [0.74, 0.75], "GAT": [0.7, 0.75], "APPNP": [0.75, 0.76]}))
    70.0
    """
    lower, middle, upper = np.array([np.quantile(row.values, (0.25, 0.5, 0.75)) for row in rows]).T
    ends = np.maximum([row.values.min() for row in rows], middle - 4 * (upper - lower))
    last = int(middle.argmin())
    others = np.delete(ends, last)
    begin = others.min() if len(others) >= 3 else ends.min()
    widens = begin - ends[last] > (max(row.values.max() for row in rows) - begin) / 4
    behind = lower[last] < begin and upper[last] < np.delete(middle, last).min()
    return float(begin if behind and widens else ends.min())


def _draw_beyond(axes: Any, index: int, values: NDArray[np.float64], look: Look) -> None:
    """Write where the runs are that the panel does not reach."""
    each = len(values) <= 3
    text = ", ".join(f"{value:.1f}" for value in values) if each else f"{values.min():.1f} to {values.max():.1f}"
    style = {"va": "center", "fontsize": 6.5, "color": look.colour}
    place = (0, index + 0.14 if each else index)
    axes.annotate(f"\u25c2 {text}", place, (3, 0), ("axes fraction", "data"), textcoords="offset points", **style)


def _beside(axes: Any, text: str, place: float, above: float = 0, **options: Any) -> None:
    """Write in the column to the right of the axes, at a row or some points above it."""
    options = {"ha": "right", "va": "center", "fontsize": 7.5, "annotation_clip": False, **options}
    axes.annotate(text, (1, place), (22, above), ("axes fraction", "data"), textcoords="offset points", **options)


def _offsets(count: int) -> NDArray[np.float64]:
    """Return places in [-1, 1] that fill the band evenly in any order of the runs: the golden ratio's multiples."""
    return 2.0 * np.modf((np.arange(count) + 1) * (5**0.5 - 1) / 2)[0] - 1.0


def distributions_figure(found: FigureRows, no_distances: str) -> Iterator[DrawnFigure]:
    """Yield the figure of the accuracy table's rows, if there are any; `no_distances` says why another one is missing.

    >>> list(distributions_figure(FigureRows(), ""))
    []
    """
    panels = distributions_data(found.rows)
    if not panels:
        return
    counts = {(row.model, panel.dataset, ""): row.estimate.runs for panel in panels for row in panel.models}
    caption = (
        "Test accuracy of every run (points), and above them the mean (tick, number) with its 95 % bootstrap "
        "interval over runs (bar) and over splits (thin line). Runs far to the left are written as numbers. "
        f"{runs_note(counts, 'of each model')}{found.note}"
    )
    caption += f" There is no figure of distances. {no_distances}" if no_distances else ""
    draw = partial(draw_distributions, panels)
    yield DrawnFigure("distributions", "Accuracy distributions", caption, panels, draw, found.experiments)


@final
@dataclass(frozen=True)
class PropagationWay:
    """One way to use propagation.

    Attributes
    ----------
    name
        One of `WAYS`.
    accuracy
        In per cent.
    seconds
        Of a run's training: its epochs times `ms_per_epoch` where that was measured alone, else its share of what the
        runs that were trained together took, compilation included.
    ms_per_epoch
        Of runs that were timed alone on the same device, else seconds of all runs by their epochs; in milliseconds.
    together, devices
        How many runs were trained at once, and where: times compare only where these are the same.
    """

    name: str
    accuracy: Estimate
    seconds: Estimate
    ms_per_epoch: float
    together: tuple[int, ...]
    devices: tuple[str, ...]


@final
@dataclass(frozen=True)
class PropagationPanel:
    """One panel: the ways on one dataset, and whether their times compare."""

    dataset: str
    ways: tuple[PropagationWay, ...]

    @property
    def times_compare(self) -> bool:
        """Whether all runs were trained on one device, as many at once."""
        return len({(way.together, way.devices) for way in self.ways}) == 1


def propagation_data(
    rows: Mapping[str, Mapping[str, Sequence[Row]]], timed: Mapping[str, Mapping[str, Sequence[Row]]] | None = None
) -> list[PropagationPanel]:
    """Return accuracy and time of each way to use propagation.

    Parameters
    ----------
    rows
        The runs by dataset and way (`WAYS`).
    timed
        Runs that were timed alone, by dataset and model: an MLP is what is trained where training does not propagate,
        APPNP where it does.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> from pprop.study.cell import Seeds
    >>> run = Run(accuracy=0.75, key=Run(seeds=Seeds(7, 0)), seconds=2.0, epochs=400, together=1, device="cpu")
    >>> way = propagation_data({"Citeseer": {"both": [run], "never": []}})[0].ways[0]
    >>> way.name, way.accuracy.mean, way.seconds.mean, way.ms_per_epoch
    ('both', 75.0, 2.0, 5.0)
    >>> alone = Run(seconds=0.2, epochs=200, together=1, device="cpu")
    >>> way = propagation_data({"Citeseer": {"both": [run]}}, {"Citeseer": {"APPNP": [alone]}})[0].ways[0]
    >>> way.seconds.mean, way.ms_per_epoch
    (0.4, 1.0)
    """
    panels: list[PropagationPanel] = []
    for dataset, ways in rows.items():
        unknown = sorted(set(ways) - set(WAYS))
        if unknown:
            reject("rows", "propagation_data", f"keyed by one of {', '.join(map(repr, WAYS))}", repr(unknown[0]))
        models: Mapping[str, Sequence[Row]] = {} if timed is None else timed.get(dataset, {})
        shown = tuple(_way(name, ways[name], models.get(_TRAINED[name], ())) for name in WAYS if ways.get(name))
        if shown:
            panels.append(PropagationPanel(dataset, shown))
    return panels


def _way(name: str, rows: Sequence[Row], timed: Sequence[Row]) -> PropagationWay:
    devices = {row.device for row in rows}
    clock = [row for row in timed if row.together == 1 and row.device in devices]
    used = clock or rows
    epochs = sum(row.epochs for row in used)
    ms = 1000 * sum(row.seconds for row in used) / epochs if epochs else float("nan")
    accuracy = percent_over_splits(rows)
    seconds = estimate([ms * row.epochs / 1000 if clock else row.seconds for row in rows])
    together, places = sorted({row.together for row in used}), sorted({row.device for row in used})
    return PropagationWay(name, accuracy, seconds, ms, tuple(together), tuple(places))


def draw_propagation(panels: Sequence[PropagationPanel], columns: int | None = None) -> Figure:
    """Draw for each dataset the accuracies of the ways, and beside them the seconds of a run."""
    with new_panels(len(panels), columns, height=1.65, parts=(3, 2)) as (figure, places):
        for panel, accuracy, seconds in zip(panels, places[::2], places[1::2], strict=True):
            _draw_accuracy(accuracy, panel)
            _draw_seconds(seconds, panel)
    return figure


def _draw_accuracy(axes: Any, panel: PropagationPanel) -> None:
    points, places = [way.accuracy for way in panel.ways], range(len(panel.ways))
    reach = np.array([point.below_and_above for point in points]).T
    axes.errorbar([point.mean for point in points], places, xerr=reach, markersize=3, capsize=3, **POINTS)
    _set_rows(axes, [way.name for way in panel.ways], (len(WAYS) - 0.5, -0.5), ticks=4)
    axes.margins(x=0.12)
    axes.set(xlabel="test accuracy (%)", title=panel.dataset)


def _draw_seconds(axes: Any, panel: PropagationPanel) -> None:
    trained = {_TRAINED[way.name]: way.seconds.mean for way in panel.ways}  # two ways share a training
    axes.barh(range(len(trained)), list(trained.values()), height=0.4, color="0.72", zorder=2)
    beside = {"xytext": (2, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
    for place, mean in enumerate(trained.values()):
        axes.annotate(f"{mean:.3g}", (mean, place), **beside)
    _set_rows(axes, list(trained), (len(trained) - 0.5, -0.5), ticks=4)
    axes.set(xlim=(0, 1.35 * max(trained.values())), xlabel="seconds a training")


def propagation_place(cell: Cell) -> str | None:
    """Return when the cell propagates: one of `WAYS`.

    >>> propagation_place(Cell("mlp", {"evaluate": "propagated"}, "citeseer"))
    'inference'
    """
    return _WAY_OF.get((cell.model, cell.settings.get("evaluate", "")))


def propagation_figure(experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[DrawnFigure]:
    """Yield the figure, if there are rows of experiments that show it.

    >>> list(propagation_figure([], lambda cell: []))
    []
    """
    shown = [one for one in experiments if one.shows == "propagation"]
    found = collect(shown, rows_of, propagation_place, "test")
    timed = collect([one for one in experiments if one.shows == "time"], rows_of, model_title, "test")
    panels = propagation_data(found.rows, timed.rows)
    if not panels:
        return
    counts = {(f"'{way.name}'", panel.dataset, ""): way.accuracy.runs for panel in panels for way in panel.ways}
    caption = (
        "Left: mean test accuracy, with 95 % intervals over splits: predictions propagated never (an MLP), in "
        "training alone, in inference alone, or in both (APPNP). Right: mean seconds of the training, an MLP's where it "
        f"does not propagate, else APPNP's. {_times(panels)} {runs_note(counts, 'of each')}{found.note}"
    )
    draw = partial(draw_propagation, panels)
    yield DrawnFigure("propagation", "Propagation in training and inference", caption, panels, draw, found.experiments)


def _times(panels: Sequence[PropagationPanel]) -> str:
    """Say what the times are, and where they do not compare."""
    if unlike := ", ".join(panel.dataset for panel in panels if not panel.times_compare):
        how = "the runs were not all trained on one kind of device, as many at once"
        return f"Times on {unlike} do not compare: {how}."
    how = "a run's share where several were trained together"
    if all(way.together == (1,) for panel in panels for way in panel.ways):
        how = "milliseconds an epoch of runs timed alone, times each run's epochs"
    return f"Times are {how}."
