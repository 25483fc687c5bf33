"""Power steps on large graphs against a dense twin in float64: the CPU's kernels and, interpreted or not, the GPU's.

Graphs are small here; the length from which a row is cut is crossed by a hub on the CPU and by small launch shapes on
the GPU.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache

import numba
import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Graph
from pprop.graph import transition_matrix
from pprop.kernels.numba_cpu import column_ranges
from pprop.kernels.numba_cpu.large_steps import PIECE
from pprop.kernels.numba_cpu.large_steps import LargeSteps as NumbaLargeSteps
from pprop.kernels.tensors import TensorSteps

pytestmark = pytest.mark.slow

ALPHA, STEPS = 0.15, 4
WITHOUT_TRITON = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the GPU backend needs triton")


@lru_cache
def graph_of(n, directed, weighted, mean=3):
    """A hub that everybody sends to, sparse random edges, and an isolated last node."""
    rng = np.random.default_rng(n)
    edges = np.where(rng.random((n, n)) < mean / n, rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0, 0.0)
    edges[1] = 1.0
    if not directed:
        edges = np.maximum(edges, edges.T)
    edges[-1] = edges[:, -1] = 0.0
    return Graph.from_scipy(sparse.csr_array(edges), directed=directed)


def dense_twin(transition, H, steps, *, transposed):
    T = transition.to_scipy().T if transposed else transition.to_scipy()
    state = H
    for _ in range(steps):
        state = (1 - ALPHA) * (T @ state) + ALPHA * H
    return state


def small_tuning():
    from pprop.kernels.triton_gpu.launch import LargeTuning

    return LargeTuning(short=4, short_rows=8, short_unroll=2, middle_entries=4, piece=8, piece_entries=4)


def numba_steps(transition, alpha, steps):
    return TensorSteps(NumbaLargeSteps(transition, alpha, steps))


def triton_steps(transition, alpha, steps):
    from pprop.kernels.triton_gpu.large_steps import LargeSteps

    return LargeSteps(transition, alpha, steps, small_tuning())


def check(make, device, graph, normalization, columns, dtype, count=STEPS):
    transition = transition_matrix(graph, normalization)
    steps = make(transition, ALPHA, count)
    H = np.random.default_rng(columns).standard_normal((graph.n_nodes, columns))
    given = torch.from_numpy(H).to(device, dtype)[None]
    tolerance = 100 * torch.finfo(dtype).eps
    for apply, transposed in ((steps.forward, False), (steps.adjoint, True)):
        value = apply(given, None)
        assert value.shape == given.shape
        assert value.dtype == dtype
        twin = dense_twin(transition, given[0].cpu().double().numpy(), count, transposed=transposed)
        np.testing.assert_allclose(value[0].cpu().numpy(), twin, rtol=0, atol=tolerance * np.abs(twin).max())
    assert torch.equal(given.cpu(), torch.from_numpy(H).to(dtype)[None])


@pytest.mark.parametrize(
    ("columns", "dtype"), [*((c, torch.float32) for c in (1, 7, 16, 80)), (3, torch.float64)], ids=str
)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_steps_on_the_cpu_are_the_dense_ones(directed, weighted, columns, dtype):
    for normalization in ("sym", "row", "col"):
        check(numba_steps, "cpu", graph_of(200, directed, weighted), normalization, columns, dtype)


@WITHOUT_TRITON
@pytest.mark.parametrize(
    ("directed", "weighted", "normalization", "columns", "dtype"),
    [
        (False, False, "sym", 16, torch.float32),
        (False, False, "sym", 1, torch.float64),
        (True, False, "row", 3, torch.float32),
        (True, True, "sym", 7, torch.float64),
        (False, True, "col", 5, torch.float32),
        (True, True, "col", 70, torch.float32),
    ],
)
def test_steps_on_the_gpu_are_the_dense_ones(directed, weighted, normalization, columns, dtype):
    """Rows of all three kinds, a hub of three pieces; a first, a middle and a last step where there is time for three."""
    device, count = ("cuda", STEPS) if torch.cuda.is_available() else ("cpu", 3 if columns == 1 else 2)
    graph = graph_of(20, directed, weighted, mean=1.5)
    lengths = np.diff(transition_matrix(graph, normalization).indptr)
    assert (lengths <= 4).any()
    assert ((lengths > 4) & (lengths <= 8)).any()
    assert lengths.max() > 16
    check(triton_steps, device, graph, normalization, columns, dtype, count)


@WITHOUT_TRITON
@pytest.mark.parametrize("in_place", [False, True], ids=["new", "in place"])
def test_steps_in_panels_on_the_gpu_are_those_of_all_columns(in_place):
    """33 columns are panels of 32 and 1; self-loops that are no entries are added by the steps."""
    from pprop.kernels.triton_gpu.large_steps import Renumbered, run_steps

    device = "cuda" if torch.cuda.is_available() else "cpu"
    graph, tuning = graph_of(20, directed=False, weighted=False, mean=1.5), small_tuning()
    transition = transition_matrix(graph)
    scale = torch.from_numpy(transition.row_scale).float().to(device)
    indptr, indices = (torch.from_numpy(np.array(one)).to(device) for one in (graph.indptr, graph.indices))
    loops = torch.ones(20, dtype=torch.uint8, device=device)
    loops[1] = 0  # the hub has one, of its own
    side = Renumbered(indptr, indices, None, (scale, scale), tuning, loops)
    H = torch.randn(20, 33, generator=torch.Generator().manual_seed(0)).to(device)
    twin = dense_twin(transition, H.cpu().double().numpy(), 2, transposed=False)
    shares, out = torch.tensor([ALPHA, 1 - ALPHA], device=device), H if in_place else torch.empty_like(H)
    value = run_steps(side, shares, 2, H, tuning, out=out)
    assert value is out
    np.testing.assert_allclose(value.cpu().numpy(), twin, rtol=0, atol=1e-5 * np.abs(twin).max())


def star(leaves):
    hub, leaf = np.zeros(leaves, int), np.arange(1, leaves + 1)
    ones = np.ones(2 * leaves)
    where = np.concatenate([hub, leaf]), np.concatenate([leaf, hub])
    return Graph.from_scipy(sparse.csr_array((ones, where), shape=(leaves + 1, leaves + 1)))


@pytest.mark.parametrize("leaves", [PIECE - 2, PIECE - 1, PIECE, 2 * PIECE - 1, 5 * PIECE + 17])
def test_a_hub_longer_than_a_piece_is_summed_whole(leaves):
    check(numba_steps, "cpu", star(leaves), "sym", 3, torch.float64)


def test_the_bits_do_not_depend_on_the_number_of_threads_nor_of_runs():
    graph = star(5 * PIECE + 17)
    steps = numba_steps(transition_matrix(graph), ALPHA, STEPS)
    H = torch.randn(3, graph.n_nodes, 7, generator=torch.Generator().manual_seed(0))
    together = steps.forward(H, None)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        for run in range(3):
            assert torch.equal(steps.forward(H[run : run + 1], None)[0], together[run])
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("columns", [1, 7, 16, 80])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_entries_sorted_by_ranges_of_columns_give_the_same_bits(monkeypatch, weighted, columns):
    """Ranges of 16 columns or fewer, groups of at most 7 rows and 50 entries, and a hub that is cut into pieces."""
    hub, some = star(2 * PIECE), graph_of(200, False, weighted)
    edges = sparse.block_diag([hub.adjacency, some.adjacency], format="csr")
    steps = numba_steps(transition_matrix(Graph.from_scipy(sparse.csr_array(edges))), ALPHA, STEPS)
    H = torch.randn(1, edges.shape[0], columns, generator=torch.Generator().manual_seed(0))
    near = steps.forward(H, None)
    for name, value in (("_FAR", 0), ("_REACH", 1024), ("_GROUP", 7), ("_GROUP_ENTRIES", 50)):
        monkeypatch.setattr(column_ranges, name, value)
    assert torch.equal(steps.forward(H, None), near)


def test_no_steps_return_a_copy_and_no_columns_return_none():
    transition = transition_matrix(star(4))
    H = torch.randn(2, 5, 3)
    same = numba_steps(transition, ALPHA, 0).forward(H, None)
    assert torch.equal(same, H)
    assert same.data_ptr() != H.data_ptr()
    assert numba_steps(transition, ALPHA, 2).forward(H[:, :, :0], None).shape == (2, 5, 0)


def test_predictions_that_are_not_contiguous_are_read_as_they_are():
    transition = transition_matrix(star(9))
    steps = numba_steps(transition, ALPHA, STEPS)
    H = torch.randn(1, 7, 10).mT
    assert torch.equal(steps.forward(H, None), steps.forward(H.contiguous(), None))
