"""What the paper recommends for a dataset; a Graph of the paper carries it along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Recommended"]


@final
@dataclass(frozen=True)
class Recommended:
    """What the paper recommends for one dataset.

    Attributes
    ----------
    alpha
        Teleport probability.
    known
        Size of the set of visible nodes, from which training, stopping and validation nodes are drawn.

    Examples
    --------
    >>> Recommended(alpha=0.1, known=1500).alpha
    0.1
    """

    alpha: float
    known: int
