"""The keep decisions of a sparse matrix's entries, drawn 32 at a time and kept as long as they serve."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.contract import Draw
from pprop.kernels.numba_cpu import bits
from pprop.kernels.streams import Bernoulli

__all__ = ["NO_WORDS", "KeepWords", "keep_words"]

NO_WORDS = np.empty((1, 0), dtype=np.uint32)
"""Where nothing is dropped."""

Structure = tuple[NDArray[Any], NDArray[Any]]
"""Row pointers and column indices."""


def keep_words(structure: Structure, draw: Draw, kind: int, position: int, *, transposed: bool) -> NDArray[np.uint32]:
    """Return the 32 keep decisions from `position` on, of every entry and every run, shape (R, entries)."""
    indptr, indices = structure
    out = np.empty((len(draw.seeds), len(indices)), dtype=np.uint32)
    law, seeds = Bernoulli.from_probability(draw.probability), draw.seeds.contiguous().numpy().view(np.uint64)
    bits.site_words(seeds, kind, indptr, indices, transposed, position, law.threshold, law.digits, out)
    return out


@final
class KeepWords:
    """Decisions of a matrix, and of its transpose, at the position that a draw's epoch names.

    One word holds an entry's decisions for 32 epochs, so that random bits cost next to nothing per epoch. A model may
    draw for several branches in turn: all words of the present 32 epochs are kept, by side and seeds.
    """

    def __init__(self, kind: int, *sides: Structure) -> None:
        self._kind, self._sides = kind, sides
        self._group = -1
        self._known: dict[object, NDArray[np.uint32]] = {}

    def at(self, draw: Draw | None, side: int = 0) -> tuple[NDArray[np.uint32], int, float]:
        """Return words (R, entries), the bit of the epoch in them, and what kept entries are multiplied by."""
        if draw is None:
            return NO_WORDS, 0, 1.0
        group, bit = divmod(draw.number, 32)
        if self._group != group:
            self._group, self._known = group, {}
        key = (side, draw.probability, draw.seeds.numpy().tobytes())
        if key not in self._known:
            self._known[key] = keep_words(self._sides[side], draw, self._kind, 32 * group, transposed=side == 1)
        return self._known[key], bit, Bernoulli.from_probability(draw.probability).scale
