"""A dense matrix of features on one device, and the rows of it that a regression learns from, which only grow in number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any, final

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pprop._errors import InputError
from pprop._validate import check_choice

Floats = NDArray[np.float64]


class Device(ABC):
    """Where regressions are computed; arrays there are of a type of its own, which only `get` brings back.

    Attributes
    ----------
    name
        As torch spells it.
    xp
        The module with the functions of those arrays. What is called is spelled alike in numpy and torch, so that one
        code serves both.
    """

    name: str
    xp: Any

    @abstractmethod
    def put(self, array: NDArray[Any]) -> Any:
        """Return an array of this device."""

    @abstractmethod
    def get(self, array: Any) -> Floats:
        """Return a numpy array."""

    @abstractmethod
    def sparse(self, matrix: sp.csr_array) -> Any:
        """Return a sparse matrix of float64 on this device, whose ``@`` takes a dense one."""

    @abstractmethod
    def empty(self, n_rows: int, n_columns: int) -> Any:
        """Return a matrix of float64 to be filled."""

    @abstractmethod
    def fixed_order(self) -> Any:
        """Return a context in which sums are made in an order that the number of threads has no say in."""


@final
class CPU(Device):
    """numpy; its BLAS gets one thread, because the bits of a product depend on how many share it."""

    name = "cpu"
    xp = np

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def get(self, array: Any) -> Floats:
        return array

    def sparse(self, matrix: sp.csr_array) -> Any:
        return matrix.astype(np.float64)

    def empty(self, n_rows: int, n_columns: int) -> Floats:
        return np.empty((n_rows, n_columns))

    def fixed_order(self) -> Any:
        return threadpool_limits(limits=1, user_api="blas")


@final
class Torch(Device):
    """torch, on a GPU: on the CPU its products depend on the number of threads, and it is there to be tested."""

    xp = torch

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


def device_named(name: str) -> Device:
    """Return a device by its name, ``"cpu"`` or ``"cuda"``.

    >>> device_named("cpu").name
    'cpu'
    """
    check_choice(name, "device", "feature propagation", ("cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device='cuda' needs a CUDA GPU, and torch sees none here. Use device='cpu'.")
    return CPU() if name == "cpu" else Torch(name)


@final
class FeatureRows:
    """Rows of features to learn from, side by side in memory, so that a new one copies itself and no other.

    Parameters
    ----------
    features
        Of all nodes, shape (n, f), an array of the device.
    device
        Where products are computed.

    Examples
    --------
    >>> rows = FeatureRows(np.arange(6.0).reshape(3, 2), CPU())
    >>> rows.add(np.array([2])); rows.add(np.array([0]))
    >>> rows.times(np.ones((1, 2))).ravel(), rows.under(np.array([[1.0], [10.0]])).ravel()
    (array([9., 1.]), array([ 4., 15.]))
    """

    def __init__(self, features: Any, device: Device) -> None:
        self.device = device
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
