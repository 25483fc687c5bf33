"""Targets that are no single class: one or several numbers of a node, and several labels of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.metrics import accuracy_score, r2_score

from pprop._validate import check_array, describe, reject
from pprop.estimators.targets import Labels, Target
from pprop.graph.attributes import MISSING_LABELS
from pprop.kernels.losses import LOGISTIC, SQUARED


class RowTarget(Target):
    """Values are rows of numbers, NaN where one is unknown."""

    def at_nodes(self, nodes: NDArray[np.int64], values: NDArray[np.float64], n_nodes: int) -> NDArray[np.float64]:
        """Return the values of all nodes, (n, columns), NaN where none is given."""
        return rows_at_nodes(nodes, values, n_nodes)

    def known(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which nodes have at least one known number."""
        return np.logical_not(np.isnan(values).all(axis=1))

    def hold_out(
        self, nodes: NDArray[np.int64], values: NDArray[Any], fraction: float, seed: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Set a fraction of the distinct nodes aside at random, at least one and at most all but one."""
        distinct = np.unique(nodes)
        if len(distinct) < 2:
            reject("y", "fit", "at least two nodes with a known value, of which one is set aside", "1")
        random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])  # as in `pprop.estimators.targets.hold_out`
        size = min(max(round(fraction * len(distinct)), 1), len(distinct) - 1)
        held = np.isin(nodes, random.choice(distinct, size, replace=False))
        return nodes[~held], nodes[held]


@final
@dataclass(frozen=True, eq=False)
class Quantities(RowTarget):
    """One or several numbers: outputs are standardised, predictions are in the unit of the labels, and the score is R2.

    Attributes
    ----------
    centre, spread
        Mean and standard deviation of the labels, shape (columns,).
    flat
        Whether there is one number per node, so that labels and predictions have shape (m,).

    Examples
    --------
    >>> target = Quantities.of(np.array([1.0, 3.0]))
    >>> target.encode(np.array([1.0, 2.0])), target.predictions(np.array([[1.0], [-2.0]]))
    (array([[-1.],
           [ 0.]]), array([3., 0.]))
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    flat: bool

    loss = SQUARED

    @classmethod
    def read(
        cls,
        y: object,
        parameter: str,
        function: str,
        length: int,
        *,
        rows: NDArray[np.int64] | None = None,
        missing: tuple[str, ...] = MISSING_LABELS,
        classes: NDArray[Any] | None = None,
    ) -> Labels:
        """Return finite numbers of shape (m,) or (m, columns); a row is known where at least one is."""
        del missing, classes
        expected = f"numbers of shape ({length},) or ({length}, k), one row per node, NaN where unknown"
        return _read_rows(y, parameter, function, length, expected, rows, several=False)

    @classmethod
    def of(cls, labels: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Self:
        """Return the target of these numbers; refuse a column that is constant."""
        columns = labels.reshape(len(labels), -1)
        if len(columns) == 1:
            reject("y", "fit", "numbers of at least two nodes, that differ", "1 sample")
        much = np.ones(len(columns)) if weights is None else weights
        known = ~np.isnan(columns)
        counted, values = np.where(known, much[:, None], 0.0), np.where(known, columns, 0.0)
        whole = counted.sum(axis=0)
        if (lacking := np.flatnonzero(whole == 0)).size:
            reject("y", "fit", "at least one known number in each column", f"none in column {lacking[0]}")
        centre = (counted * values).sum(axis=0) / whole
        spread = np.sqrt((counted * np.square(values - centre)).sum(axis=0) / whole)
        constant = np.flatnonzero(spread <= 1e-12 * np.maximum(np.abs(centre), 1e-300))
        if constant.size:
            reject("y", "fit", "numbers that differ from node to node", f"the same, {centre[constant[0]]:g}, for all")
        return cls(centre, spread, labels.ndim == 1)

    @property
    def columns(self) -> int:
        """Quantities per node."""
        return len(self.centre)

    def encode(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return standardised numbers, shape (m, columns)."""
        return (labels.reshape(len(labels), self.columns) - self.centre) / self.spread

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers in the unit of the labels."""
        found = values.astype(np.float64) * self.spread + self.centre
        return found[:, 0] if self.flat else found

    def predictions(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the predicted numbers, in the unit of the labels."""
        return self.decode(outputs)

    def score(self, labels: NDArray[Any], outputs: NDArray[Any], weights: NDArray[np.float64] | None = None) -> float:
        """Return R2, of several numbers the mean."""
        r2: Any = r2_score
        return float(r2(labels, self.predictions(outputs), sample_weight=weights))


@final
@dataclass(frozen=True, eq=False)
class SeveralLabels(RowTarget):
    """Any number of labels per node: outputs are log odds, and the score is the share of nodes with all labels right.

    Attributes
    ----------
    names
        Of the labels: the places of their columns, shape (columns,).

    Examples
    --------
    >>> target = SeveralLabels.of(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> target.predictions(np.array([[0.5, -2.0]])), target.probabilities(np.array([[0.0, 0.0]]))
    (array([[1, 0]]), array([[0.5, 0.5]]))
    """

    names: NDArray[Any]

    loss = LOGISTIC

    @classmethod
    def read(
        cls,
        y: object,
        parameter: str,
        function: str,
        length: int,
        *,
        rows: NDArray[np.int64] | None = None,
        missing: tuple[str, ...] = MISSING_LABELS,
        classes: NDArray[Any] | None = None,
    ) -> Labels:
        """Return an indicator matrix of 0, 1 and NaN, (m, columns); a row is known where at least one entry is."""
        del missing, classes
        expected = f"an array of {length} rows of 0 and 1, one column per label, NaN where unknown"
        found = _read_rows(y, parameter, function, length, expected, rows, several=True)
        wrong = found.values[~(np.isin(found.values, (0, 1)) | np.isnan(found.values))]
        if wrong.size:
            reject(parameter, function, expected, describe(wrong[0].item()))
        return found

    @classmethod
    def of(cls, labels: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Self:
        """Return the target of these rows, whatever their weights; refuse a label that no node has, and one that all have."""
        del weights
        for value, whom in ((1, "no node has"), (0, "every node has")):
            lacking = np.flatnonzero(~(labels == value).any(axis=0))
            if lacking.size:
                which = ", ".join(str(at) for at in lacking[:5].tolist())
                reject(
                    "y", "fit", "labels that some nodes have and others have not", f"one that {whom}, column {which},"
                )
        columns: int = labels.shape[1]
        return cls(np.arange(columns))

    @property
    def columns(self) -> int:
        """Number of labels."""
        return len(self.names)

    def encode(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows as they are."""
        return labels.astype(np.float64)

    def decode(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return rows of integers, or of numbers where some are unknown."""
        return values if np.isnan(values).any() else values.astype(np.int64)

    def predictions(self, outputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return 1 for each label that is more probable than not, shape (m, columns)."""
        return (outputs > 0).astype(np.int64)

    def probabilities(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the probability of each label by itself."""
        return special.expit(outputs)

    def margins(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the log odds."""
        return outputs

    def score(self, labels: NDArray[Any], outputs: NDArray[Any], weights: NDArray[np.float64] | None = None) -> float:
        """Return the share of nodes all of whose labels are right, as scikit-learn does; nodes with unknown labels are left out."""
        whole = ~np.isnan(labels).any(axis=1)
        if not whole.any():
            reject("y", "score", "nodes all of whose labels are known", "none")
        much = None if weights is None else weights[whole]
        return float(accuracy_score(labels[whole].astype(int), self.predictions(outputs[whole]), sample_weight=much))


def rows_at_nodes(nodes: NDArray[np.int64], values: NDArray[np.float64], n_nodes: int) -> NDArray[np.float64]:
    """Return the rows of all nodes of a graph, (n, k), NaN where none is given; refuse two rows for one node that differ.

    >>> rows_at_nodes(np.array([2, 0, 2]), np.array([[5.0], [1.0], [5.0]]), 3).ravel()
    array([ 1., nan,  5.])
    """
    found = np.full((n_nodes, values.shape[1]), np.nan)
    found[nodes] = values
    same = (found[nodes] == values) | (np.isnan(found[nodes]) & np.isnan(values))
    torn = np.flatnonzero(~same.all(axis=1))
    if torn.size:
        reject("y", "fit", "one value per node", f"two for node {nodes[torn[0]]}")
    return found


def _read_rows(
    y: object,
    parameter: str,
    function: str,
    length: int,
    expected: str,
    rows: NDArray[np.int64] | None,
    *,
    several: bool,
) -> Labels:
    """Return numbers, and which rows have a known one; with `several` they have columns."""
    given: Any = cast("Any", y).toarray() if sparse.issparse(y) else y
    absent = None
    if isinstance(given, np.ma.MaskedArray):
        masked = cast("Any", given)
        absent, given = np.ma.getmaskarray(masked), masked.data
    array: NDArray[Any] = check_array(given, parameter, function, expected)
    if array.dtype.kind == "O":
        try:
            array = np.array([np.nan if _is_absent(one) else float(one) for one in array.ravel()]).reshape(array.shape)
        except (TypeError, ValueError):
            reject(parameter, function, expected, "values that are no numbers")
    if array.dtype.kind not in "fiub" or (array.dtype.kind == "b" and not several):
        reject(parameter, function, expected, array)
    if array.ndim == 2 and array.shape[1] == 1 and not several:
        array = array[:, 0]
    if array.ndim not in (1, 2) or len(array) != length or (several and (array.ndim != 2 or array.shape[1] < 2)):
        reject(parameter, function, expected, array)
    values = array.astype(np.float64)
    if absent is not None:
        values[absent.reshape(values.shape)] = np.nan
    values = values if rows is None else values[rows]
    if np.isinf(values).any():
        reject(
            parameter,
            function,
            expected,
            f"an infinite one at index {np.flatnonzero(np.isinf(values).reshape(len(values), -1).any(axis=1))[0]}",
        )
    known: NDArray[np.bool_] = np.logical_not(np.isnan(values).reshape(len(values), -1).all(axis=1))
    return Labels(values, known)


def _is_absent(item: object) -> bool:
    return item is None or type(item).__name__ in ("NAType", "NaTType")
