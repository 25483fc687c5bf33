"""The random numbers of ``docs/randomness.md``: the constants, and plainly written seeds and keep decisions.

The reference backend drops by these decisions, and the other backends are tested against them. What is written here with
operators alone computes on numpy arrays and on tensors alike; `pprop.kernels.draws` has what only tensors are drawn by.

Neither has to have an unsigned 64-bit product: int64 wraps around in two's complement, which has the same low 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

# Nonzeros (i, j) of the feature matrix; position in the sequence: the epoch.
FEATURES = 0
# Hidden unit j of node i; site (i, epoch), position j.
HIDDEN = 1
# Entries (i, j) of the transition matrix; position: epoch * K + step.
EDGES = 2
# Entries (i, j) of the PPR matrix; site (i, epoch), position j.
PPR = 3
# Initial weight (i, j) of a layer; site (i, j), first word.
WEIGHTS = 4
# Seed of a user's own module; site (epoch + 1, 0), or (0, 0) for its initialisation; first two words.
MODULE = 5
# Seed of a run; key: the split seed, site (initialisation seed, 0); first two words.
RUNS = 6

# Seed of a head or tower of a model, as of a run of its own; key: the run's seed, site (branch, layer); first two
# words.
BRANCHES = 7
# Entries (i, j) of a dense feature matrix; site (i, epoch), position j.
DENSE_FEATURES = 8
# A planted graph (benchmarks/_planted.py), by layer: its edges, dense features, words, class means, and where its nodes begin.
PLANTED = 9
# Order of labelled nodes and of mini-batches; site (position, 0) for nodes, (batch, epoch + 1) for batches; first word.
ORDER = 10

_LOW = 0xFFFFFFFF
# Integers: one of them, or an array or tensor of many, in int64.
Integers = Any
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def stream(kind: int, layer: int = 0) -> int:
    """Return the stream number of a kind of random number, and of a layer where there are several.

    >>> stream(HIDDEN, 2)
    33
    """
    return kind + 16 * layer


@final
class Bernoulli(NamedTuple):
    """A drop probability in the form the bit-sliced comparison needs: threshold / 2**digits, threshold odd.

    Attributes
    ----------
    threshold, digits
        The probability of dropping is exactly threshold / 2**digits, with at most 16 digits; none if nothing is dropped.
    """

    threshold: int
    digits: int

    @classmethod
    def from_probability(cls, probability: float) -> Bernoulli:
        """Round a probability in (0, 1) to the nearest multiple of 2**-16 that is neither 0 nor 1; 0 has no digits.

        >>> Bernoulli.from_probability(0.5), Bernoulli.from_probability(0.0).scale
        (Bernoulli(threshold=1, digits=1), 1.0)
        """
        if probability == 0:
            return cls(0, 0)
        threshold, digits = min(max(round(probability * 65536), 1), 65535), 16
        while threshold % 2 == 0:
            threshold, digits = threshold // 2, digits - 1
        return cls(threshold, digits)

    @property
    def scale(self) -> float:
        """What kept entries are multiplied by, 1 / (1 - probability)."""
        return 1.0 / (1.0 - self.threshold / 2**self.digits)


@final
@dataclass(frozen=True)
class Draw:
    """Which dropout masks to draw.

    Attributes
    ----------
    seeds
        One 64-bit seed per run, shape (R,), int64: an array or a tensor, as what is dropped from is.
    epoch
        Training epoch, from 0. On a GPU it may be a tensor (1,) of int64, so that a captured epoch can be replayed.
    probability
        Probability of dropping an entry, strictly between 0 and 1.
    """

    seeds: Integers
    epoch: Integers
    probability: float

    @property
    def number(self) -> int:
        """The epoch as a number: waits for the device if it is there."""
        return int(self.epoch)


def law_of(draw: Draw | None) -> Bernoulli:
    """Return the law by which a draw drops entries: without a draw, that of no dropout.

    >>> law_of(None)
    Bernoulli(threshold=0, digits=0)
    """
    return Bernoulli.from_probability(0.0 if draw is None else draw.probability)


def philox(
    key: tuple[Integers, Integers], counter: tuple[Integers, Integers, Integers, Integers]
) -> tuple[Integers, Integers, Integers, Integers]:
    """Philox4x32-10 of Salmon et al. 2011 on 32-bit words: numbers, or arrays or tensors that broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> zeros = np.zeros(2, dtype=np.int64)
    >>> [hex(word[1]) for word in philox((0, zeros), (0, zeros, 0, zeros))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    >>> hex(philox((0, 0), (0, 0, 0, 0))[3])
    '0x9b00dbd8'
    """
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        high0, high1 = (product0 >> 32) & _LOW, (product1 >> 32) & _LOW
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, product1 & _LOW, high0 ^ c3 ^ k1, product0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


def sequence_word(seeds: Integers, stream: int, first: Integers, second: Integers, index: Integers) -> Integers:
    """Return word `index` of the sequence of site (first, second) in a stream, in int64 and below 2**32.

    All arguments but `stream` broadcast together.

    Examples
    --------
    >>> import numpy as np
    >>> hex(sequence_word(0, 0, 0, 0, np.arange(2))[1])
    '0xe169c58d'
    """
    words = philox((seeds & _LOW, (seeds >> 32) & _LOW), (first, second, stream, index >> 2))
    lane = index & 3
    word = words[0]
    for number in (1, 2, 3):
        word = word + (words[number] - word) * (lane == number)
    return word


def keep_bits(
    seeds: Integers, stream: int, first: Integers, second: Integers, position: Integers, bernoulli: Bernoulli
) -> Any:
    """Return whether the entry at `position` of the sequence of each site is kept, as bools.

    Examples
    --------
    >>> import numpy as np
    >>> half = Bernoulli.from_probability(0.5)
    >>> keep_bits(0, 0, 0, 0, np.arange(8), half).astype(int)
    array([1, 0, 1, 0, 1, 0, 1, 1])
    """
    block, bit = position >> 5, position & 31
    keep = 1
    for digit in reversed(range(bernoulli.digits)):  # from the least significant binary digit of u < threshold
        index = block * bernoulli.digits + digit
        drawn = (sequence_word(seeds, stream, first, second, index) >> bit) & 1
        is_one = (bernoulli.threshold >> (bernoulli.digits - 1 - digit)) & 1
        keep = drawn & keep if is_one else drawn | keep
    return keep != 0


def derive_seed(seed: int, stream: int, first: int, second: int = 0) -> int:
    """Return a 64-bit seed, as a signed integer, made of the first two words of a site.

    Examples
    --------
    >>> derive_seed(0, 0, 0) & 0xFFFFFFFF == 0x6627E8D5
    True
    """
    low, high, *_ = philox((seed & _LOW, (seed >> 32) & _LOW), (first, second, stream, 0))
    return signed(high << 32 | low)


def signed(seed: int) -> int:
    """Return a 64-bit integer as int64 stores it, in two's complement.

    >>> signed(2**64 - 1)
    -1
    """
    return (seed & (2**64 - 1)) - (2**64 if seed & 2**63 else 0)
