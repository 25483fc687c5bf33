"""Bootstrapped feature propagation (Buchnik and Cohen, SIGMETRICS 2018): diffuse the features, learn, label, learn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special

from pprop.graph import Graph, transition_matrix
from pprop.graph.features.scaling import DenseRows
from pprop.models.feature_rows import CPU, Device, Floats, device_named, leading_directions
from pprop.models.model import network_inputs
from pprop.models.one_vs_rest import TOLERANCE, LearningRows, Regression, fit_one_vs_rest
from pprop.settings import (
    DEVICE,
    FP_ALPHA,
    FP_READING,
    FP_ROUNDS,
    FP_SHARE,
    FP_STEPS,
    INVERSE_PENALTY,
    SELF_LOOPS,
    check_fields,
)

Nodes = NDArray[np.int64]

AT_ONCE = 128  # columns diffused at a time: they stay in the cache, and no second matrix of all features is needed


@final
@dataclass(frozen=True)
class BootstrappedFP:
    """The settings, checked; see `BootstrappedFPClassifier`.

    >>> BootstrappedFP(alpha=1.5)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'alpha' parameter of BootstrappedFPClassifier must be a float in [0, 1]. Got 1.5 instead.
    """

    alpha: float = FP_ALPHA.field()
    steps: int = FP_STEPS.field()
    rounds: int = FP_ROUNDS.field()
    share: float = FP_SHARE.field()
    C: float = INVERSE_PENALTY.field()
    self_loops: bool = SELF_LOOPS.field()
    reading: str = FP_READING.field()

    def __post_init__(self) -> None:
        check_fields(self, "BootstrappedFPClassifier")

    @property
    def original(self) -> bool:
        """Whether features are as they are stored, and intercepts have the penalty of a coefficient."""
        return self.reading == "original"


def diffused_features(model: BootstrappedFP, graph: Graph, device: Device | None = None) -> Any:
    """Return F after the steps F <- (1 - alpha) M F + alpha X from F = X, dense, shape (n, f), an array of the device.

    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(2))
    >>> diffused_features(BootstrappedFP(0.5, steps=1), pair)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    device = CPU() if device is None else device
    M = device.sparse(transition_matrix(graph, self_loops=model.self_loops).to_scipy())
    inputs: Any = network_inputs(graph)  # also where they are not used, to say what is wrong with a graph's features
    inputs = graph.features if model.original else inputs.toarray() if isinstance(inputs, DenseRows) else inputs
    X = sparse.csr_array(inputs).astype(np.float64).tocsc()
    features = device.empty(int(X.shape[0]), int(X.shape[1]))
    for begin in range(0, X.shape[1], AT_ONCE):
        start = device.put(X[:, begin : begin + AT_ONCE].toarray(order="C"))
        part = start
        for _ in range(model.steps):
            part = (1 - model.alpha) * (M @ part) + model.alpha * start
        features[:, begin : begin + AT_ONCE] = part
    return features


@final
@dataclass(frozen=True)
class Bootstrapped:
    """What was learnt: the round that was kept, and how all of them did.

    Attributes
    ----------
    regression
        Of the round with the best stopping accuracy, among equals the earliest.
    log_shares
        Its log probabilities of all nodes, shape (n, c).
    curves
        Shape (rounds, 3): mean negative log likelihood of the training nodes, that of the stopping nodes, and the
        stopping accuracy, after each round.
    best
        Which round it is.
    """

    regression: Regression
    log_shares: Floats
    curves: Floats
    best: int

    @property
    def stopping_loss(self) -> float:
        """Of the round that was kept."""
        return float(self.curves[self.best, 1])

    @property
    def stopping_accuracy(self) -> float:
        """Of the round that was kept."""
        return float(self.curves[self.best, 2])


