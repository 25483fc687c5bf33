"""The teleport probability of an ensemble: trained with each, chosen by nodes that did not train."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from pprop import APPNP, Graph, Split, Stopping, run_seed, train
from pprop.models.ensemble import Ensemble
from pprop.training.self_training import best_of, choose_alpha
from pprop.training.train import TrainOptions

TRAIN, WATCHED = np.array([0, 1, 20, 21]), np.array([2, 3, 4, 22, 23, 24])
SPLIT = Split(TRAIN, WATCHED, np.empty(0, dtype=np.int64))
ALPHAS = (1.0, 0.3, 0.05)


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(4)
    side = np.repeat([0, 1], 20)
    upper = np.triu(rng.random((40, 40)) < np.where(side[:, None] == side, 0.2, 0.05), 1)
    words = rng.random((40, 12)) < np.where(side[:, None] == np.arange(12) % 2, 0.4, 0.3)
    return Graph.from_scipy(sparse.csr_array((upper | upper.T).astype(float)), features=words.astype(np.float32))


@pytest.fixture(scope="module")
def labels() -> NDArray[np.int64]:
    labels = np.full(40, -1)
    labels[[0, 1, 2, 3, 4]], labels[[20, 21, 22, 23, 24]] = 0, 1
    return labels


@pytest.mark.parametrize("folds", [0, 3])
def test_the_vote_with_the_best_accuracy_where_nobody_trained_is_chosen(graph: Graph, labels, folds: int):
    few = Stopping(max_epochs=12)
    found = choose_alpha(
        Ensemble(APPNP(hidden=6), 3),
        graph,
        SPLIT,
        alphas=ALPHAS,
        folds=folds,
        labels=labels,
        seed=9,
        options=TrainOptions(few),
    )
    held = [WATCHED] * 3 if folds == 0 else [WATCHED[k::3] for k in range(3)]  # sorted by class already
    seeds = [9, run_seed(9, 1), run_seed(9, 2)]
    accuracies, losses, logits = [], [], []
    for alpha in ALPHAS:
        runs = [
            train(
                APPNP(alpha, hidden=6),
                graph,
                seeds=seed,
                labels=labels,
                stopping=few,
                splits=Split(TRAIN if folds == 0 else np.union1d(TRAIN, np.setdiff1d(WATCHED, own)), own, own[:0]),
            ).logits[0]
            for seed, own in zip(seeds, held, strict=True)
        ]
        shares = softmax(np.array(runs, dtype=float), axis=2)
        asked = {node: [k for k in range(3) if node in held[k]] for node in WATCHED.tolist()}
        vote = np.array([shares[asked[node], node].mean(axis=0) for node in WATCHED.tolist()])
        accuracies.append((vote.argmax(axis=1) == labels[WATCHED]).mean())
        losses.append(-np.log(vote[np.arange(6), labels[WATCHED]]).mean())
        logits.append(runs)
    np.testing.assert_allclose(found.accuracies, accuracies)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-3)
    assert found.index == max(range(3), key=lambda k: (accuracies[k], -losses[k]))
    np.testing.assert_allclose(found.trained.logits, logits[found.index], rtol=1e-3, atol=1e-4)
    settings = found.member.propagation
    assert settings is not None
    assert settings.alpha == ALPHAS[found.index]


def test_among_equals_the_loss_decides_then_the_order():
    assert best_of([0.5, 0.9, 0.9], [0.1, 0.4, 0.3]) == 2
    assert best_of([0.9, 0.9], [0.4, 0.4]) == 0
