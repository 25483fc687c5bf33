"""What the converters read of a Graph, which imports them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph.attributes import Features
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import Scaling

_ENTRIES = 2**22  # that are looked at together


class GraphParts(ABC):
    """The parts of a Graph, which says what they are."""

    directed: bool
    weights: NDArray[np.float64] | None
    labels: NDArray[np.int64] | None
    ids: NDArray[Any] | None
    class_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    name: str | None
    recipe: Recipe | None
    scaling: Scaling | None

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes, n."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def features(self) -> Features | None:
        """The node features, shape (n, ...), or None."""

    @property
    @abstractmethod
    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix, shape (n, n)."""


def count_loops(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> int:
    """Return how many entries are on the diagonal, some rows at a time.

    >>> count_loops(np.array([0, 2, 3]), np.array([0, 1, 0], dtype=np.int32))
    1
    """
    found, n, row = 0, len(indptr) - 1, 0
    while row < n:
        start = int(indptr[row])
        end = max(int(np.searchsorted(indptr, start + _ENTRIES, side="right")) - 1, row + 1)  # rows up to it
        rows = np.repeat(np.arange(row, end, dtype=np.int32), np.diff(indptr[row : end + 1]))
        found += int(np.count_nonzero(rows == indices[start : int(indptr[end])]))
        row = end
    return found
