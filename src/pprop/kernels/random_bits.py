"""The random numbers of ``docs/randomness.md``: the constants, and in plain torch seeds, initial weights, keep decisions.

The reference backend drops by these decisions, and the other backends are tested against them.

Torch has no unsigned 64-bit product, but int64 wraps around in two's complement, which has the same low 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar, final

import torch
from torch import Tensor

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
# 32-bit words: one of them, or many.
Word = TypeVar("Word", int, Tensor)
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
        One 64-bit seed per run, shape (R,), int64.
    epoch
        Training epoch, from 0. On a GPU it may be a tensor (1,) of int64, so that a captured epoch can be replayed.
    probability
        Probability of dropping an entry, strictly between 0 and 1.
    """

    seeds: Tensor
    epoch: int | Tensor
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


def philox(key: tuple[Word, Word], counter: tuple[Word, ...]) -> tuple[Word, ...]:
    """Philox4x32-10 of Salmon et al. 2011 on 32-bit words: numbers, or int64 tensors that broadcast.

    Examples
    --------
    >>> zero = torch.zeros((), dtype=torch.int64)
    >>> [hex(int(word)) for word in philox((zero, zero), (zero, zero, zero, zero))]
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


def sequence_word(seeds: Tensor, stream: int, first: Tensor, second: Tensor, index: Tensor) -> Tensor:
    """Return word `index` of the sequence of site (first, second) in a stream, as int64 below 2**32.

    All arguments but `stream` are int64 tensors that broadcast together.

    Examples
    --------
    >>> at = torch.tensor
    >>> hex(int(sequence_word(at(0), 0, at(0), at(0), at(1))))
    '0xe169c58d'
    """
    words = philox((seeds & _LOW, (seeds >> 32) & _LOW), (first, second, torch.full_like(first, stream), index >> 2))
    lane = index & 3
    low = torch.where(lane == 0, words[0], words[1])
    high = torch.where(lane == 2, words[2], words[3])
    return torch.where(lane < 2, low, high)


def keep_bits(
    seeds: Tensor, stream: int, first: Tensor, second: Tensor, position: Tensor, bernoulli: Bernoulli
) -> Tensor:
    """Return whether the entry at `position` of the sequence of each site is kept, as a bool tensor.

    Examples
    --------
    >>> at = torch.tensor
    >>> half = Bernoulli.from_probability(0.5)
    >>> keep_bits(at(0), 0, at(0), at(0), torch.arange(8), half).int()
    tensor([1, 0, 1, 0, 1, 0, 1, 1], dtype=torch.int32)
    """
    block, bit = position >> 5, position & 31
    keep = torch.ones((), dtype=torch.int64)
    for digit in reversed(range(bernoulli.digits)):  # from the least significant binary digit of u < threshold
        index = block * bernoulli.digits + digit
        drawn = (sequence_word(seeds, stream, first, second, index) >> bit) & 1
        is_one = (bernoulli.threshold >> (bernoulli.digits - 1 - digit)) & 1
        keep = drawn & keep if is_one else drawn | keep
    return keep.bool()


def uniform(seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
    """Return float32 numbers uniform in [-limit, limit), (R, rows, columns): 24 bits of the first word of site (i, j).

    Examples
    --------
    >>> bool((uniform(torch.tensor([7]), 4, 2, 3, 0.5).abs() <= 0.5).all())
    True
    """
    first = torch.arange(rows, device=seeds.device)[:, None].expand(rows, columns)
    second = torch.arange(columns, device=seeds.device).expand(rows, columns)
    words = sequence_word(seeds[:, None, None], stream, first, second, torch.zeros_like(first))
    unit = (words >> 8).to(torch.float64) * 2.0**-24
    return ((2.0 * unit - 1.0) * limit).to(torch.float32)


def derive_seed(seed: int, stream: int, first: int, second: int = 0) -> int:
    """Return a 64-bit seed, as a signed integer, made of the first two words of a site.

    Examples
    --------
    >>> derive_seed(0, 0, 0) & 0xFFFFFFFF == 0x6627E8D5
    True
    """
    low, high, *_ = philox((seed & _LOW, (seed >> 32) & _LOW), (first, second, stream, 0))
    return signed(high << 32 | low)


def branch_seeds(seeds: Tensor, branches: int, layer: int = 0) -> Tensor:
    """Return one seed for every branch (head, tower) of every run, (R * branches,), runs first: see `BRANCHES`.

    Examples
    --------
    >>> seeds = branch_seeds(torch.tensor([5, 6]), 3)
    >>> seeds.shape, int(seeds[4]) == derive_seed(6, BRANCHES, 1)
    (torch.Size([6]), True)
    """
    at = torch.arange(branches, device=seeds.device).expand(len(seeds), branches)
    layers, zeros = torch.full_like(at, layer), torch.zeros_like(at)
    low, high = (sequence_word(seeds[:, None], BRANCHES, at, layers, zeros + index) for index in (0, 1))
    return (high << 32 | low).flatten()


def signed(seed: int) -> int:
    """Return a 64-bit integer as torch stores it, in two's complement.

    >>> signed(2**64 - 1)
    -1
    """
    return (seed & (2**64 - 1)) - (2**64 if seed & 2**63 else 0)
