"""The accuracies of several models: every run a point, their mean with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import reject
from pprop.study.figures.gather import Drawn, Found, runs_note
from pprop.study.figures.style import Figure, Look, fix_layout, light_grid, looks_of, new_panels, styled
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row

BAND = 0.22  # half the height over which the points of a model are spread
MOST_POINTS = 40  # of one colour at full strength
ROW_HEIGHT = 0.3  # inches


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
    estimate
        The mean of the runs and its bootstrap interval.
    """

    model: str
    values: NDArray[np.float64]
    offsets: NDArray[np.float64]
    estimate: Estimate


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
    rows: list[Distribution] = []
    for model, shares in accuracies.items():
        values = 100 * np.asarray(shares, dtype=np.float64)
        rows.append(Distribution(model, values, _offsets(len(values)), estimate(values)))
    return rows


def distributions_data(rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> list[Distributions]:
    """Return what the figure shows of several datasets: `rows` has the runs by dataset and model.

    Models stand in the same order everywhere; one without runs is left out.

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row, of which only the accuracy is read
    >>> panels = distributions_data({"Cora-ML": {"APPNP": [Run(accuracy=0.75)], "GCN": [Run(accuracy=0.5)], "JK": []}})
    >>> [(row.model, row.estimate.mean) for row in panels[0].models]
    [('GCN', 50.0), ('APPNP', 75.0)]
    """
    order = looks_of(model for models in rows.values() for model in models)
    shares = {
        dataset: {model: [run.accuracy for run in models[model]] for model in order if models.get(model)}
        for dataset, models in rows.items()
    }
    return [Distributions(dataset, tuple(distribution_data(found))) for dataset, found in shares.items() if found]


def draw_distribution(rows: Sequence[Distribution], title: str | None = None) -> Figure:
    """Draw one dataset: models from top to bottom, a point for each run, a tick and a bar for mean and interval."""
    return draw_distributions([Distributions(title or "", tuple(rows))])


def draw_distributions(panels: Sequence[Distributions], columns: int | None = None) -> Figure:
    """Draw a panel for each dataset, in `columns` columns; by default two where there is more than one panel."""
    with styled():
        most = max(len(panel.models) for panel in panels)
        figure, places = new_panels(len(panels), columns, height=0.62 + ROW_HEIGHT * max(most, 2))
        looks = looks_of(row.model for panel in panels for row in panel.models)
        for panel, axes in zip(panels, places, strict=True):
            for index, row in enumerate(panel.models):
                _draw_row(axes, index, row, looks[row.model])
            _set_axes(axes, panel)
        fix_layout(figure)
    return figure


def _set_axes(axes: Any, panel: Distributions) -> None:
    axes.set_yticks(range(len(panel.models)), [row.model for row in panel.models])
    axes.set_ylim(max(len(panel.models), 2) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.04)
    axes.locator_params(axis="x", nbins=7, steps=(1, 2, 5, 10))
    light_grid(axes, "x")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("test accuracy (%)")
    axes.set_title(panel.dataset, loc="left")
    _beside(axes, "mean", -0.55, 4, va="bottom", color="0.35")


def _draw_row(axes: Any, index: int, row: Distribution, look: Look) -> None:
    strength = min(1.0, MOST_POINTS / len(row.values))
    dots = {"s": 7, "color": look.colour, "alpha": max(0.25, 0.7 * strength), "linewidths": 0}
    axes.scatter(row.values, index + 0.14 + BAND * row.offsets, **dots, zorder=2)
    point, above = row.estimate, index - 0.26
    axes.plot([point.low, point.high], [above] * 2, color=look.colour, linewidth=1.4, solid_capstyle="butt", zorder=3)
    for at, size, width in ((point.low, 4, 1.2), (point.high, 4, 1.2), (point.mean, 7, 1.6)):
        axes.plot(at, above, marker="|", markersize=size, markeredgewidth=width, color=look.colour, zorder=4)
    _beside(axes, f"{point.mean:.1f}", index)


def _beside(axes: Any, text: str, place: float, above: float = 0, **options: Any) -> None:
    """Write in the column to the right of the axes, at a row or some points above it."""
    options = {"ha": "right", "va": "center", "fontsize": 7.5, "annotation_clip": False, **options}
    axes.annotate(text, (1, place), (22, above), ("axes fraction", "data"), textcoords="offset points", **options)


def _offsets(count: int) -> NDArray[np.float64]:
    """Return places in [-1, 1] that fill the band evenly in any order of the runs: the golden ratio's multiples."""
    return 2.0 * np.modf((np.arange(count) + 1) * (5**0.5 - 1) / 2)[0] - 1.0


def distributions_figure(found: Found, no_distances: str) -> Iterator[Drawn]:
    """Yield the figure of the accuracy table's rows, if there are any; `no_distances` says why another one is missing.

    >>> list(distributions_figure(Found(), ""))
    []
    """
    panels = distributions_data(found.rows)
    if not panels:
        return
    counts = {(row.model, panel.dataset, ""): row.estimate.runs for panel in panels for row in panel.models}
    caption = (
        "Test accuracy of every run (points), and above them the mean (long tick, number) with its 95 % bootstrap "
        f"interval (bar). {runs_note(counts, 'of each model')}{found.note}"
    )
    caption += f" There is no figure of distances. {no_distances}" if no_distances else ""
    draw = partial(draw_distributions, panels)
    yield Drawn("distributions", "Accuracy distributions", caption, panels, draw, found.experiments)
