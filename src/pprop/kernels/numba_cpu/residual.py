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
from pprop.kernels.solves import Measured, System

__all__ = ["accurate_residual"]

_NORMS = {"euclidean": 0, "max": 1, "sum": 2}


@kernel
def run_residual(indptr, indices, weights, stay, scale, measure, own, state, norm, out, sums):
    """out = b + (1 - alpha) S A u - u; its norm and that of u, squared for `norm` 0, go to the two rows of `sums`.

    `norm` is 0 for the square root of the sum of measure u^2, 1 for the largest and 2 for the sum of measure |u|.
    """
    n, width = own.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    partial = np.zeros((blocks, 2, width))
    for block in prange(blocks):
        total, lost, part = np.empty(width), np.empty(width), partial[block]
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
                r, z = abs(out[i, q]), abs(state[i, q])
                if norm == 0:
                    part[0, q] += measure[i] * (r * r)
                    part[1, q] += measure[i] * (z * z)
                elif norm == 1:
                    part[0, q] = max(part[0, q], measure[i] * r)
                    part[1, q] = max(part[1, q], measure[i] * z)
                else:
                    part[0, q] += measure[i] * r
                    part[1, q] += measure[i] * z
    for q in range(width):
        for side in range(2):
            sums[side, q] = 0.0
            for block in range(blocks):
                one = partial[block, side, q]
                sums[side, q] = max(sums[side, q], one) if norm == 1 else sums[side, q] + one


def accurate_residual(system: System, own: Tensor, state: Tensor) -> Measured:
    """Return b + (1 - alpha) S A u - u for b and u of shape (n, c) in float64, and the norms of it and of u, both (c,).

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> state = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    >>> residual, size, whole = accurate_residual(System(pair, 0.5, np.ones(2), "euclidean"), 0.5 * state, state)
    >>> residual.flatten().tolist(), size.round(3), whole
    ([-0.5, 0.5], array([0.707]), array([1.]))
    """
    b, u = own.contiguous().numpy(), state.contiguous().numpy()
    transition, norm = system.transition, _NORMS[system.norm]
    weights = np.empty(0) if transition.weights is None else transition.weights
    out, sums = np.empty_like(u), np.empty((2, u.shape[1]))
    matrix = transition.indptr, transition.indices, weights, 1.0 - system.alpha, transition.row_scale, system.measure
    run_residual(*matrix, b, u, norm, out, sums)
    norms = np.sqrt(sums) if norm == 0 else sums
    return torch.from_numpy(out), norms[0], norms[1]
