"""Chunks of runs: the same results in the same order, one progress."""

from __future__ import annotations

import numpy as np
import torch

from pprop.training.chunks import join_results, train_chunks
from pprop.training.loop import History, LoopResult
from pprop.training.plan import Plan


def plan_of(runs: int, chunk: int) -> Plan:
    return Plan(runs, chunk, chunk, "cpu", 10**9, {}, {}, {}, {})


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
    )


class Recorder:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
        self.calls.append((epoch, runs_ended))


def assert_same(one: LoopResult, other: LoopResult) -> None:
    for name in ("epochs", "best_epoch", "stopping_loss", "stopping_accuracy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))
    for a, b in zip(one.history, other.history, strict=True):
        np.testing.assert_array_equal(a.train_loss, b.train_loss)


def test_chunks_of_any_length_give_the_results_of_one_training():
    for chunk in (1, 2, 3, 7, 8):
        seen: list[slice] = []

        def train_chunk(part: slice, progress: object, seen: list[slice] = seen) -> LoopResult:
            seen.append(part)
            return result_of(range(7)[part])

        joined = train_chunks(plan_of(7, chunk), train_chunk, Recorder())
        assert_same(joined, result_of(range(7)))
        assert len(seen) == -(-7 // chunk)


def test_a_single_result_is_handed_through():
    result = result_of(range(3))
    assert join_results([result]) is result


def test_runs_ended_in_earlier_chunks_count_in_the_progress_of_later_ones():
    recorder = Recorder()

    def train_chunk(part: slice, progress) -> LoopResult:
        progress.epoch(1, 0)
        progress.epoch(2, part.stop - part.start)
        return result_of(range(5)[part])

    train_chunks(plan_of(5, 2), train_chunk, recorder)
    assert recorder.calls == [(1, 0), (2, 2), (1, 2), (2, 4), (1, 4), (2, 5)]
