"""Conjugate gradients by a team of threads, against the same recurrence in torch and a dense solve."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop import Graph
from pprop.graph import Transition, transition_matrix
from pprop.kernels import choose_backend
from pprop.kernels.numba_cpu.solves import NumbaSolves
from pprop.kernels.solves import Limits, Solved, System

ALPHA = 0.1


def system(n: int = 300, *, weighted: bool = False) -> System:
    matrix: Any = sparse.random_array((n, n), density=6 / n, rng=np.random.default_rng(5))
    matrix = matrix + matrix.T
    if not weighted:
        matrix = matrix.sign()
    whole = transition_matrix(Graph.from_scipy(sparse.csr_array(matrix)), "row")
    scale = whole.row_scale * whole.column_scale
    moved = Transition(whole.indptr, whole.indices, whole.weights, scale, np.ones_like(scale), whole.symmetric)
    return System(moved, ALPHA, 1.0 / scale, "euclidean")


def right_hand_side(width: int, dtype: type = np.float64) -> NDArray[Any]:
    return np.random.default_rng(width).standard_normal((300, width)).astype(dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 16, 17, 33])
def test_any_number_of_columns_is_solved_as_by_the_recurrence_in_torch(width, weighted):
    made, own, limits = system(weighted=weighted), right_hand_side(width), Limits(1e-9, 10, 200)
    reference = choose_backend("reference", "cpu", "test").kernels.solves(made)
    plain = reference.conjugate_gradient(torch.from_numpy(own), None, limits)
    ended = NumbaSolves(made).conjugate_gradient(own, None, limits)
    dense = np.eye(300) - (1 - ALPHA) * made.transition.to_scipy().toarray()
    assert ended.products == plain.products
    assert ended.residual == pytest.approx(plain.residual, rel=1e-4)
    assert ended.size == pytest.approx(plain.size, rel=1e-12)
    residual = own - dense @ ended.value  # the recurrence's is the true one
    assert np.sqrt((made.measure[:, None] * residual**2).sum(0)) == pytest.approx(ended.residual, rel=1e-3)


def test_a_start_is_counted_in_the_size_and_improved():
    made, own = system(), right_hand_side(4)
    solves = NumbaSolves(made)
    whole = solves.conjugate_gradient(own, None, Limits(1e-12, 0, 200))
    dense = np.eye(300) - (1 - ALPHA) * made.transition.to_scipy().toarray()
    start = whole.value * 1.01
    rest = own - dense @ start
    again = solves.conjugate_gradient(rest, start, Limits(1e-12, 0, 200))
    assert again.value == pytest.approx(whole.value, rel=1e-9, abs=1e-11)
    assert again.size == pytest.approx(whole.size, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(dtype):
    made, own, before = system(), right_hand_side(48, dtype), numba.get_num_threads()  # enough for three threads
    results: list[Solved] = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            results.append(NumbaSolves(made).conjugate_gradient(own, None, Limits(1e-5, 5, 100)))
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(results[0].value, results[1].value)
    assert results[0].products == results[1].products
    assert np.array_equal(results[0].residual, results[1].residual)


def test_it_ends_at_the_most_products_and_leaves_a_solved_column_at_rest():
    own = right_hand_side(3)
    own[:, 1] = 0
    ended = NumbaSolves(system()).conjugate_gradient(own, None, Limits(0.0, 0, 7))
    assert ended.products == 7
    assert not ended.value[:, 1].any()
    assert ended.residual[1] == 0
    assert (ended.residual[[0, 2]] > 0).all()
