"""GCN against a dense twin in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pprop import InputError
from pprop.models import GCN

PLAIN = GCN(hidden=8, dropout=0.0, matrix_dropout=0.0)


def twin_of(model: GCN) -> Any:
    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        first, second = (dense.matrix(seed, 2 * epoch + layer, model.matrix_dropout) for layer in (0, 1))
        H = torch.relu(first @ dense.features(seed, epoch, model.dropout) @ weights[0])
        return second @ dense.hidden(H, seed, 1, epoch, model.dropout) @ weights[1]

    return twin


@pytest.mark.parametrize(
    "model", [PLAIN, GCN(hidden=8), GCN(hidden=8, matrix_dropout=0.0), GCN(hidden=8, dropout=0.0, matrix_dropout=0.25)]
)
def test_outputs_and_gradients_are_those_of_the_dense_twin(check_outputs: Any, model: GCN) -> None:
    check_outputs(model, twin_of(model))


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    model = GCN(hidden=8, penalty=0.3)
    check_training(model, twin_of(model), torch.nn.functional.cross_entropy)


def test_the_two_layers_drop_different_entries_of_the_matrix(dense: Any) -> None:
    first, second = (dense.matrix(11, 2 * 5 + layer, 0.5) for layer in (0, 1))
    assert (first != second).any()


def test_only_the_first_matrix_is_penalised() -> None:
    assert [weight.penalty for weight in GCN(penalty=0.02).weights(9, 3)] == [0.02, 0.0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "The 'hidden' parameter of GCN must be"),
        ({"dropout": 1.0}, "The 'dropout' parameter of GCN must be"),
        ({"matrix_dropout": -0.1}, "The 'matrix_dropout' parameter of GCN must be"),
        ({"penalty": -1.0}, "The 'penalty' parameter of GCN must be"),
    ],
)
def test_impossible_settings_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GCN(**settings)
