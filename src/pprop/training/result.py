"""What training leaves behind: curves, weights and predictions of every run, and the error for runs that diverged."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special
from torch import Tensor

from pprop._errors import PYTHON, DivergenceError, InputError, Remedy
from pprop._validate import check_positions
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.models import Architecture, Model

# Learning rate beyond which float32 cannot hold a step; a training diverges in its first epoch long before.
LARGEST_RATE = 1e37
_NAMED = 5  # runs in a message; the error has them all
LOWER = Remedy("Use a lower {} or {}, or features of a smaller scale.", ("learning_rate", "penalty"))
# Fields of a LoopResult, one number a run.
_NUMBERS = ("epochs", "best_epoch", "stopping_loss", "stopping_accuracy", "stopping_score")
_NOT_GIVEN: NDArray[np.float64] = np.empty(0)


@final
@dataclass(frozen=True)
class History:
    """Curves of one run, one value per epoch, shape (epochs,).

    Attributes
    ----------
    train_loss
        Loss of the training step, dropout on, penalty included.
    stopping_loss, stopping_accuracy
        On the stopping nodes after the step, dropout off, penalty included. NaN where there are no stopping nodes.
    stopping_score
        The value of the scoring that early stopping watched, on the same nodes; NaN where it watched none.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=3))
    >>> trained.history[0].train_loss.shape
    (3,)
    """

    train_loss: NDArray[np.float64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    stopping_score: NDArray[np.float64] = field(default_factory=_NOT_GIVEN.copy)

    def __post_init__(self) -> None:
        if self.stopping_score.shape != self.train_loss.shape:
            object.__setattr__(self, "stopping_score", np.full(self.train_loss.shape, np.nan))


@final
@dataclass(frozen=True)
class LoopResult:
    """What training leaves behind of every run. The stopping loss of a run that diverged is not finite."""

    weights: list[Tensor]
    epochs: NDArray[np.int64]
    best_epoch: NDArray[np.int64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    history: tuple[History, ...]
    stopping_score: NDArray[np.float64]

    def of(self, runs: NDArray[np.bool_]) -> LoopResult:
        """Return what some of the runs leave behind."""
        if runs.all():
            return self
        return LoopResult(
            [torch.from_numpy(w.numpy()[runs]) for w in self.weights],
            **{name: getattr(self, name)[runs] for name in _NUMBERS},
            history=tuple(itertools.compress(self.history, runs)),
        )


def without_stopping(result: LoopResult, runs: NDArray[np.bool_]) -> LoopResult:
    """Return the results with NaN for the stopping loss and accuracy of the runs that have no stopping nodes."""
    if not runs.any():
        return result

    def blank(curves: History) -> History:
        nothing = np.full_like(curves.train_loss, np.nan)
        return History(curves.train_loss, nothing, nothing.copy())

    return replace(
        result,
        stopping_loss=np.where(runs, np.nan, result.stopping_loss),
        stopping_accuracy=np.where(runs, np.nan, result.stopping_accuracy),
        history=tuple(blank(curves) if bare else curves for curves, bare in zip(result.history, runs, strict=True)),
    )


def join_results(results: Sequence[LoopResult]) -> LoopResult:
    """Return the results of some runs, and of those after them, as one: every field is joined along the runs axis."""
    if len(results) == 1:
        return results[0]

    return LoopResult(
        [torch.cat(layer) for layer in zip(*(result.weights for result in results), strict=True)],
        **{name: np.concatenate([getattr(result, name) for result in results]) for name in _NUMBERS},
        history=tuple(curves for result in results for curves in result.history),
    )


@final
@dataclass(frozen=True)
class Trained:
    """R trained runs of one model on one graph.

    Attributes
    ----------
    model, graph, splits, seeds
        What was trained, on what, with which nodes and seeds; one split and one seed per run.
    epochs, best_epoch
        Epochs made, and the epoch (from 0) whose weights were kept, shape (R,).
    stopping_loss, stopping_accuracy
        At the kept epoch, shape (R,); NaN where there are no stopping nodes.
    stopping_score
        The value of the scoring at the kept epoch, shape (R,); NaN where early stopping watched none.
    history
        Curves of every run.
    weights
        The kept weights: one array (R, a, b) per layer, or the state of a module in the order of its state dict.
    logits
        Propagated predictions of all nodes with the kept weights, before the softmax, shape (R, n, c); (R, 0, c) where
        a training was told to leave them out, whose weights `pprop.scale.predict` takes.
    backend, device
        Name of the backend that ran, and where.
    seconds
        Wall-clock time of the training, set-up included.
    run_epochs_per_second
        Epochs of all runs together per second of the training loop, without the time in which kernels were compiled.
    compile_seconds
        How many of the seconds kernels were compiled, once for a machine; 0 where it is not known, as on a GPU.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=3))
    >>> trained.predict().shape, trained.predict_proba([2, 3]).shape, trained.accuracy().shape
    ((1, 5), (1, 2, 2), (1,))
    """

    model: Model | Architecture
    graph: Graph
    splits: tuple[Split, ...]
    seeds: tuple[int, ...]
    epochs: NDArray[np.int64]
    best_epoch: NDArray[np.int64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    stopping_score: NDArray[np.float64]
    history: tuple[History, ...]
    weights: tuple[NDArray[Any], ...]
    logits: NDArray[np.float32]
    backend: str
    device: str
    seconds: float
    run_epochs_per_second: float
    compile_seconds: float = 0.0

    def predict(self, nodes: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the predicted class of `nodes` (default: all) in every run, shape (R, m)."""
        return self.logits[:, self._positions(nodes, "predict")].argmax(axis=2)

    def predict_proba(self, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the class probabilities of `nodes` (default: all) in every run, shape (R, m, c)."""
        logits = self.logits[:, self._positions(nodes, "predict_proba")]
        return special.softmax(logits, axis=2)

    def accuracy(self) -> NDArray[np.float64]:
        """Return each run's accuracy on the evaluation nodes of its split, by the graph's labels, shape (R,)."""
        if self.graph.labels is None:
            raise InputError("The graph has no labels to compare with. Use predict and compare with your own.")
        shares: list[float] = []
        for predicted, split in zip(self.predict(), self.splits, strict=True):
            nodes, labels = split.evaluation, self.graph.labels[split.evaluation]
            if len(nodes) == 0 or labels.min() < 0:
                what = "evaluation nodes without a label" if len(nodes) else "no evaluation nodes"
                raise InputError(f"Accuracy needs labelled evaluation nodes, and {split} has {what}.")
            shares.append(np.count_nonzero(predicted[nodes] == labels) / len(nodes))
        return np.array(shares)

    def _positions(self, nodes: ArrayLike | None, function: str) -> NDArray[np.int64]:
        n = self.graph.n_nodes
        if self.logits.shape[1] != n:
            raise InputError(
                "This training was made with predict=False and has no predictions. Use pprop.scale.predict."
            )
        return np.arange(n) if nodes is None else check_positions(nodes, "nodes", function, n_nodes=n)


def finite_logits(
    result: LoopResult, infer: Callable[[list[Tensor]], Tensor], place: torch.device
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return which runs have not diverged, shape (R,), and the logits of just those, shape (s, n, c).

    A logit of minus infinity, as a module may give to an impossible class, is a probability of zero: what counts is that
    each node has probabilities.
    """
    sound = np.isfinite(result.stopping_loss)
    if not sound.any():
        return sound, np.empty((0, 0, 0), dtype=np.float32)
    logits = infer([tensor.to(place) for tensor in result.of(sound).weights])
    probable = logits.amax(dim=2).isfinite().all(dim=1)
    sound[sound] = probable.cpu().numpy()
    logits = (logits if bool(probable.all()) else logits[probable]).cpu().numpy()
    return sound, logits


def diverged(
    result: LoopResult, sound: NDArray[np.bool_], finished: Any, names: Sequence[str] | None = None
) -> DivergenceError:
    """Return the error for the runs that are not sound; `names` are those of all runs, by default their positions."""
    runs = np.flatnonzero(~sound).tolist()
    epochs = (result.best_epoch[runs] + 1).tolist()
    if names is None:
        names = [f"run {run}" for run in range(len(sound))] if len(sound) > 1 else [""]
    return DivergenceError(_diverged([names[run] for run in runs], epochs), runs, epochs, finished, remedies=[LOWER])


def divergence_text(names: Sequence[str], epochs: Sequence[int]) -> str:
    """Return the sentences for runs that diverged, each with its epoch from 1. An only run needs no name.

    >>> print(divergence_text(["run 4", "run 7"], [1, 30]))
    Training diverged in epoch 1 of run 4, epoch 30 of run 7: the loss or the logits are not finite. \
Use a lower learning_rate or penalty, or features of a smaller scale.
    """
    return f"{_diverged(names, epochs)} {PYTHON.remedy(LOWER)}"


def _diverged(names: Sequence[str], epochs: Sequence[int]) -> str:
    """Return the first of these sentences."""
    each = [f"epoch {epoch} of {name}" if name else f"epoch {epoch}" for name, epoch in zip(names, epochs, strict=True)]
    more = f" and in {len(each) - _NAMED} more runs" if len(each) > _NAMED else ""
    return f"Training diverged in {', '.join(each[:_NAMED])}{more}: the loss or the logits are not finite."
