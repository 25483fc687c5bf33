"""One look for all figures: a column's width, print's font sizes, colours that everybody can tell apart."""

from __future__ import annotations

import io
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pprop._errors import InputError
from pprop._optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "WIDTH",
    "check_drawing",
    "fix_layout",
    "light_grid",
    "new_figure",
    "new_panels",
    "save_figure",
    "styled",
]

WIDTH = 3.5  # inches: one column of a two-column page
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart with any kind of colour vision and, in this order, in grey."""

SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so that a figure is the same everywhere
        "font.size": 8,
        "axes.labelsize": 8,
        "axes.titlesize": 8,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "legend.fontsize": 7.5,
        "axes.linewidth": 0.6,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "figure.facecolor": "white",
        "savefig.dpi": 300,
        "svg.fonttype": "path",  # looks the same without the font
        "svg.hashsalt": "pprop",  # the same figure gives the same bytes
    }
)


def check_drawing() -> None:
    """Raise MissingDependencyError where figures cannot be drawn: before long work, not after it."""
    require("matplotlib", extra="figures", purpose="Drawing figures")


@contextmanager
def styled() -> Generator[None]:
    """Apply the style to what the block draws or saves, and leave the user's own settings alone."""
    matplotlib: Any = require("matplotlib", extra="figures", purpose="Drawing figures")
    with matplotlib.rc_context():
        matplotlib.rcParams.update(matplotlib.rcParamsDefault | {"backend": matplotlib.rcParams["backend"]})
        matplotlib.rcParams.update(SETTINGS)
        yield


def new_figure(height: float, rows: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure of one column's width, outside pyplot's list, and its axes."""
    figures: Any = require("matplotlib.figure", extra="figures", purpose="Drawing figures")
    figure: Figure = figures.Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, 1, **options)


def new_panels(
    count: int,
    columns: int | None = None,
    height: float = 2.3,
    parts: tuple[float, ...] = (1,),
) -> tuple[Figure, list[Any]]:
    """Return a figure of `count` panels, and their axes row by row.

    Parameters
    ----------
    count
        Number of panels.
    columns
        Panels beside each other, a column's width each; None for two, or one where there is a single panel.
    height
        Of each row, in inches.
    parts
        Relative widths of the axes that make up a panel, beside each other.
    """
    figures: Any = require("matplotlib.figure", extra="figures", purpose="Drawing figures")
    across = min(columns or 2, count)
    down = -(-count // across)
    size = (WIDTH * across, height * down)
    figure: Figure = figures.Figure(figsize=size, layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(wspace=0.05)  # panels beside each other stand apart
    grid: Any = figure.subplots(down, across * len(parts), squeeze=False, width_ratios=parts * across)
    places: list[Any] = list(grid.flat)
    for empty in places[count * len(parts) :]:
        empty.remove()
    return figure, places[: count * len(parts)]


def light_grid(axes: Any, axis: str) -> None:
    """Draw the light lines that help to read values off one axis."""
    axes.grid(axis=axis, color="0.88", linewidth=0.6)


def fix_layout(figure: Figure) -> None:
    """Place the axes once and for all: otherwise each saving shifts them by a hair, and the next file differs."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def save_figure(figure: Figure, kind: str) -> bytes:
    """Return the figure as the bytes of a ``"png"`` or ``"svg"`` file; the same figure gives the same bytes."""
    if kind not in ("png", "svg"):
        raise InputError(f"The 'kind' parameter of save_figure must be 'png' or 'svg'. Got {kind!r} instead.")
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()
