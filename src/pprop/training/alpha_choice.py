"""Ensembles that choose their teleport probability: many alphas trained together, nodes that did not train decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.datasets import Split
from pprop.graph import Graph
from pprop.models import Model
from pprop.models.ensemble import Ensemble
from pprop.training.alphas import train_alphas
from pprop.training.folds import member_splits
from pprop.training.result import Trained
from pprop.training.self_training import member_seeds, scores
from pprop.training.stopping import Stopping

__all__ = ["AlphaChoice", "best_alpha", "choose_alpha"]


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


def best_alpha(accuracies: Sequence[float], losses: Sequence[float]) -> int:
    """Return the position of the highest accuracy, among equals that of the lowest loss, among equals the first.

    >>> best_alpha([0.8, 0.9, 0.9], [1.0, 0.7, 0.6])
    2
    """
    return max(range(len(accuracies)), key=lambda k: (accuracies[k], -losses[k]))


def choose_alpha(
    model: Ensemble,
    graph: Graph,
    split: Split,
    *,
    alphas: Sequence[float],
    folds: int,
    labels: NDArray[np.int64],
    seed: int = 0,
    stopping: Stopping = Stopping(),
    learning_rate: float = 0.01,
    backend: str = "auto",
    device: str = "cpu",
    progress: bool | None = None,
    verbose: bool = False,
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
    graph, split, labels, seed, stopping, learning_rate, backend, device, progress, verbose
        As for `self_train`.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(6, 6))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(6))
    >>> split = Split(np.array([0, 5]), np.array([1, 4]), np.array([2, 3]))
    >>> model, labels = Ensemble(pprop.APPNP(hidden=8, dropout=0.0), members=2), np.array([0, 0, -1, -1, 1, 1])
    >>> few = Stopping(max_epochs=30)
    >>> found = choose_alpha(model, graph, split, alphas=[1.0, 0.1], folds=0, labels=labels, stopping=few)
    >>> found.index, found.accuracies, found.member.propagation.alpha
    (1, array([0., 1.]), 0.1)
    """
    own = member_splits(split, labels, model.members, folds)
    trained = train_alphas(
        model.member,
        graph,
        own,
        alphas=alphas,
        seeds=member_seeds(seed, 0, model.members),
        labels=labels,
        stopping=stopping,
        learning_rate=learning_rate,
        backend=backend,
        device=device,
        progress=progress,
        verbose=verbose,
    )
    found = [scores(one.logits, own, split.train, labels) for one in trained]
    losses, accuracies = [score[1] for score in found], [score[2] for score in found]
    index = best_alpha(accuracies, losses)
    member = trained[index].model
    assert isinstance(member, Model)
    return AlphaChoice(index, member, trained[index], np.array(accuracies), np.array(losses))
