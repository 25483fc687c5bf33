"""First and second derivatives of the layer against float64 finite differences, on a directed weighted graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop import Exact, PowerIteration, Propagation, propagate

SOLVERS = [PowerIteration(0), PowerIteration(3), Exact()]


@pytest.fixture(params=[0.0, 0.5], ids=["whole", "dropped"])
def layer_function(request, make_graph, backend):
    """The layer as a pure function: the counter of training passes is put back before every pass."""

    def bind(solver, normalization="sym"):
        graph, _ = make_graph(directed=True, weighted=True)
        layer = Propagation(
            graph, 0.2, solver, normalization, dropout=request.param, seed=[3, 2**63 + 8], backend=backend
        )

        def apply(predictions):
            layer.passes = 5
            return layer(predictions)

        return apply

    return bind


def operand(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 9, 1, dtype=torch.float64, generator=generator, requires_grad=True)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_first_derivatives_are_those_of_finite_differences(layer_function, solver, normalization):
    assert torch.autograd.gradcheck(layer_function(solver, normalization), (operand(),))


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_second_derivatives_are_those_of_finite_differences(layer_function, solver):
    """Through a curved function, so that the second derivative is not zero."""
    apply = layer_function(solver)
    assert torch.autograd.gradgradcheck(lambda x: apply(torch.sin(x)) ** 2, (operand(),))


def test_without_dropout_the_gradient_is_the_transposed_matrix(make_graph, dense_transition, backend):
    graph, A = make_graph(directed=True, weighted=True)
    P = 0.2 * np.linalg.inv(np.eye(9) - 0.8 * dense_transition(A, "row"))
    weight = np.random.default_rng(0).standard_normal((9, 3))
    H = torch.zeros(9, 3, dtype=torch.float64, requires_grad=True)
    (propagate(graph, H, 0.2, Exact(), "row", backend=backend) * torch.from_numpy(weight)).sum().backward()
    assert H.grad is not None
    np.testing.assert_allclose(H.grad.numpy(), P.T @ weight, rtol=0, atol=1e-14)


def test_gradients_flow_through_propagate_to_one_dimensional_and_narrow_predictions(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    for dtype, shape in ((torch.float16, (9, 3)), (torch.float32, (9, 3)), (torch.float64, (9,))):
        H = torch.ones(shape, dtype=dtype, requires_grad=True)
        propagate(graph, H, backend=backend).sum().backward()
        assert H.grad is not None
        assert H.grad.dtype == dtype
        expected = propagate(_transposed(graph), np.ones(shape), backend=backend)
        np.testing.assert_allclose(H.grad.double().numpy(), expected, rtol=16 * torch.finfo(dtype).eps)


def _transposed(graph):
    """The graph with its edges turned round: "sym" of the transpose is the transpose of "sym"."""
    return graph.replace(adjacency=graph.adjacency.T)


def test_no_gradient_is_recorded_for_predictions_that_need_none(make_graph, backend):
    graph, _ = make_graph(directed=False, weighted=False)
    assert not propagate(graph, torch.ones(9, 3), backend=backend).requires_grad
