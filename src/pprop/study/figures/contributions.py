"""Where one prediction came from: a bar per contributing node, to the left and right of zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.study.figures.style import COLOURS, fix_layout, light_grid, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pprop.estimators import Explanation

__all__ = ["Contributions", "contributions_data", "draw_contributions"]

_LONGEST = 24
_COLOUR = {"labelled": COLOURS[1], "other": COLOURS[0], "rest": "0.6"}


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
    with styled():
        count = len(data.names)
        figure, axes = new_figure(0.9 + 0.19 * count)
        places = np.arange(count)[::-1]
        colours = [_COLOUR[kind] for kind in data.kinds]
        axes.barh(places, data.values, height=0.72, color=colours)
        axes.set_yticks(places, data.names)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0.0, color="black", linewidth=0.6)
        light_grid(axes, "x")
        axes.set_xlabel(data.axis)
        axes.set_title(data.title, loc="left")
        engine: Any = figure.get_layout_engine()
        engine.set(
            w_pad=0.12
        )  # inches: names are a little longer in print than on the screen for which they are placed
        fix_layout(figure)
    return figure
