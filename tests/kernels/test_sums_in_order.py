"""The bits of products on the CPU: terms are added one by one, in their order, each product and each sum rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop import Graph
from pprop.graph import transition_matrix
from pprop.kernels.numba_cpu._jit import ROW_BLOCK
from pprop.kernels.numba_cpu.backend import NumbaKernels
from pprop.kernels.numba_cpu.sparse import NumbaFeatures, NumbaSteps

KERNELS = NumbaKernels()
RUNS, N = 2, ROW_BLOCK + 7

# Widths of one lane, of several vectors, and of more than the registers hold, which are made in parts.
pytestmark = [
    pytest.mark.parametrize("width", [1, 7, 33, 65, 131]),
    pytest.mark.parametrize("dtype", [np.float32, np.float64]),
]


def some(rng: np.random.Generator, dtype: Any, *shape: int) -> NDArray[Any]:
    """Return numbers of which some are zero, of either sign, and very few NaN, infinite or too small to be normal."""
    values = rng.standard_normal(shape).astype(dtype)
    for strange, share in [(0.0, 0.3), (-0.0, 0.1), (np.nan, 1e-3), (np.inf, 1e-3), (np.finfo(dtype).tiny / 3, 1e-2)]:
        values[rng.random(shape) < share] = strange
    return values


def in_order(inputs: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return inputs (n, h) times weights (h, c), where a value of zero adds nothing."""
    total = np.zeros((len(inputs), weights.shape[1]), inputs.dtype)
    with np.errstate(all="ignore"):
        for p, row in enumerate(weights):
            value = inputs[:, p : p + 1]
            total += np.where(value != 0, value * row, 0)
    return total


def assert_bits(found: NDArray[Any], expected: NDArray[Any]) -> None:
    assert found.dtype == expected.dtype
    strange = np.isnan(expected)
    assert (np.isnan(found) == strange).all()
    assert np.where(strange, 0, found).tobytes() == np.where(strange, 0, expected).tobytes()


@pytest.mark.parametrize("inner", [1, 6, 40])
def test_a_linear_layer_adds_its_terms_in_order(width: int, dtype: Any, inner: int) -> None:
    rng = np.random.default_rng(3)
    inputs, weights = some(rng, dtype, RUNS, N, inner), some(rng, dtype, RUNS, inner, width)
    found = KERNELS.linear(inputs, weights)
    for run in range(RUNS):
        assert_bits(found[run], in_order(inputs[run], weights[run]))


@pytest.mark.parametrize("inner", [1, 6, 40])
def test_the_gradient_of_weights_adds_nodes_in_order_by_blocks(width: int, dtype: Any, inner: int) -> None:
    rng = np.random.default_rng(4)
    inputs, gradient = some(rng, dtype, RUNS, N, inner), some(rng, dtype, RUNS, N, width)
    found = KERNELS.linear_weight_adjoint(inputs, gradient)
    for run in range(RUNS):
        first, rest = slice(0, ROW_BLOCK), slice(ROW_BLOCK, N)
        blocks = [in_order(inputs[run, part].T, gradient[run, part]) for part in (first, rest)]
        with np.errstate(all="ignore"):
            assert_bits(found[run], blocks[0] + blocks[1])


def test_a_sparse_product_adds_the_entries_of_a_row_in_order(width: int, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    matrix = sparse.csr_array(sparse.random_array((N, 50), density=0.1, rng=6, dtype=np.float32))
    operand = some(rng, dtype, RUNS, 50, width)
    found = NumbaFeatures(matrix).forward(operand, None)
    expected = np.zeros((RUNS, N, width), dtype)
    with np.errstate(all="ignore"):
        for i in range(N):
            for e in range(matrix.indptr[i], matrix.indptr[i + 1]):
                expected[:, i] += dtype(matrix.data[e]) * operand[:, matrix.indices[e]]
    assert_bits(found, expected)


def test_the_adjoint_of_steps_is_collected_once_in_every_column(width: int, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    graph = Graph.from_scipy(sparse.random_array((N, N), density=0.02, rng=8) > 0, directed=True)
    transition, alpha = transition_matrix(graph, "row"), dtype(0.25)
    back = transition.transpose
    gradient = rng.standard_normal((RUNS, N, width)).astype(dtype)
    found = NumbaSteps(transition, 0.25, 1).adjoint(gradient, None)

    state = gradient * back.column_scale.astype(dtype)[:, None]
    total = np.zeros_like(state)
    for i in range(N):
        for e in range(back.indptr[i], back.indptr[i + 1]):
            total[:, i] += state[:, back.indices[e]]
    share = (1 - alpha) * back.row_scale.astype(dtype)
    assert_bits(found, gradient * alpha + share[:, None] * total)
