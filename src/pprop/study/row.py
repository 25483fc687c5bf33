"""What is kept of one run: a row of the store, from which every table and figure is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.study.cell import Seeds
from pprop.study.provenance import Provenance, recorded_provenance

__all__ = ["Row", "RowKey"]


@final
@dataclass(frozen=True, order=True)
class RowKey:
    """What makes a row: rows that differ in any of these are never pooled.

    Attributes
    ----------
    config
        Hash of the cell.
    revision
        Of the model on its backend (`pprop.study.revisions`).
    data
        Fingerprint of the graph.
    seeds
        Of the split and of the initialisation.

    Examples
    --------
    >>> RowKey("a1", "c1", "d1", Seeds(5, 0)) == RowKey("a1", "c1", "d1", Seeds(5, 0))
    True
    """

    config: str
    revision: str
    data: str
    seeds: Seeds


@final
@dataclass(frozen=True, eq=False)
class Row:
    """One finished run.

    Attributes
    ----------
    key
        Its identity.
    cell
        The cell as text (`Cell.text`).
    accuracy, f1, f1_macro
        On the evaluation nodes of the split, in [0, 1]; `f1` is the paper's definition, `f1_macro` the usual one.
    stopping_loss, stopping_accuracy
        At the kept epoch; NaN for a model without early stopping.
    epochs, best_epoch
        Epochs made, and the one kept, from 0; 0 for a model without epochs.
    seconds
        The run's share of the time of the training it was part of.
    together
        Runs that were in that training.
    predictions
        Predicted class of every node, shape (n,), uint8.
    backend, device, torch, host, version, created
        What computed it, where, and when (ISO 8601, UTC); `version` is the text of `provenance`.
    stored_as
        The hash of sources that a row from before there were revisions is stored under; empty for any other.
    """

    key: RowKey
    cell: str
    accuracy: float
    f1: float
    f1_macro: float
    stopping_loss: float
    stopping_accuracy: float
    epochs: int
    best_epoch: int
    seconds: float
    together: int
    predictions: NDArray[np.uint8]
    backend: str
    device: str
    torch: str
    host: str
    version: str
    created: str
    stored_as: str = ""

    @cached_property
    def provenance(self) -> Provenance:
        """What computed it, as far as it was recorded."""
        return recorded_provenance(self.version, self.stored_as)

    @property
    def ms_per_epoch(self) -> float:
        """Milliseconds an epoch: as fast as one run alone only where `together` is 1; NaN without epochs."""
        return 1000 * self.seconds / self.epochs if self.epochs else float("nan")
