"""Runs are handed out as they end, whatever trains them, and nothing about them changes afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import pprop
from pprop.models import GCN

RULE = pprop.Stopping(patience=2, max_epochs=300)
MODELS = {
    "fused": (pprop.APPNP(hidden=8), "numba"),
    "two hidden layers": (pprop.APPNP(hidden=(8, 8)), "numba"),
    "exact": (pprop.PPNP(hidden=8), "numba"),
    "batched": (pprop.MLP(hidden=8), "reference"),
    "description": (GCN(hidden=8), "numba"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_told_of_a_run_when_it_ends_is_what_is_returned(kind, community_graph, community_splits):
    model, backend = MODELS[kind]
    splits = [community_splits[run % len(community_splits)] for run in range(6)]
    told: dict[int, pprop.Trained] = {}

    def note(trained: pprop.Trained, runs: np.ndarray) -> None:
        assert len(trained.epochs) == len(runs) == len(trained.splits)
        for place, run in enumerate(runs.tolist()):
            assert run not in told
            assert trained.splits[place] is splits[run]
            assert trained.seeds[place] == run
        told.update(dict.fromkeys(runs.tolist(), trained))
        assert trained.run_epochs_per_second > 0

    whole = pprop.train(
        model,
        community_graph,
        splits,
        seeds=range(6),
        stopping=RULE,
        learning_rate=0.1,
        backend=backend,
        progress=False,
        on_end=note,
    )
    assert sorted(told) == list(range(6))
    assert len(set(whole.epochs)) > 1  # they do not all end together
    for run, part in told.items():
        place = part.seeds.index(run)
        assert part.epochs[place] == whole.epochs[run]
        assert part.best_epoch[place] == whole.best_epoch[run]
        assert np.array_equal(part.logits[place], whole.logits[run])
        assert np.array_equal(part.history[place].stopping_loss, whole.history[run].stopping_loss)
        for mine, theirs in zip(part.weights, whole.weights, strict=True):
            assert np.array_equal(mine[place], theirs[run])


@pytest.mark.parametrize("kind", MODELS)
def test_an_error_of_the_listener_ends_the_training(kind, community_graph, community_splits):
    model, backend = MODELS[kind]
    calls: list[int] = []

    def refuse(trained: pprop.Trained, runs: np.ndarray) -> None:
        calls.append(len(runs))
        raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match="enough"):
        pprop.train(
            model,
            community_graph,
            community_splits[0],
            seeds=range(9),
            stopping=RULE,
            learning_rate=0.1,
            backend=backend,
            progress=False,
            on_end=refuse,
        )
    assert len(calls) == 1


def test_a_description_has_the_same_bits_alone_and_in_a_batch(community_graph, community_splits):
    def train(splits: list[pprop.Split], seeds: list[int]) -> pprop.Trained:
        return pprop.train(
            GCN(hidden=8),
            community_graph,
            splits,
            seeds=seeds,
            stopping=RULE,
            learning_rate=0.1,
            backend="numba",
            progress=False,
        )

    splits = [community_splits[run % len(community_splits)] for run in range(5)]
    whole = train(splits, list(range(5)))
    for run in (0, 3):
        alone = train([splits[run]], [run])
        assert np.array_equal(alone.logits[0], whole.logits[run])
        assert alone.epochs[0] == whole.epochs[run]
