"""What propagation does in training and in inference: accuracy and time of the four ways to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from pprop._validate import reject
from pprop.study.figures.looks import LOOKS
from pprop.study.figures.style import fix_layout, light_grid, new_panels, styled
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WAYS", "Propagated", "Way", "draw_propagation", "propagation_data"]

WAYS = ("never", "training", "inference", "both")
"""When predictions are propagated, in the paper's order."""
_TRAINED = {"never": "MLP", "training": "APPNP", "inference": "MLP", "both": "APPNP"}


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
class Propagated:
    """One panel: the ways on one dataset, and whether their times compare."""

    dataset: str
    ways: tuple[Way, ...]

    @property
    def times_compare(self) -> bool:
        """Whether all runs were trained on one device, as many at once."""
        return len({(way.together, way.devices) for way in self.ways}) == 1


def propagation_data(
    rows: Mapping[str, Mapping[str, Sequence[Row]]], timed: Mapping[str, Mapping[str, Sequence[Row]]] | None = None
) -> list[Propagated]:
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
    >>> from types import SimpleNamespace as Run  # stands for a Row
    >>> run = Run(accuracy=0.75, seconds=2.0, epochs=400, together=1, device="cpu")
    >>> way = propagation_data({"Citeseer": {"both": [run], "never": []}})[0].ways[0]
    >>> way.name, way.accuracy.mean, way.seconds.mean, way.ms_per_epoch
    ('both', 75.0, 2.0, 5.0)
    >>> alone = Run(seconds=0.2, epochs=200, together=1, device="cpu")
    >>> way = propagation_data({"Citeseer": {"both": [run]}}, {"Citeseer": {"APPNP": [alone]}})[0].ways[0]
    >>> way.seconds.mean, way.ms_per_epoch
    (0.4, 1.0)
    """
    panels: list[Propagated] = []
    for dataset, ways in rows.items():
        unknown = sorted(set(ways) - set(WAYS))
        if unknown:
            reject("rows", "propagation_data", f"keyed by one of {', '.join(map(repr, WAYS))}", repr(unknown[0]))
        models: Mapping[str, Sequence[Row]] = {} if timed is None else timed.get(dataset, {})
        shown = tuple(_way(name, ways[name], models.get(_TRAINED[name], ())) for name in WAYS if ways.get(name))
        if shown:
            panels.append(Propagated(dataset, shown))
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


def draw_propagation(panels: Sequence[Propagated], columns: int | None = None) -> Figure:
    """Draw for each dataset the accuracies of the ways, and beside them the seconds of a run."""
    with styled():
        figure, places = new_panels(len(panels), columns, height=1.65, parts=(3, 2))
        for index, panel in enumerate(panels):
            accuracy, seconds = places[2 * index : 2 * index + 2]
            _draw_accuracy(accuracy, panel)
            _draw_seconds(seconds, panel)
        fix_layout(figure)
    return figure


def _draw_accuracy(axes: Any, panel: Propagated) -> None:
    points = [way.accuracy for way in panel.ways]
    places = list(range(len(points)))
    reach = np.array([point.below_and_above for point in points]).T
    style = {"fmt": "o", "markersize": 3, "elinewidth": 1.1, "capsize": 3, "color": LOOKS["APPNP"].colour}
    axes.errorbar([point.mean for point in points], places, xerr=reach, zorder=3, **style)
    _set_rows(axes, [way.name for way in panel.ways])
    axes.margins(x=0.12)
    axes.set_xlabel("test accuracy (%)")
    axes.set_title(panel.dataset, loc="left")


def _draw_seconds(axes: Any, panel: Propagated) -> None:
    points = [way.seconds for way in panel.ways]
    places = list(range(len(points)))
    axes.barh(places, [point.mean for point in points], height=0.5, color="0.72", zorder=2)
    for place, way in zip(places, panel.ways, strict=True):
        axes.annotate(
            f"{way.seconds.mean:.3g}",
            (way.seconds.mean, place),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    _set_rows(axes, [])
    axes.set_xlim(0, 1.35 * max(point.mean for point in points))
    axes.set_xlabel("seconds a run")


def _set_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(WAYS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4, steps=(1, 2, 5, 10))
    axes.spines["left"].set_visible(False)
    light_grid(axes, "x")
