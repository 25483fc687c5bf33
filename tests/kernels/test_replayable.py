"""An epoch given as a tensor, as a replayed CUDA graph needs it, means the same as the number."""

from __future__ import annotations

import pytest
import torch
from scipy import sparse

from pprop.graph import transition_matrix
from pprop.kernels import Draw

SEEDS = torch.tensor([7, -4])


def operations(kernels, graph, draw, step):
    """Every operation that takes an epoch or a step, on operands that are the same at every call."""
    torch.manual_seed(0)
    n = graph.n_nodes
    features = kernels.features(sparse.random_array((n, 9), density=0.4, rng=1, format="csr", dtype="float32"))
    steps = kernels.steps(transition_matrix(graph), 0.1, 2)
    rows = kernels.rows(torch.rand(4, n), torch.arange(4))
    attention = kernels.attention(transition_matrix(graph))
    at = torch.arange(4).repeat(2, 1)
    values, weights, scores = torch.randn(2, n, 3), torch.randn(2, 9, 3), torch.randn(2, n)
    adam = [torch.rand(2, 3, 4) for _ in range(4)]
    return [
        features.forward(weights, draw),
        features.adjoint(values, draw),
        steps.forward(values, draw),
        steps.adjoint(values, draw),
        rows.forward(values, at, draw),
        rows.adjoint(values[:, :4].contiguous(), at, draw),
        attention.forward(values, scores, scores.flip(1).contiguous(), draw),
        kernels.activate(values.clone(), 1, draw),
        kernels.drop(values.clone(), 2, draw),
        kernels.adam(*adam, step=step, rate=0.01, penalty=0.1),
        adam[0],
    ]


def test_an_epoch_and_a_step_may_be_tensors(kernels, make_graph):
    p = 0.5
    graph, _ = make_graph(12, directed=True, weighted=False)
    numbers = operations(kernels, graph, Draw(SEEDS, 37, p), 38)
    tensors = operations(kernels, graph, Draw(SEEDS, torch.tensor([37]), p), torch.tensor([38]))
    other = operations(kernels, graph, Draw(SEEDS, torch.tensor([36]), p), torch.tensor([37]))
    for mine, theirs in zip(tensors, numbers, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)
        assert mine.dtype == theirs.dtype
    assert all(not torch.equal(a, b) for a, b in zip(tensors, other, strict=True))


@pytest.mark.parametrize("runs", [1, 3])
def test_steps_that_keep_masks_draw_those_of_any_epoch_and_any_seeds(kernels, make_graph, runs):
    """Whatever was drawn before: epochs in a row, one twice, one again, a jump, other seeds, back to the first."""
    graph, _ = make_graph(12, directed=True, weighted=False)
    transition, values = transition_matrix(graph), torch.randn(runs, graph.n_nodes, 3)
    first, second = torch.arange(runs) + 7, torch.arange(runs) - 90
    known = kernels.steps(transition, 0.1, 10)
    moments = [(first, 2), (first, 3), (first, 3), (first, 2), (first, 9), (second, 10), (second, 11), (first, 12)]
    for seeds, epoch in moments:
        draw, fresh = Draw(seeds, torch.tensor([epoch]), 0.5), kernels.steps(transition, 0.1, 10)
        assert torch.equal(known.forward(values, draw), fresh.forward(values, draw)), epoch
        assert torch.equal(known.adjoint(values, draw), fresh.adjoint(values, draw)), epoch
