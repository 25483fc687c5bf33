"""Chunks of runs: the same results in the same order, one progress."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop import Stopping
from pprop.kernels.contract import Trainer
from pprop.training.loop import RunBatch, train_chunks
from pprop.training.result import History, LoopResult, join_results


def result_of(runs: range) -> LoopResult:
    """What a training of runs that all know their number would leave behind."""
    numbers = np.array(runs)
    curves = tuple(History(*(np.full(run + 1, float(run)) for _ in range(3))) for run in runs)
    return LoopResult(
        weights=[torch.tensor(numbers).float()[:, None, None].expand(-1, a, b).clone() for a, b in ((4, 3), (3, 2))],
        epochs=numbers + 1,
        best_epoch=numbers,
        stopping_loss=numbers / 2,
        stopping_accuracy=numbers / 4,
        history=curves,
        stopping_score=numbers / 8,
    )


class Recorder:
    """Keeps every report."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []

    def __call__(self, epoch: int, runs_ended: int, work: int) -> None:
        self.calls.append((epoch, runs_ended, work))


def assert_same(one: LoopResult, other: LoopResult) -> None:
    for name in ("epochs", "best_epoch", "stopping_loss", "stopping_accuracy", "stopping_score"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))
    for a, b in zip(one.history, other.history, strict=True):
        np.testing.assert_array_equal(a.train_loss, b.train_loss)


def parts(begin: int, end: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, end)) for first in range(begin, end, size)]


class Numbered(Trainer):
    """Run r ends after r + 1 epochs, with its number as its only weight."""

    def __init__(self, runs: slice) -> None:
        self.numbers, self.made = torch.arange(runs.start, runs.stop), 0

    def epoch(self) -> torch.Tensor:
        self.made += 1
        loss = torch.where(self.numbers < self.made, torch.inf, 1.0 / self.made)  # a run that diverges ends
        return torch.stack([loss, loss, torch.ones_like(loss)])

    def weights(self) -> list[torch.Tensor]:
        return [self.numbers.float()[:, None, None]]

    def keep(self, slots: torch.Tensor) -> None:
        self.numbers = self.numbers[slots]


@pytest.mark.parametrize("chunk", [1, 3, 7, 8])
@pytest.mark.parametrize("batch", [1, 2, 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_and_batches_of_any_size_give_every_run_in_its_place(chunk: int, batch: int, threads: int):
    recorder, told, works = Recorder(), dict[int, int](), list[int]()

    def batches_of(runs: slice) -> tuple[int, list[RunBatch]]:
        some = parts(runs.start, runs.stop, batch)
        return threads, [RunBatch(one, lambda one=one: Numbered(one)) for one in some]

    def ended(result: LoopResult, runs: np.ndarray, work: int) -> None:
        told.update(zip(runs.tolist(), result.epochs.tolist(), strict=True))
        works.append(work)

    rule, device = Stopping(max_epochs=100), torch.device("cpu")
    joined = train_chunks(parts(0, 7, chunk), batches_of, rule, device, recorder, ended)
    assert joined.epochs.tolist() == list(range(1, 8))
    assert joined.weights[0].flatten().tolist() == list(range(7))
    assert [len(curves.train_loss) for curves in joined.history] == list(range(1, 8))
    assert told == {run: run + 1 for run in range(7)}
    assert recorder.calls[-1][1:] == (7, sum(range(1, 8)))
    assert works[-1] == sum(range(1, 8))
    assert [ended for _, ended, _ in recorder.calls] == sorted(ended for _, ended, _ in recorder.calls)


def test_results_are_joined_in_order():
    assert_same(
        join_results([result_of(range(3)), result_of(range(3, 4)), result_of(range(4, 7))]), result_of(range(7))
    )
    result = result_of(range(3))
    assert join_results([result]) is result
