"""The constants of ``docs/randomness.md``, shared by every backend. numpy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["BRANCHES", "EDGES", "FEATURES", "HIDDEN", "MODULE", "PPR", "RUNS", "WEIGHTS", "Bernoulli", "stream"]

FEATURES = 0
"""Nonzeros (i, j) of the feature matrix; position in the sequence: the epoch."""
HIDDEN = 1
"""Hidden unit j of node i; site (i, epoch), position j."""
EDGES = 2
"""Entries (i, j) of the transition matrix; position: epoch * K + step."""
PPR = 3
"""Entries (i, j) of the PPR matrix; site (i, epoch), position j."""
WEIGHTS = 4
"""Initial weight (i, j) of a layer; site (i, j), first word."""
MODULE = 5
"""Seed of a user's own module; site (epoch + 1, 0), or (0, 0) for its initialisation; first two words."""
RUNS = 6
"""Seed of a run; key: the split seed, site (initialisation seed, 0); first two words."""

BRANCHES = 7
"""Seed of a head or tower of a model, as of a run of its own; key: the run's seed, site (branch, layer); first two words."""


def stream(kind: int, layer: int = 0) -> int:
    """Return the stream number of a kind of random number, and of a layer where there are several.

    >>> stream(HIDDEN, 2)
    33
    """
    return kind + 16 * layer


@final
@dataclass(frozen=True)
class Bernoulli:
    """A drop probability in the form the bit-sliced comparison needs: threshold / 2**digits, threshold odd.

    Attributes
    ----------
    threshold, digits
        The probability of dropping is exactly threshold / 2**digits, with at most 16 digits.
    """

    threshold: int
    digits: int

    @classmethod
    def from_probability(cls, probability: float) -> Bernoulli:
        """Round a probability in (0, 1) to the nearest multiple of 2**-16 that is neither 0 nor 1.

        >>> Bernoulli.from_probability(0.5)
        Bernoulli(threshold=1, digits=1)
        """
        threshold, digits = min(max(round(probability * 65536), 1), 65535), 16
        while threshold % 2 == 0:
            threshold, digits = threshold // 2, digits - 1
        return cls(threshold, digits)

    @property
    def scale(self) -> float:
        """What kept entries are multiplied by, 1 / (1 - probability)."""
        return 1.0 / (1.0 - self.threshold / 2**self.digits)
