"""GPR-GNN against a dense twin in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pprop import InputError, PowerIteration, propagate
from pprop.kernels import BACKENDS
from pprop.models.architecture import DropoutMasks
from pprop.models.gprgnn import GPRGNN


def twin_of(model: GPRGNN) -> Any:
    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        W_0, b_0, W_1, b_1, w = weights
        hidden = torch.relu(dense.features(seed, epoch, model.dropout) @ W_0 + b_0)
        predicted = dense.hidden(hidden, seed, 1, epoch, model.dropout) @ W_1 + b_1
        spread, power = torch.zeros_like(predicted), torch.eye(len(predicted), dtype=torch.float64)
        for k in range(model.steps + 1):
            start = (1 - model.alpha) ** k * (model.alpha if k < model.steps else 1.0)
            spread = spread + (start + w[0, k]) * (power @ predicted)
            power = dense.A_hat @ power
        return spread

    return twin


@pytest.mark.parametrize(
    "model", [GPRGNN(hidden=8, dropout=0.0), GPRGNN(hidden=8), GPRGNN(hidden=8, steps=2, alpha=0.3)]
)
def test_outputs_and_gradients_are_those_of_the_dense_twin(check_outputs: Any, model: GPRGNN) -> None:
    check_outputs(model, twin_of(model))


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    model = GPRGNN(hidden=8, steps=3, penalty=0.3)
    check_training(model, twin_of(model), torch.nn.functional.cross_entropy)


def test_training_begins_at_personalized_pagerank(dense: Any) -> None:
    model = GPRGNN(hidden=4, alpha=0.2, steps=6)
    random = torch.Generator().manual_seed(1)
    weights = [torch.randn(1, *one.shape, generator=random) for one in model.weights(dense.X.shape[1], 3)]
    weights[-1] = torch.zeros_like(weights[-1])
    bound = model.bind(dense.graph, next(one.kernels for one in BACKENDS if one.name == "numba"))
    found = bound.outputs(weights, DropoutMasks(None))[0].numpy()
    W_0, b_0, W_1, b_1, _ = (one[0].double() for one in weights)
    predicted = (torch.relu(dense.X @ W_0 + b_0) @ W_1 + b_1).numpy()
    np.testing.assert_allclose(
        found, propagate(dense.graph, predicted, alpha=0.2, solver=PowerIteration(6)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "The 'hidden' parameter of GPRGNN must be"),
        ({"alpha": 1.5}, "The 'alpha' parameter of GPRGNN must be"),
        ({"steps": -1}, "The 'steps' parameter of GPRGNN must be"),
    ],
)
def test_impossible_settings_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GPRGNN(**settings)
