"""Early stopping by a scoring: the same training, another epoch that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special
from sklearn import metrics
from torch import nn

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.models import Architecture, Model
from pprop.models.propagated_ones import propagated_ones
from pprop.scoring import Scoring
from pprop.training.train import TrainOptions, train_alphas

RULE = Stopping(patience=5, max_epochs=40)
NAMES = np.array(["plain", "other", "rare"])


def average_precision() -> Scoring:
    return Scoring("average_precision", NAMES, "rare")


def module() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 8), nn.ReLU(), nn.Linear(8, 3))


MODELS: dict[str, Callable[[], Model | Architecture]] = {
    "fused": lambda: pprop.APPNP(hidden=8),
    "two hidden layers": lambda: pprop.APPNP(hidden=(8, 4)),
    "rows": lambda: pprop.PPNP(hidden=8),
    "alone": lambda: pprop.MLP(hidden=8),
    "module": lambda: pprop.APPNP(predictor=module, dropout=0.0),
    "architecture": lambda: pprop.GCN(hidden=8),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_kept_epoch_is_the_best_of_the_score_and_the_training_is_the_same(
    community_graph: Graph, community_splits: list[Split], kind: str
):
    truth = community_graph.labels
    assert truth is not None
    how: dict[str, Any] = {"seeds": [1, 2, 3], "stopping": RULE}
    scored = pprop.train(MODELS[kind](), community_graph, community_splits[:3], scoring=average_precision(), **how)
    plain = pprop.train(MODELS[kind](), community_graph, community_splits[:3], **how)
    assert np.isnan(plain.stopping_score).all()
    assert all(np.isnan(curves.stopping_score).all() for curves in plain.history)
    for run, (mine, theirs) in enumerate(zip(scored.history, plain.history, strict=True)):
        both = min(len(mine.train_loss), len(theirs.train_loss))
        for curve in ("train_loss", "stopping_loss", "stopping_accuracy"):
            assert np.array_equal(getattr(mine, curve)[:both], getattr(theirs, curve)[:both])
        best = int(scored.best_epoch[run])
        assert mine.stopping_score.shape == mine.train_loss.shape
        assert scored.stopping_score[run] == mine.stopping_score[best] == mine.stopping_score.max()
        assert scored.stopping_accuracy[run] == mine.stopping_accuracy[best]
        watched = scored.splits[run].stopping
        how_it_spreads = getattr(scored.model, "propagation", None)
        ones = None if how_it_spreads is None else propagated_ones(community_graph, how_it_spreads)
        logits = scored.logits[run, watched] if ones is None else scored.logits[run, watched] / ones[watched, None]
        rare = special.softmax(logits, axis=1)[:, 2]
        value = metrics.average_precision_score(truth[watched] == 2, rare)
        assert scored.stopping_score[run] == pytest.approx(value, abs=1e-6)


def test_each_run_is_the_same_alone_and_with_others_and_for_several_alphas(
    community_graph: Graph, community_splits: list[Split]
):
    how: dict[str, Any] = {"stopping": RULE, "scoring": average_precision()}
    together = pprop.train(pprop.APPNP(alpha=0.2), community_graph, community_splits[:3], seeds=[1, 2, 3], **how)
    alone = pprop.train(pprop.APPNP(alpha=0.2), community_graph, community_splits[1], seeds=2, **how)
    assert np.array_equal(together.logits[1], alone.logits[0])
    assert np.array_equal(together.history[1].stopping_score, alone.history[0].stopping_score)
    options = TrainOptions(RULE, scoring=average_precision())
    few = train_alphas(pprop.APPNP(), community_graph, community_splits[1], options, alphas=[0.1, 0.2], seeds=2)
    assert np.array_equal(few[1].logits[0], alone.logits[0])
    assert few[1].stopping_score[0] == alone.stopping_score[0]


def test_the_patience_is_refilled_by_a_better_score_or_a_lower_loss_alone(
    community_graph: Graph, community_splits: list[Split]
):
    rule = Stopping(patience=3, max_epochs=500)
    run = pprop.train(
        pprop.MLP(hidden=8), community_graph, community_splits[0], stopping=rule, scoring=average_precision()
    )
    (curves,), left, best_score, best_loss = run.history, 3, -np.inf, np.inf
    for score, loss in zip(curves.stopping_score[:-1], curves.stopping_loss[:-1], strict=True):
        lower = loss < 0.999 * best_loss
        left = 3 if lower or score > best_score else left - 1
        best_score, best_loss = max(score, best_score), loss if lower else best_loss
        assert left > 0
    assert run.epochs[0] < 500


def test_weights_of_nodes_change_the_loss_and_not_the_score(community_graph: Graph, community_splits: list[Split]):
    truth, split = community_graph.labels, community_splits[0]
    assert truth is not None
    run = pprop.train(
        pprop.MLP(hidden=8), community_graph, split, weights=1 + truth, stopping=RULE, scoring=average_precision()
    )
    value = metrics.average_precision_score(truth[split.stopping] == 2, run.predict_proba(split.stopping)[0, :, 2])
    assert run.stopping_score[0] == pytest.approx(value, abs=1e-6)


def test_without_early_stopping_nothing_is_scored(community_graph: Graph, community_splits: list[Split]):
    rule = Stopping(patience=None, max_epochs=3)
    run = pprop.train(
        pprop.MLP(hidden=8), community_graph, community_splits[0], stopping=rule, scoring=average_precision()
    )
    assert run.best_epoch[0] == 2
    assert np.isnan(run.stopping_score[0])


def test_labels_of_other_nodes_change_no_bit(community_graph: Graph, community_splits: list[Split]):
    truth, split = community_graph.labels, community_splits[0]
    assert truth is not None
    rotated = truth.copy()
    rotated[split.evaluation] = np.roll(rotated[split.evaluation], 1)
    one, other = (
        pprop.train(pprop.APPNP(), community_graph, split, labels=labels, stopping=RULE, scoring=average_precision())
        for labels in (truth, rotated)
    )
    assert np.array_equal(one.logits, other.logits)
    assert np.array_equal(one.history[0].stopping_score, other.history[0].stopping_score)


@pytest.mark.parametrize("criterion", ["loss", "window"])
def test_a_criterion_of_the_loss_alone_is_refused(
    community_graph: Graph, community_splits: list[Split], criterion: str
):
    with pytest.raises(InputError, match="'criterion' parameter of train must be 'paper' or 'plateau' with a scoring"):
        pprop.train(
            pprop.MLP(),
            community_graph,
            community_splits[0],
            stopping=Stopping(criterion=criterion),
            scoring=average_precision(),
        )


def test_validation_nodes_without_the_positive_class_are_refused(community_graph: Graph, community_splits: list[Split]):
    truth, first = community_graph.labels, community_splits[0]
    assert truth is not None
    split = Split(first.train, first.stopping[truth[first.stopping] < 2], first.evaluation)
    with pytest.raises(
        InputError, match=r"None of .* validation nodes is 'rare': average precision of 'rare' has no value"
    ):
        pprop.train(pprop.MLP(), community_graph, split, stopping=RULE, scoring=average_precision())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("kind", MODELS)
def test_a_gpu_scores_as_the_cpu_does(community_graph: Graph, community_splits: list[Split], kind: str):
    how: dict[str, Any] = {"seeds": [1, 2], "stopping": Stopping(max_epochs=5), "scoring": average_precision()}
    one, other = (
        pprop.train(MODELS[kind](), community_graph, community_splits[:2], device=device, **how)
        for device in ("cpu", "cuda")
    )
    for mine, theirs in zip(one.history, other.history, strict=True):
        np.testing.assert_allclose(mine.stopping_score, theirs.stopping_score, atol=0.05)
