"""Many alphas trained together are what `train` gives one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.training.train import TrainOptions
from pprop.training.train import train_alphas as train_alphas_with

ALPHAS = (0.05, 0.3, 0.9, 0.0)
SHORT = Stopping(patience=4, max_epochs=25)


def train_alphas(model: Any, graph: Graph, splits: Any, *, alphas: Any, seeds: Any = 0, **options: Any) -> Any:
    return train_alphas_with(model, graph, splits, TrainOptions(**options), alphas=alphas, seeds=seeds)


def one_by_one(model: Any, graph: Graph, splits: Any, **options: Any) -> list[pprop.Trained]:
    return [pprop.train(model(alpha), graph, splits, progress=False, **options) for alpha in ALPHAS]


def test_on_the_cpu_every_run_has_the_bits_that_it_has_alone(community_graph: Graph, community_splits: list[Split]):
    splits, seeds = community_splits[:2], [5, 2**63 + 1]
    options: dict[str, Any] = {"seeds": seeds, "stopping": SHORT, "learning_rate": 0.03}
    alone = one_by_one(lambda alpha: pprop.APPNP(alpha, steps=4, hidden=8), community_graph, splits, **options)
    together = train_alphas(pprop.APPNP(steps=4, hidden=8), community_graph, splits, alphas=ALPHAS, **options)
    for mine, theirs in zip(together, alone, strict=True):
        assert mine.model == theirs.model
        assert mine.seeds == theirs.seeds
        assert (mine.epochs == theirs.epochs).all()
        assert (mine.logits == theirs.logits).all()
        assert (mine.stopping_loss == theirs.stopping_loss).all()
        assert (mine.history[1].train_loss == theirs.history[1].train_loss).all()
        assert all((a == b).all() for a, b in zip(mine.weights, theirs.weights, strict=True))


@pytest.mark.parametrize(("backend", "hidden"), [("reference", 8), ("numba", (8, 6)), ("reference", (8, 6))])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_elsewhere_a_run_agrees_within_rounding(
    community_graph: Graph, community_splits: list[Split], backend: str, hidden: Any, dropout: float
):
    def model(alpha: float = 0.5) -> pprop.Model:
        return pprop.APPNP(alpha, steps=3, hidden=hidden, dropout=dropout)

    rule = Stopping(patience=3, max_epochs=8)
    options: dict[str, Any] = {"seeds": 7, "stopping": rule, "backend": backend}
    alone = one_by_one(model, community_graph, community_splits[0], **options)
    together = train_alphas(model(), community_graph, community_splits[0], alphas=ALPHAS, **options)
    for mine, theirs in zip(together, alone, strict=True):
        assert mine.epochs == theirs.epochs
        np.testing.assert_allclose(mine.history[0].train_loss, theirs.history[0].train_loss, rtol=1e-5)
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("backend", ["reference", "numba"])
def test_runs_that_end_early_leave_the_others_alone(
    community_graph: Graph, community_splits: list[Split], backend: str
):
    def model(alpha: float = 0.5) -> pprop.Model:
        return pprop.APPNP(alpha, steps=3, hidden=8, dropout=0.0)

    rule = Stopping(patience=1, max_epochs=60)
    options: dict[str, Any] = {"seeds": [7, 8], "stopping": rule, "backend": backend, "learning_rate": 0.3}
    alone = one_by_one(model, community_graph, community_splits[0], **options)
    together = train_alphas(model(), community_graph, community_splits[0], alphas=ALPHAS, **options)
    ends = np.concatenate([one.epochs for one in together])
    assert len(set(ends.tolist())) > 2
    assert (ends == np.concatenate([one.epochs for one in alone])).all()
    for mine, theirs in zip(together, alone, strict=True):
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-3, atol=1e-3)


def test_without_steps_alpha_has_no_effect(community_graph: Graph, community_splits: list[Split]):
    few = train_alphas(
        pprop.APPNP(steps=0, hidden=4), community_graph, community_splits[0], alphas=[0.1, 0.9], stopping=SHORT
    )
    assert (few[0].logits == few[1].logits).all()


def test_a_module_of_the_user_is_trained_for_every_alpha(community_graph: Graph, community_splits: list[Split]):
    def make() -> torch.nn.Module:
        return torch.nn.Linear(40, 3)

    model = pprop.APPNP(predictor=make, dropout=0.0, steps=2)
    rule = Stopping(max_epochs=3)
    few = train_alphas(model, community_graph, community_splits[0], alphas=[0.1, 0.9], stopping=rule)
    alone = pprop.train(
        pprop.APPNP(0.9, predictor=make, dropout=0.0, steps=2), community_graph, community_splits[0], stopping=rule
    )
    assert (few[1].logits == alone.logits).all()
    assert (few[0].logits != alone.logits).any()


@pytest.mark.parametrize("alphas", [[], [0.1, 0.1], [1.5], [float("nan")], "0.1", 0.1, None, ["a"], {0.1}])
def test_impossible_alphas_are_refused(community_graph: Graph, community_splits: list[Split], alphas: Any):
    with pytest.raises(InputError, match="'alphas' parameter of train_alphas"):
        train_alphas(pprop.APPNP(), community_graph, community_splits[0], alphas=alphas)


@pytest.mark.parametrize("model", [pprop.PPNP(), pprop.MLP(), pprop.GCN(), "appnp"])
def test_a_model_without_power_steps_is_refused(community_graph: Graph, community_splits: list[Split], model: Any):
    with pytest.raises(InputError, match="with power steps"):
        train_alphas(model, community_graph, community_splits[0], alphas=[0.1])


def test_the_plan_is_told(community_graph: Graph, community_splits: list[Split], capsys: pytest.CaptureFixture[str]):
    rule = Stopping(max_epochs=1)
    train_alphas(
        pprop.APPNP(hidden=4), community_graph, community_splits[:3], alphas=ALPHAS, stopping=rule, verbose=True
    )
    assert capsys.readouterr().err.startswith("plan: 12 runs on cpu")
