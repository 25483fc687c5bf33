"""Mini-batches of labelled nodes: the rows of their neighbourhoods, and the features of the nodes in them, bound to a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pprop.graph.features.scaling import DenseRows
from pprop.kernels import FeatureProduct, Kernels
from pprop.kernels.contract import FeatureMatrix, LabelledNodes
from pprop.kernels.random_bits import ORDER, sequence_word
from pprop.training.minibatch.neighbourhoods import Neighbourhoods


@final
@dataclass(frozen=True)
class SeenColumns:
    """The feature columns that the neighbourhoods of the training nodes contain, and no others.

    A column that they do not contain has no gradient but that of the penalty, which takes its weights to zero: they are
    zero from the start, and the training never touches them. A dense matrix keeps all of its columns.

    Attributes
    ----------
    total
        f, the columns of the feature matrix.
    seen
        Those that occur, shape (s,), ascending; None: all.

    Examples
    --------
    >>> X = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 3.0]]))
    >>> columns = SeenColumns.of(X, np.array([0, 2]))
    >>> columns.seen, columns.features(X, np.array([1, 2])).toarray()
    (array([1, 2]), array([[0., 0.],
           [0., 3.]]))
    """

    total: int
    seen: NDArray[np.int64] | None

    @classmethod
    def of(cls, features: FeatureMatrix, members: NDArray[np.int64]) -> SeenColumns:
        """Return the columns that occur in the rows of some nodes."""
        if isinstance(features, DenseRows):
            return cls(features.shape[1], None)
        occurs = np.zeros(features.shape[1], dtype=np.bool_)
        occurs[features[members].indices] = True
        return cls(features.shape[1], np.flatnonzero(occurs))

    def features(self, features: FeatureMatrix, members: NDArray[np.int64]) -> FeatureMatrix:
        """Return the features of some nodes (u,) in these columns, shape (u, s); no other rows are read."""
        if isinstance(features, DenseRows):
            return DenseRows(features.block(members))
        part = features[members]
        if self.seen is None:
            return part
        place = np.full(self.total, -1, dtype=np.int32)
        place[self.seen] = np.arange(len(self.seen), dtype=np.int32)
        indices = place[part.indices]
        known = indices >= 0
        indptr = np.concatenate([[0], np.cumsum(known)])[part.indptr]
        return sparse.csr_array((part.data[known], indices[known], indptr), shape=(len(members), len(self.seen)))

    @property
    def count(self) -> int:
        """How many there are."""
        return self.total if self.seen is None else len(self.seen)

    def take(self, weights: Tensor) -> Tensor:
        """Return the rows of the first layer (R, f, h) that belong to these columns, (R, s, h)."""
        return weights if self.seen is None else weights[:, torch.from_numpy(self.seen).to(weights.device)].contiguous()

    def put(self, weights: Tensor) -> Tensor:
        """Return a first layer (R, f, h) with these rows (R, s, h) for these columns, and zero for all others."""
        if self.seen is None:
            return weights
        whole = weights.new_zeros(len(weights), self.total, weights.shape[2])
        whole[:, torch.from_numpy(self.seen).to(whole.device)] = weights
        return whole


@final
@dataclass(frozen=True)
class MiniBatch:
    """Some labelled nodes, ready for the network.

    Attributes
    ----------
    first
        The first layer on the features of the u nodes in the neighbourhoods.
    rows
        The rows of the neighbourhoods, (b, u): a sparse matrix as a first layer is one.
    """

    first: FeatureProduct
    rows: FeatureProduct


@final
class Batches:
    """A set of labelled nodes of one run, cut into mini-batches.

    The batches are the same in every epoch. Of few nodes there is one; else nodes are dealt out in a random order, and an
    epoch visits the batches in a random order. What is bound is kept if `hold`, and else made again for every visit.

    Parameters
    ----------
    nodes
        Of one run.
    size
        Nodes of a batch, at most.
    neighbourhoods, features, columns
        What the network reads.
    kernels
        The backend.
    seed
        Of the run.
    hold
        Whether all batches fit into memory.
    """

    def __init__(
        self,
        nodes: LabelledNodes,
        size: int,
        neighbourhoods: Neighbourhoods,
        features: FeatureMatrix,
        columns: SeenColumns,
        kernels: Kernels,
        seed: int,
        *,
        hold: bool = True,
    ) -> None:
        self._neighbourhoods, self._features, self._columns = neighbourhoods, features, columns
        self._kernels, self._seed = kernels, seed
        real = torch.nonzero(nodes.labels[0] >= 0).flatten()
        count = -(-len(real) // size)
        if count > 1:
            real = real[random_order(seed, len(real), 0).to(real.device)]
        self.parts = [nodes.keep(slice(0, 1)).take(part) for part in torch.tensor_split(real, count)]
        self.shares = torch.stack([part.sizes for part in self.parts]).double().flatten().cpu()
        self.shares /= self.shares.sum()
        self._held: dict[int, MiniBatch] | None = {} if hold else None

    def __len__(self) -> int:
        return len(self.parts)

    def order(self, epoch: int) -> list[int]:
        """Return the order in which an epoch (from 0) visits the batches."""
        if len(self.parts) == 1:
            return [0]
        return [int(at) for at in random_order(self._seed, len(self.parts), epoch + 1)]

    def bound(self, at: int) -> MiniBatch:
        """Return a batch bound to the backend."""
        if self._held is not None and at in self._held:
            return self._held[at]
        members, rows = self._neighbourhoods.of(self.parts[at].nodes[0].cpu().numpy())
        local = self._columns.features(self._features, members)
        made = MiniBatch(self._kernels.features(local), self._kernels.features(rows))
        if self._held is not None:
            self._held[at] = made
        return made


def random_order(seed: int, count: int, number: int) -> Tensor:
    """Return the numbers below `count` in a random order, a function of the seed and of `number`; int64.

    >>> random_order(7, 4, 0), random_order(7, 4, 1)
    (tensor([2, 1, 0, 3]), tensor([1, 2, 0, 3]))
    """
    at = torch.arange(count)
    words = sequence_word(torch.tensor(seed), ORDER, at, torch.full_like(at, number), torch.zeros_like(at))
    return torch.argsort(words, stable=True)
