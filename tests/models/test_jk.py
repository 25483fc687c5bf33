"""The jumping knowledge network against a dense twin in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pprop import InputError
from pprop.models import JK


def twin_of(model: JK) -> Any:
    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        def dropped(H: torch.Tensor, layer: int) -> torch.Tensor:
            return dense.hidden(H, seed, layer, epoch, model.dropout)

        H = [torch.relu(dense.A_hat @ dense.features(seed, epoch, model.dropout) @ weights[0])]
        for layer in range(1, model.layers):
            H.append(torch.relu(dense.A_hat @ dropped(H[-1], layer) @ weights[layer]))
        return dropped(torch.cat(H, dim=1), model.layers) @ weights[model.layers]

    return twin


@pytest.mark.parametrize("model", [JK(hidden=8, dropout=0.0), JK(hidden=8), JK(hidden=8, layers=1, dropout=0.25)])
def test_outputs_and_gradients_are_those_of_the_dense_twin(check_outputs: Any, model: JK) -> None:
    check_outputs(model, twin_of(model))


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    model = JK(hidden=8, penalty=0.2)
    check_training(model, twin_of(model), torch.nn.functional.cross_entropy)


def test_all_four_matrices_are_penalised() -> None:
    assert [weight.penalty for weight in JK().weights(9, 3)] == [0.001] * 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "The 'hidden' parameter of JK must be"),
        ({"layers": 0}, "The 'layers' parameter of JK must be"),
        ({"dropout": 1.0}, "The 'dropout' parameter of JK must be"),
        ({"penalty": -1.0}, "The 'penalty' parameter of JK must be"),
    ],
)
def test_impossible_settings_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        JK(**settings)
