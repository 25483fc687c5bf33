"""An ensemble of APPNP runs that teaches itself, as a scikit-learn classifier."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop import settings
from pprop._process import compiling
from pprop._validate import reject
from pprop.estimators.fitted import AnyModel, Choice, Learned, TrainingRecord, Weights, choice_of, named_weights
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeClassifier, parameters, train_options, warn_unfinished
from pprop.estimators.reading import FitData
from pprop.graph import Graph
from pprop.models import APPNP, Model
from pprop.models.ensemble import Ensemble, KnownErrors, mean_log_probabilities
from pprop.models.propagated_ones import propagated_ones
from pprop.scoring import Scoring
from pprop.training import History
from pprop.training.self_training import SelfTraining, choose_alpha, self_train
from pprop.training.votes import member_splits, scores, vote_errors


@final
@parameters
class APPNPEnsembleClassifier(NodeClassifier):
    """Several runs of APPNP that vote, and then learn from the votes they are most certain of.

    The probabilities of a node are the mean over the members. After the first round, the most certain nodes of each
    predicted class join the training nodes, and all members are trained anew; stopping nodes never join. In the end all
    members of all rounds vote. Labels are used as in the paper: those of training nodes train, those of stopping nodes
    stop. With `folds`, those of stopping nodes train as well; with `spread_errors`, the predictions around both are
    corrected by them.

    With `folds`, stopping nodes train as well: they are dealt into so many folds with equal shares of the classes;
    member k stops on fold k mod `folds` and trains on all others. With fewer members than folds, the folds that no
    member stops on train all members.

    With `spread_errors`, labels are used when predicting, too: the errors of the vote at training and stopping nodes
    are propagated and added to its probabilities (`pprop.models.ensemble`). These are first made sharper, or
    softer, by the one temperature that suits the stopping nodes best. A stopping node's error is that of the members
    that did not train on it. The result is cut off below 1e-6 and divided by its sum, so that `predict_proba` returns
    probabilities.

    Both use the labels of stopping nodes for more than the paper's models do: say so next to the accuracy.

    With a `scoring`, early stopping of the members maximises it. With a `threshold`, the vote at the stopping nodes chooses it.
    Neither goes with `folds` or `spread_errors`: no member may learn from the nodes that judge.

    Given several values of `alpha`, each trains an ensemble of the first round, all together. The one whose vote has
    the best stopping accuracy is kept, among equals the one with the lowest stopping loss, then the first. The seed is
    that of the first member of the first round.

    With ``members=1`` and ``rounds=0`` it is `APPNPClassifier`, on the CPU bit for bit.
    ``docs/accuracy.md`` says what each option gains on the paper's graphs.

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
        The teleport probabilities there were to choose from, the stopping accuracies of their votes in the first round,
        both of shape (a,), and the position of the one that was chosen. They are not saved with a model.
    errors_
        What is spread: known nodes, errors and temperature; None without `spread_errors`, and on another graph than
        that of the fit, where nothing is known.
    weights_, logits_
        Weights of the members of all rounds by name, and the logarithm of the (corrected) mean probabilities, shape (n,
        c).
    others
        Those of `APPNPClassifier`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = APPNPEnsembleClassifier(graph, members=3, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.n_iter_, sorted(model.weights_)[:2]
    (3, ['member0.layer0', 'member0.layer1'])
    """

    _stopping_nodes_also = "stopping nodes judge the members"

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    members: int = settings.MEMBERS.field()
    rounds: int = settings.ROUNDS.field()
    share: float = settings.SHARE.field()
    emphasis: int = settings.EMPHASIS.field()
    folds: int = settings.FOLDS.field()
    spread_errors: float = settings.SPREAD_ERRORS.field()
    alpha: float | Sequence[float] | NDArray[np.floating[Any]] | None = settings.ENSEMBLE_ALPHA.field()
    steps: int = settings.STEPS.field()
    propagation_dropout: float | None = settings.SAME_DROPOUT.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()

    def _checked(self) -> dict[str, Any]:
        values = super()._checked()
        alphas: tuple[float, ...] = tuple(np.atleast_1d(values["alpha"]).tolist())
        name, several = type(self).__name__, len(alphas) > 1
        for judged_by in ("scoring", "threshold"):
            if values[judged_by] is not None and (values["folds"] or values["spread_errors"]):
                expected = "None with folds or spread_errors, which learn from the validation nodes that it needs"
                reject(judged_by, name, expected, repr(values[judged_by]))
        if values["scoring"] is not None and several:
            reject("scoring", name, "None with several values of alpha, chosen by accuracy", repr(values["scoring"]))
        return values | {"alphas": alphas, "alpha": alphas[0]}  # any of several: it is chosen in the training

    def _model(self, values: dict[str, Any]) -> Ensemble:
        names = inspect.signature(APPNP).parameters
        member = APPNP(**{name: values[name] for name in names if name in values})  # it has no predictor
        return Ensemble(member, values["members"] * (1 + values["rounds"]), values["spread_errors"])

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Ensemble)
        graph, split, labels = data.graph, data.split, data.values
        weights, class_weights = (None, None) if data.weights is None else data.weights
        members, alphas, folds = values["members"], values["alphas"], values["folds"]
        if folds > len(split.stopping):
            most = f"at most {len(split.stopping)}, the number of stopping nodes"
            reject("folds", type(self).__name__, most, folds)
        begin, compiled = time.perf_counter(), compiling.seconds
        how: dict[str, Any] = {
            "labels": labels,
            "weights": weights,
            "seed": data.seed,
            "options": train_options(values),
        }
        choice = choose_alpha(replace(model, members=members), graph, split, alphas=alphas, folds=folds, **how)
        each = Ensemble(choice.member, members)
        teaching = SelfTraining(values["rounds"], values["share"], values["emphasis"], folds)
        how |= {"first": choice.trained, "class_weights": class_weights}
        rounds = list(self_train(each, teaching, graph, split, **how))
        for one in rounds:
            warn_unfinished(one.trained, values)
        every = np.concatenate([one.trained.logits for one in rounds])
        logits = mean_log_probabilities(every)
        own = member_splits(split, labels, members, folds) * len(rounds)
        _, stopping_loss, stopping_accuracy = scores(every, own, split.train, labels, weights)
        score = _score_of(values["scoring"], choice.member, graph, split.stopping, labels)
        extras: Weights = {}
        if model.strength > 0:
            errors = vote_errors(every, own, labels)
            extras = {"errors": errors.errors, "temperature": np.array([errors.temperature])}
            logits = model.corrected(graph, logits, errors)
        record = replace(
            TrainingRecord.of(rounds[0].trained),
            epochs=len(rounds),
            best_epoch=len(rounds) - 1,
            stopping_loss=stopping_loss,
            stopping_accuracy=stopping_accuracy,
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            train_nodes=len(split.train),
            stopping_nodes=len(split.stopping),
            stopping_score=score(logits),
        )
        curves = np.array([(one.train_loss, one.stopping_loss, one.stopping_accuracy) for one in rounds])
        by_member = (np.asarray(array[k]) for one in rounds for k in range(members) for array in one.trained.weights)
        weights = named_weights(model, by_member)
        by_round = np.array([np.nan if (value := score(one.logits)) is None else value for one in rounds])
        history = History(*(curve.copy() for curve in curves.T), stopping_score=by_round)
        chosen = Choice(np.array(alphas), choice.accuracies, None, choice.index)
        return Learned(weights, logits, record, history, alphas[choice.index], chosen, extras)

    @property
    def alphas_(self) -> NDArray[np.float64]:
        """The teleport probabilities there were to choose from."""
        return choice_of(self).alphas

    @property
    def scores_(self) -> NDArray[np.float64]:
        """The stopping accuracies of their votes in the first round."""
        return choice_of(self).scores

    @property
    def best_index_(self) -> int:
        """The position of the one that was chosen."""
        return choice_of(self).index

    @property
    def errors_(self) -> KnownErrors | None:
        """What is spread."""
        return self.fitted_.errors


def _score_of(
    scoring: Scoring | None, member: Model, graph: Graph, nodes: NDArray[np.int64], labels: NDArray[np.int64]
) -> Callable[[NDArray[np.float32]], float | None]:
    """Return what gives the value of a scoring at some nodes for the logits of all, as the fitted ensemble predicts them."""
    if scoring is None:
        return lambda logits: None
    ones = None if member.propagation is None else propagated_ones(graph, member.propagation)

    def value(logits: NDArray[np.float32]) -> float:
        found = logits[nodes] if ones is None else logits[nodes] / ones[nodes, None].astype(logits.dtype)
        return scoring(labels[nodes], special.softmax(found, axis=1))

    return value
