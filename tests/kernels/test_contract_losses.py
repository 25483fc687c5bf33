"""Losses of each output by itself, on every backend, against sums written out in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pprop.kernels import Kernels
from pprop.kernels.losses import ELEMENTWISE, HUBER_TURN


def of_one(output: float, target: float, kind: str) -> tuple[float, float]:
    """The loss of one output, and how good it is."""
    if kind == "logistic":
        return math.log1p(math.exp(-abs(output))) + max(output, 0) - target * output, float(
            (output > 0) == (target > 0.5)
        )
    off = abs(output - target)
    if kind == "huber" and off > HUBER_TURN:
        return HUBER_TURN * (off - HUBER_TURN / 2), 1 - off**2
    return off**2 / 2, 1 - off**2


def written_out(
    outputs: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64], kind: str
) -> tuple[float, float]:
    total, good, known = 0.0, 0.0, 0.0
    for i, weight in enumerate(weights.tolist()):
        for q in range(targets.shape[1]):
            if not np.isnan(targets[i, q]):
                loss, right = of_one(outputs[i, q], targets[i, q], kind)
                total, good, known = total + weight * loss, good + weight * right, known + weight
    return total / known * targets.shape[1], good / known * weights.sum()


def given(kind: str, normal, dtype: torch.dtype):
    outputs, outputs64 = normal(3, 40, 4, dtype=dtype)
    targets, targets64 = normal(3, 40, 4, dtype=dtype)
    if kind == "logistic":
        targets, targets64 = (targets > 0).to(dtype), (targets64 > 0).astype(float)
    rng = np.random.default_rng(2)
    unknown = rng.random((3, 40, 4)) < 0.2
    targets[torch.from_numpy(unknown)], targets64[unknown] = math.nan, np.nan
    weights = rng.integers(0, 4, (3, 40)).astype(float)
    return (outputs, targets, torch.from_numpy(weights).to(dtype)), (outputs64, targets64, weights)


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_loss_and_goodness_are_means_over_what_is_known(kernels: Kernels, dtype, normal, assert_close, kind: str):
    tensors, arrays = given(kind, normal, dtype)
    loss, good, _ = kernels.elementwise_loss(*tensors, kind)
    expected = np.array([written_out(o, t, w, kind) for o, t, w in zip(*arrays, strict=True)])
    assert_close(loss, expected[:, 0])
    assert good.dtype == torch.float64
    np.testing.assert_allclose(good.numpy(), expected[:, 1], rtol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_the_gradient_is_that_of_finite_differences_and_zero_where_nothing_is_known(
    kernels: Kernels, dtype, normal, kind: str
):
    tensors, (outputs, targets, weights) = given(kind, normal, dtype)
    _, _, gradient = kernels.elementwise_loss(*tensors, kind)
    nothing = np.isnan(targets) | (weights == 0)[..., None]
    assert (gradient.numpy()[nothing] == 0).all()
    for run, i, q in [tuple(at) for at in np.argwhere(~nothing)[::17]]:
        sides = []
        for step in (1e-6, -1e-6):
            moved = outputs[run].copy()
            moved[i, q] += step
            sides.append(written_out(moved, targets[run], weights[run], kind)[0])
        slope = (sides[0] - sides[1]) / 2e-6
        assert float(gradient[run, i, q]) == pytest.approx(slope, abs=1e-8 + 32 * torch.finfo(dtype).eps)


def test_large_odds_do_not_overflow(kernels: Kernels, dtype):
    odds, labels = torch.tensor([[[1000.0, -1000.0]]], dtype=dtype), torch.tensor([[[1.0, 1.0]]], dtype=dtype)
    loss, good, gradient = kernels.elementwise_loss(odds, labels, torch.ones(1, 1, dtype=dtype), "logistic")
    assert loss.item() == pytest.approx(1000)
    assert good.item() == 0.5
    assert gradient.flatten().tolist() == [0, -1]


@pytest.mark.parametrize("kind", ELEMENTWISE)
def test_a_nan_shows_in_the_loss(kernels: Kernels, dtype, kind: str):
    outputs = torch.tensor([[[math.nan], [0.0]]], dtype=dtype)
    loss, _, _ = kernels.elementwise_loss(
        outputs, torch.ones(1, 2, 1, dtype=dtype), torch.ones(1, 2, dtype=dtype), kind
    )
    assert math.isnan(loss.item())
