"""How a search for settings went: the score of every trial in its order, and against each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._optional import require
from pprop._validate import reject
from pprop.study.figures.style import COLOURS, Figure, fix_layout, light_grid, new_figure, new_panels, styled


@final
@dataclass(frozen=True)
class Slice:
    """The values of one setting, one per trial, shape (t,): numbers, or positions among `choices`."""

    name: str
    values: NDArray[np.float64]
    log: bool = False
    choices: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Search:
    """What the figures show; scores are accuracies in per cent, shape (t,)."""

    scores: NDArray[np.float64]
    best_so_far: NDArray[np.float64]
    slices: tuple[Slice, ...]


def search_data(
    scores: Sequence[float], settings: Sequence[Mapping[str, Any]], choices: Mapping[str, Sequence[Any] | bool]
) -> Search:
    """Return what the figures show.

    Parameters
    ----------
    scores
        Accuracy of every trial, in [0, 1].
    settings
        The settings of every trial.
    choices
        For every setting that varies: its possible values, or, for a range of numbers, whether its axis is logarithmic.

    Examples
    --------
    >>> tried = [{"alpha": 0.1, "hidden": 64}, {"alpha": 0.2, "hidden": 16}, {"alpha": 0.4, "hidden": 64}]
    >>> data = search_data([0.5, 0.75, 0.25], tried, {"alpha": True, "hidden": [16, 64]})
    >>> data.best_so_far.tolist(), data.slices[1].values.tolist(), data.slices[1].choices
    ([50.0, 75.0, 75.0], [1.0, 0.0, 1.0], ('16', '64'))
    """
    if not scores:
        reject("scores", "search_data", "the scores of at least one trial", "none")
    percent = 100 * np.array(scores)
    slices: list[Slice] = []
    for name, kind in choices.items():
        if isinstance(kind, bool):
            slices.append(Slice(name, np.array([float(trial[name]) for trial in settings]), log=kind))
        else:
            at = np.array([float(list(kind).index(trial[name])) for trial in settings])
            slices.append(Slice(name, at, choices=tuple(str(value) for value in kind)))
    return Search(percent, np.maximum.accumulate(percent), tuple(slices))


def draw_history(search: Search, title: str | None = None) -> Figure:
    """Draw the score of every trial, the best so far, and that of the defaults."""
    trials = np.arange(1, len(search.scores) + 1)
    with styled():
        figure, axes = new_figure(2.6)
        axes.axhline(search.scores[0], color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), label="defaults", zorder=1)
        axes.step(trials, search.best_so_far, where="post", color=COLOURS[1], linewidth=1.3, label="best so far")
        axes.plot(trials, search.scores, "o", color=COLOURS[0], markersize=3, label="trial")
        low, high = np.percentile(search.scores, 10), search.scores.max()
        below = max(float(high - low), 1.0)  # a failed trial far below shall not flatten all others
        axes.set_ylim(max(float(search.scores.min()), float(low) - below) - 0.1 * below, float(high) + 0.15 * below)
        axes.set_xlabel("trial")
        axes.set_ylabel("accuracy on judging\nnodes (%)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        light_grid(axes, "y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.25), ncols=3)
        if title is not None:
            axes.set_title(title, loc="left")
        fix_layout(figure)
    return figure


def draw_slices(search: Search, title: str | None = None) -> Figure:
    """Draw the score of every trial against each setting; the best trial is marked in all of them."""
    best = int(search.scores.argmax())
    with styled():
        figure, panels = new_panels(len(search.slices), columns=2, height=1.7)
        for axes, one in zip(panels, search.slices, strict=True):
            axes.plot(one.values, search.scores, "o", color=COLOURS[0], markersize=3, alpha=0.7)
            axes.plot([one.values[best]], [search.scores[best]], "o", color=COLOURS[1], markersize=5, zorder=5)
            if one.log:
                _log_axis(axes)
            elif not one.choices and (one.values == one.values.round()).all():
                axes.xaxis.get_major_locator().set_params(integer=True)
            if one.choices:
                axes.set_xticks(range(len(one.choices)), one.choices)
                axes.set_xlim(-0.5, len(one.choices) - 0.5)
            axes.set_xlabel(one.name)
            axes.set_ylabel("accuracy (%)")
            light_grid(axes, "y")
        if title is not None:
            panels[0].set_title(title, loc="left")
        fix_layout(figure)
    return figure


def _log_axis(axes: Any) -> None:
    """Label 1, 2 and 5 of every decade in plain digits: the usual powers of ten leave a narrow range without any."""
    ticker: Any = require("matplotlib.ticker", extra="figures", purpose="Drawing figures")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