@final
class Diffused:
    """Diffused features on a device, ready for any number of bootstraps from different nodes.

    Parameters
    ----------
    features
        Shape (n, f), an array of the device; see `diffused_features`.
    device
        Where regressions are computed. On the CPU results have the same bits for any number of threads.
    penalised
        Whether intercepts have the penalty of a coefficient: that of a column of ones.

    Examples
    --------
    >>> diffused = Diffused(np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]]))
    >>> known, watched = (np.array([0, 3]), np.array([0, 1])), (np.array([1]), np.array([0]))
    >>> found = diffused.bootstrap(BootstrappedFP(rounds=1, share=0.5), *known, *watched, n_classes=2)
    >>> found.log_shares.argmax(axis=1), found.curves.shape, found.stopping_accuracy
    (array([0, 0, 1, 1]), (2, 3), 1.0)
    """

    def __init__(self, features: Any, device: Device | None = None, *, penalised: bool = False) -> None:
        self._device = CPU() if device is None else device
        self._penalised = penalised
        self._features = _with_ones(features, self._device) if penalised else features
        with self._device.fixed_order():
            self._directions = leading_directions(self._features, self._device, intercepts=not penalised)
            self._turned = self._directions.turned(self._features)

    def bootstrap(
        self,
        model: BootstrappedFP,
        nodes: Nodes,
        classes: Nodes,
        stopping_nodes: Nodes,
        stopping_classes: Nodes,
        n_classes: int,
        tolerance: float = TOLERANCE,
    ) -> Bootstrapped:
        """Return the best of all rounds, by the accuracy on the stopping nodes.

        Parameters
        ----------
        model
            The settings.
        nodes, classes
            Those to learn from.
        stopping_nodes, stopping_classes
            Those that choose the round; they are never labelled.
        n_classes
            All there are.
        tolerance
            Of the regressions' gradient.
        """
        kept: tuple[Regression, Floats] | None = None
        curves: list[tuple[float, float, float]] = []
        best = 0
        for regression, shares in self.rounds(model, nodes, classes, stopping_nodes, n_classes, tolerance):
            right = shares[stopping_nodes].argmax(axis=1) == stopping_classes
            train, stopping = shares[nodes, classes], shares[stopping_nodes, stopping_classes]
            curves.append((-float(train.mean()), -float(stopping.mean()), float(right.mean())))
            if kept is None or curves[-1][2] > curves[best][2]:
                kept, best = (regression, shares), len(curves) - 1
        assert kept is not None
        regression, shares = kept
        if self._penalised:
            W = regression.coefficients
            regression = Regression(W[:, :-1].copy(), regression.intercepts + W[:, -1], regression.gradient)
        return Bootstrapped(regression, shares, np.array(curves), best)

    def rounds(
        self,
        model: BootstrappedFP,
        nodes: Nodes,
        classes: Nodes,
        excluded: Nodes,
        n_classes: int,
        tolerance: float = TOLERANCE,
    ) -> Iterator[tuple[Regression, Floats]]:
        """Learn from labelled nodes, label the most certain others, and so on, until rounds or nodes are used up.

        A round adds ``share * n`` nodes with the class that is predicted for them: of each class as many as its share of
        all predictions, those with the lowest entropy first. `excluded` nodes are never added. Each round yields its
        regression, with a column for penalised intercepts, and the log probabilities of all nodes, (n, c).
        """
        rows = LearningRows(self._features, self._turned, self._directions, self._device)
        n, f = rows.whole.shape
        free = np.ones(n, dtype=np.bool_)
        free[nodes], free[excluded] = False, False
        found = Regression(np.zeros((n_classes, f)), np.zeros(n_classes))
        for number in range(model.rounds + 1):
            with self._device.fixed_order():  # not around the yield: what happens there is not ours
                rows.add(nodes)
                found = fit_one_vs_rest(rows, classes, found, model.C, tolerance)
            shares = _log_shares(self._features, found, self._device)
            yield found, shares
            if number == model.rounds:
                return
            nodes = lowest_entropy(shares, free, model.share)
            if not len(nodes):
                return  # all further rounds would be this one
            free[nodes] = False
            classes = np.concatenate([classes, shares[nodes].argmax(axis=1)])


