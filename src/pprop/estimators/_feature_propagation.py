"""Bootstrapped feature propagation (Buchnik and Cohen, SIGMETRICS 2018): diffuse the features, learn, label, learn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from pprop._validate import check_bool, check_float, check_int
from pprop.graph import Graph, transition_matrix
from pprop.models.network import normalized_features

__all__ = ["BootstrappedFP", "Round", "bootstrap_rounds", "diffused_features", "feature_logits"]

CERTAIN = 50.0
"""Log odds of a class that all training nodes have, and less of one that none has: no regression can be fitted then."""

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class BootstrappedFP:
    """The settings, checked; see `BootstrappedFPClassifier`."""

    alpha: float
    steps: int
    rounds: int
    share: float
    C: float
    self_loops: bool

    def __post_init__(self) -> None:
        name = "BootstrappedFPClassifier"
        check_float(self.alpha, "alpha", name, "[0, 1]")
        check_int(self.steps, "steps", name, low=0)
        check_int(self.rounds, "rounds", name, low=0)
        check_float(self.share, "share", name, "(0, 1]")
        check_float(self.C, "C", name, "(0, inf)")
        check_bool(self.self_loops, "self_loops", name)


@final
@dataclass(frozen=True)
class Round:
    """One regression: coefficients (c, f), intercepts (c,), and the log probabilities of all nodes, (n, c)."""

    coefficients: Floats
    intercepts: Floats
    log_shares: Floats


def diffused_features(model: BootstrappedFP, graph: Graph) -> Floats:
    """Return F after the steps F <- (1 - alpha) M F + alpha X from F = X, dense, shape (n, f).

    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=np.eye(2))
    >>> diffused_features(BootstrappedFP(0.5, 1, 0, 0.1, 1.0, True), pair)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    M = transition_matrix(graph, self_loops=model.self_loops).to_scipy()
    X = normalized_features(graph).astype(np.float64).toarray()
    features = X
    for _ in range(model.steps):
        features = (1 - model.alpha) * (M @ features) + model.alpha * X
    return features


def bootstrap_rounds(
    model: BootstrappedFP,
    features: Floats,
    nodes: NDArray[np.int64],
    classes: NDArray[np.int64],
    excluded: NDArray[np.int64],
    n_classes: int,
) -> Iterator[Round]:
    """Learn from labelled nodes, label the most certain others, and so on, until the rounds or the nodes are used up.

    A round adds ``share * n`` nodes with the class that is predicted for them: of each class as many as its share of all
    predictions, those with the lowest entropy first. `excluded` nodes, those of early stopping, are never added.
    """
    free = np.ones(len(features), dtype=np.bool_)
    free[nodes], free[excluded] = False, False
    for number in range(model.rounds + 1):
        found = _learn(model.C, features, nodes, classes, n_classes)
        yield found
        if number == model.rounds:
            return
        added = _most_certain(found.log_shares, free, model.share)
        if not len(added):
            return  # all further rounds would be this one
        free[added] = False
        nodes = np.concatenate([nodes, added])
        classes = np.concatenate([classes, found.log_shares[added].argmax(axis=1)])


def feature_logits(
    model: BootstrappedFP, graph: Graph, coefficients: Floats, intercepts: Floats
) -> NDArray[np.float32]:
    """Return the log probabilities of all nodes, (n, c), from the regression of the round that was kept."""
    with threadpool_limits(limits=1, user_api="blas"):  # as in the fit, for the same bits
        return _log_shares(diffused_features(model, graph), coefficients, intercepts).astype(np.float32)


def _learn(
    inverse_penalty: float, features: Floats, nodes: NDArray[np.int64], classes: NDArray[np.int64], n_classes: int
) -> Round:
    """Fit one regression per class against the rest."""
    coefficients, intercepts = np.zeros((n_classes, features.shape[1])), np.zeros(n_classes)
    rows = features[nodes]
    for code in range(n_classes):
        inside = classes == code
        if inside.all() or not inside.any():
            intercepts[code] = CERTAIN if inside.all() else -CERTAIN
            continue
        regression = cast("Any", LogisticRegression(C=inverse_penalty, solver="lbfgs", max_iter=1000).fit(rows, inside))
        coefficients[code], intercepts[code] = regression.coef_[0], regression.intercept_[0]
    return Round(coefficients, intercepts, _log_shares(features, coefficients, intercepts))


def _log_shares(features: Floats, coefficients: Floats, intercepts: Floats) -> Floats:
    """Return the logarithm of sigmoid(F w_k + b_k), scaled to sum to one over the classes k."""
    odds: Floats = features @ coefficients.T + intercepts
    return special.log_softmax(special.log_expit(odds), axis=1)


def _most_certain(log_shares: Floats, free: NDArray[np.bool_], share: float) -> NDArray[np.int64]:
    """Return the nodes to add: per class those of lowest entropy, the first where they tie."""
    predicted = log_shares.argmax(axis=1)
    entropy = -(np.exp(log_shares) * log_shares).sum(axis=1)
    added: list[NDArray[np.int64]] = []
    for code in range(log_shares.shape[1]):
        quota = round(share * np.count_nonzero(predicted == code))
        candidates = np.flatnonzero((predicted == code) & free)
        added.append(candidates[np.argsort(entropy[candidates], kind="stable")][:quota])
    return np.concatenate(added)
