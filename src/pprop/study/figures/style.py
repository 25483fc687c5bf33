"""What all figures share: size, fonts, a colour and marker for each model, saving as a picture, and their data as JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from pprop._errors import InputError
from pprop._optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any  # matplotlib is imported when a figure is drawn

WIDTH = 3.5  # inches: one column of a two-column page
# Okabe and Ito's, which differ with any kind of colour vision and, in this order, in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

SETTINGS: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a figure is the same everywhere
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7.5),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "savefig.dpi": 300,
    "svg.fonttype": "path",  # looks the same without the font
    "svg.hashsalt": "pprop",  # the same figure gives the same bytes
}


@final
@dataclass(frozen=True)
class Look:
    """How a series is drawn.

    Examples
    --------
    >>> LOOKS["APPNP"].line["color"]
    '#0072B2'
    """

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"

    @property
    def line(self) -> dict[str, Any]:
        """Options of matplotlib's ``plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dashes}


DASHED = (0, (3.5, 1.5))

# No two of one figure share a hue. Markers and dashes differ, too.
# The paper's models by title, from the simplest to the paper's own, and the series of the figure over steps.
LOOKS: Mapping[str, Look] = {
    "MLP": Look("#7F7F7F", ".", DASHED),
    "V. GCN": Look("#882255", "v", DASHED),
    "GCN": Look("#009E73", "^"),
    "N-GCN": Look("#CC79A7", "D"),
    "GAT": Look("#E69F00", "P"),
    "JK": Look("#56B4E9", "X"),
    "Bt. FP": Look("#000000", "*", DASHED),
    "Bt. FP, tuned": Look("#999933", "p", DASHED),
    "PPNP": Look("#D55E00", "s"),
    "APPNP": Look("#0072B2", "o"),
    "α = 0": Look("#882255", "v"),
    "α = 0.1": Look("#0072B2", "o"),
    "α = 0.2": Look("#332288", "s"),
}

# Options of matplotlib's ``errorbar`` for points with intervals.
POINTS: Mapping[str, Any] = {"fmt": "o", "elinewidth": 1.1, "color": LOOKS["APPNP"].colour, "zorder": 3}

OTHERS = (Look("#332288", "h"), Look("#661100", "<"), Look("#AA4499", ">"), Look("#4D4D4D", "d"))


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each of `names`: the paper's models first, in their order, then the others in theirs.

    Examples
    --------
    >>> list(looks_of(["my model", "APPNP", "GCN"]))
    ['GCN', 'APPNP', 'my model']
    """
    wanted = dict.fromkeys(names)
    others = (name for name in wanted if name not in LOOKS)
    looks = {name: look for name, look in LOOKS.items() if name in wanted}
    return looks | dict(zip(others, cycle(OTHERS), strict=False))


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


@contextmanager
def new_figure(height: float, width: float = WIDTH) -> Generator[Figure]:
    """Give a figure, outside pyplot's list, to a block that draws it in the style; its axes are placed at the end."""
    figures: Any = require("matplotlib.figure", extra="figures", purpose="Drawing figures")
    with styled():
        figure: Figure = figures.Figure(figsize=(width, height), layout="constrained")
        yield figure
        # once and for all: otherwise each saving shifts the axes by a hair, and the next file differs
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


@contextmanager
def new_panels(
    count: int, columns: int | None = None, height: float = 2.3, parts: tuple[float, ...] = (1,)
) -> Generator[tuple[Figure, list[Any]]]:
    """Give a figure of `count` panels, and their axes row by row, to a block that draws them; see `new_figure`.

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
    across = min(columns or 2, count)
    down = -(-count // across)
    with new_figure(height * down, WIDTH * across) as figure:
        engine: Any = figure.get_layout_engine()
        engine.set(wspace=0.05)  # panels beside each other stand apart
        grid = figure.subplots(down, across * len(parts), squeeze=False, width_ratios=parts * across)
        places: list[Any] = list(grid.flat)
        for empty in places[count * len(parts) :]:
            empty.remove()
        yield figure, places[: count * len(parts)]


def light_grid(axes: Any, axis: str) -> None:
    """Draw the light lines that help to read values off one axis."""
    axes.grid(axis=axis, color="0.88", linewidth=0.6)


def push_apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, as close as may be to the ascending places `wanted`.

    Neighbours that are too close form a block around the mean of what they want; blocks that meet become one.

    Examples
    --------
    >>> push_apart([1.0, 2.0, 50.0], gap=9)
    [-3.0, 6.0, 50.0]
    """
    blocks: list[list[float]] = []
    for place in wanted:
        blocks.append([place])
        while len(blocks) > 1 and _span(blocks[-1], gap)[0] - _span(blocks[-2], gap)[1] < gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [_span(block, gap)[0] + gap * index for block in blocks for index in range(len(block))]


def _span(block: Sequence[float], gap: float) -> tuple[float, float]:
    middle, half = sum(block) / len(block), gap * (len(block) - 1) / 2
    return middle - half, middle + half


def save_figure(figure: Figure, kind: str) -> bytes:
    """Return the figure as the bytes of a ``"png"`` or ``"svg"`` file; the same figure gives the same bytes."""
    if kind not in ("png", "svg"):
        raise InputError(f"The 'kind' parameter of save_figure must be 'png' or 'svg'. Got {kind!r} instead.")
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()


# Significant digits of `figure_json`: more than a figure can show, and fewer than the order of a sum can change.
DIGITS = 6


def figure_json(data: object) -> str:
    """Return the data of a figure as JSON, a line for each panel; infinity and NaN are strings.

    Examples
    --------
    >>> from pprop.study.stats.estimate import Estimate
    >>> print(figure_json((Estimate(mean=2 / 3, low=0.6, high=float("inf"), runs=20),)), end="")
    [
    {"mean": 0.666667, "low": 0.6, "high": "inf", "runs": 20}
    ]
    """
    plain = _plain(data)
    panels = cast("list[object]", plain) if isinstance(plain, list) else [plain]
    lines = ",\n".join(json.dumps(panel, ensure_ascii=False, allow_nan=False) for panel in panels)
    return f"[\n{lines}\n]\n"


def _plain(value: Any) -> object:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in cast("list[object]", value)]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    return value
