"""Which kernels make the power steps: those for many runs with masks, or those for one large graph without."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from pprop.kernels.contract import Draw, StepPropagation

__all__ = ["LARGE_ENTRIES", "SizedSteps"]

LARGE_ENTRIES = 2**20
"""A transition matrix with as many entries is large: the states of one run no longer fit into a cache."""


@final
class SizedSteps(StepPropagation):
    """Steps over a large graph: with masks by one implementation, without by another, run by run.

    The choice depends on the graph and on whether there are masks, never on the number of runs, so that a run has the
    same bits in any company.
    """

    def __init__(self, dropped: StepPropagation, whole: StepPropagation) -> None:
        self._dropped, self._whole, self.alpha = dropped, whole, dropped.alpha

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        if draw is not None:
            return self._dropped.forward(predictions, draw)
        return _each(self._whole.forward, predictions)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        if draw is not None:
            return self._dropped.adjoint(gradient, draw)
        return _each(self._whole.adjoint, gradient)


def _each(function: Callable[[Tensor, None], Tensor], operand: Tensor) -> Tensor:
    if len(operand) == 1:
        return function(operand, None)
    return torch.cat([function(run[None], None) for run in operand])
