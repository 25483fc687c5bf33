"""What propagation does in training and in inference: accuracy and time of the four ways to use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from pprop._validate import reject
from pprop.study.cell import MODELS, Cell
from pprop.study.experiment import Experiment
from pprop.study.figures.gather import Drawn, RowsOf, collect, runs_note
from pprop.study.figures.style import POINTS, Figure, fix_layout, light_grid, new_panels, styled
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row
from pprop.study.tables.entries import model_title

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
class Way:
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
    ways: tuple[Way, ...]

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
    >>> run = Run(accuracy=0.75, seconds=2.0, epochs=400, together=1, device="cpu")
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


def _way(name: str, rows: Sequence[Row], timed: Sequence[Row]) -> Way:
    devices = {row.device for row in rows}
    clock = [row for row in timed if row.together == 1 and row.device in devices]
    epochs = sum(row.epochs for row in clock or rows)
    ms = 1000 * sum(row.seconds for row in clock or rows) / epochs if epochs else float("nan")
    return Way(
        name=name,
        accuracy=estimate([100 * row.accuracy for row in rows]),
        seconds=estimate([ms * row.epochs / 1000 if clock else row.seconds for row in rows]),
        ms_per_epoch=ms,
        together=tuple(sorted({row.together for row in clock or rows})),
        devices=tuple(sorted({row.device for row in clock or rows})),
    )


def draw_propagation(panels: Sequence[PropagationPanel], columns: int | None = None) -> Figure:
    """Draw for each dataset the accuracies of the ways, and beside them the seconds of a run."""
    with styled():
        figure, places = new_panels(len(panels), columns, height=1.65, parts=(3, 2))
        for panel, accuracy, seconds in zip(panels, places[::2], places[1::2], strict=True):
            _draw_accuracy(accuracy, panel)
            _draw_seconds(seconds, panel)
        fix_layout(figure)
    return figure


def _draw_accuracy(axes: Any, panel: PropagationPanel) -> None:
    points, places = [way.accuracy for way in panel.ways], range(len(panel.ways))
    reach = np.array([point.below_and_above for point in points]).T
    axes.errorbar([point.mean for point in points], places, xerr=reach, markersize=3, capsize=3, **POINTS)
    _set_rows(axes, [way.name for way in panel.ways])
    axes.margins(x=0.12)
    axes.set_xlabel("test accuracy (%)")
    axes.set_title(panel.dataset, loc="left")


def _draw_seconds(axes: Any, panel: PropagationPanel) -> None:
    seconds = [way.seconds.mean for way in panel.ways]
    axes.barh(range(len(seconds)), seconds, height=0.5, color="0.72", zorder=2)
    beside = {"xytext": (2, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
    for place, mean in enumerate(seconds):
        axes.annotate(f"{mean:.3g}", (mean, place), **beside)
    _set_rows(axes, [])
    axes.set_xlim(0, 1.35 * max(seconds))
    axes.set_xlabel("seconds a run")


def _set_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(WAYS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4, steps=(1, 2, 5, 10))
    axes.spines["left"].set_visible(False)
    light_grid(axes, "x")


def propagation_place(cell: Cell) -> str | None:
    """Return when the cell propagates: one of `WAYS`.

    >>> propagation_place(Cell("mlp", {"evaluate": "propagated"}, "citeseer"))
    'inference'
    """
    return _WAY_OF.get((cell.model, cell.settings.get("evaluate", "")))


def propagation_figure(experiments: Sequence[Experiment], rows_of: RowsOf) -> Iterator[Drawn]:
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
        "Left: mean test accuracy with its 95 % bootstrap interval when predictions are propagated never (an MLP), in "
        "training alone, in inference alone, or in both (APPNP). Right: mean seconds of training for one run; without "
        f"propagation in training it is that of an MLP, with it that of APPNP. {_times(panels)} {runs_note(counts, 'of each')}{found.note}"
    )
    draw = partial(draw_propagation, panels)
    yield Drawn("propagation", "Propagation in training and inference", caption, panels, draw, found.experiments)


def _times(panels: Sequence[PropagationPanel]) -> str:
    """Say what the times are of, and where they do not compare."""
    unlike = [panel.dataset for panel in panels if not panel.times_compare]
    if unlike:
        return (
            f"Times on {', '.join(unlike)} do not compare: the runs were not all trained on one kind of device, as "
            "many at once."
        )
    epochs = "; ".join(
        f"{panel.dataset} {', '.join(f'{way.ms_per_epoch:.3g}' for way in panel.ways)}" for panel in panels
    )
    how = (
        "of runs that were timed alone; the seconds are these times the epochs of each run"
        if all(way.together == (1,) for panel in panels for way in panel.ways)
        else "a run's share where several were trained together"
    )
    return f"Milliseconds an epoch, from top to bottom: {epochs}; {how}."
