"""Adam's steps, the penalty and the best weights, which every trainer of single operations shares."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop.kernels import choose_backend
from pprop.training.adam import Adam, BestWeights

PENALTIES, RATE = (0.3, 0.0), 0.1
SHAPES = (4, 3), (3, 2)


def random_tensors(seed: int, runs: int = 2) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.normal(size=(runs, *shape)).astype(np.float32)) for shape in SHAPES]


def adam_of(backend: str, weights: list[torch.Tensor]) -> Adam:
    return Adam(choose_backend(backend, "cpu", "test").kernels, weights, PENALTIES, RATE)


@pytest.mark.parametrize("backend", ["reference", "numba"])
def test_steps_and_penalty_are_those_of_the_paper_of_adam(backend: str) -> None:
    adam = adam_of(backend, random_tensors(0))
    expected = [w.double().numpy() for w in random_tensors(0)]
    moments = [[np.zeros_like(w), np.zeros_like(w)] for w in expected]
    for number in range(1, 6):
        gradients = random_tensors(number)
        adam.step(gradients, number)
        for w, g, both, penalty in zip(expected, gradients, moments, PENALTIES, strict=True):
            full = g.double().numpy() + penalty * w
            both[0][...] = 0.9 * both[0] + 0.1 * full
            both[1][...] = 0.999 * both[1] + 0.001 * full**2
            w -= RATE * both[0] / (1 - 0.9**number) / (np.sqrt(both[1] / (1 - 0.999**number)) + 1e-8)
    for mine, theirs in zip(adam.weights, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(adam.penalty(), 0.5 * PENALTIES[0] * (expected[0] ** 2).sum(axis=(1, 2)), rtol=1e-5)


def test_a_weight_without_a_penalty_adds_nothing_even_where_its_square_overflows() -> None:
    weights = random_tensors(0)
    weights[1].fill_(1e30)
    adam = adam_of("reference", weights)
    assert adam.penalty().isfinite().all()


def test_everything_stays_where_it_is_in_memory() -> None:
    """A captured CUDA graph reads and writes these places."""
    adam = adam_of("reference", random_tensors(0))

    def places() -> list[int]:
        return [tensor.data_ptr() for tensor in (*adam.weights, *adam.best, *adam._squares, *sum(adam._moments, ()))]

    before = places()
    adam.step(random_tensors(1), torch.ones(1, dtype=torch.int64))
    adam.remember(torch.tensor([True, False]))
    assert places() == before


def test_runs_that_are_kept_go_on_as_before() -> None:
    both, second = adam_of("reference", random_tensors(0)), adam_of("reference", [w[1:] for w in random_tensors(0)])
    for number in (1, 2, 3):
        gradients = random_tensors(number)
        if number == 3:
            both.keep(torch.tensor([1]))
        both.step([g[-len(both.weights[0]) :] for g in gradients], number)
        second.step([g[1:] for g in gradients], number)
        if number == 1:
            both.remember(torch.tensor([False, True]))
            second.remember(torch.tensor([True]))
    for mine, theirs in zip([*both.weights, *both.best], [*second.weights, *second.best], strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(both.penalty(), second.penalty())


def test_the_best_weights_are_copies_of_the_wanted_runs_of_any_shape_and_type() -> None:
    live = [torch.zeros(3, 2, 2), torch.zeros(3), torch.zeros(3, dtype=torch.int64)]
    best = BestWeights(live)
    for tensor in live:
        tensor.fill_(7)
    best.remember(live, torch.tensor([True, False, True]))
    for tensor in live:
        tensor.fill_(9)
    for kept in best.kept:
        assert kept.reshape(3, -1).double().mean(dim=1).tolist() == [7, 0, 7]
