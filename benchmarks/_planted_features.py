"""Features of planted graphs: normal numbers around class means, or words of which classes prefer some."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import _planted_kernels as kernels
from pprop._validate import check_float, check_int
from pprop.kernels.random_bits import PLANTED, stream

_GOLDEN = (5**0.5 - 1) / 2


@final
@dataclass(frozen=True)
class NormalFeatures:
    """Dense features: the mean of the node's class plus normal noise of variance 1 in every column.

    Parameters
    ----------
    columns
        f.
    strength
        Length of a class's mean, whose direction is random: means of two classes are about sqrt(2) times that apart.

    Examples
    --------
    >>> NormalFeatures(columns=3).rows(0, 0, np.array([0, 1]), n_classes=2).shape
    (2, 3)
    """

    columns: int = 64
    strength: float = 2.5

    def __post_init__(self) -> None:
        check_int(self.columns, "columns", "NormalFeatures", low=1)
        check_float(self.strength, "strength", "NormalFeatures", "[0, inf)")

    def rows(self, seed: int, first: int, classes: NDArray[np.int64], n_classes: int) -> NDArray[np.float32]:
        """Return the features of nodes first, first + 1, ..., given their classes; shape (rows, f), float32."""
        out = np.empty((len(classes), self.columns), np.float32)
        kernels.dense_rows(np.uint64(seed), stream(PLANTED, 1), first, classes, self.means(seed, n_classes), out)
        return out

    def means(self, seed: int, n_classes: int) -> NDArray[np.float64]:
        """Return the class means, shape (classes, f).

        >>> np.linalg.norm(NormalFeatures(5, 3.0).means(0, 2), axis=1).round(6).tolist()
        [3.0, 3.0]
        """
        drawn = np.empty((n_classes, self.columns), np.float64)
        zeros = np.zeros((1, self.columns))
        kernels.dense_rows(np.uint64(seed), stream(PLANTED, 3), 0, np.zeros(n_classes, np.int64), zeros, drawn)
        return self.strength * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class WordFeatures:
    """Sparse features: counts of words, each drawn from the words of the node's class or from all.

    In both lists the frequency of a word falls with its rank r as r^(1 / power - 1): by default with the square root, and
    for a large power nearly as 1 / r, as in texts.

    Parameters
    ----------
    columns
        Words in all, f; at least two for every class.
    draws
        Words of a node. Those drawn twice are counted twice, so that there are at most as many nonzeros.
    strength
        Probability that a word is one of the class's own, which are columns // classes.
    power
        At least 1, where all words of a list are as frequent.

    Examples
    --------
    >>> WordFeatures(columns=100, draws=5).rows(0, 0, np.array([0, 1]), n_classes=2).sum(axis=1)
    array([5., 5.], dtype=float32)
    """

    columns: int = 2000
    draws: int = 20
    strength: float = 0.35
    power: float = 2.0

    def __post_init__(self) -> None:
        check_int(self.columns, "columns", "WordFeatures", low=1, high=2**31 - 1)
        check_int(self.draws, "draws", "WordFeatures", low=1)
        check_float(self.strength, "strength", "WordFeatures", "[0, 1]")
        check_float(self.power, "power", "WordFeatures", "[1, inf)")

    def rows(self, seed: int, first: int, classes: NDArray[np.int64], n_classes: int) -> sparse.csr_array:
        """Return the features of nodes first, first + 1, ..., given their classes; shape (rows, f), float32."""
        sizes = np.array([max(1, self.columns // n_classes), self.columns], np.int64)
        spans = (sizes + 1.0) ** (1 / self.power) - 1.0
        indices = np.empty((len(classes), self.draws), np.int32)
        values, counts = np.empty(indices.shape, np.float32), np.empty(len(classes), np.int64)
        kernels.sparse_rows(
            np.uint64(seed),
            stream(PLANTED, 2),
            first,
            classes,
            self.strength,
            n_classes,
            spans,
            sizes,
            float(self.power),
            step_through(self.columns),
            0,
            indices,
            values,
            counts,
        )
        filled = np.arange(self.draws) < counts[:, None]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        shape = (len(classes), self.columns)
        return sparse.csr_array((values[filled], indices[filled], indptr), shape=shape)


def step_through(n: int) -> int:
    """Return a step near the golden section of n that shares no divisor with it, so that its multiples reach all.

    >>> step_through(10), step_through(1)
    (7, 1)
    """
    step = max(1, round(_GOLDEN * n))
    while gcd(step, n) != 1:
        step += 1
    return step
