"""The random bits: known answers, the vectors of ``docs/randomness.md``, exact probabilities, independence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pprop.kernels import random_bits as reference_bits
from pprop.kernels.numba_cpu import bits as numba_bits
from pprop.kernels.random_bits import EDGES, FEATURES, HIDDEN, PPR, WEIGHTS, Bernoulli, stream

ONES = 0xFFFFFFFF

# (key, counter) -> words, from the known-answer file of Random123 for philox4x32 with 10 rounds
KNOWN_ANSWERS = [
    ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES), (ONES, ONES, ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0xA4093822, 0x299F31D0),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

# (seed, stream, first, second, index) -> word
WORDS = [
    ((0, 0, 0, 0, 0), 0x6627E8D5),
    ((0, 0, 0, 0, 1), 0xE169C58D),
    ((0, 0, 0, 0, 7), 0xA287AADB),
    ((2**64 - 1, 0, 0, 0, 0), 0x72A47709),
    ((0x0123456789ABCDEF, 33, 7, 11, 2), 0xC64A170B),
    ((42, 4, 3, 1, 0), 0x8F38C9FC),
]

# (seed, stream, first, second, position, p) -> decisions position (lowest bit) to position + 31 (highest); 1 = kept
DECISIONS = [
    ((0, 0, 0, 0, 0, 0.5), 0x6627E8D5),
    ((0, 0, 0, 0, 1, 0.5), 0xB313F46A),
    ((0, 0, 0, 0, 32, 0.5), 0xE169C58D),
    ((1, 2, 3, 5, 0, 0.5), 0xD09080B6),
    ((1, 2, 5, 3, 0, 0.5), 0xE2DE41CD),
    ((42, 2, 3, 5, 70, 0.5), 0x422DB123),
    ((42, 0, 17, 2878, 1381, 0.6), 0x8613390A),
    ((42, 3, 100, 9, 64, 0.1), 0xFFFFBFFF),
    ((42, 1, 100, 9, 0, 0.25), 0xDFDFEBCA),
    ((2**64 - 1, 17, 2809, 9999, 63, 0.3), 0xEEADD7DC),
    ((7, 2, 2147483646, 0, 0, 0.8), 0x80280208),
]


def at(value: int) -> torch.Tensor:
    return torch.tensor(reference_bits.signed(value))


def reference_decisions(seed, number, first, second, position, p) -> int:
    law = Bernoulli.from_probability(p)
    where = torch.arange(position, position + 32)
    kept = reference_bits.keep_bits(at(seed), number, at(first), at(second), where, law)
    return sum(int(bit) << k for k, bit in enumerate(kept))


def numba_decisions(seed, number, first, second, position, p) -> int:
    law = Bernoulli.from_probability(p)
    block, shift = divmod(position, 32)
    low, high = (
        int(numba_bits.keep_word(np.uint64(seed), number, first, second, block + k, law.threshold, law.digits))
        for k in (0, 1)
    )
    return ((high << 32 | low) >> shift) & ONES


# -- known answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(oracle, key, counter, words):
    assert oracle.philox(key, counter) == words
    first, second, third, fourth = (at(word) for word in counter)
    reference = reference_bits.philox((at(key[0]), at(key[1])), (first, second, third, fourth))
    assert tuple(int(word) for word in reference) == words
    seed = np.uint64(key[1] << 32 | key[0])
    fast: Any = numba_bits.philox
    assert tuple(int(word) for word in fast(seed, *(np.uint64(word) for word in counter))) == words


@pytest.mark.parametrize(("site", "word"), WORDS)
def test_published_words(oracle, site, word):
    seed, number, first, second, index = site
    assert oracle.word(*site) == word
    assert int(reference_bits.sequence_word(at(seed), number, at(first), at(second), at(index))) == word


@pytest.mark.parametrize(("site", "word"), DECISIONS)
def test_published_decisions(oracle, site, word):
    seed, number, first, second, position, p = site
    assert sum(oracle.keep(seed, number, first, second, position + k, p) << k for k in range(32)) == word
    assert reference_decisions(*site) == word
    assert numba_decisions(*site) == word


def test_streams_are_numbered_as_published():
    assert (FEATURES, HIDDEN, EDGES, PPR, WEIGHTS) == (0, 1, 2, 3, 4)
    assert stream(HIDDEN, 2) == 33


# -- agreement with the definition off the published sites --------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 1e-9, 0.9999])
def test_both_implementations_are_the_definition_at_random_sites(oracle, p):
    rng = np.random.default_rng(int(p * 1000))
    for _ in range(12):
        seed, number = int(rng.integers(0, 2**64, dtype=np.uint64)), int(rng.integers(0, 2**10))
        first, second = (int(x) for x in rng.integers(0, 2**31, 2))
        position = int(rng.integers(0, 2**20))
        expected = sum(oracle.keep(seed, number, first, second, position + k, p) << k for k in range(32))
        assert reference_decisions(seed, number, first, second, position, p) == expected
        assert numba_decisions(seed, number, first, second, position, p) == expected


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("block", [0, 1, 14])
def test_words_of_a_structure_hold_32_decisions_of_each_entry_by_original_coordinates(oracle, transposed, block):
    indptr, indices = np.array([0, 2, 2, 5]), np.array([0, 2, 0, 1, 2], dtype=np.int32)
    out = np.empty((2, 5), dtype=np.uint32)
    seeds = np.array([3, 2**64 - 2], dtype=np.uint64)
    law = Bernoulli.from_probability(0.6)
    numba_bits.site_words(seeds, EDGES, indptr, indices, transposed, block, law.threshold, law.digits, out)
    rows = [0, 0, 2, 2, 2]
    for run, seed in enumerate([3, 2**64 - 2]):
        for e, (i, j) in enumerate(zip(rows, indices.tolist(), strict=True)):
            site = (j, i) if transposed else (i, j)
            word = sum(oracle.keep(seed, EDGES, *site, 32 * block + k, 0.6) << k for k in range(32))
            assert int(out[run, e]) == word


def test_uniform_numbers_are_24_bits_of_the_first_word(oracle, kernels):
    drawn = kernels.uniform(torch.tensor([5, -1]), stream(WEIGHTS, 1), 3, 4, 0.3)
    for run, seed in enumerate([5, 2**64 - 1]):
        for i in range(3):
            for j in range(4):
                v = (oracle.word(seed, 20, i, j, 0) // 2**8) / 2**24
                assert float(drawn[run, i, j]) == float(np.float32((2 * v - 1) * 0.3))


def test_derived_seeds_are_the_first_two_words_low_half_first(oracle):
    for seed, number, first, second in [(0, 6, 0, 0), (2413340114, 6, 17, 0), (2**63 + 5, 5, 100, 3)]:
        expected = oracle.word(seed, number, first, second, 1) * 2**32 + oracle.word(seed, number, first, second, 0)
        assert reference_bits.derive_seed(seed, number, first, second) % 2**64 == expected


# -- the probability ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "threshold", "digits"),
    [
        (0.5, 1, 1),
        (0.25, 1, 2),
        (0.75, 3, 2),
        (0.1, 3277, 15),  # 6554 / 65536
        (0.3, 19661, 16),
        (0.6, 19661, 15),
        (1e-12, 1, 16),
        (1 - 1e-12, 65535, 16),
        (1 / 65536, 1, 16),
    ],
)
def test_probabilities_round_to_the_nearest_reduced_binary_fraction_of_16_digits(p, threshold, digits):
    law = Bernoulli.from_probability(p)
    assert (law.threshold, law.digits) == (threshold, digits)
    assert law.threshold % 2 == 1
    assert abs(law.threshold / 2**law.digits - p) <= 2**-17 or p < 2**-16 or p > 1 - 2**-16
    assert law.scale == pytest.approx(2**digits / (2**digits - threshold), rel=4e-16)


@pytest.mark.parametrize("p", [0.5, 0.25, 0.75, 3 / 256, 0.3])
def test_exactly_threshold_of_all_outcomes_are_dropped(monkeypatch, p):
    """Feed every one of the 2**digits numbers u once: position t draws u = t. Exactly u < threshold is dropped."""
    law = Bernoulli.from_probability(p)

    def counting_word(seeds, number, first, second, index):
        block, digit = index // law.digits, index % law.digits
        word = torch.zeros_like(index)
        for k in range(32):
            word |= (((32 * block + k) >> (law.digits - 1 - digit)) & 1) << k
        return word

    monkeypatch.setattr(reference_bits, "sequence_word", counting_word)
    t = torch.arange(2**law.digits)
    kept = reference_bits.keep_bits(at(0), 0, at(0), at(0), t, law)
    assert torch.equal(kept, t >= law.threshold)


# -- independence -------------------------------------------------------------------------------------------------

N, SIGMAS = 128, 5.5


def decisions(p, seeds=(11, 12), kind=EDGES, block=0) -> np.ndarray:
    """Keep decisions of all entries (i, j) of a full N x N matrix, shape (runs, N, N, 32)."""
    law = Bernoulli.from_probability(p)
    indptr, indices = np.arange(N + 1) * N, np.tile(np.arange(N, dtype=np.int32), N)
    words = np.empty((len(seeds), N * N), dtype=np.uint32)
    numba_bits.site_words(
        np.array(seeds, dtype=np.uint64), kind, indptr, indices, False, block, law.threshold, law.digits, words
    )
    bits = (words[..., None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return bits.reshape(len(seeds), N, N, 32)


def standardised(kept, p) -> np.ndarray:
    law = Bernoulli.from_probability(p)
    drop = law.threshold / 2**law.digits
    return (kept - (1 - drop)) / (drop * (1 - drop)) ** 0.5


def pairs(x, axis, p):
    """The decisions and their neighbours along one axis."""
    if axis == "position":
        return x[..., :-1], x[..., 1:]
    if axis == "four positions":
        return x[..., :-4], x[..., 4:]
    if axis == "step of the next epoch":  # K = 10
        return x[..., :-10], x[..., 10:]
    if axis == "next word":
        return x, standardised(decisions(p, block=1), p)
    if axis == "first coordinate":
        return x[:, :-1], x[:, 1:]
    if axis == "second coordinate":
        return x[:, :, :-1], x[:, :, 1:]
    if axis == "transposed entry":
        i, j = np.triu_indices(N, 1)
        return x[:, i, j], x[:, j, i]
    if axis == "run":
        return x[0], x[1]
    if axis == "high half of the seed":
        return x, standardised(decisions(p, seeds=(11 + 2**32, 12 + 2**32)), p)
    if axis == "stream":
        return x, standardised(decisions(p, kind=PPR), p)
    assert axis == "layer"
    return x, standardised(decisions(p, kind=stream(EDGES, 1)), p)


@pytest.mark.parametrize("p", [0.5, 0.3])
@pytest.mark.parametrize(
    "axis",
    [
        "position",
        "four positions",
        "step of the next epoch",
        "next word",
        "first coordinate",
        "second coordinate",
        "transposed entry",
        "run",
        "high half of the seed",
        "stream",
        "layer",
    ],
)
def test_neighbouring_decisions_are_uncorrelated(p, axis):
    x, y = pairs(standardised(decisions(p), p), axis, p)
    products = (x * y).ravel()  # mean 0 and variance 1 if independent
    assert products.size > 2**18
    assert abs(products.sum()) / products.size**0.5 < SIGMAS


@pytest.mark.parametrize("p", [0.5, 0.3, 0.1])
def test_the_frequency_of_drops_is_right_overall_and_in_every_slice(p):
    """Chi-square over the 128 rows, 128 columns and 32 positions: mean k and variance 2 k with k slices."""
    x = standardised(decisions(p), p)
    assert abs(x.sum()) / x.size**0.5 < SIGMAS
    for axes in [(0, 2, 3), (0, 1, 3), (0, 1, 2)]:
        sums = x.sum(axis=axes)
        chi_square = float((sums**2).sum() / (x.size / len(sums)))
        assert abs(chi_square - len(sums)) < SIGMAS * (2 * len(sums)) ** 0.5


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_eight_neighbouring_decisions_take_all_patterns_with_their_probabilities(p):
    """Chi-square over the 256 patterns of 8 positions: catches dependence that no pair shows."""
    law = Bernoulli.from_probability(p)
    keep = 1 - law.threshold / 2**law.digits
    groups = decisions(p).reshape(-1, 8)
    counts = np.bincount(groups @ (1 << np.arange(8)), minlength=256)
    ones = np.array([bin(pattern).count("1") for pattern in range(256)])
    expected = len(groups) * keep**ones * (1 - keep) ** (8 - ones)
    assert expected.min() > 5
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi_square - 255) < SIGMAS * 510**0.5


def test_runs_of_equal_decisions_have_the_length_of_a_fair_coin():
    """A run of equal bits ends with probability 1/2 at each step: the changes along a sequence are fair too."""
    kept = decisions(0.5).reshape(-1, 32)
    changes = (kept[:, 1:] != kept[:, :-1]).astype(float)
    assert abs((2 * changes - 1).sum()) / changes.size**0.5 < SIGMAS
    longest = [max(len(run) for run in "".join(map(str, row)).split("0")) for row in kept[:4096]]
    # P(no run of 9 ones among 32) by counting the words without one; the mean of an indicator over 4096 sequences
    without = [1] + [0] * 8
    for _ in range(32):
        without = [sum(without), *without[:-1]]
    probability = 1 - sum(without) / 2**32
    seen = sum(length >= 9 for length in longest)
    assert abs(seen - 4096 * probability) < SIGMAS * (4096 * probability * (1 - probability)) ** 0.5
