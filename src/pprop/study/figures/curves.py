"""How one training went: losses above, stopping accuracy below, the kept epoch marked in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop.study.figures.style import COLOURS, fix_layout, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pprop.training import History

__all__ = ["Curves", "curves_data", "draw_curves"]


@final
@dataclass(frozen=True)
class Curves:
    """What the figure shows, one value per epoch, shape (epochs,); epochs are counted from 1, accuracies in per cent."""

    epochs: NDArray[np.int64]
    train_loss: NDArray[np.float64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    best_epoch: int


def curves_data(history: History, best_epoch: int) -> Curves:
    """Return what the figure shows of a run's history; `best_epoch` counts from 0, as in `Trained`.

    Examples
    --------
    >>> from pprop.training import History
    >>> history = History(np.array([1.8, 1.5]), np.array([1.7, 1.6]), np.array([0.4, 0.5]))
    >>> curves_data(history, best_epoch=1).best_epoch
    2
    """
    count = len(history.train_loss)
    if not 0 <= best_epoch < count:
        raise InputError(
            f"The 'best_epoch' parameter of curves_data must be an integer from 0 to {count - 1}. "
            f"Got {best_epoch!r} instead."
        )
    return Curves(
        epochs=np.arange(1, count + 1),
        train_loss=history.train_loss,
        stopping_loss=history.stopping_loss,
        stopping_accuracy=100 * history.stopping_accuracy,
        best_epoch=int(best_epoch) + 1,
    )


def draw_curves(curves: Curves, title: str | None = None) -> Figure:
    """Draw the curves of one run."""
    with styled():
        figure, (above, below) = new_figure(3.2, rows=2, sharex=True, height_ratios=(3, 2))
        above.plot(curves.epochs, curves.train_loss, color=COLOURS[0], linewidth=0.7, label="training")
        above.plot(curves.epochs, curves.stopping_loss, color=COLOURS[1], linewidth=1.3, label="stopping")
        above.set_ylabel("loss")
        above.set_ylim(bottom=0)
        below.plot(curves.epochs, curves.stopping_accuracy, color=COLOURS[1], linewidth=1.0)
        below.set_ylabel("stopping\naccuracy (%)")
        below.set_xlabel("epoch")
        for axes, values in ((above, curves.stopping_loss), (below, curves.stopping_accuracy)):
            _mark(axes, curves, values)
        above.legend(loc="upper right", ncols=1, borderaxespad=0)
        figure.align_ylabels()
        if title is not None:
            above.set_title(title, loc="left")
        fix_layout(figure)
    return figure


def _mark(axes: Any, curves: Curves, values: NDArray[np.float64]) -> None:
    at = curves.best_epoch
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.axvline(at, color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axes.plot(
        [at],
        [values[at - 1]],
        marker="o",
        markersize=4,
        color="black",
        linestyle="none",
        zorder=5,
        label=f"kept: epoch {at}",
    )
