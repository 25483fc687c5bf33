"""Holm's correction: several tests at once, the chance of a single false alarm kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import reject

__all__ = ["holm"]


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    r"""Return the p-values of one family of tests, corrected by Holm's step-down method.

    With the p-values in ascending order, the i-th of m becomes

    .. math:: \tilde p_{(i)} = \min\Bigl(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\Bigr).

    Parameters
    ----------
    p_values
        Shape (m,), each in [0, 1]. NaN stands for a test that could not be made: it stays NaN and does not count.

    Returns
    -------
    array of shape (m,), in the order given.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(p_values, dtype=np.float64)
    made = np.flatnonzero(~np.isnan(given))
    if given.ndim != 1 or ((given[made] < 0) | (given[made] > 1)).any():
        reject("p_values", "holm", "a one-dimensional array of numbers in [0, 1]", given)
    order = made[np.argsort(given[made], kind="stable")]
    corrected = np.full(given.shape, np.nan)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)))
    return corrected
