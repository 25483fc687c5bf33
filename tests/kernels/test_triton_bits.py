"""The random words of the GPU backend: the vectors of ``docs/randomness.md`` and the definition at random sites."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pprop.kernels.random_bits import Bernoulli, keep_bits, signed

pytest.importorskip("triton", reason="the GPU backend needs triton")

import triton.language as tl

from pprop.kernels.triton_gpu.bits import drawn_word, keep_word
from pprop.kernels.triton_gpu.launch import kernel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAGE = Path(__file__).parents[2] / "docs" / "randomness.md"
ROWS = [
    [cell.strip(" `") for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if re.fullmatch(r"\|( \d+ \|){5} 0\.\d+ \| `[0-9a-f]{8}` \|", line)
]


@kernel("number", "threshold", "digits", "count")
def words_kernel(seeds, number, first, second, block, threshold, digits, out, count, B: tl.constexpr):
    """out[k] = the keep word of a site of its own for every k."""
    k = tl.program_id(0)
    lane = tl.arange(0, B)
    one = tl.load(first + k + lane * 0).to(tl.uint32)
    two = tl.load(second + k + lane * 0).to(tl.uint32)
    word = drawn_word(tl.load(seeds + k), number.to(tl.int32), one, two, tl.load(block + k), threshold, digits)
    tl.store(out + k * B + lane, word.to(tl.int64), mask=lane < count)


def drawn(seed: int, stream: int, first: int, second: int, block: int, law: Bernoulli) -> int:
    """One word of the compiled or interpreted kernel, in four equal lanes."""
    at = [torch.tensor([signed(value)], device=DEVICE) for value in (seed, first, second, block)]
    out = torch.zeros(1, 4, dtype=torch.int64, device=DEVICE)
    words_kernel[(1,)](at[0], stream, at[1], at[2], at[3], law.threshold, law.digits, out, 4, B=4)
    assert len(set(out[0].tolist())) == 1
    return int(out[0, 0])


def test_the_page_has_the_table() -> None:
    assert len(ROWS) == 13


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_decisions_are_as_published(row: list[str]) -> None:
    seed, stream, first, second, position = (int(cell) for cell in row[:5])
    law = Bernoulli.from_probability(float(row[5]))
    low, high = (drawn(seed, stream, first, second, position // 32 + k, law) for k in (0, 1))
    assert (high << 32 | low) >> position % 32 & 0xFFFFFFFF == int(row[6], 16)


@pytest.mark.parametrize("p", [0.5, 0.6, 0.3, 1e-9])
def test_words_are_the_definition_at_random_sites(p: float) -> None:
    rng, law, at = np.random.default_rng(2), Bernoulli.from_probability(p), torch.tensor
    for _ in range(3):
        seed, stream = int(rng.integers(-(2**63), 2**63)), int(rng.integers(0, 2**10))
        first, second, block = (int(x) for x in rng.integers(0, [2**31, 2**31, 2**20]))
        kept = keep_bits(at(seed), stream, at(first), at(second), 32 * block + torch.arange(32), law)
        assert drawn(seed, stream, first, second, block, law) == sum(int(bit) << k for k, bit in enumerate(kept))


@pytest.mark.skipif(DEVICE == "cuda", reason="compiled kernels need no stand-in")
@pytest.mark.parametrize("p", [0.5, 0.1])
def test_the_stand_in_of_interpreted_kernels_draws_the_same(p: float) -> None:
    law = Bernoulli.from_probability(p)
    for seed, stream, first, second, block in [(-1, 17, 2809, 9999, 3), (2**62 + 5, 2, 0, 2**31 - 1, 10**6)]:
        found = keep_word(seed, stream, np.array([first, 1]), np.array([second, 1]), block, law.threshold, law.digits)
        assert int(found.handle.data[0]) == drawn(seed, stream, first, second, block, law)
