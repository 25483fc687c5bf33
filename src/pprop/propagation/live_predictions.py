"""Predictions of a live graph: what may be given as a node's own, and the probabilities that are read off spread ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_array, describe, reject

__all__ = ["RESPONSES", "check_predictions", "probabilities_of"]

RESPONSES = ("logits", "probabilities")
"""What is spread: any numbers, of which a softmax makes probabilities, or probabilities themselves."""
_SUM_ERROR = 1e-3
"""By how much given probabilities may miss one, as for `PropagatedClassifier`: they may come from float16."""


def check_predictions(
    predictions: Any, parameter: str, count: int, columns: int | None, function: str, response: str = "logits"
) -> NDArray[np.float64]:
    """Return predictions of so many nodes, shape (m, c), finite; a torch tensor may be one.

    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node")
    array([[1., 2.]])
    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node", "probabilities")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'predictions' parameter of add_node must be probabilities, none negative, that sum to one...
    """
    expected = f"an array of finite numbers of shape ({count}, {'c' if columns is None else columns})"
    array = check_array(predictions, parameter, function, expected)
    if columns is None and array.ndim == 1:
        array = array[:, None]
    if (
        array.ndim != 2
        or len(array) != count
        or array.dtype.kind not in "buif"
        or columns not in (None, array.shape[1])
    ):
        reject(parameter, function, expected, describe(array))
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        reject(parameter, function, expected, f"{int((~np.isfinite(found)).sum())} that are not")
    if response == "probabilities":
        wrong = np.flatnonzero((found < 0).any(axis=1) | (np.abs(found.sum(axis=1) - 1) > _SUM_ERROR))
        if len(wrong):
            got = f"{found[wrong[0]].tolist()} at index {wrong[0]}"
            reject(parameter, function, "probabilities, none negative, that sum to one in each row", got)
    return found


def probabilities_of(Z: NDArray[np.float64], response: str) -> NDArray[np.float64]:
    """Return the class probabilities of spread predictions, shape (m, c): the softmax of logits, shares of probabilities.

    Spread probabilities sum to one already where the rows of the transition matrix do, and within the tolerance.

    >>> probabilities_of(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]), "logits").round(3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> probabilities_of(np.array([[0.3, 0.9]]), "probabilities")
    array([[0.25, 0.75]])
    """
    if response == "probabilities":  # zeros may be a little below, within the tolerance
        powers = np.maximum(Z, np.finfo(np.float64).tiny)
    else:
        powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
