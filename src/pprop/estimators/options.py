"""What the settings of a classifier mean for its model and its training."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from pprop._validate import warn
from pprop.graph import Graph
from pprop.settings import MAX_EPOCHS
from pprop.training import Stopping, Trained
from pprop.training.train import TrainOptions


def uses_bias(value: bool | str, graph: Graph) -> bool:
    """Return whether the network of a classifier has biases: with ``"auto"``, where columns are standardised.

    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((2, 2)), features=np.eye(2))
    >>> uses_bias("auto", graph.scaled("l1")), uses_bias("auto", graph.scaled("standard")), uses_bias(True, graph)
    (False, True, True)
    """
    if not isinstance(value, str):
        return value
    return graph.scaling is not None and graph.scaling.kind == "standard"


def train_options(values: dict[str, Any]) -> TrainOptions:
    """Return how to train, from the settings of a classifier."""
    rule = Stopping(values["patience"], values["max_epochs"], values["criterion"])
    level = values["verbose"]
    return TrainOptions(
        rule, values["learning_rate"], values["backend"], values["device"], progress=level >= 1, verbose=level >= 2
    )


def warn_unfinished(trained: Trained, values: dict[str, Any]) -> None:
    """Warn where early stopping did not end a run, and nobody chose its last epoch."""
    last = MAX_EPOCHS.default
    if values["patience"] is not None and values["max_epochs"] == last and (trained.epochs >= last).any():
        warn(
            f"Training made all {last} epochs, and its stopping nodes still improved. Choose another max_epochs, a lower "
            "patience, or a higher learning_rate.",
            ConvergenceWarning,
        )
