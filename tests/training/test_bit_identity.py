"""On the numba backend a run has the same bits whatever else is in its batch and however many threads work."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numba
import numpy as np
import pytest
import torch

import pprop
from pprop import Graph, Split, Stopping, Trained

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("every_kernel_threaded")]

RUN = 37
EPOCHS = 26  # of 10 steps: decisions on edges come in groups of 128 steps
BATCHES = {1: [RUN], 2: [4, RUN], 7: [RUN, 1, 2, 99, 50, 3, 8], 100: list(range(100))}


@contextmanager
def threads(count: int) -> Generator[None]:
    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(count)
    torch.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])


@pytest.fixture(scope="module")
def graph() -> Graph:
    return pprop.load_dataset("citeseer")


@pytest.fixture(scope="module")
def splits(graph: Graph) -> list[Split]:
    """100 runs as in the paper: 20 splits, 5 initialisations."""
    return [pprop.paper_split(graph, seed) for seed in pprop.TEST_SEEDS for _ in range(5)]


def train(kind: str, graph: Graph, splits: list[Split], batch: list[int], epochs: int) -> Trained:
    return pprop.train(
        getattr(pprop, kind)(),
        graph,
        [splits[run] for run in batch],
        seeds=[pprop.run_seed(splits[run].seed, run % 5) for run in batch],
        stopping=Stopping(patience=1000, max_epochs=epochs),
        backend="numba",
    )


def assert_same_run(one: Trained, at: int, other: Trained, other_at: int) -> None:
    for curve in ("train_loss", "stopping_loss", "stopping_accuracy"):
        assert np.array_equal(getattr(one.history[at], curve), getattr(other.history[other_at], curve)), curve
    for a, b in zip(one.weights, other.weights, strict=True):
        assert np.array_equal(a[at].view(np.uint32), b[other_at].view(np.uint32))
    assert np.array_equal(one.logits[at].view(np.uint32), other.logits[other_at].view(np.uint32))


@pytest.fixture(scope="module", params=["APPNP", "PPNP"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def alone(kind: str, graph: Graph, splits: list[Split]) -> Trained:
    with threads(1):
        return train(kind, graph, splits, BATCHES[1], EPOCHS)


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="needs two threads")
@pytest.mark.parametrize(("runs", "count"), [(1, 2), (2, 2), (7, 1)])
def test_a_run_has_the_same_bits_in_small_batches(
    kind: str, graph: Graph, splits: list[Split], alone: Trained, runs: int, count: int
) -> None:
    with threads(count):
        together = train(kind, graph, splits, BATCHES[runs], EPOCHS)
    assert_same_run(alone, 0, together, BATCHES[runs].index(RUN))


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="needs two threads")
def test_a_run_has_the_same_bits_among_a_hundred_runs(graph: Graph, splits: list[Split]) -> None:
    """A hundred epochs of a hundred runs, both models, one and two threads, gave the same."""
    with threads(1):
        alone = train("APPNP", graph, splits, BATCHES[1], 5)
    with threads(2):
        together = train("APPNP", graph, splits, BATCHES[100], 5)
    assert_same_run(alone, 0, together, RUN)


def test_twice_in_a_row_gives_the_same_bits(kind: str, graph: Graph, splits: list[Split], alone: Trained) -> None:
    with threads(1):
        assert_same_run(alone, 0, train(kind, graph, splits, BATCHES[1], EPOCHS), 0)
