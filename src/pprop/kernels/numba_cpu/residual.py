"""The residual of a solution with more digits than any solve has, so that it can judge them.

A solve in float32 goes to the fixed point of the matrix as float32 rounds it, and a row of a hundred thousand entries that
is summed one after another is off by a thousandth: its own residual cannot see that. Here states are float64, and what an
addition loses is added up beside the sum (Knuth's two-sum), so that the length of a row does not matter.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import prange
from torch import Tensor

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.solves import System

__all__ = ["accurate_residual"]


@kernel
def run_residual(indptr, indices, weights, stay, scale, own, state, out):
    """out = b + (1 - alpha) S A u - u."""
    n, width = own.shape
    for block in prange((n + ROW_BLOCK - 1) // ROW_BLOCK):
        total, lost = np.empty(width), np.empty(width)
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                total[q] = lost[q] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                weight = weights[e] if len(weights) > 0 else 1.0
                for q in range(width):
                    before, term = total[q], weight * state[j, q]
                    after = before + term
                    share = after - before
                    lost[q] += (before - (after - share)) + (term - share)
                    total[q] = after
            for q in range(width):
                out[i, q] = (stay * scale[i] * (total[q] + lost[q]) + own[i, q]) - state[i, q]


def accurate_residual(system: System, own: Tensor, state: Tensor) -> Tensor:
    """Return b + (1 - alpha) S A u - u for b and u of shape (n, c) in float64.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> state = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    >>> accurate_residual(System(pair, 0.5, np.ones(2), "euclidean"), 0.5 * state, state).flatten().tolist()
    [-0.5, 0.5]
    """
    b, u = own.contiguous().numpy(), state.contiguous().numpy()
    transition = system.transition
    weights = np.empty(0) if transition.weights is None else transition.weights
    out = np.empty_like(u)
    matrix = transition.indptr, transition.indices, weights, 1.0 - system.alpha, transition.row_scale
    run_residual(*matrix, b, u, out)
    return torch.from_numpy(out)
