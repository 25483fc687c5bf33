"""Dense features on one device, as the design matrix of a regression: rows that grow in number, along few directions.

A few hundred directions, in which features vary the most, take the place of thousands of columns, and precondition the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pprop._errors import InputError, Remedy
from pprop._validate import check_choice
from pprop.settings import DEVICE

Floats = NDArray[np.float64]
N_DIRECTIONS = 256  # more cost more to find than they save
PASSES = 2  # over the features, there and back, to find them
SAMPLE = 4096  # rows that are enough to find them


@final
class CPU:
    """numpy; its BLAS gets one thread, because the bits of a product depend on how many share it."""

    name = "cpu"
    # The module with the functions of the device's arrays; those that are called have the same names in torch.
    xp: Any = np

    def put(self, array: NDArray[Any]) -> Any:
        """Return an array of this device."""
        return array

    def get(self, array: Any) -> Floats:
        """Return a numpy array."""
        return array

    def sparse(self, matrix: sp.csr_array) -> Any:
        """Return a sparse matrix of float64 on this device, whose ``@`` takes a dense one."""
        return matrix.astype(np.float64)

    def empty(self, n_rows: int, n_columns: int) -> Any:
        """Return a matrix of float64 to be filled."""
        return np.empty((n_rows, n_columns))

    def fixed_order(self) -> Any:
        """Return a context in which the order of sums does not depend on the number of threads."""
        return threadpool_limits(limits=1, user_api="blas")


@final
class Torch:
    """torch, for a GPU, with the methods of `CPU`. On the CPU, for tests, products depend on the number of threads."""

    xp: Any = torch

    def __init__(self, name: str = "cuda") -> None:
        self.name = name

    def put(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(array, device=self.name)

    def get(self, array: Any) -> Floats:
        return array.cpu().numpy()

    def sparse(self, matrix: sp.csr_array) -> torch.Tensor:
        entries = matrix.tocoo()  # torch calls its CSR matrices a beta, in a warning
        places = torch.tensor(np.stack([entries.row, entries.col]).astype(np.int64), device=self.name)
        values = torch.tensor(entries.data, dtype=torch.float64, device=self.name)
        return torch.sparse_coo_tensor(places, values, entries.shape, check_invariants=False).coalesce()

    def empty(self, n_rows: int, n_columns: int) -> torch.Tensor:
        return torch.empty((n_rows, n_columns), dtype=torch.float64, device=self.name)

    def fixed_order(self) -> Any:
        return nullcontext()  # threads of the host have no part in it


# Where regressions are computed; its arrays are of a type of their own, which only `get` brings back.
Device = CPU | Torch


def device_named(name: str) -> Device:
    """Return a device by its name, ``"cpu"`` or ``"cuda"``.

    >>> device_named("cpu").name
    'cpu'
    """
    check_choice(name, "device", "feature propagation", ("cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        cpu = Remedy(settings={"device": DEVICE.default})
        raise InputError("The device 'cuda' needs a CUDA GPU, and torch sees none here.", remedies=[cpu])
    return CPU() if name == "cpu" else Torch(name)


class Design(ABC):
    """The matrix of a regression, (m, f), as an operator, and what is known of its spectrum."""

    @abstractmethod
    def times(self, coefficients: Any) -> Any:
        """Return its product with the transpose of coefficients (c, f), shape (m, c)."""

    @abstractmethod
    def under(self, left: Any) -> Any:
        """Return the product of the transpose of a matrix (m, c) and it, shape (c, f)."""

    @abstractmethod
    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        """Return about the inverse of the Hessians ``X^T D_k X + penalty I``, where D_k has the trace curvature[k]."""

    def intercepts(self, left: Any) -> Any:
        """Return the same product for the intercepts, a column of ones: the sums of the columns of (m, c), shape (c,)."""
        return left.sum(0)

    def largest(self, of_coefficients: Any, of_intercepts: Any, xp: Any) -> Any:
        """Return the largest entry of a gradient, (c,), in the coordinates that the tolerance is meant for."""
        return xp.maximum(xp.amax(abs(of_coefficients), 1), abs(of_intercepts))


class FeatureRows(Design):
    """Rows of features to learn from, side by side in memory, so that a new one copies itself and no other.

    Parameters
    ----------
    features
        Of all nodes, shape (n, f), an array of the device.
    directions
        Those along which all features vary the most.
    device
        Where products are computed.

    Examples
    --------
    >>> rows = Turned(np.arange(6.0).reshape(3, 2), Directions(np.zeros(2), np.eye(2), np.ones(2), 0.0), CPU())
    >>> rows.add(np.array([2])); rows.add(np.array([0]))
    >>> rows.times(np.ones((1, 2))).ravel(), rows.under(np.array([[1.0], [10.0]])).ravel()
    (array([9., 1.]), array([ 4., 15.]))
    """

    def __init__(self, features: Any, directions: Directions, device: Device) -> None:
        self.device, self._directions = device, directions
        self.shape: tuple[int, int] = int(features.shape[0]), int(features.shape[1])
        self.count = 0
        self._features = features
        self._rows = device.empty(*self.shape)  # memory is taken page by page as rows come

    def add(self, nodes: NDArray[np.int64]) -> None:
        """Take the rows of some nodes along."""
        self._rows[self.count : self.count + len(nodes)] = self._features[self.device.put(nodes)]
        self.count += len(nodes)

    def times(self, coefficients: Any) -> Any:
        """Return the product of the rows taken so far, (m, f), and the transpose of coefficients (c, f): (m, c)."""
        return self._rows[: self.count] @ coefficients.T

    def under(self, left: Any) -> Any:
        """Return the product of the transpose of a matrix (m, c) and those rows, shape (c, f)."""
        return left.T @ self._rows[: self.count]

    def intercepts(self, left: Any) -> Any:
        """Return the sums of the columns, or zeros where the intercepts are to stay as they are."""
        return left.sum(0) * (1.0 if self._directions.intercepts else 0.0)


@final
@dataclass(frozen=True)
class Directions:
    """Orthonormal columns V (f, k) along which centred features vary the most; arrays of one device.

    The Hessian of a class is about ``penalty I + curvature V diag(squares) V^T``, whose eigenvalues differ by a factor of
    hundreds: diffused features are nearly alike. In V it is nearly diagonal. What is found is the same for any V.

    Attributes
    ----------
    centre
        Mean of the features, (f,). Without it, the first direction and the intercept would be nearly the same.
    columns
        V.
    squares
        Mean square of the centred features along each, (k,).
    others
        That along a direction orthogonal to all of them, on average.
    intercepts
        Whether a regression has free intercepts. Without them the centre is zero.
    """

    centre: Any
    columns: Any
    squares: Any
    others: float
    intercepts: bool = True

    def turned(self, features: Any) -> Any:
        """Return the centred features along the directions, (n, k)."""
        return features @ self.columns - self.centre @ self.columns

    def inside(self, coefficients: Any) -> Any:
        """Return coefficients (c, f) along the directions, (c, k)."""
        return coefficients @ self.columns

    def back(self, inside: Any) -> Any:
        """Return coefficients (c, f) from those along the directions, (c, k)."""
        return inside @ self.columns.T


def leading_directions(features: Any, device: Device, k: int = N_DIRECTIONS, *, intercepts: bool = True) -> Directions:
    """Return about the k leading principal directions of a matrix (n, f), by subspace iteration from fixed numbers.

    Of a large matrix, some thousand rows at equal distances speak for all.

    Examples
    --------
    >>> found = leading_directions(np.array([[3.0, 0.0], [-3.0, 0.0], [1.0, 2.0], [-1.0, -2.0]]), CPU())
    >>> found.squares.round(6)  # eigenvalues of [[5, 1], [1, 2]]
    array([5.302776, 1.697224])
    """
    sample = features[:: -(-int(features.shape[0]) // SAMPLE)]
    n, f = int(sample.shape[0]), int(sample.shape[1])
    xp, centre = device.xp, sample.mean(0) if intercepts else 0 * sample[0]
    sample = sample - centre
    columns = device.put(np.eye(f) if f <= k else np.random.default_rng(0).standard_normal((f, min(k, n))))
    for _ in range(PASSES if f > k else 0):
        columns = xp.linalg.qr(sample.T @ (sample @ columns))[0]
    forth = sample @ columns
    squares, turn = xp.linalg.eigh(forth.T @ forth / n)
    squares, columns = xp.flip(squares, (0,)).clip(0), columns @ xp.flip(turn, (1,))
    others = max(float((sample * sample).sum()) / n - float(squares.sum()), 0.0) / max(f - int(squares.shape[0]), 1)
    return Directions(centre, columns, squares, others, intercepts)


@final
class Turned(FeatureRows):
    """Rows of centred features along the directions: columns are nearly uncorrelated, so a diagonal is enough."""

    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        diagonal = penalty + curvature[:, None] * self._directions.squares
        return lambda gradient: gradient / diagonal


@final
class Centred(FeatureRows):
    """Rows of all features, centred: a diagonal along the directions, and one number for what is orthogonal to them."""

    def times(self, coefficients: Any) -> Any:
        return super().times(coefficients) - coefficients @ self._directions.centre

    def under(self, left: Any) -> Any:
        return super().under(left) - left.sum(0)[:, None] * self._directions.centre

    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        known = self._directions
        outside = penalty + curvature[:, None] * known.others
        change = 1 / (penalty + curvature[:, None] * known.squares) - 1 / outside

        def approximate(gradient: Any) -> Any:
            return gradient / outside + known.back(known.inside(gradient) * change)

        return approximate

    def largest(self, of_coefficients: Any, of_intercepts: Any, xp: Any) -> Any:
        """Return that of the features as they are, whose intercept is another one."""
        return super().largest(of_coefficients + of_intercepts[:, None] * self._directions.centre, of_intercepts, xp)
