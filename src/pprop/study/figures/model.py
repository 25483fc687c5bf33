"""Figures of one model: how its training went, which nodes a prediction came from, and how a search for settings went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._optional import require
from pprop._validate import reject
from pprop.study.figures.style import COLOURS, WIDTH, Figure, light_grid, new_figure, new_panels

if TYPE_CHECKING:
    from pprop.estimators import Explanation
    from pprop.scoring.judged_nodes import Curves
    from pprop.training import History

_LONGEST = 24
_COLOUR = {"labelled": COLOURS[1], "other": COLOURS[0], "rest": "0.6"}


def draw_curves(history: History, best_epoch: int, title: str | None = None, score: str | None = None) -> Figure:
    """Draw losses and accuracy over the epochs of one run, counted from 1; `best_epoch` counts from 0, as in `Trained`.

    `score` names what early stopping watched in place of the accuracy, which is then drawn.
    """
    count = len(history.train_loss)
    if not 0 <= best_epoch < count:
        reject("best_epoch", "draw_curves", f"an integer from 0 to {count - 1}", best_epoch)
    epochs, at = np.arange(1, count + 1), best_epoch + 1
    watched = 100 * history.stopping_accuracy if score is None else history.stopping_score
    with new_figure(3.2) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        above.plot(epochs, history.train_loss, color=COLOURS[0], linewidth=0.7, label="training")
        above.plot(epochs, history.stopping_loss, color=COLOURS[1], linewidth=1.3, label="stopping")
        above.set(ylabel="loss", ylim=(0, None), title=title or "")
        below.plot(epochs, watched, color=COLOURS[1], linewidth=1.0)
        below.set(xlabel="epoch", ylabel="stopping\naccuracy (%)" if score is None else f"stopping\n{score}")
        for axes, values in ((above, history.stopping_loss), (below, watched)):
            light_grid(axes, "y")
            axes.axvline(at, color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
            axes.plot([at], [values[at - 1]], "o", markersize=4, color="black", zorder=5, label=f"kept: epoch {at}")
        above.legend(loc="upper right", ncols=1, borderaxespad=0)
        figure.align_ylabels()
    return figure


@final
@dataclass(frozen=True)
class RankingPicture:
    """What the figure shows: a class, the share of the test nodes that is of it, and the curves of each model by name."""

    positive: str
    share: float
    curves: Mapping[str, Curves]


def draw_ranking(data: RankingPicture, title: str | None = None) -> Figure:
    """Draw precision over recall, and the share of the class over the probability; the first model in front."""
    looks = [
        (name, curves, COLOURS[number % len(COLOURS)]) for number, (name, curves) in enumerate(data.curves.items())
    ]
    positive = _short(data.positive, None)
    with new_figure(2.9, width=2 * WIDTH) as figure:
        ranking, calibration = figure.subplots(1, 2)
        for number, (name, curves, colour) in reversed([*enumerate(looks)]):
            width = 1.5 if number == 0 else 0.9
            recall, precision = np.append(0.0, curves.recall), np.append(curves.precision[0], curves.precision)
            ranking.plot(recall, precision, color=colour, linewidth=width, label=name, drawstyle="steps-pre", zorder=3)
            calibration.plot(
                curves.probability, curves.share, "o-", color=colour, linewidth=width, markersize=3, zorder=3
            )
        ranking.axhline(
            data.share, color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), label="order by chance", zorder=1
        )
        ranking.set(xlabel=f"recall of {positive}", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02), title=title or "")
        largest = max(float(max(curves.probability.max(), curves.share.max())) for curves in data.curves.values())
        end = min(1.0, 1.08 * largest) or 1.0
        dashed: dict[str, Any] = {"color": "0.35", "linewidth": 0.8, "linestyle": (0, (4, 2)), "zorder": 1}
        calibration.plot([0, end], [0, end], label="as predicted", **dashed)
        calibration.legend(loc="upper left", borderaxespad=0)
        calibration.set(
            xlabel=f"probability of {positive}", ylabel=f"share that is {positive}", xlim=(0, end), ylim=(0, end)
        )
        for axes in (ranking, calibration):
            light_grid(axes, "y")
        handles, names = ranking.get_legend_handles_labels()
        order = [*range(len(looks) - 1, -1, -1), len(looks)]
        ranking.legend([handles[k] for k in order], [names[k] for k in order], loc="upper right", borderaxespad=0)
        calibration.locator_params(nbins=6)
        calibration.set_title("Each point is about a tenth of the test nodes.")
    return figure


@final
@dataclass(frozen=True)
class Contributions:
    """What the figure shows of one class: name, number and kind of each bar: "labelled" in fit, "other", "rest"."""

    title: str
    axis: str
    names: list[str]
    values: NDArray[np.float64]
    kinds: list[str]


def contributions_data(explanation: Explanation) -> Contributions:
    """Return what the figure shows: the contributions to the logit of the predicted class.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((4, 4)), features=np.eye(4)[[0, 0, 1, 1]])
    >>> model = pprop.MLPNodeClassifier(graph, hidden=4, max_epochs=5, random_state=0)
    >>> contributions_data(model.fit([0, 1, 2, 3], ["x", "x", "y", "y"], stopping=0.5).explain(0)).names
    ['0 (x)']
    """
    column = int(explanation.value.argmax())
    names = [_short(name, label) for name, label in zip(map(str, explanation.names), explanation.labels, strict=True)]
    values = explanation.contributions[:, column]
    kinds = ["other" if label is None else "labelled" for label in explanation.labels]
    if explanation.other_count:
        names.append(f"{explanation.other_count:,} other {'node' if explanation.other_count == 1 else 'nodes'}")
        values, kinds = np.append(values, explanation.others[column]), [*kinds, "rest"]
    title = f"{_short(str(explanation.name), None)} is {explanation.prediction}: {explanation.value[column]:.3g}"
    return Contributions(title, f"contribution to the {explanation.quantity}", names, values, kinds)


def _short(name: str, label: Any) -> str:
    kept = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return kept if label is None else f"{kept} ({label})"


def draw_contributions(data: Contributions) -> Figure:
    """Draw one bar per contributor; a node that fit had a label of has its own colour and the label behind its name."""
    with new_figure(0.9 + 0.19 * len(data.names)) as figure:
        axes = figure.subplots()
        places = np.arange(len(data.names))[::-1]
        axes.barh(places, data.values, height=0.72, color=[_COLOUR[kind] for kind in data.kinds])
        axes.set_yticks(places, data.names)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0.0, color="black", linewidth=0.6)
        light_grid(axes, "x")
        axes.set(xlabel=data.axis, title=data.title)
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.12)  # inches: names are longer in print than on the screen for which they are placed
    return figure


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
    """What the figures show; scores are accuracies in per cent, shape (t,), or values of a measure that has a name."""

    scores: NDArray[np.float64]
    best_so_far: NDArray[np.float64]
    slices: tuple[Slice, ...]
    measure: str | None = None


def search_data(
    scores: Sequence[float],
    settings: Sequence[Mapping[str, Any]],
    choices: Mapping[str, Sequence[Any] | bool],
    measure: str | None = None,
) -> Search:
    """Return what the figures show.

    Parameters
    ----------
    scores
        Accuracy of every trial, in [0, 1], or the value of another measure.
    settings
        The settings of every trial.
    choices
        For every setting that varies: its possible values, or, for a range of numbers, whether its axis is logarithmic.
    measure
        What the scores are; None: accuracies.

    Examples
    --------
    >>> tried = [{"alpha": 0.1, "hidden": 64}, {"alpha": 0.2, "hidden": 16}, {"alpha": 0.4, "hidden": 64}]
    >>> data = search_data([0.5, 0.75, 0.25], tried, {"alpha": True, "hidden": [16, 64]})
    >>> data.best_so_far.tolist(), data.slices[1].values.tolist(), data.slices[1].choices
    ([50.0, 75.0, 75.0], [1.0, 0.0, 1.0], ('16', '64'))
    """
    if not scores:
        reject("scores", "search_data", "the scores of at least one trial", "none")
    shown = np.array(scores) if measure is not None else 100 * np.array(scores)
    slices: list[Slice] = []
    for name, kind in choices.items():
        if isinstance(kind, bool):
            slices.append(Slice(name, np.array([float(trial[name]) for trial in settings]), log=kind))
        else:
            at = np.array([float(list(kind).index(trial[name])) for trial in settings])
            slices.append(Slice(name, at, choices=tuple(str(value) for value in kind)))
    return Search(shown, np.maximum.accumulate(shown), tuple(slices), measure)


def draw_history(search: Search, title: str | None = None) -> Figure:
    """Draw the score of every trial, the best so far, and that of the defaults."""
    trials = np.arange(1, len(search.scores) + 1)
    with new_figure(2.6) as figure:
        axes: Any = figure.subplots()
        axes.axhline(search.scores[0], color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), label="defaults", zorder=1)
        axes.step(trials, search.best_so_far, where="post", color=COLOURS[1], linewidth=1.3, label="best so far")
        axes.plot(trials, search.scores, "o", color=COLOURS[0], markersize=3, label="trial")
        low, high = np.percentile(search.scores, 10), search.scores.max()
        below = max(
            float(high - low), 1.0 if search.measure is None else 0.01
        )  # a failed trial far below shall not flatten all others
        axes.set_ylim(max(float(search.scores.min()), float(low) - below) - 0.1 * below, float(high) + 0.15 * below)
        what = "accuracy on judging\nnodes (%)" if search.measure is None else f"{search.measure}\non judging nodes"
        axes.set(xlabel="trial", ylabel=what, title=title or "")
        axes.xaxis.get_major_locator().set_params(integer=True)
        light_grid(axes, "y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.25), ncols=3)
    return figure


def draw_slices(search: Search, title: str | None = None) -> Figure:
    """Draw the score of every trial against each setting; the best trial is marked in all of them."""
    best = int(search.scores.argmax())
    with new_panels(len(search.slices), columns=2, height=1.7) as (figure, panels):
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
            axes.set(xlabel=one.name, ylabel="accuracy (%)" if search.measure is None else search.measure)
            light_grid(axes, "y")
        panels[0].set_title(title or "")
    return figure


def _log_axis(axes: Any) -> None:
    """Label 1, 2 and 5 of every decade in plain digits: the usual powers of ten leave a narrow range without any."""
    ticker: Any = require("matplotlib.ticker", extra="figures", purpose="Drawing figures")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
