"""An ensemble of APPNP runs that teaches itself, as a scikit-learn classifier."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_choice, check_float, check_int, reject
from pprop.datasets import Split
from pprop.estimators._model_weights import AnyModel, member_weights
from pprop.estimators._settings import layer_widths, matrix_dropout, switch, teleport_probability
from pprop.estimators.base import Learned
from pprop.estimators.record import TrainingRecord
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import APPNP
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.training import History
from pprop.training.folds import member_splits
from pprop.training.self_training import SelfTraining, scores, self_train

__all__ = ["APPNPEnsembleClassifier"]


@final
class APPNPEnsembleClassifier(TrainedClassifier):
    """Several runs of APPNP that vote, and then learn from the votes they are most certain of.

    The probabilities of a node are the mean over the members. After the first round, the most certain nodes of each
    predicted class join the training nodes, and all members are trained anew; stopping nodes never join. In the end all
    members of all rounds vote. Labels are used as in the paper: those of training nodes train, those of stopping nodes stop;
    with `folds`, those of stopping nodes train as well.

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
    alpha, steps, hidden, dropout, propagation_dropout, penalty, learning_rate, patience, max_epochs
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
        the members that did not train on a node are asked about it.
    weights_, logits_
        Weights of the members of all rounds by name, and the logarithm of the mean probabilities, shape (n, c).
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

    def __init__(
        self,
        graph: Graph,
        members: int = 8,
        rounds: int = 2,
        share: float = 0.5,
        emphasis: int = 1,
        folds: int = 0,
        alpha: float | None = None,
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

    def _teleport(self) -> float:
        return teleport_probability(self.alpha, self.graph, "[0, 1]", "APPNPEnsembleClassifier")

    def _check_learning(self) -> None:
        super()._check_learning()
        self._teaching()

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
            steps=check_int(self.steps, "steps", name, low=0),
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
        rounds = list(
            self_train(
                replace(model, members=self.members),
                self._teaching(),
                graph,
                split,
                labels=labels,
                seed=seed,
                stopping=self._rule(),
                learning_rate=float(self.learning_rate),
                backend=self.backend,
                device=self.device,
                progress=told >= 1,
                verbose=told >= 2,
            )
        )
        every = np.concatenate([one.trained.logits for one in rounds])
        logits = mean_log_probabilities(every)
        own = member_splits(split, labels, self.members, self.folds) * len(rounds)
        _, stopping_loss, stopping_accuracy = scores(every, own, split.train, labels)
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
        return Learned(weights, logits, record, History(*(curve.copy() for curve in curves.T)))
