"""The trained runs: what they cost, how they went, and what they predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop._validate import check_positions
from pprop.datasets import Split
from pprop.graph import Graph
from pprop.models import Architecture, Model
from pprop.training.loop import History

__all__ = ["Trained"]


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
        At the kept epoch, shape (R,).
    history
        Curves of every run.
    weights
        The kept weights: one array (R, a, b) per layer, or the state of a module in the order of its state dict.
    logits
        Propagated predictions of all nodes with the kept weights, before the softmax, shape (R, n, c).
    backend, device
        Name of the backend that ran, and where.
    seconds
        Wall-clock time of the training, set-up included.
    run_epochs_per_second
        Epochs of all runs together per second of the training loop.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5), labels=[0, 0, 0, 1, 1])
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
    history: tuple[History, ...]
    weights: tuple[NDArray[Any], ...]
    logits: NDArray[np.float32]
    backend: str
    device: str
    seconds: float
    run_epochs_per_second: float

    def predict(self, nodes: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the predicted class of `nodes` (default: all) in every run, shape (R, m)."""
        return self.logits[:, self._positions(nodes, "predict")].argmax(axis=2)

    def predict_proba(self, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the class probabilities of `nodes` (default: all) in every run, shape (R, m, c)."""
        logits = self.logits[:, self._positions(nodes, "predict_proba")]
        powers = np.exp(logits - logits.max(axis=2, keepdims=True))
        return powers / powers.sum(axis=2, keepdims=True)

    def accuracy(self) -> NDArray[np.float64]:
        """Return each run's accuracy on the evaluation nodes of its split, by the graph's labels, shape (R,)."""
        if self.graph.labels is None:
            raise InputError("The graph has no labels to compare with. Use predict and compare with your own.")
        for split in self.splits:
            if len(split.evaluation) == 0 or self.graph.labels[split.evaluation].min() < 0:
                what = (
                    "has no evaluation nodes" if len(split.evaluation) == 0 else "has evaluation nodes without a label"
                )
                raise InputError(f"Accuracy needs labelled evaluation nodes, and {split} {what}.")
        labels, predicted = self.graph.labels, self.predict()
        shares = [
            np.count_nonzero(row[split.evaluation] == labels[split.evaluation]) / len(split.evaluation)
            for row, split in zip(predicted, self.splits, strict=True)
        ]
        return np.array(shares)

    def _positions(self, nodes: ArrayLike | None, function: str) -> NDArray[np.int64]:
        n = self.graph.n_nodes
        return np.arange(n) if nodes is None else check_positions(nodes, "nodes", function, n_nodes=n)
