"""How good a prediction is: accuracy, and macro F1 by two definitions that differ."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import check_int, reject

_Counts: TypeAlias = NDArray[np.int64]


def accuracy(predicted: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of nodes whose predicted class is their label.

    Parameters
    ----------
    predicted, labels
        Classes of the evaluation nodes, shape (m,), at least one.

    Examples
    --------
    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    first, second = _pair(predicted, labels, "accuracy")
    return float((first == second).mean())


def f1_paper(predicted: ArrayLike, labels: ArrayLike, n_classes: int) -> float:
    r"""Return the paper's macro F1: the harmonic mean of the class-averaged precision and recall.

    .. math::

        F = \frac{2 P R}{P + R}, \quad
        P = \frac 1 c \sum_k \frac{TP_k}{TP_k + FP_k}, \quad
        R = \frac 1 c \sum_k \frac{TP_k}{TP_k + FN_k}

    The precision of a class without false positives is 1, also when it was never predicted, and so is the recall of a
    class without false negatives: this is what the authors' code computes. It is not the mean of the classes' F1.

    Parameters
    ----------
    predicted, labels
        Classes of the evaluation nodes, shape (m,), each from 0 to ``n_classes - 1``.
    n_classes
        Classes c of the graph.

    Examples
    --------
    The precisions are 1, 1/2 and 1, the recalls 1, 1 and 1/2, so both averages are 5/6:

    >>> round(f1_paper([0, 1, 1, 2], [0, 1, 2, 2], 3), 6)
    0.833333
    """
    right, wrongly, missed = _counts(predicted, labels, n_classes, "f1_paper")
    precision = float(np.mean(_share(right, wrongly, empty=1.0)))
    recall = float(np.mean(_share(right, missed, empty=1.0)))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1_macro(predicted: ArrayLike, labels: ArrayLike, n_classes: int) -> float:
    r"""Return the usual macro F1, the mean over classes of ``2 TP / (2 TP + FP + FN)``.

    A class that is neither predicted nor present counts 0, as in scikit-learn with ``zero_division=0``.

    Parameters
    ----------
    predicted, labels, n_classes
        As for `f1_paper`.

    Examples
    --------
    >>> round(f1_macro([0, 1, 1, 2], [0, 1, 2, 2], 3), 6)
    0.777778
    """
    right, wrongly, missed = _counts(predicted, labels, n_classes, "f1_macro")
    return float(np.mean(_share(2 * right, wrongly + missed, empty=0.0)))


def _share(part: _Counts, rest: _Counts, empty: float) -> NDArray[np.float64]:
    """Return ``part / (part + rest)`` for each class, `empty` where both are 0."""
    total = part + rest
    return np.where(total > 0, part / np.maximum(total, 1), empty)


def _counts(predicted: ArrayLike, labels: ArrayLike, n_classes: int, function: str) -> tuple[_Counts, _Counts, _Counts]:
    """Return true positives, false positives and false negatives of each class, each of shape (c,)."""
    first, second = _pair(predicted, labels, function)
    check_int(n_classes, "n_classes", function, low=1)
    for name, classes in (("predicted", first), ("labels", second)):
        if classes.min() < 0 or classes.max() >= n_classes:
            got = f"classes from {classes.min()} to {classes.max()}"
            reject(name, function, f"classes from 0 to {n_classes - 1}", got)
    right = np.bincount(first[first == second], minlength=n_classes)
    return right, np.bincount(first, minlength=n_classes) - right, np.bincount(second, minlength=n_classes) - right


def _pair(predicted: ArrayLike, labels: ArrayLike, function: str) -> tuple[_Counts, _Counts]:
    """Return both as int64 of one shape (m,), m > 0."""
    first: NDArray[Any] = np.asarray(predicted)
    second: NDArray[Any] = np.asarray(labels)
    for name, array in (("predicted", first), ("labels", second)):
        if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
            reject(name, function, "a one-dimensional array of classes, at least one", array)
    if first.shape != second.shape:
        reject("predicted", function, f"of the shape of 'labels', {second.shape}", first)
    return first.astype(np.int64), second.astype(np.int64)
