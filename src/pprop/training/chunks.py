"""Training chunk by chunk: what comes out is that of one training of all runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, cast, final

import numpy as np
import torch

from pprop.training.loop import LoopResult
from pprop.training.plan import Plan
from pprop.training.progress import Progress

__all__ = ["ShareOfProgress", "join_results", "train_chunks"]


def train_chunks(plan: Plan, train_chunk: Callable[[slice, Progress], LoopResult], progress: Progress) -> LoopResult:
    """Train the runs of every chunk in turn; return the results of all runs in their order.

    `train_chunk` makes its program, trains the runs in the slice given, and lets go of the program's memory.
    """
    results: list[LoopResult] = []
    work = 0
    for part in plan.slices():
        results.append(train_chunk(part, ShareOfProgress(progress, part.start, work)))
        work += int(results[-1].epochs.sum())
    return join_results(results)


def join_results(results: Sequence[LoopResult]) -> LoopResult:
    """Return the results of some runs, and of those after them, as one: every field is joined along the runs axis."""
    if len(results) == 1:
        return results[0]
    return LoopResult(**{f.name: _join([getattr(result, f.name) for result in results]) for f in fields(LoopResult)})


def _join(values: list[Any]) -> Any:
    """Join arrays, tensors or tuples along their first axis; lists hold one of them per layer."""
    first = values[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(values)
    if isinstance(first, torch.Tensor):
        return torch.cat(values)
    if isinstance(first, list):
        return [_join(list(layer)) for layer in zip(*cast("list[list[Any]]", values), strict=True)]
    return sum(values, ())


@final
class ShareOfProgress:
    """The progress of some of the runs, as part of that of all."""

    def __init__(self, whole: Progress, ended_before: int, work_before: int = 0) -> None:
        self._whole, self._ended_before, self._work_before = whole, ended_before, work_before

    def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
        """Report one finished epoch."""
        whole_work = None if work is None else self._work_before + work
        self._whole.epoch(epoch, self._ended_before + runs_ended, whole_work)
