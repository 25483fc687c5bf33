"""The test vectors of ``docs/randomness.md``, read from the page itself."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pprop.kernels.numba_cpu.bits import keep_word
from pprop.kernels.random_bits import Bernoulli, keep_bits, sequence_word, signed

PAGE = Path(__file__).parents[2] / "docs" / "randomness.md"
ROWS = [
    [cell.strip(" `") for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if re.fullmatch(r"\|( \d+ \|){5}.*`[0-9a-f]{8}` \|", line)
]
WORDS = [row for row in ROWS if len(row) == 6]
DECISIONS = [row for row in ROWS if len(row) == 7]


def test_the_page_has_both_tables() -> None:
    assert (len(WORDS), len(DECISIONS)) == (6, 13)


@pytest.mark.parametrize("row", WORDS, ids=" ".join)
def test_words_are_as_published(row: list[str]) -> None:
    seed, stream, first, second, index = (int(cell) for cell in row[:5])
    at = torch.tensor
    assert int(sequence_word(at(signed(seed)), stream, at(first), at(second), at(index))) == int(row[5], 16)


@pytest.mark.parametrize("row", DECISIONS, ids=" ".join)
def test_decisions_are_as_published_on_both_backends(row: list[str]) -> None:
    seed, stream, first, second, position = (int(cell) for cell in row[:5])
    law, at = Bernoulli.from_probability(float(row[5])), torch.tensor
    kept = keep_bits(at(signed(seed)), stream, at(first), at(second), position + torch.arange(32), law)
    assert sum(int(bit) << k for k, bit in enumerate(kept)) == int(row[6], 16)
    low, high = (
        int(keep_word(np.uint64(seed), stream, first, second, position // 32 + k, law.threshold, law.digits))
        for k in (0, 1)
    )
    assert (high << 32 | low) >> position % 32 & 0xFFFFFFFF == int(row[6], 16)
