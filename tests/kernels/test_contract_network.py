"""The contract that every backend keeps, for the network: hidden layer, second layer, loss and optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop.kernels import Draw

HIDDEN = 1
SEEDS = [0, -3]


def draw_of(epoch, p):
    return Draw(torch.tensor(SEEDS), epoch, p)


# -- hidden layer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "width"), [(1, 1), (257, 33), (513, 1), (30, 70)])
def test_activation_is_relu_in_place_and_its_adjoint_passes_where_it_was_positive(kernels, dtype, normal, n, width):
    x, x64 = normal(2, n, width, dtype=dtype)
    x[0, 0, 0] = x64[0, 0, 0] = 0.0
    y = kernels.activate(x, 0, None)
    assert y.data_ptr() == x.data_ptr()
    assert np.array_equal(y.double().numpy(), np.where(x64 > 0, x64, 0.0))
    g, g64 = normal(2, n, width, dtype=dtype)
    back = kernels.activate_adjoint(g, y, None)
    assert back.data_ptr() == g.data_ptr()
    assert np.array_equal(back.double().numpy(), np.where(x64 > 0, g64, 0.0))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6])
@pytest.mark.parametrize(("n", "width", "layer"), [(37, 1, 0), (11, 33, 1), (5, 70, 3)])
def test_activation_drops_the_units_of_the_specification(
    kernels, dtype, normal, assert_close, oracle, p, n, width, layer
):
    epoch = 12
    x, x64 = normal(2, n, width, dtype=dtype)
    keep = np.array(
        [
            [[oracle.keep(seed, HIDDEN + 16 * layer, i, epoch, q, p) for q in range(width)] for i in range(n)]
            for seed in SEEDS
        ]
    )
    draw = draw_of(epoch, p)
    y = kernels.activate(x, layer, draw)
    assert_close(y, np.maximum(x64, 0.0) * keep * oracle.scale(p))
    g, g64 = normal(2, n, width, dtype=dtype)
    assert_close(kernels.activate_adjoint(g, y, draw), g64 * (x64 > 0) * keep * oracle.scale(p))


# -- second layer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "inner", "width"), [(1, 1, 1), (257, 17, 3), (513, 17, 1), (40, 1, 3)])
def test_second_layer_and_its_adjoints_are_dense_products(kernels, dtype, normal, assert_close, n, inner, width):
    x, _ = normal(2, n, inner, dtype=dtype)
    x[:, :, ::3] = 0.0  # as after ReLU and dropout
    x64 = x.double().numpy()
    W, w64 = normal(2, inner, width, dtype=dtype)
    G, g64 = normal(2, n, width, dtype=dtype)
    assert_close(kernels.linear(x, W), np.stack([a @ b for a, b in zip(x64, w64, strict=True)]))
    assert_close(kernels.linear_input_adjoint(G, W), np.stack([g @ w.T for g, w in zip(g64, w64, strict=True)]))
    assert_close(kernels.linear_weight_adjoint(x, G), np.stack([a.T @ g for a, g in zip(x64, g64, strict=True)]))


# -- loss ---------------------------------------------------------------------------------------------------------


def mean_cross_entropy(logits, labels):
    """-log softmax at the label, one node at a time, in float64 with the largest logit taken out."""
    losses = []
    for row, label in zip(logits, labels, strict=True):
        if label >= 0:
            largest = max(row)
            shifted = [float(value - largest) for value in row]
            losses.append(float(np.log(sum(np.exp(v) for v in shifted))) - shifted[label])
    return sum(losses) / len(losses)


@pytest.mark.parametrize(("m", "c"), [(1, 1), (1, 7), (300, 7), (12, 2)])
def test_cross_entropy_is_the_mean_over_labelled_nodes_with_the_gradient_of_finite_differences(
    kernels, dtype, normal, assert_close, m, c
):
    rng = np.random.default_rng(3)
    logits, logits64 = normal(3, m, c, dtype=dtype)
    labels = rng.integers(0, c, (3, m))
    labels[1, 1::2] = -1  # a shorter set, padded in between
    loss, right, gradient = kernels.cross_entropy(logits, torch.from_numpy(labels))
    assert_close(loss, np.array([mean_cross_entropy(z, y) for z, y in zip(logits64, labels, strict=True)]))
    expected = [
        sum(int(z.argmax()) == y for z, y in zip(*pair, strict=True)) for pair in zip(logits64, labels, strict=True)
    ]
    assert right.dtype == torch.int64
    assert right.tolist() == expected
    assert (gradient[1, 1::2] == 0).all()
    for run, node, k in [(0, 0, 0), (1, 0, c - 1), (2, m - 1, c // 2)]:
        h, sides = 1e-5, []
        for sign in (1, -1):
            moved = logits64[run].copy()
            moved[node, k] += sign * h
            sides.append(mean_cross_entropy(moved, labels[run]))
        slope = (sides[0] - sides[1]) / (2 * h)
        assert float(gradient[run, node, k]) == pytest.approx(slope, abs=1e-9 + 16 * torch.finfo(dtype).eps)


def test_cross_entropy_gradient_is_softmax_less_one_hot_over_the_count(kernels, dtype, normal, assert_close):
    logits, logits64 = normal(2, 9, 7, dtype=dtype)
    labels = np.array([[0, 1, 2, 3, 4, 5, 6, 0, 1], [3, -1, 2, -1, -1, -1, 6, 0, -1]])
    _, _, gradient = kernels.cross_entropy(logits, torch.from_numpy(labels))
    expected = np.zeros((2, 9, 7))
    for run in range(2):
        count = sum(label >= 0 for label in labels[run])
        for k, label in enumerate(labels[run]):
            if label >= 0:
                weights = np.exp(logits64[run, k])
                expected[run, k] = weights / weights.sum() / count
                expected[run, k, label] -= 1 / count
    assert_close(gradient, expected, factor=4)


def test_cross_entropy_of_a_tie_answers_the_first_class(kernels, dtype):
    logits = torch.tensor([[[2.0, 5.0, 5.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]], dtype=dtype)
    for labels, right in [([1, 0, 0], 3), ([2, 1, 2], 0)]:
        assert kernels.cross_entropy(logits, torch.tensor([labels]))[1].tolist() == [right]


def test_cross_entropy_of_extreme_logits_does_not_overflow(kernels, dtype):
    big = 1e30
    logits = torch.tensor([[[big, -big, 0.0], [-big, -big, -big], [1e4, 0.0, -1e4]]], dtype=dtype)
    rounded = float(logits[0, 0, 0])
    loss, right, gradient = kernels.cross_entropy(logits, torch.tensor([[0, 2, 0]]))
    assert float(loss) == pytest.approx(np.log(3) / 3, rel=8 * torch.finfo(dtype).eps)
    assert right.tolist() == [2]
    assert torch.isfinite(gradient).all()
    assert torch.equal(gradient[0, 0], torch.zeros(3, dtype=dtype))
    loss, right, gradient = kernels.cross_entropy(logits, torch.tensor([[2, -1, 1]]))
    assert float(loss) == pytest.approx((rounded + 1e4) / 2, rel=8 * torch.finfo(dtype).eps)
    assert right.tolist() == [0]
    assert torch.equal(gradient[0], torch.tensor([[0.5, 0, -0.5], [0, 0, 0], [0.5, -0.5, 0]], dtype=dtype))


def test_the_logits_of_a_padded_node_count_for_nothing(kernels, dtype):
    largest = torch.finfo(dtype).max
    logits = torch.tensor([[[0.0, 0.0], [-largest, largest]]], dtype=dtype)
    loss, right, gradient = kernels.cross_entropy(logits, torch.tensor([[0, -1]]))
    assert float(loss) == pytest.approx(np.log(2), rel=8 * torch.finfo(dtype).eps)
    assert right.tolist() == [1]
    assert torch.equal(gradient, torch.tensor([[[-0.5, 0.5], [0.0, 0.0]]], dtype=dtype))


@pytest.mark.parametrize("loss_of", ["cross_entropy", "likelihood"])
def test_a_weighted_loss_has_the_value_and_the_gradient_of_torch(kernels, dtype, normal, assert_close, loss_of):
    rng = np.random.default_rng(3)
    values, _ = normal(3, 12, 4, dtype=dtype)
    given = values if loss_of == "cross_entropy" else values.softmax(dim=-1)
    labels, weights = torch.from_numpy(rng.integers(0, 4, (3, 12))), torch.from_numpy(rng.gamma(1.0, size=(3, 12)))
    labels[1, 1::2] = -1
    weights[2, ::3] = 0.0
    weights = weights.float()
    twin = given.double().clone().requires_grad_()
    logs = twin.log_softmax(dim=-1) if loss_of == "cross_entropy" else twin.log()
    much = weights.double().where(labels >= 0, 0.0)
    each = -logs.gather(-1, labels.clamp(min=0)[..., None])[..., 0] * much
    expected = each.sum(dim=1) / much.sum(dim=1)
    (slopes,) = torch.autograd.grad(expected.sum(), twin)
    loss, right, gradient = getattr(kernels, loss_of)(given, labels, weights)
    assert_close(loss, expected.detach().numpy())
    assert_close(gradient, slopes.numpy(), factor=4)
    assert right.dtype == torch.float64
    hit = (given.argmax(dim=-1) == labels).double() * much
    np.testing.assert_allclose(right.numpy(), hit.sum(dim=1).numpy(), rtol=1e-12)


def test_weights_of_one_change_no_bit_and_a_weight_of_zero_hides_any_logits(kernels, dtype, normal):
    logits, _ = normal(2, 9, 5, dtype=dtype)
    labels = torch.from_numpy(np.random.default_rng(0).integers(-1, 5, (2, 9)))
    plain, ones = (kernels.cross_entropy(logits, labels, w) for w in (None, torch.ones(2, 9)))
    assert torch.equal(plain[0], ones[0])
    assert plain[1].tolist() == ones[1].tolist()
    assert torch.equal(plain[2], ones[2])
    labels, weights = torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[1.0, 0.0]])
    logits = torch.tensor([[[0.0, 0.0], [torch.nan, torch.inf]]], dtype=dtype)
    loss, right, gradient = kernels.cross_entropy(logits, labels, weights)
    assert float(loss) == pytest.approx(np.log(2), rel=8 * torch.finfo(dtype).eps)
    assert right.tolist() == [1]
    assert torch.equal(gradient, torch.tensor([[[-0.5, 0.5], [0.0, 0.0]]], dtype=dtype))


# -- optimiser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(1, 1), (257, 7), (40, 33)])
@pytest.mark.parametrize("penalty", [0.0, 0.005])
def test_adam_makes_the_steps_of_torch_and_returns_the_squared_norm(
    kernels, dtype, normal, assert_close, a, b, penalty
):
    weights, weights64 = normal(2, a, b, dtype=dtype)
    mean, square = torch.zeros_like(weights), torch.zeros_like(weights)
    twin = torch.nn.Parameter(torch.from_numpy(weights64))
    optimiser = torch.optim.Adam([twin], lr=0.01, weight_decay=penalty)
    storage = [tensor.data_ptr() for tensor in (weights, mean, square)]
    for step in range(1, 8):
        gradient, gradient64 = normal(2, a, b, dtype=dtype)
        if step == 3:
            gradient.zero_()
            gradient64[:] = 0.0
        twin.grad = torch.from_numpy(gradient64)
        optimiser.step()
        squares = kernels.adam(weights, gradient, mean, square, step=step, rate=0.01, penalty=penalty)
        assert np.array_equal(gradient.double().numpy(), gradient64)  # the gradient is read only
        assert_close(weights, twin.detach().numpy())
        expected = (twin.detach() ** 2).sum(dim=(1, 2)).numpy()
        assert_close(squares, expected)
    assert storage == [tensor.data_ptr() for tensor in (weights, mean, square)]