def feature_logits(
    model: BootstrappedFP, graph: Graph, coefficients: Floats, intercepts: Floats
) -> NDArray[np.float32]:
    """Return the log probabilities of all nodes, (n, c), from a regression that was learnt on diffused features.

    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(2))
    >>> logits = feature_logits(BootstrappedFP(0.5, steps=1), pair, np.array([[9.0, 0.0], [0.0, 9.0]]), np.zeros(2))
    >>> logits.argmax(axis=1)
    array([0, 1])
    """
    found = Regression(coefficients, intercepts)
    return _log_shares(diffused_features(model, graph), found, CPU()).astype(np.float32)


@final
class FeaturePropagation:
    """Bootstrapped feature propagation on one graph, with ``fit`` and ``predict``, for classes 0, 1, ...

    The features are diffused once, before the first fit; each fit starts anew.

    Parameters
    ----------
    graph
        With features; its labels are not read.
    model
        The settings.
    device
        ``"cpu"`` or ``"cuda"``, for the regressions.

    Attributes
    ----------
    record_
        Of the last fit.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = FeaturePropagation(graph, BootstrappedFP(rounds=2, share=0.4))
    >>> model.fit([0, 4], [0, 1], stopping=([1, 3], [0, 1])).predict([0, 1, 3, 4])
    array([0, 0, 1, 1])
    """

    record_: Bootstrapped

    def __init__(self, graph: Graph, model: BootstrappedFP, device: str = DEVICE.default) -> None:
        self.graph, self.model, self.device = graph, model, device
        self._diffused: Diffused | None = None

    def fit(self, nodes: ArrayLike, y: ArrayLike, stopping: tuple[ArrayLike, ArrayLike]) -> Self:
        """Learn from nodes and their classes; `stopping`, other nodes and theirs, choose the round."""
        if self._diffused is None:
            device = device_named(self.device)
            features = diffused_features(self.model, self.graph, device)
            self._diffused = Diffused(features, device, penalised=self.model.original)
        known, classes, watched, theirs = (np.asarray(array, dtype=np.int64) for array in (nodes, y, *stopping))
        n_classes = 1 + int(max(classes.max(), theirs.max()))
        self.record_ = self._diffused.bootstrap(self.model, known, classes, watched, theirs, n_classes)
        return self

    def predict(self, nodes: ArrayLike) -> Nodes:
        """Return the most probable class of each node."""
        return self.record_.log_shares[np.asarray(nodes, dtype=np.int64)].argmax(axis=1)


def _with_ones(features: Any, device: Device) -> Any:
    """Return features, (n, f), and a column of ones behind them."""
    wide = device.empty(int(features.shape[0]), int(features.shape[1]) + 1)
    wide[:, :-1], wide[:, -1] = features, 1.0
    return wide


def _log_shares(features: Any, found: Regression, device: Device) -> Floats:
    """Return the logarithm of sigmoid(F w_k + b_k), scaled to sum to one over the classes k, shape (n, c)."""
    with device.fixed_order():
        odds = device.get(features @ device.put(np.ascontiguousarray(found.coefficients.T))) + found.intercepts
    return special.log_softmax(special.log_expit(odds), axis=1)


def lowest_entropy(log_shares: Floats, free: NDArray[np.bool_], share: float) -> Nodes:
    """Return the nodes to add: per class those of lowest entropy, the first where they tie."""
    predicted = log_shares.argmax(axis=1)
    entropy = -(np.exp(log_shares) * log_shares).sum(axis=1)
    added: list[Nodes] = []
    for code in range(log_shares.shape[1]):
        quota = round(share * np.count_nonzero(predicted == code))
        candidates = np.flatnonzero((predicted == code) & free)
        added.append(candidates[np.argsort(entropy[candidates], kind="stable")][:quota])
    return np.concatenate(added)
