"""The accuracies of several models: every run a point, their mean with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop.study.bootstrap import bootstrap_interval
from pprop.study.figures.style import COLOURS, fix_layout, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Distribution", "distribution_data", "draw_distribution"]

BAND = 0.22  # half the height over which the points of a model are spread
MOST_POINTS = 40  # of one colour at full strength


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
    mean, low, high
        The mean of the runs and its bootstrap interval.
    """

    model: str
    values: NDArray[np.float64]
    offsets: NDArray[np.float64]
    mean: float
    low: float
    high: float


def distribution_data(accuracies: Mapping[str, ArrayLike], level: float = 0.95) -> list[Distribution]:
    """Return what the figure shows: per model its runs, their mean, and the bootstrap interval of the mean.

    Parameters
    ----------
    accuracies
        Shares of right predictions by model, each of shape (R,).
    level
        Of the interval.

    Examples
    --------
    >>> rows = distribution_data({"MLP": [0.62, 0.64], "APPNP": [0.75, 0.76]})
    >>> [(row.model, round(row.mean, 2)) for row in rows]
    [('MLP', 63.0), ('APPNP', 75.5)]
    """
    if not accuracies:
        raise InputError("The 'accuracies' parameter of distribution_data must name at least one model. Got none.")
    rows: list[Distribution] = []
    for model, shares in accuracies.items():
        values = 100 * np.asarray(shares, dtype=np.float64)
        low, high = bootstrap_interval(values, level)
        rows.append(Distribution(model, values, _offsets(len(values)), float(values.mean()), low, high))
    return rows


def draw_distribution(rows: list[Distribution], title: str | None = None) -> Figure:
    """Draw the rows from top to bottom: points for the runs, above them a tick and a bar for the mean and its interval."""
    with styled():
        figure, axes = new_figure(height=0.75 + 0.56 * len(rows))
        for index, row in enumerate(rows):
            _draw_row(axes, index, row, COLOURS[index % len(COLOURS)])
        axes.set_yticks(range(len(rows)), [row.model for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.62)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.08)
        axes.locator_params(axis="x", nbins=7, steps=(1, 2, 5, 10))
        axes.grid(axis="x", color="0.88", linewidth=0.6)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("test accuracy (%)")
        if title is not None:
            axes.set_title(title, loc="left")
        fix_layout(figure)
    return figure


def _draw_row(axes: Any, index: int, row: Distribution, colour: str) -> None:
    strength = min(1.0, MOST_POINTS / len(row.values))
    axes.scatter(
        row.values,
        index + 0.14 + BAND * row.offsets,
        s=11,
        color=colour,
        alpha=max(0.3, 0.75 * strength),
        linewidths=0,
        zorder=2,
    )
    middle = index - 0.24
    axes.plot([row.low, row.high], [middle] * 2, color=colour, linewidth=1.4, solid_capstyle="butt", zorder=3)
    for at, size, width in ((row.low, 5, 1.4), (row.high, 5, 1.4), (row.mean, 9, 1.8)):
        axes.plot(at, middle, marker="|", markersize=size, markeredgewidth=width, color=colour, zorder=4)
    axes.annotate(
        f"{row.mean:.1f}",
        (row.mean, middle),
        xytext=(0, 4.5),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.5,
    )


def _offsets(count: int) -> NDArray[np.float64]:
    """Return places in [-1, 1] that fill the band evenly in any order of the runs: the golden ratio's multiples."""
    return 2.0 * np.modf((np.arange(count) + 1) * (5**0.5 - 1) / 2)[0] - 1.0
