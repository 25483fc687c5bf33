"""N-GCN against a dense twin in float64 that takes its towers one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pprop
from pprop import InputError, Split, Stopping
from pprop.kernels import choose_backend
from pprop.kernels.random_bits import derive_seed
from pprop.models import NGCN
from pprop.models.architecture import DropoutMasks
from pprop.models.model import initial_weights

BRANCHES = 7


def twin_of(model: NGCN) -> Any:
    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        f, h = dense.X.shape[1], model.hidden
        attention = torch.softmax(weights[2][0], dim=0)
        mix = torch.zeros(len(dense.X), weights[1].shape[1], dtype=torch.float64)
        for tower in range(model.powers * model.replicas):
            power, replica = divmod(tower, model.replicas)
            own = None if seed is None else derive_seed(seed, BRANCHES, replica, power)
            T = torch.linalg.matrix_power(dense.A_hat, power)
            W_0, W_1 = weights[0][f * tower : f * (tower + 1)], weights[1][h * tower : h * (tower + 1)]
            H = torch.relu(T @ dense.features(own, epoch, model.dropout) @ W_0)
            logits = T @ dense.hidden(H, own, 1, epoch, model.dropout) @ W_1
            mix = mix + attention[tower] * torch.softmax(logits, dim=1)
        return mix

    return twin


def likelihood_loss(shares: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return -torch.log(shares[torch.arange(len(labels)), labels]).mean()


@pytest.mark.parametrize(
    "model", [NGCN(hidden=4, dropout=0.0), NGCN(hidden=4), NGCN(hidden=3, powers=2, replicas=1, dropout=0.25)]
)
def test_outputs_and_gradients_are_those_of_the_dense_twin(check_outputs: Any, model: NGCN) -> None:
    check_outputs(model, twin_of(model))


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    model = NGCN(hidden=8, powers=3, replicas=2, penalty=0.2)
    check_training(model, twin_of(model), likelihood_loss)


def test_the_first_mix_is_the_plain_mean_of_the_towers(dense: Any) -> None:
    model = NGCN(hidden=4)
    kernels = choose_backend("reference", "cpu", "test").kernels
    start = initial_weights(model.weights(dense.X.shape[1], 3), torch.tensor([1]), kernels)
    mix = model.bind(dense.graph, kernels).outputs(start, DropoutMasks(None))
    assert float(start[2].abs().max()) == 0.0
    np.testing.assert_allclose(mix.sum(dim=-1).numpy(), 1.0, rtol=1e-6)
    first = start[0].reshape(20, -1, 4)
    assert len({tuple(tower.flatten().tolist()) for tower in first}) == 20  # no two towers start alike


def test_a_run_has_the_same_bits_alone_and_in_a_batch(dense: Any) -> None:
    graph = dense.graph.replace(labels=dense.labels.numpy())
    split = Split(np.array([0, 3, 4, 6, 9]), np.array([1, 2, 5]), np.arange(10, 14))

    def trained(seeds: list[int]) -> Any:
        model = NGCN(hidden=8, powers=3, replicas=2)
        rule = Stopping(max_epochs=5)
        return pprop.train(model, graph, split, seeds=seeds, stopping=rule, backend="numba", progress=False)

    together, alone = trained([1, 2, 3]), trained([3])
    assert np.array_equal(together.logits[2], alone.logits[0])
    assert all(np.array_equal(a[2], b[0]) for a, b in zip(together.weights, alone.weights, strict=True))


def test_the_scalars_of_the_attention_are_free_of_penalty() -> None:
    assert [weight.penalty for weight in NGCN().weights(9, 3)] == [1e-5, 1e-5, 0.0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "The 'hidden' parameter of NGCN must be"),
        ({"powers": 0}, "The 'powers' parameter of NGCN must be"),
        ({"replicas": 1.5}, "The 'replicas' parameter of NGCN must be"),
        ({"dropout": 1.0}, "The 'dropout' parameter of NGCN must be"),
        ({"penalty": -1.0}, "The 'penalty' parameter of NGCN must be"),
    ],
)
def test_impossible_settings_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        NGCN(**settings)
