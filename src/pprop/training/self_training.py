"""Ensembles that train again on their own predictions, and ensembles that choose their teleport probability.

In self-training many runs vote, and the nodes with the most certain predictions join the training nodes of the next runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from pprop.datasets import Split
from pprop.graph import Graph
from pprop.models import Model
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.settings import EMPHASIS, FOLDS, ROUNDS, SHARE, check_fields
from pprop.training.result import Trained
from pprop.training.train import TrainOptions, run_seed, train, train_alphas
from pprop.training.votes import Nodes, member_splits, scores


@final
@dataclass(frozen=True)
class SelfTraining:
    """How often, and from how many nodes, an ensemble teaches itself.

    Attributes
    ----------
    rounds
        How often the members are trained again; 0: an ensemble that does not.
    share
        Of the nodes predicted in each class, the share that teaches: those that the last ensemble is most certain of.
    emphasis
        How often a labelled node counts in the loss, where a node with a predicted class counts once.
    folds
        0: stopping nodes never train. Otherwise they are dealt into so many folds, and each member stops on one of them
        and trains on the others, too (`member_splits`).

    Examples
    --------
    >>> SelfTraining(rounds=1, share=1.5)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'share' parameter of SelfTraining must be a float in (0, 1]. Got 1.5 instead.
    """

    rounds: int = ROUNDS.but(0).field()
    share: float = SHARE.field()
    emphasis: int = EMPHASIS.field()
    folds: int = FOLDS.field()

    def __post_init__(self) -> None:
        check_fields(self, "SelfTraining")


@final
@dataclass(frozen=True, eq=False)
class Round:
    """One ensemble.

    Attributes
    ----------
    trained
        Its members.
    taught
        The nodes whose class was predicted and then learnt from; none in the first round.
    logits
        Logarithms of the mean probabilities of all nodes, shape (n, c).
    train_loss, stopping_loss, stopping_accuracy
        Of the ensemble: mean cross entropy of the labelled training nodes and of the stopping nodes, and the share of
        stopping nodes that it gets right. Of a stopping node only those members are asked that did not train on it.
    """

    trained: Trained
    taught: Nodes
    logits: NDArray[np.float32]
    train_loss: float
    stopping_loss: float
    stopping_accuracy: float


def most_certain(logits: NDArray[Any], free: NDArray[np.bool_], share: float) -> Nodes:
    """Return the `free` nodes that are most certain of their class, sorted: of each predicted class the same share.

    A class with k free nodes gives ``round(share * k)``, those with the highest probability, the first where they tie.

    Examples
    --------
    >>> logits = np.log([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    >>> most_certain(logits, np.array([True, True, True, True, False]), share=0.67)
    array([0, 2, 3])
    """
    logs = special.log_softmax(np.asarray(logits, dtype=np.float64), axis=1)
    predicted, certainty = logs.argmax(axis=1), logs.max(axis=1)
    chosen: list[Nodes] = []
    for code in range(logs.shape[1]):
        nodes = np.flatnonzero((predicted == code) & free)
        order = np.argsort(-certainty[nodes], kind="stable")
        chosen.append(nodes[order][: round(share * len(nodes))])
    return np.sort(np.concatenate(chosen))


def member_seeds(seed: int, number: int, members: int) -> list[int]:
    """Return the seeds of the members of a round: that of `self_train` for the very first, its own for each other.

    >>> member_seeds(7, 0, 2) == [7, run_seed(7, 1)], member_seeds(7, 1, 2) == [run_seed(7, 2), run_seed(7, 3)]
    (True, True)
    """
    first = number * members
    return [run_seed(seed, first + k) if first + k else seed for k in range(members)]


def self_train(
    model: Ensemble,
    teaching: SelfTraining,
    graph: Graph,
    split: Split,
    *,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    class_weights: NDArray[np.float64] | None = None,
    seed: int = 0,
    first: Trained | None = None,
    options: TrainOptions,
) -> Iterator[Round]:
    """Train an ensemble, then train it again from its own most certain predictions, and so on.

    All members of a round are trained in one call. Each round starts from the given labels and new weights: a node
    that taught in one round may have another class in the next, or teach no more. Stopping nodes never teach, and their labels
    are read for stopping alone, as in the paper, unless ``teaching.folds`` says otherwise.

    Parameters
    ----------
    model
        What is trained, and how many of it.
    teaching
        How often, and from how many nodes.
    graph
        With features, n nodes.
    split
        Training and stopping nodes.
    labels
        Class indices, shape (n,), of these nodes; those of others are not read.
    weights, class_weights
        How much each of these nodes counts, shape (n,), and each node with a predicted class, by that, shape (c,); None:
        all the same.
    seed
        Of the first member of the first round; member k of round r has ``run_seed(seed, r * members + k)``.
    first
        The members of the first round, if they are trained already on the nodes of `member_splits`; they are not trained again.
    options
        How each member is trained.

    Yields
    ------
    Round
        The ensemble of each round as it is trained, ``rounds + 1`` in all.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(6, 6))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(6))
    >>> split = Split(np.array([0, 5]), np.array([1, 4]), np.array([2, 3]))
    >>> few = TrainOptions(pprop.Stopping(max_epochs=30))
    >>> labels = np.array([0, 0, -1, -1, 1, 1])
    >>> model = Ensemble(pprop.APPNP(hidden=8, dropout=0.0), members=3)
    >>> rounds = list(self_train(model, SelfTraining(1, share=1.0), graph, split, labels=labels, options=few))
    >>> [one.taught.tolist() for one in rounds], rounds[1].logits.argmax(axis=1)
    ([[], [2, 3]], array([0, 0, 0, 1, 1, 1]))
    """
    free = np.ones(graph.n_nodes, dtype=np.bool_)
    free[split.train], free[split.stopping] = False, False
    own = member_splits(split, labels, model.members, teaching.folds)
    learnt, known, much, taught = own, labels, weights, np.empty(0, dtype=np.int64)
    for number in range(teaching.rounds + 1):
        trained = first
        if number > 0 or trained is None:
            seeds = member_seeds(seed, number, model.members)
            trained = train(model.member, graph, learnt, seeds=seeds, labels=known, weights=much, **vars(options))
        logits = mean_log_probabilities(trained.logits)
        yield Round(trained, taught, logits, *scores(trained.logits, own, split.train, labels, weights))
        taught = most_certain(logits, free, teaching.share)
        known = labels.copy()
        known[taught] = logits[taught].argmax(axis=1)
        if weights is not None:
            much = weights.copy()
            much[taught] = 1.0 if class_weights is None else class_weights[known[taught]]
        learnt = [
            Split(np.concatenate([np.tile(one.train, teaching.emphasis), taught]), one.stopping, one.evaluation)
            for one in own
        ]


@final
@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """An ensemble per teleport probability, of which one is the best.

    Attributes
    ----------
    index
        Position of the best one.
    member, trained
        What its members are, and the trained ones.
    accuracies, losses
        Of all of them on the stopping nodes, shape (a,). Of a node only those members are asked that did not train on it.
    """

    index: int
    member: Model
    trained: Trained
    accuracies: NDArray[np.float64]
    losses: NDArray[np.float64]


def best_of(accuracies: ArrayLike, losses: ArrayLike) -> int:
    """Return the position of the highest accuracy, among equals that of the lowest loss, among equals the first.

    >>> best_of([0.8, 0.9, 0.9], [1.0, 0.7, 0.6])
    2
    """
    # counts over the same nodes, but their means over several runs may differ in the last bit
    same = np.isclose(accuracies, np.max(accuracies), rtol=0, atol=1e-12)
    return int(np.lexsort((np.asarray(losses), ~same))[0])  # a loss that is no number comes last


def choose_alpha(
    model: Ensemble,
    graph: Graph,
    split: Split,
    *,
    alphas: Sequence[float],
    folds: int,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    seed: int = 0,
    options: TrainOptions,
) -> AlphaChoice:
    """Train an ensemble with each of some teleport probabilities, all runs together, and choose one.

    The vote with the highest stopping accuracy is chosen, among equals the one with the lowest stopping loss, then the
    first. It can be the first round of `self_train`: it has the nodes and the seeds of one.

    Parameters
    ----------
    model
        What is trained, and how many of it; its own alpha plays no part.
    alphas
        Teleport probabilities in [0, 1].
    folds
        As in `SelfTraining`. With folds the nodes that choose are all stopping nodes, each by the members that did
        not train on it.
    graph, split, labels, weights, seed, options
        As for `self_train`.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(6, 6))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(6))
    >>> split = Split(np.array([0, 5]), np.array([1, 4]), np.array([2, 3]))
    >>> model, labels = Ensemble(pprop.APPNP(hidden=8, dropout=0.0), members=2), np.array([0, 0, -1, -1, 1, 1])
    >>> few = TrainOptions(pprop.Stopping(max_epochs=30))
    >>> found = choose_alpha(model, graph, split, alphas=[1.0, 0.1], folds=0, labels=labels, options=few)
    >>> found.index, found.accuracies, found.member.propagation.alpha
    (1, array([0., 1.]), 0.1)
    """
    own = member_splits(split, labels, model.members, folds)
    seeds = member_seeds(seed, 0, model.members)
    trained = train_alphas(
        model.member, graph, own, options, alphas=alphas, seeds=seeds, labels=labels, weights=weights
    )
    found = [scores(one.logits, own, split.train, labels, weights) for one in trained]
    losses, accuracies = [score[1] for score in found], [score[2] for score in found]
    index = best_of(accuracies, losses)
    member = trained[index].model
    assert isinstance(member, Model)
    return AlphaChoice(index, member, trained[index], np.array(accuracies), np.array(losses))
