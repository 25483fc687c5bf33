"""How much each labelled node counts: by its sample weight and by its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_array, describe, reject
from pprop.datasets import Split
from pprop.estimators.samples import Labelled

Weights = NDArray[np.float64]
# A setting in its canonical form: None, "balanced", or a number for some of the classes.
ClassWeight = str | Mapping[Any, float] | None


def check_sample_weight(value: object, given: Labelled, function: str = "fit") -> Weights | None:
    """Return the weights of some of the nodes given to `fit` or `score`: finite, not negative and not all zero; None: all the same.

    Parameters
    ----------
    value
        One weight per label given, shape (length,), or None.
    given
        The labels, and which of them are known, shape (m,).

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> from pprop.estimators.samples import read_labelled
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((3, 3)))
    >>> check_sample_weight([1, 0, 2], read_labelled(None, ["a", None, "b"], ("X", "y"), "fit", graph))
    array([1., 2.])
    """
    if value is None:
        return None
    length, rows = given.length, given.rows
    expected = f"an array of {length} weights, one per label, finite, not negative and not all zero"
    array = check_array(given.named.ordered(value, "sample_weight", function), "sample_weight", function, expected)
    if array.shape != (length,) or array.dtype.kind not in "fiub":
        reject("sample_weight", function, expected, array)
    weights = array[rows].astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        reject("sample_weight", function, expected, f"{weights[wrong[0]]} at index {rows[wrong[0]]}")
    if not weights.any():
        reject("sample_weight", function, expected, "zero for all nodes with a known label")
    return weights


def class_weights(setting: ClassWeight, codes: NDArray[np.int64], much: Weights, classes: NDArray[Any]) -> Weights:
    """Return the weight of every class, shape (c,).

    ``"balanced"``: m / (k count), where m is the weight of all nodes, k the number of classes among them and `count` the
    weight of the class's own, as in scikit-learn; 1 for a class without nodes.

    Parameters
    ----------
    setting
        None, ``"balanced"``, or a number for some of the classes; the others then have 1.
    codes, much
        Class index and weight of some nodes, shape (m,).
    classes
        Names of all classes, shape (c,).

    Examples
    --------
    >>> class_weights("balanced", np.array([0, 0, 0, 1]), np.ones(4), np.array(["no", "yes"]))
    array([0.66666667, 2.        ])
    >>> class_weights({"yes": 3.0}, np.array([0, 1]), np.ones(2), np.array(["no", "yes"]))
    array([1., 3.])
    """
    found = np.ones(len(classes))
    if setting == "balanced":
        count = np.bincount(codes, much, minlength=len(classes))
        some = count > 0
        found[some] = much.sum() / (np.count_nonzero(some) * count[some])
    elif isinstance(setting, Mapping):
        names: list[Any] = classes.tolist()
        unknown = [name for name in setting if name not in names]
        if unknown and len(setting) - len(unknown) < len(names):  # else a class may just be missing among these nodes
            expected = f"None, 'balanced' or a dict of classes among {describe(names)}"
            reject("class_weight", "fit", expected, describe(unknown[0]))
        found = np.array([float(setting.get(name, 1.0)) for name in names])
    return found


def node_weights(
    nodes: NDArray[np.int64],
    sample_weight: Weights | None,
    split: Split,
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    class_weight: ClassWeight,
) -> tuple[Weights, Weights] | tuple[None, None]:
    """Return how much each node of the graph counts, shape (n,), and each class, shape (c,); None: all the same.

    A node that is listed several times, with several weights, counts their sum: each time their mean. ``"balanced"`` is
    meant for the training nodes and for the stopping nodes each, so that early stopping watches the balanced accuracy.

    Parameters
    ----------
    nodes, sample_weight
        Nodes given to `fit`, and their weights, shape (m,). Other stopping nodes have weight 1.
    split, labels
        Training and stopping nodes, and class indices of both, shape (n,).
    classes, class_weight
        Names of the classes, shape (c,), and the setting.

    Examples
    --------
    >>> split = Split(np.array([0, 1, 2]), np.array([3]), np.array([], dtype=int))
    >>> labels, classes = np.array([0, 0, 1, 1, -1]), np.array(["no", "yes"])
    >>> node_weights(np.array([0, 1, 2]), None, split, labels, classes, "balanced")[0]
    array([0.75, 0.75, 1.5 , 1.  , 1.  ])
    """
    if sample_weight is None and class_weight is None:
        return None, None
    own = np.ones(len(labels))
    if sample_weight is not None:
        times = np.bincount(nodes, minlength=len(labels))
        total = np.bincount(nodes, sample_weight, minlength=len(labels))
        own[nodes] = (total / np.maximum(times, 1))[nodes]
    weights, by_class = own.copy(), np.ones(len(classes))
    for some in (split.stopping, split.train):
        by_class = class_weights(class_weight, labels[some], own[some], classes)
        weights[some] = own[some] * by_class[labels[some]]
    return weights, by_class
