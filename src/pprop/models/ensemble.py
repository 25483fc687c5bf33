"""Several runs that vote: the mean of their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop._validate import check_int, describe, reject
from pprop.models.model import Model


@final
@dataclass(frozen=True)
class Ensemble:
    """Runs of one model whose probabilities are averaged.

    Attributes
    ----------
    member
        What each of them is.
    members
        How many there are.

    Examples
    --------
    >>> from pprop.models import APPNP
    >>> Ensemble(APPNP(), members=0)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'members' parameter of Ensemble must be an integer of at least 1. Got 0 instead.
    """

    member: Model
    members: int

    def __post_init__(self) -> None:
        if not isinstance(self.member, Model):
            reject("member", "Ensemble", "a model such as pprop.APPNP()", describe(self.member))
        check_int(self.members, "members", "Ensemble", low=1)


def mean_log_probabilities(logits: NDArray[Any]) -> NDArray[np.float32]:
    """Return the logarithm of the mean of the softmax over members, from their logits (m, n, c), shape (n, c).

    Their own softmax are these means again, so that they serve as logits of the whole. One member keeps its logits as
    they are.

    Examples
    --------
    >>> split = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> np.exp(mean_log_probabilities(split)).round(3)
    array([[0.7, 0.3]], dtype=float32)
    """
    if len(logits) == 1:
        return np.asarray(logits[0], dtype=np.float32)
    logs = special.log_softmax(logits.astype(np.float64), axis=2)
    return (special.logsumexp(logs, axis=0) - np.log(len(logs))).astype(np.float32)
