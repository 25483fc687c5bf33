"""The contract that every backend keeps, for the baselines: attention over edges, ELU, dropout alone, softmax and the
likelihood of probabilities. Dense twins in float64; their gradients are torch's.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest
import torch

from pprop.graph import Transition, transition_matrix
from pprop.kernels import BACKENDS, Draw

pytestmark = pytest.mark.slow

HIDDEN, EDGES = 1, 2
SEEDS = [0, -3, 2**40 + 17]


def draw_of(epoch, p, runs=3):
    return Draw(torch.tensor(SEEDS[:runs]), epoch, p)


def scores_of(normal, runs, n, d, dtype, spread=2.0):
    """values, left, right and a gradient, with float64 twins that know their own gradients."""
    tensors = [normal(runs, n, d, dtype=dtype)[0], *(normal(runs, n, dtype=dtype)[0] * spread for _ in range(2))]
    return tensors, [tensor.double().clone().requires_grad_() for tensor in tensors], normal(runs, n, d, dtype=dtype)[0]


def dense_attention(pattern, factor, values, left, right):
    """All n x n scores of every run, those that are no entry at minus infinity; `factor` is the mask times its scale."""
    score = left[:, :, None] + right[:, None, :]
    score = torch.nn.functional.leaky_relu(score, 0.2).masked_fill(~pattern, -torch.inf)
    weight = torch.exp(score - score.detach().amax(dim=2, keepdim=True).nan_to_num(neginf=0.0))
    return weight / weight.sum(dim=2, keepdim=True).clamp(min=1e-300) * factor @ values


def check_attention(attention, pattern, factor, draw, operands, assert_close, factor_eps=64.0):
    tensors, twins, gradient = operands
    expected = dense_attention(pattern, factor, *twins)
    wanted = torch.autograd.grad(expected, twins, gradient.double())
    before = [tensor.clone() for tensor in tensors]
    out = attention.forward(*tensors, draw)
    assert_close(out, expected.detach().numpy(), factor_eps)
    assert out.dtype == tensors[0].dtype
    for actual, twin in zip(attention.adjoint(gradient, *tensors, draw), wanted, strict=True):
        assert_close(actual, twin.numpy(), factor_eps)
    assert all(torch.equal(tensor, old) for tensor, old in zip(tensors, before, strict=True))


# -- attention ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "runs", "d", "directed"), [(1, 1, 1, False), (23, 3, 8, True), (17, 1, 15, False), (300, 2, 3, True)]
)
def test_attention_is_that_of_the_dense_matrix_with_the_gradients_of_torch(
    kernels, dtype, normal, assert_close, make_graph, n, runs, d, directed
):
    graph, A = make_graph(n, directed=directed, weighted=True)  # the weights play no part
    pattern = torch.from_numpy((A != 0) | np.eye(n, dtype=bool))
    attention = kernels.attention(transition_matrix(graph))
    check_attention(attention, pattern, 1.0, None, scores_of(normal, runs, n, d, dtype), assert_close)


@pytest.mark.parametrize(("p", "epoch", "d"), [(0.6, 0, 8), (0.5, 1000, 1)])
def test_attention_drops_the_coefficients_of_the_specification(
    kernels, dtype, normal, assert_close, make_graph, oracle, p, epoch, d
):
    n = 19
    graph, A = make_graph(n, directed=True, weighted=False)
    pattern = (A != 0) | np.eye(n, dtype=bool)
    kept = [
        [[pattern[i, j] and oracle.keep(seed, EDGES, i, j, epoch, p) for j in range(n)] for i in range(n)]
        for seed in SEEDS
    ]
    factor = torch.tensor(kept, dtype=torch.float64) * oracle.scale(p)
    attention = kernels.attention(transition_matrix(graph))
    operands = scores_of(normal, 3, n, d, dtype)
    check_attention(attention, torch.from_numpy(pattern), factor, draw_of(epoch, p), operands, assert_close)
    check_attention(attention, torch.from_numpy(pattern), 1.0, None, operands, assert_close)  # no mask is left over


def hub(n):
    """Node 0 receives from every second node, node 1 from nobody, not even itself; nobody receives from the last."""
    pattern = np.eye(n, dtype=bool)
    pattern[0, ::2] = True
    pattern[1, :] = False
    pattern[:, -1] = False
    rows, columns = np.nonzero(pattern)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    ones = np.ones(n)
    return Transition(indptr, columns.astype(np.int32), None, ones, ones, symmetric=False), torch.from_numpy(pattern)


@pytest.mark.parametrize("n", [37, 600])
def test_attention_of_a_hub_an_empty_row_and_an_empty_column(kernels, dtype, normal, assert_close, n):
    transition, pattern = hub(n)
    operands = scores_of(normal, 2, n, 3, dtype)
    check_attention(kernels.attention(transition), pattern, 1.0, None, operands, assert_close)
    values, left, right = operands[0]
    for draw in (None, draw_of(3, 0.6, runs=2)):
        out = kernels.attention(transition).forward(values, left, right, draw)
        to_values, to_left, to_right = kernels.attention(transition).adjoint(values, values, left, right, draw)
        assert torch.equal(out[:, [1, n - 1]], torch.zeros(2, 2, 3, dtype=dtype))
        assert torch.equal(to_values[:, n - 1], torch.zeros(2, 3, dtype=dtype))
        assert to_left[:, [1, n - 1]].tolist() == [[0.0, 0.0]] * 2
        assert to_right[:, n - 1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("spread", [0.0, 1e4])
def test_attention_to_scores_far_apart_neither_overflows_nor_vanishes(
    kernels, dtype, normal, assert_close, make_graph, spread
):
    graph, A = make_graph(23, directed=True, weighted=False)
    pattern = torch.from_numpy((A != 0) | np.eye(23, dtype=bool))
    operands = scores_of(normal, 3, 23, 7, dtype, spread)
    attention = kernels.attention(transition_matrix(graph))
    check_attention(attention, pattern, 1.0, None, operands, assert_close, 64.0 * max(1.0, spread))


def test_attention_shows_a_run_that_diverges_and_leaves_the_others_alone(kernels, dtype, normal, make_graph):
    graph, _ = make_graph(17, directed=True, weighted=False)
    attention = kernels.attention(transition_matrix(graph))
    (values, left, right), _, gradient = scores_of(normal, 3, 17, 3, dtype)
    sound = [attention.forward(values, left, right, None), *attention.adjoint(gradient, values, left, right, None)]
    left[0, 5], right[1, 5] = torch.nan, torch.nan
    spoilt = [attention.forward(values, left, right, None), *attention.adjoint(gradient, values, left, right, None)]
    for before, after in zip(sound, spoilt, strict=True):
        assert torch.equal(before[2], after[2])
    assert spoilt[0][:2, 5].isnan().all()
    assert spoilt[2][0, 5].isnan()
    assert spoilt[3][1, 5].isnan()


def test_attention_takes_operands_that_are_not_contiguous(kernels, dtype, normal, make_graph):
    graph, _ = make_graph(17, directed=True, weighted=False)
    attention = kernels.attention(transition_matrix(graph))
    (values, left, right), _, gradient = scores_of(normal, 2, 17, 3, dtype)
    draw = draw_of(2, 0.6, runs=2)
    flipped = [tensor.mT.contiguous().mT for tensor in (gradient, values, left, right)]
    assert torch.equal(attention.forward(*flipped[1:], draw), attention.forward(values, left, right, draw))
    expected = attention.adjoint(gradient, values, left, right, draw)
    for actual, wanted in zip(attention.adjoint(*flipped, draw), expected, strict=True):
        assert torch.equal(actual, wanted)


@pytest.mark.parametrize("spread", [2.0, 1e3])
def test_numba_attention_has_the_same_bits_in_any_batch_and_with_any_number_of_threads(normal, make_graph, spread):
    kernels = next(backend for backend in BACKENDS if backend.name == "numba").kernels
    n = 600
    graph, _ = make_graph(n, directed=True, weighted=False)
    attention = kernels.attention(transition_matrix(graph))
    (values, left, right), _, gradient = scores_of(normal, 3, n, 7, torch.float32, spread)
    left[1:], right[1:] = 3.0 * left[1:], 3.0 * right[1:]

    def results(at):
        draw = Draw(torch.tensor(SEEDS)[at], 7, 0.6)
        v, a, b = values[at], left[at], right[at]
        return [attention.forward(v, a, b, draw), *attention.adjoint(gradient[at], v, a, b, draw)]

    together, threads = results([0, 1, 2]), numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        for at in ([0], [2], [1, 0]):
            for alone, all_ in zip(results(at), together, strict=True):
                assert torch.equal(alone, all_[at])
    finally:
        numba.set_num_threads(threads)
    for again, first in zip(results([0, 1, 2]), together, strict=True):
        assert torch.equal(again, first)


# -- elementwise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0.6])
@pytest.mark.parametrize(("n", "width", "layer"), [(37, 1, 0), (11, 33, 2), (5, 8, 3)])
def test_dropping_alone_keeps_the_units_of_the_specification_with_their_sign_and_is_its_own_adjoint(
    kernels, dtype, normal, assert_close, oracle, p, n, width, layer
):
    x, x64 = normal(3, n, width, dtype=dtype)
    keep = np.array(
        [
            [[oracle.keep(seed, HIDDEN + 16 * layer, i, 12, q, p) for q in range(width)] for i in range(n)]
            for seed in SEEDS
        ]
    )
    y = kernels.drop(x, layer, draw_of(12, p))
    assert y.data_ptr() == x.data_ptr()
    assert_close(y, x64 * keep * oracle.scale(p), factor=4)
    assert torch.equal(kernels.drop(y, layer, None), x)  # nothing is drawn, nothing dropped


def test_elu_and_its_adjoint_are_those_of_torch_in_place(kernels, dtype, normal, assert_close):
    x, _ = normal(3, 31, 9, dtype=dtype)
    x[0, 0, :6] = torch.tensor([0.0, -0.0, -1e-30, -200.0, 1e30, -1e-4])
    twin = x.double().clone().requires_grad_()
    expected = torch.nn.functional.elu(twin)
    g, _ = normal(3, 31, 9, dtype=dtype)
    (wanted,) = torch.autograd.grad(expected, twin, g.double())
    y = kernels.elu(x)
    assert y.data_ptr() == x.data_ptr()
    tolerance = 8 * torch.finfo(dtype).eps
    np.testing.assert_allclose(y.double().numpy(), expected.detach().numpy(), rtol=tolerance, atol=0)
    back = kernels.elu_adjoint(g, y)
    assert back.data_ptr() == g.data_ptr()
    assert_close(back, wanted.numpy(), factor=8)


@pytest.mark.parametrize("shape", [(1, 1), (3, 20), (2, 300, 7), (2, 4, 5, 1)])
def test_softmax_over_the_last_axis_and_its_adjoint_are_those_of_torch(kernels, dtype, normal, assert_close, shape):
    x, _ = normal(*shape, dtype=dtype)
    x[..., 0] *= 1e3  # the largest value is taken out before the exponential
    twin = x.double().clone().requires_grad_()
    expected = twin.softmax(dim=-1)
    g, _ = normal(*shape, dtype=dtype)
    (wanted,) = torch.autograd.grad(expected, twin, g.double())
    before = x.clone()
    y = kernels.softmax(x)
    assert_close(y, expected.detach().numpy(), factor=2e3)
    assert_close(kernels.softmax_adjoint(g, y), wanted.numpy(), factor=2e3)
    assert torch.equal(x, before)
    assert torch.equal(kernels.softmax(x.mT.contiguous().mT), y)


@pytest.mark.parametrize(("m", "c"), [(1, 1), (300, 7), (12, 2)])
def test_likelihood_is_the_mean_over_labelled_nodes_with_the_gradient_of_torch(
    kernels, dtype, normal, assert_close, m, c
):
    x, _ = normal(3, m, c, dtype=dtype)
    probabilities = x.softmax(dim=-1)
    labels = torch.from_numpy(np.random.default_rng(3).integers(0, c, (3, m)))
    labels[1, 1::2] = -1
    twin = probabilities.double().clone().requires_grad_()
    each = [-twin[r][labels[r] >= 0, labels[r][labels[r] >= 0]].log().mean() for r in range(3)]
    (wanted,) = torch.autograd.grad(torch.stack(each).sum(), twin)
    loss, right, gradient = kernels.likelihood(probabilities, labels)
    assert_close(loss, torch.stack(each).detach().numpy())
    assert right.tolist() == [int((twin[r].argmax(dim=1) == labels[r]).sum()) for r in range(3)]
    assert right.dtype == torch.int64
    assert_close(gradient, wanted.numpy())


def test_likelihood_of_an_impossible_label_is_finite_and_a_tie_answers_the_first_class(kernels, dtype):
    probabilities = torch.tensor([[[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]], dtype=dtype)
    tiny = torch.finfo(dtype).tiny
    loss, right, gradient = kernels.likelihood(probabilities, torch.tensor([[0, 0, 1]]))
    assert float(loss) == pytest.approx((2 * np.log(2) - np.log(tiny)) / 3, rel=8 * torch.finfo(dtype).eps)
    assert right.tolist() == [1]
    assert torch.isfinite(gradient).all()
    spoilt = torch.full((1, 1, 2), torch.nan, dtype=dtype)
    assert kernels.likelihood(spoilt, torch.tensor([[0]]))[0].isnan().all()
