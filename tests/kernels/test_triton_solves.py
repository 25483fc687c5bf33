"""The GPU's solves where their launches differ: many columns, several tiles a program, products made before the step."""

from __future__ import annotations

import copy
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch

from pprop.kernels import capture
from pprop.kernels.product_solves import ProductSolves
from pprop.kernels.solves import Limits
from pprop.propagation import Chebyshev

if importlib.util.find_spec("triton") is None:
    pytest.skip("the GPU backend needs triton", allow_module_level=True)

from pprop.kernels.triton_gpu import solves as triton_solves
from pprop.kernels.triton_gpu.large_steps import LargeSteps
from pprop.kernels.triton_gpu.solves import TritonSolves
from pprop.kernels.triton_gpu.sparse import TritonSteps

pytestmark = pytest.mark.slow
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = LargeSteps if torch.cuda.is_available() else TritonSteps  # the interpreter takes seconds a large step
N = 38


def solves_of(system, *, large=False):
    return TritonSolves(system, partial(STEPS, system.transition, 0.0, 1), large=large)


@pytest.fixture
def compare(all_three):
    """Compare with the recurrences in torch; several times where later solves are replayed."""
    return partial(compare_with_torch, all_three)


def compare_with_torch(all_three, system, solves, columns, dtype, limits, times=1):
    b = torch.from_numpy(np.random.default_rng(columns).standard_normal((N, columns)))
    product = torch.from_numpy(system.transition.to_scipy().toarray())
    twins = all_three(ProductSolves(system, lambda state, _: product @ state), b, limits)
    for _ in range(times):
        for solved, twin in zip(all_three(solves, b.to(DEVICE, dtype), limits), twins, strict=True):
            assert solved.products == twin.products
            assert solved.value.dtype == dtype
            accuracy = 1e-12 if dtype == torch.float64 else 1e-5
            np.testing.assert_allclose(solved.value.cpu().numpy(), twin.value.numpy(), rtol=0, atol=accuracy)
            np.testing.assert_allclose(solved.size, twin.size, rtol=accuracy)
            np.testing.assert_allclose(solved.residual, twin.residual, rtol=1e-4 if dtype == torch.float64 else 0.3)


@pytest.mark.parametrize(("columns", "weighted"), [(1, False), (9, True), (33, False)])
def test_any_number_of_columns_is_solved(make_graph, columns, weighted, system_of, compare):
    system, _ = system_of(make_graph(N, directed=False, weighted=weighted)[0])
    compare(system, solves_of(system), columns, torch.float64, Limits(1e-3, 3, 50))


@pytest.mark.parametrize(("columns", "dtype"), [(3, torch.float32), (33, torch.float64)])
def test_products_that_are_made_before_the_step_are_as_good(make_graph, columns, dtype, system_of, compare):
    system, _ = system_of(make_graph(N, directed=False, weighted=True)[0])
    compare(
        system, solves_of(system, large=True), columns, dtype, Limits(1e-3, 3, 50), times=1 if DEVICE == "cpu" else 3
    )


@pytest.mark.parametrize(("programs", "large"), [(1, False), (2, True)])
def test_a_program_makes_several_tiles_where_there_are_many(
    make_graph, monkeypatch, programs, large, system_of, compare
):
    monkeypatch.setattr(triton_solves, "_PROGRAMS", programs)
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    compare(system, solves_of(system, large=large), 33, torch.float64, Limits(1e-2, 3, 50))


def test_rows_of_every_number_of_lanes_are_summed(system_of, compare):
    """Rows of up to 8 entries have one lane, of up to 32 four, longer ones sixteen."""
    from scipy import sparse

    from pprop import Graph

    A = np.zeros((N, N))
    A[0, 1:] = 1.0
    A[1, 2:20] = 1.0
    A[np.arange(2, N - 1), np.arange(3, N)] = 1.0
    graph = Graph.from_scipy(sparse.csr_array(np.maximum(A, A.T)))
    system, _ = system_of(graph)
    lengths = np.diff(system.transition.indptr)
    assert lengths.max() > 32
    assert ((lengths > 8) & (lengths <= 32)).any()
    compare(system, solves_of(system), 3, torch.float64, Limits(1e-4, 3, 50))


def test_few_shapes_are_kept_and_all_are_solved(make_graph, system_of, compare):
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    solves = solves_of(system)
    for columns in (1, 2, 1):
        compare(system, solves, columns, torch.float64, Limits(1e-1, 1, 50))
    assert len(solves._spaces) == triton_solves._SHAPES


def test_states_that_are_too_large_to_keep_are_not(make_graph, monkeypatch, system_of, compare):
    monkeypatch.setattr(triton_solves, "_KEPT", 0)
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    solves = solves_of(system)
    compare(system, solves, 3, torch.float64, Limits(1e-1, 3, 50))
    assert not solves._spaces


def test_the_host_looks_once_at_a_solve_that_ends_as_expected(make_graph, monkeypatch, system_of):
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    looks, advance = list[int](), triton_solves._Space._advance
    monkeypatch.setattr(triton_solves._Space, "_advance", lambda *given: looks.append(0) or advance(*given))
    limits = Chebyshev(1e-6).limits(system.alpha)
    b = torch.ones(N, 1, dtype=torch.float64, device=DEVICE)
    solved = solves_of(system).chebyshev(b, limits)
    assert limits.near <= solved.products <= limits.most
    assert len(looks) == 1


def test_a_copy_solves_like_the_original_and_a_mode_of_torch_leaves_nothing_behind(make_graph, system_of):
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    solves, b, limits = solves_of(system), torch.ones(N, 2, dtype=torch.float64, device=DEVICE), Limits(1e-2, 1, 50)
    with torch.inference_mode():
        inside = solves.chebyshev(b, limits)
    outside, copied = solves.chebyshev(b, limits), copy.deepcopy(solves).chebyshev(b, limits)
    assert torch.equal(inside.value, outside.value)
    assert torch.equal(copied.value, outside.value)


def test_solves_of_several_threads_do_not_mix(make_graph, system_of):
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    solves, limits = solves_of(system), Limits(1e-1, 1, 50)
    given = [torch.full((N, 1), k + 1.0, dtype=torch.float64, device=DEVICE) for k in range(4)]
    alone = solves.chebyshev(given[0], limits).value
    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(lambda b: solves.chebyshev(b, limits).value, given))
    for k, value in enumerate(values):
        torch.testing.assert_close(value, (k + 1) * alone, rtol=1e-14, atol=0.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU to capture on")
def test_steps_that_cannot_be_captured_are_launched_one_by_one(make_graph, system_of, compare, monkeypatch):
    usual = capture._capture

    def refused(device, launches):
        def and_waits() -> None:
            launches()
            torch.ones(2, device=device).sum().item()

        return usual(device, and_waits)

    monkeypatch.setattr(capture, "_capture", refused)
    system, _ = system_of(make_graph(N, directed=False, weighted=False)[0])
    with pytest.warns(UserWarning, match="No CUDA graph could be captured") as told:
        compare(system, solves_of(system), 5, torch.float64, Limits(1e-3, 3, 50), times=4)
    assert len(told) == 3  # once for each kind of solve
    assert torch.randn(1, device="cuda").isfinite()
