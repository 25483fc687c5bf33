"""What is predicted of a node: classes, and the labels that people write for them."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d

from pprop._validate import check_array, check_texts, describe, reject, warn
from pprop.graph.attributes import MISSING_LABELS
from pprop.kernels.losses import CROSS_ENTROPY
from pprop.scoring import Forecast, Scoring, Threshold

# Labels as `fit` and `score` take them: a list may hold None.
LabelsLike = ArrayLike | Sequence[Any]

# pandas' own marks of an absent value, known by the names of their types: pandas need not be installed.
_ABSENT = ("NAType", "NaTType")


class Target(ABC):
    """What is predicted of a node.

    Labels, as people write them, become values, which a loss compares with the outputs of a model. Outputs become
    predictions, in the words of the labels.
    """

    # With what the outputs are compared in the training, unless a setting says it (`pprop.train`).
    loss: ClassVar[str]

    @classmethod
    @abstractmethod
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
        """Return labels as people write them, and which of them are known; `class_labels` has the parameters."""

    @classmethod
    @abstractmethod
    def of(cls, labels: NDArray[Any], weights: NDArray[np.float64] | None = None) -> Self:
        """Return the target that these labels are of, weighted; refuse labels that nothing can be learned from."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Outputs per node."""

    @abstractmethod
    def at_nodes(self, nodes: NDArray[np.int64], values: NDArray[Any], n_nodes: int) -> NDArray[Any]:
        """Return one value per node of the graph from those of some nodes; refuse two for one node."""

    @abstractmethod
    def known(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which nodes have a value."""

    @abstractmethod
    def encode(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the values of labels, shape (m, ...)."""

    @abstractmethod
    def decode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of values."""

    @abstractmethod
    def hold_out(
        self, nodes: NDArray[np.int64], values: NDArray[Any], fraction: float, seed: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Divide labelled nodes into training nodes and a fraction for validation, both in the order given."""

    @abstractmethod
    def predictions(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return what the outputs of some nodes, shape (m, columns), stand for."""

    @abstractmethod
    def score(self, labels: NDArray[Any], outputs: NDArray[Any], weights: NDArray[np.float64] | None = None) -> float:
        """Return how good outputs are, given the labels of these nodes: the larger the better."""


@final
@dataclass(frozen=True, eq=False)
class Classes(Target):
    """One of several classes: outputs are logits. The largest wins and the score is the accuracy, unless it is said otherwise.

    Attributes
    ----------
    names
        Sorted: integers, text or truth values, shape (c,).
    scoring
        What the score is; None: the accuracy.
    threshold
        From which probability on a node is predicted as the positive class; None: every node gets its most probable class.

    Examples
    --------
    >>> target = Classes.of(np.array(["b", "a", "b"]))
    >>> target.encode(np.array(["b", "a"])), target.decode(np.array([0, 0]))
    (array([1, 0]), array(['a', 'a'], dtype='<U1'))
    >>> target.predictions(np.array([[0.2, 3.0]])), target.probabilities(np.array([[1.0, 1.0]]))
    (array(['b'], dtype='<U1'), array([[0.5, 0.5]]))
    """

    names: NDArray[Any]
    scoring: Scoring | None = None
    threshold: Threshold | None = None

    loss = CROSS_ENTROPY

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
        """Return class labels; see `class_labels`."""
        return class_labels(y, parameter, function, length, rows=rows, missing=missing, classes=classes)

    @classmethod
    def of(cls, labels: NDArray[Any], weights: NDArray[np.float64] | None = None) -> Self:
        """Return the classes of these labels, whatever their weights; refuse a single one."""
        del weights
        names = np.unique(labels)
        if len(names) < 2:
            reject("y", "fit", "labels of at least two classes", f"1 class, {names[0].item()!r},")
        return cls(names)

    @property
    def columns(self) -> int:
        """Number of classes."""
        return len(self.names)

    def encode(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return class indices; labels are among the classes."""
        return np.searchsorted(self.names, labels)

    def at_nodes(self, nodes: NDArray[np.int64], values: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
        """Return class indices of all nodes, -1 where none is given."""
        return known_labels(nodes, values, n_nodes)

    def known(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which nodes have a class."""
        return values >= 0

    def decode(self, values: NDArray[np.int64]) -> NDArray[Any]:
        """Return the classes of class indices."""
        return self.names[values]

    def hold_out(
        self, nodes: NDArray[np.int64], values: NDArray[np.int64], fraction: float, seed: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Divide labelled nodes class by class; see `hold_out`."""
        return hold_out(nodes, values, fraction, seed)

    def predictions(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the class of the largest logit of each node, or the one that the threshold chooses."""
        if self.threshold is None:
            return self.names[outputs.argmax(axis=1)]
        return self.names[self.choose(self.probabilities(outputs))]

    def choose(self, probabilities: NDArray[Any]) -> NDArray[np.int64]:
        """Return the positions of the classes that are predicted from probabilities, shape (m, c).

        With a threshold, a node whose probability of the positive class reaches it is of this class, and another node is
        of the most probable of the other classes.

        >>> from pprop.scoring import ThresholdRule
        >>> half = Threshold("b", 0.3, ThresholdRule("f1"), 40, 10, 12, 9)
        >>> Classes(np.array(["a", "b", "c"]), threshold=half).choose(np.array([[0.5, 0.3, 0.2], [0.2, 0.29, 0.51]]))
        array([1, 2])
        """
        if self.threshold is None:
            return probabilities.argmax(axis=1)
        positive = self.positions([self.threshold.positive])[0]
        others = probabilities.copy()
        others[:, positive] = -np.inf
        return np.where(self.threshold.takes(probabilities[:, positive]), positive, others.argmax(axis=1))

    def positions(self, names: Sequence[Any]) -> list[int]:
        """Return the positions of some classes."""
        return [int(np.flatnonzero(self.names == name)[0]) for name in names]

    def probabilities(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the softmax of the logits of each node."""
        return special.softmax(outputs, axis=1)

    def margins(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Return the logits; of two classes the second less the first, shape (m,), as scikit-learn does."""
        return outputs[:, 1] - outputs[:, 0] if self.columns == 2 else outputs

    def score(self, labels: NDArray[Any], outputs: NDArray[Any], weights: NDArray[np.float64] | None = None) -> float:
        """Return the accuracy, the share of labels that are predicted, or the value of the scoring."""
        if self.scoring is None:
            return float(accuracy_score(labels, self.predictions(outputs), sample_weight=weights))
        strange = labels[~np.isin(labels, self.names)]
        if len(strange):
            reject(
                "y", "score", f"labels among the classes, as {self.scoring.words} needs", describe(strange[0].item())
            )
        truth, probabilities = self.encode(labels), self.probabilities(outputs)
        self.scoring.check(truth, "nodes")
        outcome = Forecast(truth, probabilities, self.choose(probabilities))
        return self.scoring.judge(outcome, weights).value


def as_classes(target: Target, function: str) -> Classes:
    """Return a target as the classes that it is; refuse another in the name of a function.

    >>> as_classes(Classes(np.array(["a", "b"])), "fit").columns
    2
    """
    if not isinstance(target, Classes):
        reject("target", function, "one of several classes", f"{type(target).__name__}")
    return target


def known_labels(nodes: NDArray[np.int64], codes: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """Return one class index per node of the graph, -1 where none is given, from those of some nodes.

    >>> known_labels(np.array([3, 0, 3]), np.array([1, 0, 1]), 5)
    array([ 0, -1, -1,  1, -1])
    """
    labels = np.full(n_nodes, -1, dtype=np.int64)
    labels[nodes] = codes
    torn = np.flatnonzero(labels[nodes] != codes)
    if torn.size:
        reject("y", "fit", "one class per node", f"two classes for node {nodes[torn[0]]}")
    return labels


def hold_out(
    nodes: NDArray[np.int64], codes: NDArray[np.int64], fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide labelled nodes into training and stopping nodes, class by class.

    Of a class with m distinct nodes, ``round(fraction * m)`` go to the stopping nodes, but at least one and at most
    m - 1; the only node of a class goes to the training nodes. Where every class has only one node, the stopping nodes
    are the training nodes, and a warning says so. A node that is listed several times stays on one side.

    Returns
    -------
    Training and stopping nodes, in the order given.

    Examples
    --------
    >>> train, stopping = hold_out(np.arange(6), np.array([0, 0, 0, 0, 1, 2]), fraction=0.25, seed=0)
    >>> train, stopping
    (array([1, 2, 3, 4, 5]), array([0]))
    """
    # RandomState, because numpy promises its stream for all versions to come; two words, because it takes 32 bits each
    random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])
    distinct, first = np.unique(nodes, return_index=True)
    chosen: list[NDArray[np.int64]] = []
    for code in range(int(codes.max()) + 1):
        members = distinct[codes[first] == code]
        if len(members) > 1:
            size = min(max(round(fraction * len(members)), 1), len(members) - 1)
            chosen.append(random.choice(members, size, replace=False))
    if not chosen:
        warn(
            "Every class has one node only, so early stopping watches the training nodes themselves. "
            "Pass stopping=(nodes, y) to fit, or more nodes."
        )
        return nodes, nodes
    held = np.isin(nodes, np.concatenate(chosen))
    return nodes[~held], nodes[held]


def has_columns(y: object) -> bool:
    """Whether labels are an indicator matrix, with at least two columns.

    >>> has_columns([[0, 1], [1, 1]]), has_columns([[0], [1]]), has_columns(["a", "b"])
    (True, False, False)
    """
    shape: Any = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple):
        first: Any = cast("Any", y)[0] if y else None
        return isinstance(first, list | tuple | np.ndarray) and len(cast("Any", first)) > 1
    return bool(shape is not None and len(shape) == 2 and shape[1] > 1)


@final
class Labels(NamedTuple):
    """Labels as given, shape (m,), int64, text or truth values, and which of them are known, shape (m,)."""

    values: NDArray[Any]
    known: NDArray[np.bool_]


def class_labels(
    y: object,
    parameter: str,
    function: str,
    length: int,
    *,
    rows: NDArray[np.int64] | None = None,
    missing: tuple[str, ...] = MISSING_LABELS,
    classes: NDArray[Any] | None = None,
) -> Labels:
    """Return class labels of shape (m,) as integers, text or truth values, and which of them are known.

    Unknown are None, NaN, pandas' NA and NaT, what a masked array masks, and what is written as one of `missing`; where
    -1 and one other integer are the only labels, -1 is a class, and a warning says so, unless `missing` is the user's
    own. Whole numbers stored as floats become integers. Fractions and mixtures are refused.

    Parameters
    ----------
    y, parameter, function
        The labels; their name and the function's in an error.
    length
        m, or the n of `rows`.
    rows
        Which of n labels are meant, shape (m,), where y has n of them.
    missing
        What stands for an unknown label, as text: "-1" is also the integer.
    classes
        Those of a fitted model, or of other labels that belong to these: what is among them is known in any case.

    Examples
    --------
    >>> class_labels([1.0, 2.0, None], "y", "fit", 3)
    Labels(values=array([1, 2, 0]), known=array([ True,  True, False]))
    >>> class_labels(["b", "a", "?"], "y", "fit", 3)
    Labels(values=array(['b', 'a', ''], dtype='<U1'), known=array([ True,  True, False]))
    """
    expected = f"an array of {length} class labels, one per node, all integers or all strings"
    absent: NDArray[np.bool_] | None = None
    if isinstance(y, np.ma.MaskedArray):
        masked: Any = cast("Any", y)
        absent, given = np.ma.getmaskarray(masked), masked.data
    else:  # a list is not left to numpy, which would make the strings '1' and 'a' of [1, 'a']
        given = y if hasattr(y, "__array__") else _objects(y)
    array = check_array(given, parameter, function, expected)
    if array.ndim == 2 and array.shape[1] == 1:
        array = cast("NDArray[Any]", column_or_1d(array, warn=True))
    if array.ndim == 2 and array.shape[0] == length:
        remedy = "A node has one class: several labels of a node are not supported."
        reject(parameter, function, expected, array, remedy=remedy)
    if array.shape != (length,):
        reject(parameter, function, expected, array)
    known = np.ones(length, dtype=np.bool_) if absent is None else ~absent.reshape(length)
    if rows is not None:
        array, known = array[rows], known[rows]
    names: list[Any] = [] if classes is None else classes.tolist()
    texts = frozenset(missing) - {str(name) for name in names}
    if array.dtype.kind == "O":
        known = known & np.array([not _is_unknown(item, texts) for item in array.tolist()], dtype=np.bool_)
    elif array.dtype.kind == "f":
        known = known & ~np.isnan(array)
    values = _typed(array[known], parameter, function, expected)
    if values.dtype.kind == "U":
        found, codes = np.unique(values, return_inverse=True)
        left = ~np.isin(np.char.strip(found), list(texts))[codes]
    elif values.dtype.kind == "i":
        left = ~np.isin(values, [int(text) for text in texts if _is_written_integer(text)])
        if classes is None and missing == MISSING_LABELS and _is_sign(values):
            warn(
                f"The labels given to {function} are -1 and one other, so -1 is taken for a class. It would stand for "
                "an unknown label among labels of three or more values. If it means unknown, leave these nodes out or pass "
                "missing_labels=['-1']; if it never does, pass missing_labels=()."
            )
            left |= values == -1
    else:
        left = np.ones(len(values), dtype=np.bool_)
    whole = np.zeros(len(known), dtype=values.dtype)
    known[np.flatnonzero(known)[~left]] = False
    whole[known] = values[left]
    return Labels(whole, known)


def check_same_kind(labels: NDArray[Any], classes: NDArray[Any], parameter: str, function: str) -> None:
    """Refuse text where the classes are integers, and so on; truth values count as integers.

    >>> check_same_kind(np.array(["a"]), np.array([0, 1]), "y", "score")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'y' parameter of score must be labels like the classes, 0 and so on. Got 'a' instead.
    """
    if len(labels) and (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
        expected = f"labels like the classes, {classes[0].item()!r} and so on"
        reject(parameter, function, expected, describe(labels[0].item()))


def _objects(y: object) -> object:
    try:
        return np.array(y, dtype=object)
    except (TypeError, ValueError):  # the items have lengths of their own
        return y


def _is_unknown(item: object, texts: frozenset[str]) -> bool:
    if isinstance(item, str):
        return item.strip() in texts
    if isinstance(item, float | np.floating):
        return bool(np.isnan(cast("float", item)))
    return item is None or item is np.ma.masked or type(item).__name__ in _ABSENT


def _typed(array: NDArray[Any], parameter: str, function: str, expected: str) -> NDArray[Any]:
    """Return labels, all of them known, as int64, text or truth values."""
    if array.dtype.kind == "O":
        array = of_one_type(array, parameter, function)
    if array.dtype.kind in "iu" and (array.size == 0 or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    if array.dtype.kind in "Ub":
        return array
    if array.dtype.kind != "f":
        reject(parameter, function, expected, _strange(array))
    if not np.isfinite(array).all():
        reject(parameter, function, expected, "an array with NaN or inf")
    with np.errstate(invalid="ignore"):  # a number too large for an integer differs from what it becomes
        whole = array.astype(np.int64)
    if (whole != array).any():
        bad = array[whole != array][0]
        # "Unknown label type" are scikit-learn's words, for which its own checks look
        remedy = "Unknown label type: continuous. Numbers on a scale are no classes: divide them into a few."
        reject(parameter, function, expected, f"the number {bad}", remedy=remedy)
    return whole


def _strange(array: NDArray[Any]) -> str:
    """Return what there is in place of integers or text, for the end of an error sentence."""
    if array.dtype.kind not in "Oiu":
        return describe(array)
    large = [
        item for item in array.tolist() if isinstance(item, numbers.Integral) and not -(2**63) <= int(item) < 2**63
    ]
    if large:
        return f"{describe(large[0])}, which int64 does not hold,"
    names = sorted({type(item).__name__ for item in array.tolist()})
    return f"labels of type {' and '.join(names)}"


def of_one_type(array: NDArray[Any], parameter: str, function: str) -> NDArray[Any]:
    """Return an array of objects in the type that all its elements have, where they have one.

    >>> of_one_type(np.array([True, False], dtype=object), "X", "fit")
    array([ True, False])
    """
    items: list[object] = array.tolist()
    if all(isinstance(item, str) for item in items):
        return check_texts(cast("list[str]", items), parameter, function)
    if all(_is_integer(item) for item in items):
        return array.astype(np.int64)
    if all(isinstance(item, float | np.floating) or _is_integer(item) for item in items):
        return array.astype(np.float64)
    if all(isinstance(item, bool | np.bool_) for item in items):
        return array.astype(np.bool_)
    return array


def _is_integer(item: object) -> bool:
    """Whether something is an integer that int64 holds; a truth value is none."""
    return isinstance(item, numbers.Integral) and not isinstance(item, bool) and -(2**63) <= int(item) < 2**63


def _is_written_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and _is_integer(int(text))


def _is_sign(values: NDArray[np.int64]) -> bool:
    """Whether -1 and one other integer are all there is."""
    others = values[values != -1]
    return 0 < len(others) < len(values) and bool((others == others[0]).all())
