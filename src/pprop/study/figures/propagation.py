"""What propagation does in training and in inference: accuracy and time of the four ways to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from pprop._validate import reject
from pprop.study.figures.estimate import Estimate, estimate
from pprop.study.figures.looks import LOOKS
from pprop.study.figures.style import fix_layout, light_grid, new_panels, styled
from pprop.study.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WAYS", "Propagated", "Way", "draw_propagation", "propagation_data"]

WAYS = ("never", "training", "inference", "both")
"""When predictions are propagated, in the paper's order."""


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
        Of a run's training: its share where several were trained together.
    ms_per_epoch
        Seconds of all runs by their epochs, in milliseconds.
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


def propagation_data(rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> list[Propagated]:
    """Return accuracy and time of each way to use propagation; `rows` has the runs by dataset and way (`WAYS`).

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # stands for a Row
    >>> run = Run(accuracy=0.75, seconds=2.0, epochs=400, together=1, device="cpu")
    >>> way = propagation_data({"Citeseer": {"both": [run], "never": []}})[0].ways[0]
    >>> way.name, way.accuracy.mean, way.seconds.mean, way.ms_per_epoch
    ('both', 75.0, 2.0, 5.0)
    """
    panels: list[Propagated] = []
    for dataset, ways in rows.items():
        unknown = sorted(set(ways) - set(WAYS))
        if unknown:
            reject("rows", "propagation_data", f"keyed by one of {', '.join(map(repr, WAYS))}", repr(unknown[0]))
        shown = tuple(_way(name, ways[name]) for name in WAYS if ways.get(name))
        if shown:
            panels.append(Propagated(dataset, shown))
    return panels


def _way(name: str, rows: Sequence[Row]) -> Way:
    seconds = [row.seconds for row in rows]
    epochs = sum(row.epochs for row in rows)
    return Way(
        name=name,
        accuracy=estimate([100 * row.accuracy for row in rows]),
        seconds=estimate(seconds),
        ms_per_epoch=1000 * sum(seconds) / epochs if epochs else float("nan"),
        together=tuple(sorted({row.together for row in rows})),
        devices=tuple(sorted({row.device for row in rows})),
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
