"""An ensemble of APPNP runs that teaches itself, as a scikit-learn classifier."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import check_choice, check_float, check_int, check_sequence, describe, reject
from pprop.datasets import Split
from pprop.estimators._model_weights import AnyModel, Weights, member_weights
from pprop.estimators._settings import layer_widths, matrix_dropout, power_steps, switch, teleport_probability
from pprop.estimators.base import Learned, StoppingNodes
from pprop.estimators.record import TrainingRecord
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import APPNP
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.models.error_spreading import KnownErrors, spread_errors
from pprop.training import History
from pprop.training.alpha_choice import choose_alpha
from pprop.training.folds import member_splits
from pprop.training.self_training import SelfTraining, scores, self_train
from pprop.training.vote_errors import vote_errors

__all__ = ["APPNPEnsembleClassifier"]


@final
class APPNPEnsembleClassifier(TrainedClassifier):
    """Several runs of APPNP that vote, and then learn from the votes they are most certain of.

    The probabilities of a node are the mean over the members. After the first round, the most certain nodes of each
    predicted class join the training nodes, and all members are trained anew; stopping nodes never join. In the end all
    members of all rounds vote. Labels are used as in the paper: those of training nodes train, those of stopping nodes stop.
    With `folds`, those of stopping nodes train as well; with `spread_errors`, the predictions around both are corrected by them.

    With ``members=1`` and ``rounds=0`` it is `APPNPClassifier`, on the CPU bit for bit.
    ``docs/accuracy.md`` says what each option gains on the paper's graphs.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    members
        Runs in a round, trained together.
    rounds
        How often the members are trained again from their own predictions. 0: never.
    share
        Of the nodes predicted in each class, neither training nor stopping nodes, the share that joins, in (0, 1].
    emphasis
        How often a labelled node counts in the loss of later rounds, where one that joined counts once.
    folds
        0: stopping nodes never train, as in the paper. Otherwise, from 2 on, they are dealt into so many folds with equal
        shares of the classes; member k stops on fold k mod `folds` and trains on all others. It uses the same labels, but
        for more than the paper's models do: say so next to the accuracy. With fewer members than folds, the folds that
        nobody stops on train all members.
    spread_errors
        0: labels are not used when predicting. Otherwise the strength, above 0, with which the errors of the vote at known
        nodes, training and stopping nodes alike, are propagated and added to its probabilities
        (`pprop.models.error_spreading`). These are first made sharper, or softer, by the one temperature that suits the
        stopping nodes best. A stopping node's error is that of the members that did not train on it. What comes out is cut
        off below 1e-6 and divided by its sum: `predict_proba` returns probabilities. As with `folds`, labels of stopping
        nodes are then used for more than the paper's models do.
    alpha
        The teleport probability, or several to choose from, in [0, 1]; None: see `APPNPClassifier`. Of several, each trains
        an ensemble of the first round, all together, and the one whose vote has the best stopping accuracy goes on, among
        equals the one with the lowest stopping loss, then the first.
    steps, hidden, dropout, propagation_dropout, penalty, learning_rate, patience, max_epochs
        See `APPNPClassifier`.
    normalization, self_loops, stopping, random_state, backend, device, verbose
        See `APPNPClassifier`. The seed is that of the first member of the first round.

    Attributes
    ----------
    n_iter_, history_
        Rounds trained, the first one included, and the curves over them: loss of the labelled training nodes, loss and
        accuracy of the stopping nodes, each of the ensemble of that round.
    record_
        How it went: stopping loss and accuracy are those of all rounds together, epochs are rounds. With `folds`, only
        the members that did not train on a node are asked about it. With `spread_errors`, they are those of the vote
        before any error is spread: afterwards each stopping node would tell its own class. Of an alpha that was chosen
        they are the best of several, and so a little too good to expect of other nodes.
    alpha_
        The teleport probability, of several the one that was chosen.
    alphas_, scores_, best_index_
        The teleport probabilities there were to choose from, the stopping accuracies of their votes in the first round, both
        of shape (a,), and the position of the one that was chosen. A saved model has them no more.
    errors_
        What is spread: known nodes, errors and temperature; None without `spread_errors`, and on another graph than that of
        the fit, where nothing is known.
    weights_, logits_
        Weights of the members of all rounds by name, and the logarithm of the (corrected) mean probabilities, shape (n, c).
    others
        Those of `APPNPClassifier`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = APPNPEnsembleClassifier(graph, members=3, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.n_iter_, sorted(model.weights_)[:2]
    (3, ['member0.layer0', 'member0.layer1'])
    """

    alphas_: NDArray[np.float64]
    scores_: NDArray[np.float64]
    best_index_: int
    errors_: KnownErrors | None

    def __init__(
        self,
        graph: Graph,
        members: int = 8,
        rounds: int = 2,
        share: float = 0.5,
        emphasis: int = 1,
        folds: int = 0,
        spread_errors: float = 0.0,
        alpha: float | Sequence[float] | NDArray[np.floating[Any]] | None = None,
        steps: int = 10,
        hidden: int | Sequence[int] = 64,
        dropout: float = 0.5,
        propagation_dropout: float | None = None,
        penalty: float = 0.005,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        normalization: str = "sym",
        self_loops: bool = True,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.members = members
        self.rounds = rounds
        self.share = share
        self.emphasis = emphasis
        self.folds = folds
        self.spread_errors = spread_errors
        self.alpha = alpha
        self.steps = steps
        self.hidden = hidden
        self.dropout = dropout
        self.propagation_dropout = propagation_dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.normalization = normalization
        self.self_loops = self_loops
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, stopping: StoppingNodes = None) -> Self:
        """Train all rounds on some nodes of the graph; see `APPNPClassifier.fit`."""
        super().fit(X, y, stopping=stopping)
        self.alpha_ = float(self.alphas_[self.best_index_])
        self.model_ = self._model(self.alpha_)
        return self

    def _alphas(self) -> tuple[float, ...]:
        """Return the teleport probabilities to choose from, checked."""
        name = "APPNPEnsembleClassifier"
        if not isinstance(self.alpha, Sequence | np.ndarray) or isinstance(self.alpha, str):
            return (teleport_probability(cast("float | None", self.alpha), self.graph, "[0, 1]", name),)
        expected = "a float in [0, 1], a sequence of different ones, or None"
        numbers = check_sequence(self.alpha, "alpha", name, expected)
        found = tuple(check_float(number, "alpha", name, "[0, 1]") for number in numbers)
        if not found or len(set(found)) < len(found):
            reject("alpha", name, expected, describe(self.alpha))
        return found

    def _teleport(self) -> float:
        return self._alphas()[0]  # any of several: it is not known before the training

    def _check_learning(self) -> None:
        super()._check_learning()
        self._teaching()
        check_float(self.spread_errors, "spread_errors", "APPNPEnsembleClassifier", "[0, inf)")

    def _teaching(self) -> SelfTraining:
        name = "APPNPEnsembleClassifier"
        folds = check_int(self.folds, "folds", name, low=0)
        if folds == 1:
            reject("folds", name, "0, or an integer of at least 2", folds)
        return SelfTraining(
            rounds=check_int(self.rounds, "rounds", name, low=0),
            share=check_float(self.share, "share", name, "(0, 1]"),
            emphasis=check_int(self.emphasis, "emphasis", name, low=1),
            folds=folds,
        )

    def _model(self, alpha: float | None) -> Ensemble:
        name = "APPNPEnsembleClassifier"
        member = APPNP(
            alpha=check_float(alpha, "alpha", name, "[0, 1]"),
            steps=power_steps(self.steps, name),
            hidden=layer_widths(self.hidden, name),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            propagation_dropout=matrix_dropout(self.propagation_dropout, name),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
            normalization=check_choice(self.normalization, "normalization", name, NORMALIZATIONS),
            self_loops=switch(self.self_loops, "self_loops", name),
        )
        each = check_int(self.members, "members", name, low=1)
        return Ensemble(member, each * (1 + check_int(self.rounds, "rounds", name, low=0)))

    def _learn(
        self, model: AnyModel, graph: Graph, split: Split, labels: NDArray[np.int64], seed: int, told: int
    ) -> Learned:
        assert isinstance(model, Ensemble)
        if self.folds > len(split.stopping):
            most = f"at most {len(split.stopping)}, the number of stopping nodes"
            reject("folds", "APPNPEnsembleClassifier", most, self.folds)
        begin = time.perf_counter()
        how: dict[str, Any] = {
            "labels": labels,
            "seed": seed,
            "stopping": self._rule(),
            "learning_rate": float(self.learning_rate),
            "backend": self.backend,
            "device": self.device,
            "progress": told >= 1,
            "verbose": told >= 2,
        }
        each = replace(model, members=self.members)
        alphas, first, accuracies, best = self._alphas(), None, None, 0
        if len(alphas) > 1:
            choice = choose_alpha(each, graph, split, alphas=alphas, folds=self.folds, **how)
            best, first, accuracies = choice.index, choice.trained, choice.accuracies
            each = Ensemble(choice.member, self.members)
        rounds = list(self_train(each, self._teaching(), graph, split, first=first, **how))
        self.alphas_, self.best_index_ = np.array(alphas), best
        self.scores_ = np.array([rounds[0].stopping_accuracy]) if accuracies is None else accuracies
        every = np.concatenate([one.trained.logits for one in rounds])
        logits = mean_log_probabilities(every)
        own = member_splits(split, labels, self.members, self.folds) * len(rounds)
        _, stopping_loss, stopping_accuracy = scores(every, own, split.train, labels)
        self.errors_ = vote_errors(every, own, labels) if self.spread_errors > 0 else None
        record = TrainingRecord(
            epochs=len(rounds),
            best_epoch=len(rounds) - 1,
            stopping_loss=stopping_loss,
            stopping_accuracy=stopping_accuracy,
            seconds=time.perf_counter() - begin,
            backend=rounds[0].trained.backend,
            device=rounds[0].trained.device,
            seed=seed,
            train_nodes=len(split.train),
            stopping_nodes=len(split.stopping),
        )
        curves = np.array([(one.train_loss, one.stopping_loss, one.stopping_accuracy) for one in rounds])
        layers = zip(*(one.trained.weights for one in rounds), strict=True)
        weights = member_weights(model, [np.concatenate(layer) for layer in layers])
        return Learned(weights, self._corrected(logits, graph), record, History(*(curve.copy() for curve in curves.T)))

    def _corrected(self, logits: NDArray[np.float32], graph: Graph) -> NDArray[np.float32]:
        """Return the logits with the errors at known nodes spread."""
        if self.errors_ is None:
            return logits
        return spread_errors(graph, logits, self.errors_, self.spread_errors, self.normalization, self.self_loops)

    def _extras(self) -> Weights:
        if self.errors_ is None:
            return {}
        return {"errors": self.errors_.errors, "temperature": np.array([self.errors_.temperature])}

    def _restored(self, logits: NDArray[np.float32], extras: Weights) -> NDArray[np.float32]:
        name, nodes = "APPNPEnsembleClassifier", self.known_nodes_
        strength = check_float(self.spread_errors, "spread_errors", name, "[0, inf)")
        self.errors_ = None
        if strength == 0:
            return super()._restored(logits, extras)
        if len(nodes) == 0:  # another graph: its nodes are not those that were known
            return logits
        wanted = {"errors": (len(nodes), logits.shape[1]), "temperature": (1,)}
        if {key: array.shape for key, array in extras.items()} != wanted or not all(
            array.dtype == np.float64 and np.isfinite(array).all() for array in extras.values()
        ):
            reject("extras", name, f"finite float64 arrays of shapes {wanted}", describe(sorted(extras)))
        if extras["temperature"][0] <= 0:
            reject("extras", name, "given a temperature above 0", describe(extras["temperature"][0].item()))
        self.errors_ = KnownErrors(nodes, extras["errors"], float(extras["temperature"][0]))
        return self._corrected(logits, self.graph_)

    def _settings(self) -> dict[str, Any]:
        several = isinstance(self.alpha, Sequence | np.ndarray)
        return super()._settings() | ({"alpha": list(self._alphas())} if several else {})  # an array is no JSON
