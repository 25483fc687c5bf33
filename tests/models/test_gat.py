"""GAT against a dense twin in float64 that takes its heads one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pprop import InputError
from pprop.kernels import BACKENDS
from pprop.kernels.random_bits import derive_seed
from pprop.models import GAT
from pprop.models.architecture import DropoutMasks
from pprop.models.model import initial_weights

pytestmark = pytest.mark.slow

BRANCHES = 7
SEEDS, EPOCH = [11, -4], 37
MODEL = GAT(heads=2, units=4, dropout=0.25, penalty=0.2)


def twin_of(model: GAT) -> Any:
    """Layers and masks are numbered as in the code: 1 the input of the second layer, 2 and 3 what the layers sum up."""

    def head(dense: Any, inputs: Any, weights: Any, seed: int | None, epoch: int, layer: int) -> torch.Tensor:
        W, vectors, (b_left, b_right), bias = weights
        values = inputs @ W
        score = (values @ vectors[:, 0] + b_left)[:, None] + (values @ vectors[:, 1] + b_right)
        score = torch.nn.functional.leaky_relu(score, 0.2).masked_fill(dense.A_hat == 0, -torch.inf)
        kept = (dense.matrix(seed, epoch, model.dropout) / dense.A_hat).nan_to_num()
        return (torch.softmax(score, 1) * kept) @ dense.hidden(values, seed, layer, epoch, model.dropout) + bias

    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        f, d = dense.X.shape[1], model.units
        found = []
        for k in range(model.heads):
            own = None if seed is None else derive_seed(seed, BRANCHES, k)
            mine = weights[0][f * k : f * (k + 1)], weights[1][d * k : d * (k + 1)], weights[2][k], weights[3][k]
            X = dense.features(own, epoch, model.dropout)
            found.append(torch.nn.functional.elu(head(dense, X, mine, own, epoch, 2)))
        H = dense.hidden(torch.cat(found, dim=1), seed, 1, epoch, model.dropout)
        return head(dense, H, (weights[4], weights[5], weights[6][0], weights[7][0]), seed, epoch, 3)

    return twin


def some_weights(model: GAT, dense: Any, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Of two runs; nothing is zero, so that every bias shows."""
    generator = torch.Generator().manual_seed(5)
    shapes = [weight.shape for weight in model.weights(dense.X.shape[1], 3)]
    return [torch.randn(2, *shape, generator=generator, dtype=dtype) for shape in shapes]


def outputs_and_gradients(model: GAT, backend: str, dense: Any, given: list[torch.Tensor], seeds: list[int]) -> Any:
    kernels = next(one for one in BACKENDS if one.name == backend).kernels
    weights = [weight.clone().requires_grad_() for weight in given]
    outputs = model.bind(dense.graph, kernels).outputs(weights, DropoutMasks(torch.tensor(seeds), EPOCH))
    return [outputs.detach(), *torch.autograd.grad(outputs, weights, torch.sin(outputs.detach()))]


def assert_near(actual: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> None:
    # next to the largest number: scores that are all of one sign have no gradient but what is left of rounding
    torch.testing.assert_close(actual, wanted, rtol=0, atol=tolerance * float(wanted.abs().max()))


@pytest.mark.parametrize("model", [GAT(heads=3, units=4, dropout=0.0), MODEL, GAT(heads=2, units=3, dropout=0.625)])
def test_outputs_and_gradients_are_those_of_the_dense_twin(dense: Any, model: GAT) -> None:
    given = some_weights(model, dense, torch.float64)
    weights = [weight.clone().requires_grad_() for weight in given]
    twin = twin_of(model)
    outputs = torch.stack([twin(dense, [w[run] for w in weights], seed, EPOCH) for run, seed in enumerate(SEEDS)])
    wanted = [outputs.detach(), *torch.autograd.grad(outputs, weights, torch.sin(outputs.detach()))]
    for actual, expected in zip(outputs_and_gradients(model, "reference", dense, given, SEEDS), wanted, strict=True):
        assert float(expected.abs().max()) > 1e-6  # all of the weights matter
        assert_near(actual, expected, 1e-9)


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    check_training(MODEL, twin_of(MODEL), torch.nn.functional.cross_entropy)


@pytest.mark.parametrize("backend", ["numba", "triton"])
def test_every_backend_drops_the_same_and_gets_the_same(dense: Any, backend: str) -> None:
    described = next(one for one in BACKENDS if one.name == backend)
    if not described.available or not described.computes_on("cpu"):
        pytest.skip(f"the {backend} backend does not compute on the CPU here")
    weights = some_weights(MODEL, dense)
    wanted = outputs_and_gradients(MODEL, "reference", dense, weights, SEEDS)
    for actual, expected in zip(outputs_and_gradients(MODEL, backend, dense, weights, SEEDS), wanted, strict=True):
        assert_near(actual, expected, 1e-4)


def test_a_run_has_the_same_bits_alone_and_in_a_batch(dense: Any) -> None:
    weights = some_weights(MODEL, dense)
    together = outputs_and_gradients(MODEL, "numba", dense, weights, SEEDS)
    for run, seed in enumerate(SEEDS):
        alone = outputs_and_gradients(MODEL, "numba", dense, [weight[run : run + 1] for weight in weights], [seed])
        assert all(torch.equal(one[0], all_[run]) for one, all_ in zip(alone, together, strict=True))


def test_biases_start_at_zero_all_else_after_glorot_and_everything_is_penalised() -> None:
    described = GAT().weights(n_features=100, n_classes=7)
    start = initial_weights(described, torch.tensor([3]), BACKENDS[-1].kernels)
    fans = {"layer0": 108, "scores0": 9, "layer1": 71, "scores1": 8}
    for weight, tensor in zip(described, start, strict=True):
        assert weight.penalty == 0.001
        assert tuple(tensor.shape[1:]) == weight.shape
        limit = (6 / fans[weight.name]) ** 0.5 if weight.name in fans else 0.0
        assert 0.8 * limit <= float(tensor.abs().max()) <= limit


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"heads": 0}, "The 'heads' parameter of GAT must be"),
        ({"units": 1.5}, "The 'units' parameter of GAT must be"),
        ({"dropout": 1.0}, "The 'dropout' parameter of GAT must be"),
        ({"penalty": -1.0}, "The 'penalty' parameter of GAT must be"),
    ],
)
def test_impossible_settings_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GAT(**settings)
