"""One colour, marker and line for each model, the same in every figure; the order in which models are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

__all__ = ["LOOKS", "Look", "looks_of"]


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

# Okabe and Ito's colours, told apart with any kind of colour vision; two versions of one model share a hue. Markers and
# dashes tell the same without any colour.
LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "MLP": Look("#7F7F7F", ".", DASHED),
        "V. GCN": Look("#009E73", "v", DASHED),
        "GCN": Look("#009E73", "^"),
        "N-GCN": Look("#CC79A7", "D"),
        "GAT": Look("#E69F00", "P"),
        "JK": Look("#56B4E9", "X"),
        "Bt. FP": Look("#000000", "*", DASHED),
        "PPNP": Look("#D55E00", "s"),
        "APPNP": Look("#0072B2", "o"),
        "α = 0": Look("#882255", "v"),
        "α = 0.1": Look("#0072B2", "o"),
        "α = 0.2": Look("#332288", "s"),
    }
)
"""The paper's models by title, from the simplest to the paper's own, and the series of the figure over steps."""

OTHERS = (Look("#882255", "h"), Look("#999933", "<"), Look("#332288", ">"), Look("#661100", "d"))


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each of `names`: the paper's models first, in their order, then the others in theirs.

    Examples
    --------
    >>> list(looks_of(["my model", "APPNP", "GCN"]))
    ['GCN', 'APPNP', 'my model']
    """
    wanted = list(dict.fromkeys(names))
    looks = {name: look for name, look in LOOKS.items() if name in wanted}
    for index, name in enumerate(name for name in wanted if name not in LOOKS):
        looks[name] = OTHERS[index % len(OTHERS)]
    return looks
