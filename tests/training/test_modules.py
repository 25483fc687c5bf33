"""Any torch module in the place of the paper's network."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.models.model import FeatureNetwork, initial_weights, network_inputs

pytestmark = pytest.mark.slow

RULE = Stopping(max_epochs=20)


def two_layers(width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(40, width, bias=False), nn.ReLU(), nn.Linear(width, 3, bias=False))


@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
def test_a_module_with_the_papers_layers_trains_like_the_built_in_network(
    community_graph: Graph, community_splits: list[Split], kind: str
) -> None:
    graph = community_graph.replace(features=sparse.csr_array(network_inputs(community_graph).toarray()))
    module = two_layers()
    start = initial_weights(FeatureNetwork((8,)).weights(40, 3), torch.tensor([5]))
    module.load_state_dict({"0.weight": start[0][0].T, "2.weight": start[1][0].T})
    # dropout on the propagation matrix stays on: both ways draw the same masks
    options = {} if kind == "MLP" else {"propagation_dropout": 0.5}
    make = getattr(pprop, kind)
    built_in = pprop.train(make(hidden=8, dropout=0.0, **options), graph, community_splits[0], seeds=5, stopping=RULE)
    own = pprop.train(
        make(predictor=module, dropout=0.0, **options), graph, community_splits[0], seeds=5, stopping=RULE
    )
    np.testing.assert_allclose(own.history[0].train_loss, built_in.history[0].train_loss, rtol=1e-4)
    np.testing.assert_allclose(own.logits, built_in.logits, atol=1e-3)


def test_a_module_given_as_it_is_stays_untouched(community_graph: Graph, community_splits: list[Split]) -> None:
    module = two_layers()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    pprop.train(pprop.APPNP(predictor=module), community_graph, community_splits[0], stopping=RULE)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_a_function_makes_a_new_module_for_every_run_from_the_runs_seed(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))

    model = pprop.APPNP(predictor=build)
    runs = pprop.train(model, community_graph, community_splits[0], seeds=[1, 2], stopping=RULE)
    alone = pprop.train(model, community_graph, community_splits[0], seeds=2, stopping=RULE)
    assert runs.history[0].train_loss[0] != runs.history[1].train_loss[0]
    assert np.array_equal(runs.history[1].train_loss, alone.history[0].train_loss)
    assert [w.shape for w in runs.weights] == [(2, 8, 40), (2, 8), (2, 3, 8), (2, 3)]


def test_the_generator_of_the_caller_is_left_alone(community_graph: Graph, community_splits: list[Split]) -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    pprop.train(
        pprop.APPNP(predictor=lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 3))),
        community_graph,
        community_splits[0],
        stopping=RULE,
    )
    assert torch.equal(torch.rand(3), expected)


def test_features_of_any_shape_reach_the_module_with_the_node_first(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    images = np.random.default_rng(0).normal(size=(90, 1, 6, 6)).astype(np.float32)
    build = lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))  # noqa: E731
    trained = pprop.train(
        pprop.APPNP(predictor=build), community_graph.replace(features=images), community_splits[0], stopping=RULE
    )
    assert trained.logits.shape == (1, 90, 3)


def test_normalisation_layers_are_kept_with_their_running_statistics(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    build = lambda: nn.Sequential(nn.Linear(40, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))  # noqa: E731
    trained = pprop.train(
        pprop.APPNP(predictor=build, penalty=0.0), community_graph, community_splits[0], stopping=RULE
    )
    labels, split = community_graph.labels, community_splits[0]
    assert labels is not None
    accuracy = np.mean(trained.predict(split.stopping)[0] == labels[split.stopping])
    assert accuracy == pytest.approx(trained.stopping_accuracy[0])


def test_a_module_with_the_wrong_output_is_told_what_was_expected(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    with pytest.raises(InputError, match=r"must return a tensor of shape \(90, 3\), \(n, classes\). Got \(90, 5\)"):
        pprop.train(pprop.APPNP(predictor=nn.Linear(40, 5)), community_graph, community_splits[0])


def test_a_module_without_parameters_is_refused(community_graph: Graph, community_splits: list[Split]) -> None:
    with pytest.raises(InputError, match="has no trainable parameter"):
        pprop.train(pprop.APPNP(predictor=nn.Identity()), community_graph, community_splits[0])


def test_a_module_may_hold_a_propagation_of_its_own(community_graph: Graph, community_splits: list[Split]) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 3), pprop.Propagation(community_graph, alpha=0.2, dropout=0.5))

    trained = pprop.train(pprop.MLP(predictor=build), community_graph, community_splits[0], stopping=RULE)
    assert [w.shape for w in trained.weights] == [(1, 3, 40), (1, 3)]


def test_half_precision_predictions_are_propagated_in_float32(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(40, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).bfloat16()

    trained = pprop.train(pprop.APPNP(predictor=Half), community_graph, community_splits[0], stopping=RULE)
    assert trained.logits.dtype == np.float32


def test_an_empty_module_is_not_taken_for_no_module(community_graph: Graph, community_splits: list[Split]) -> None:
    with pytest.raises(InputError, match="has no trainable parameter"):
        pprop.train(pprop.APPNP(predictor=nn.Sequential()), community_graph, community_splits[0])


def test_a_function_that_makes_no_module_is_refused(community_graph: Graph, community_splits: list[Split]) -> None:
    with pytest.raises(InputError, match="or a function that returns one"):
        pprop.train(pprop.APPNP(predictor=cast("Any", lambda: 3)), community_graph, community_splits[0])
