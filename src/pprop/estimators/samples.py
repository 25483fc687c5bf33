"""The nodes and labels given to a classifier: checked, and divided into training and stopping nodes."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from pprop._errors import InputError
from pprop._validate import check_array, check_float, check_int, check_texts, describe, reject
from pprop.datasets import Split


def node_positions(X: object, parameter: str, function: str, n_nodes: int) -> NDArray[np.int64]:
    """Return node positions of shape (m,), given in that shape or as a column of shape (m, 1).

    >>> node_positions([[4], [0]], "X", "predict", 5)
    array([4, 0])
    """
    expected = f"an array of node positions, integers from 0 to {n_nodes - 1}, of shape (m,) or (m, 1)"
    if sparse.issparse(X):
        reject(parameter, function, expected, "a sparse matrix")
    array = check_array(X, parameter, function, expected)
    if array.dtype.kind == "c":
        reject(parameter, function, expected, array, remedy="Complex data not supported.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        reject(parameter, function, expected, "an array with NaN or inf")
    if array.ndim == 2 and array.shape[1] == 0:  # in scikit-learn's words, which its own checks look for
        got = f"an array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required"
        reject(parameter, function, expected, got)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        reject(parameter, function, expected, describe(array if array.ndim else array.item()))
    if array.dtype.kind == "O" and all(_is_integer(item) for item in array):
        array = array.astype(np.int64)
    if array.size and array.dtype.kind not in "iu":
        remedy = "Use graph.positions(ids) to turn ids into positions." if array.dtype.kind in "UO" else ""
        reject(parameter, function, expected, array, remedy=remedy)
    if array.size and (array.min() < 0 or array.max() >= n_nodes):
        at = array.argmin() if array.min() < 0 else array.argmax()
        remedy = "Negative values in data." if array[at] < 0 else ""
        reject(parameter, function, expected, f"{array[at]} at index {at}", remedy=remedy)
    return array.astype(np.int64)


def class_labels(y: object, parameter: str, function: str, length: int) -> NDArray[Any]:
    """Return class labels of shape (m,) as an array of int64 or of strings.

    Whole numbers stored as floats become integers. Truth values, fractions and mixtures are refused.

    >>> class_labels([1.0, 2.0], "y", "fit", 2), class_labels(["b", "a"], "y", "fit", 2)
    (array([1, 2]), array(['b', 'a'], dtype='<U1'))
    """
    expected = f"an array of {length} class labels, one per node, all integers or all strings"
    # A list is not left to numpy, which would make the strings '1' and 'a' of [1, 'a'].
    array: NDArray[Any] = np.asarray(y) if hasattr(y, "__array__") else np.array(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = cast("NDArray[Any]", column_or_1d(array, warn=True))
    if array.shape != (length,):
        reject(parameter, function, expected, array)
    if array.dtype.kind == "O":
        array = _typed(array, parameter, function)
    if array.dtype.kind in "iu" and (array.size == 0 or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind != "f":
        remedy = "Turn truth values into integers with .astype(int)." if array.dtype.kind == "b" else ""
        reject(parameter, function, expected, f"Unknown label type: {describe(array)},", remedy=remedy)
    if not np.isfinite(array).all():
        reject(parameter, function, expected, "an array with NaN or inf")
    with np.errstate(invalid="ignore"):  # a number too large for an integer differs from what it becomes
        whole = array.astype(np.int64)
    if (whole != array).any():
        bad = array[whole != array][0]
        reject(parameter, function, expected, f"Unknown label type: the continuous value {bad}")
    return whole


def _typed(array: NDArray[Any], parameter: str, function: str) -> NDArray[Any]:
    """Give an array of objects the type that all its elements have, where they have one."""
    if all(isinstance(item, str) for item in array):
        return check_texts(array.tolist(), parameter, function)
    if all(_is_integer(item) for item in array):
        return array.astype(np.int64)
    if all(isinstance(item, float | np.floating) or _is_integer(item) for item in array):
        return array.astype(np.float64)
    if all(isinstance(item, bool | np.bool_) for item in array):
        return array.astype(np.bool_)
    return array


def _is_integer(item: object) -> bool:
    return isinstance(item, numbers.Integral) and not isinstance(item, bool) and -(2**63) <= int(item) < 2**63


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


def seed_of(random_state: object, function: str) -> int:
    """Return the seed of a run: an integer is its own seed, a RandomState or None (numpy's global one) draws one.

    >>> seed_of(7, "fit"), seed_of(np.random.RandomState(0), "fit")
    (7, 2357136044)
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        return check_int(random_state, "random_state", function, low=0, high=2**64 - 1)
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        expected = "an integer from 0 to 2**64 - 1, a RandomState or None"
        reject("random_state", function, expected, describe(random_state))
    return int(check_random_state(random_state).randint(0, 2**32, dtype=np.uint32))


def labelled_nodes(
    X: object, y: object, n_nodes: int, estimator: str, function: str = "fit"
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the nodes given to `fit` and their class labels, both of shape (m,), checked; at least one."""
    nodes = node_positions(X, "X", function, n_nodes)
    if len(nodes) == 0:
        reject("X", function, "an array of at least one node", "none")
    if y is None:  # in the words that scikit-learn's users know
        raise InputError(
            f"{estimator} requires y to be passed, but the target y is None. Pass one class label per node."
        )
    return nodes, class_labels(y, "y", function, len(nodes))


def divide_nodes(
    nodes: NDArray[np.int64], labels: NDArray[Any], stopping: object, seed: int, n_nodes: int
) -> tuple[Split, NDArray[np.int64], NDArray[Any]]:
    """Return training and stopping nodes, the class index of each node that has one, and the classes."""
    pair: Sequence[Any] = cast("Any", stopping) if isinstance(stopping, tuple | list) else ()
    if len(pair) == 2:
        watched = node_positions(pair[0], "stopping", "fit", n_nodes)
        watched_labels = class_labels(pair[1], "stopping", "fit", len(watched))
        both = np.intersect1d(nodes, watched)
        if both.size:
            reject("stopping", "fit", "nodes that are not in X", f"node {both[0]}, which is,")
        if not watched.size:
            reject("stopping", "fit", "at least one node with its class, or a fraction", "none")
        if watched_labels.dtype.kind != labels.dtype.kind:
            reject("stopping", "fit", "labels of the same kind as y, integers or strings", watched_labels)
        classes, codes = np.unique(np.concatenate([labels, watched_labels]), return_inverse=True)
        known = known_labels(np.concatenate([nodes, watched]), codes, n_nodes)
        train_nodes = nodes
    else:
        try:
            fraction = check_float(cast("object", stopping), "stopping", "fit", "(0, 1)")
        except InputError:
            reject("stopping", "fit", "a pair (nodes, y) or a float in (0, 1)", describe(cast("object", stopping)))
        classes, codes = np.unique(labels, return_inverse=True)
        known = known_labels(nodes, codes, n_nodes)
        train_nodes, watched = hold_out(nodes, codes, fraction, seed)
    check_classes(classes)
    return Split(train_nodes, watched, np.empty(0, dtype=np.int64)), known, classes


def check_classes(classes: NDArray[Any]) -> None:
    """Refuse labels of a single class."""
    if len(classes) < 2:
        reject("y", "fit", "labels of at least two classes", f"1 class, {classes[0].item()!r},")


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
        warnings.warn(
            "Every class has one node only, so early stopping watches the training nodes themselves. "
            "Pass stopping=(nodes, y) to fit, or more nodes.",
            stacklevel=4,
        )
        return nodes, nodes
    held = np.isin(nodes, np.concatenate(chosen))
    return nodes[~held], nodes[held]
