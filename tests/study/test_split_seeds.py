"""Seeds of splits beyond the paper's: fixed for ever, all different, and drawn like the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from pprop._errors import InputError
from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS, load_dataset, paper_split
from pprop.study.cell import MOST_SPLITS, split_seeds

PAPER = {*TEST_SEEDS, *VALIDATION_SEEDS}


def test_the_papers_seeds_come_first_and_are_all_there_are_up_to_20() -> None:
    assert split_seeds("test", 20) == TEST_SEEDS
    assert split_seeds("validation", 20) == VALIDATION_SEEDS
    assert split_seeds("test", 3) == TEST_SEEDS[:3]


def test_all_seeds_are_different_and_more_of_them_change_none() -> None:
    for kind in ("test", "validation"):
        seeds = split_seeds(kind, MOST_SPLITS)
        assert len(set(seeds)) == MOST_SPLITS
        assert not set(seeds[20:]) & PAPER
        assert all(0 <= seed < 2**32 for seed in seeds)
        assert split_seeds(kind, 200) == seeds[:200]
    assert not set(split_seeds("test", MOST_SPLITS)) & set(split_seeds("validation", MOST_SPLITS))


def mersenne_twister(seed: int, count: int) -> list[int]:
    """Return the first 32-bit outputs of MT19937, by the recurrence as Matsumoto and Nishimura (1998) print it."""
    state = [seed]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) % 2**32)
    found: list[int] = []
    for i in range(count):
        joined = (state[i] & 1 << 31) | (state[i + 1] & (1 << 31) - 1)
        state.append(state[i + 397] ^ joined >> 1 ^ (0x9908B0DF if joined & 1 else 0))
        y = state[-1]
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        found.append(y ^ y >> 18)
    return found


def test_further_seeds_are_the_outputs_of_the_mersenne_twister() -> None:
    assert split_seeds("test", MOST_SPLITS)[20:] == tuple(mersenne_twister(TEST_SEEDS[0], MOST_SPLITS - 20))
    assert split_seeds("validation", 60)[20:] == tuple(mersenne_twister(VALIDATION_SEEDS[0], 40))


def test_a_further_split_has_the_papers_test_nodes_and_training_nodes_of_its_own() -> None:
    graph = load_dataset("citeseer")
    first, further = (paper_split(graph, seed) for seed in (TEST_SEEDS[0], split_seeds("test", 21)[20]))
    np.testing.assert_array_equal(first.evaluation, further.evaluation)
    assert set(first.train.tolist()) != set(further.train.tolist())
    assert len(first.train) == len(further.train)


def test_an_unknown_kind_or_too_many_splits_are_refused() -> None:
    with pytest.raises(InputError, match="must be an integer from 1 to 1000"):
        split_seeds("test", MOST_SPLITS + 1)
    with pytest.raises(InputError, match="'kind' parameter of split_seeds"):
        split_seeds("training", 5)  # type: ignore[arg-type]
