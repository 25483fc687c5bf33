"""Training without early stopping: all epochs, the last weights, and no need of stopping nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch import nn

import pprop
from pprop import DivergenceError, Graph, InputError, Split, Stopping

NONE = np.empty(0, dtype=np.int64)
MODELS = {
    "fused": pprop.APPNP(hidden=8, steps=2),
    "operations": pprop.APPNP(hidden=8, steps=2, bias=True),
    "rows": pprop.PPNP(hidden=8),
    "gcn": pprop.GCN(hidden=8),
    "module": pprop.MLP(predictor=lambda: nn.Linear(40, 3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_stopping_nodes_change_nothing_but_their_curves(
    community_graph: Graph, community_splits: list[Split], name: str
) -> None:
    split, rule = community_splits[0], Stopping(patience=None, max_epochs=12)
    bare = Split(split.train, NONE, split.evaluation)
    how: dict[str, Any] = {"seeds": [1, 2], "stopping": rule, "backend": "numba"}
    watched = pprop.train(MODELS[name], community_graph, split, **how)
    alone = pprop.train(MODELS[name], community_graph, bare, **how)
    for one in (watched, alone):
        assert one.epochs.tolist() == [12, 12]
        assert one.best_epoch.tolist() == [11, 11]
    assert np.isfinite(watched.stopping_loss).all()
    assert np.isnan(alone.stopping_loss).all()
    assert np.isnan(alone.stopping_accuracy).all()
    for one, other in zip(watched.history, alone.history, strict=True):
        assert np.array_equal(one.train_loss, other.train_loss)
        assert np.isfinite(one.stopping_loss).all()
        assert np.isnan(other.stopping_loss).all()
        assert np.isnan(other.stopping_accuracy).all()
    assert np.array_equal(watched.logits, alone.logits)


def test_runs_with_and_without_stopping_nodes_train_together(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    one, other = community_splits[:2]
    rule = Stopping(patience=None, max_epochs=4)
    found = pprop.train(
        pprop.MLP(hidden=8), community_graph, [one, Split(other.train, NONE, other.evaluation)], stopping=rule
    )
    assert np.isnan(found.stopping_loss).tolist() == [False, True]
    ended: list[Any] = []
    pprop.train(
        pprop.MLP(hidden=8),
        community_graph,
        Split(one.train, NONE, one.evaluation),
        stopping=rule,
        on_end=lambda trained, _: ended.append(trained.stopping_accuracy),
    )
    assert np.isnan(ended).all()


def test_a_run_without_stopping_nodes_that_diverges_is_named(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    split = Split(community_splits[0].train, NONE, NONE)
    with pytest.raises(DivergenceError, match="Training diverged in epoch"):
        pprop.train(
            pprop.MLP(hidden=8),
            community_graph,
            split,
            learning_rate=1e20,
            stopping=Stopping(patience=None, max_epochs=50),
        )


def test_early_stopping_needs_stopping_nodes(community_graph: Graph, community_splits: list[Split]) -> None:
    split = Split(community_splits[0].train, NONE, NONE)
    with pytest.raises(InputError, match=r"at least one node. Got none instead. Stopping\(patience=None\) needs"):
        pprop.train(pprop.MLP(hidden=8), community_graph, split)
