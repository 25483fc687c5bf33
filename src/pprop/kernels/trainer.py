"""The whole training of the paper's models as one operation of a backend, which may fuse it and choose its layout.

`Kernels` offers the parts of a network one by one; any model can be built from them, and the program built that way on
the reference backend is what every `Trainer` is tested against. A trainer computes the same numbers for the one network that
the paper trains a hundred times a cell: X W_1, ReLU, dropout, W_2, then a propagation, cross entropy and Adam.

Two things become possible when one object sees the whole epoch. The evaluation after step e and the training pass of
step e + 1 read the same weights, so that one pass over X and over the edges serves both: entries that are kept feed one
sum, the others a second one, and the evaluation's value is the two together. And the gradient of W_1 needs no memory:
the row that the adjoint has just summed goes straight into Adam.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from scipy import sparse

from pprop.graph import Transition
from pprop.graph.features.dense_rows import DenseRows
from pprop.kernels.arrays import Array

# X as a first layer reads it, shape (n, f): by its nonzeros, or all of it, rows one after the other.
FeatureMatrix = sparse.csr_array | DenseRows


@final
@dataclass(frozen=True)
class PropagateSteps:
    """K > 0 power steps of T; entries of T are dropped afresh at every step. `alpha` is one number, or one a run, (R,)."""

    transition: Transition
    alpha: float | Array
    steps: int


@final
@dataclass(frozen=True)
class PropagateRows:
    """The block (b, n) of PPR rows of `nodes` (b,); `row_of_node` (n,) is where a node's row is in the block."""

    block: Array
    nodes: Array
    row_of_node: Array


@final
@dataclass(frozen=True)
class LabelledNodes:
    """Nodes and labels of every run, both (R, m), int64; a shorter set is padded with node 0 and label -1, which counts for nothing.

    `weights` (R, m), float32, say how much each node counts in the loss and the accuracy, which are weighted means; None:
    all count as one. A weight of zero counts for nothing.
    """

    nodes: Array
    labels: Array
    weights: Array | None = None

    def keep(self, slots: Array | slice) -> LabelledNodes:
        """Return the sets of some of the runs."""
        return self.each(lambda array: array[slots])

    def take(self, places: Array) -> LabelledNodes:
        """Return some places of every set, given by position."""
        return self.each(lambda array: array[:, places])

    def to(self, device: Any) -> LabelledNodes:
        """Return the sets on a device: they must be tensors."""
        return self.each(lambda array: array.to(device))

    def each(self, change: Callable[[Array], Array]) -> LabelledNodes:
        """Return the sets with each of their arrays changed."""
        weights = None if self.weights is None else change(self.weights)
        return LabelledNodes(change(self.nodes), change(self.labels), weights)

    @property
    def sizes(self) -> Array:
        """Total weight of the real nodes per run, shape (R,), of tensors: without weights their number."""
        known = self.labels >= 0
        return known.sum(dim=1) if self.weights is None else self.weights.double().where(known, 0.0).sum(dim=1)


@final
@dataclass(frozen=True)
class TrainerSpec:
    """R runs of a two-layer network with a propagation.

    Attributes
    ----------
    features
        X, shape (n, f), float32, as the first layer reads it.
    weights
        Initial W_1 (R, f, h) and W_2 (R, h, c), then, for a network with biases, b_1 (R, 1, h) and b_2 (R, 1, c);
        float32. The trainer copies them.
    seeds
        One 64-bit seed per run, shape (R,), int64.
    propagation
        None for a network without propagation.
    train, stopping
        What the loss, and the stopping loss and accuracy, are made of.
    dropout, matrix_dropout
        On the entries of X and the hidden units; on the entries of the propagation matrix. 0 for none.
    rate, penalty
        Adam's learning rate, and lambda of lambda / 2 * |W_1|^2.
    """

    features: FeatureMatrix
    weights: tuple[Array, ...]
    seeds: Array
    propagation: PropagateSteps | PropagateRows | None
    train: LabelledNodes
    stopping: LabelledNodes
    dropout: float
    matrix_dropout: float
    rate: float
    penalty: float


@final
@dataclass(frozen=True)
class TrainerSizes:
    """The numbers that decide how much memory a trainer needs.

    Attributes
    ----------
    nodes, features, hidden, classes
        n, f, h and c.
    feature_entries
        Nonzeros of a sparse feature matrix; None for a dense one.
    entries, steps
        Entries of the transition matrix, self-loops included, and power steps K; 0 for a model without steps.
    ppr_rows
        Rows of the PPR block of an exact propagation; 0 without.
    weighted, symmetric
        Whether the transition matrix has stored weights, and is its own transpose but for its scales.
    dropout
        Whether masks are drawn.
    train_nodes, stopping_nodes
        Of one run.
    """

    nodes: int
    features: int
    hidden: int
    classes: int
    feature_entries: int | None
    entries: int = 0
    steps: int = 0
    ppr_rows: int = 0
    weighted: bool = False
    symmetric: bool = False
    dropout: bool = True
    train_nodes: int = 0
    stopping_nodes: int = 0


@final
@dataclass(frozen=True)
class TrainerBytes:
    """Bytes that a trainer takes, by name: once for all runs, and for each run in training.

    What is small and does not grow with the graph, the features or the runs is left out.
    """

    shared: dict[str, int]
    run: dict[str, int]


class Trainer(ABC):
    """R runs in training. A slot is a run's place in the batch; slots disappear as runs end.

    Attributes
    ----------
    capturable
        Whether `epoch` and `remember` keep all that changes in device memory, so that a CUDA graph of them can be
        replayed.
    scored
        Whether `epoch` returns a fourth row: a score, the larger the better, which early stopping watches in place of the
        accuracy.
    """

    capturable: bool = False
    scored: bool = False

    @abstractmethod
    def epoch(self) -> Array:
        """Make one training step and evaluate after it; return (3, R), float32, in memory that the next call reuses.

        Row 0 is the training loss, dropout on; rows 1 and 2 are the loss and the accuracy on the stopping nodes after
        the step, dropout off. Both losses include the penalty. The first call is epoch 0. A capturable
        trainer neither waits for the device here nor asks for values there.
        """

    @abstractmethod
    def weights(self) -> list[Array]:
        """Return the live weights, the runs axis first, or views of them. Copy them to keep them.

        A fused trainer has those of its `TrainerSpec`; one of single operations a tensor (R, a, b) for every weight of
        its model; that of torch modules all tensors of a module's state, each (R, ...).
        """

    def all_weights(self, kept: list[Array]) -> list[Array]:
        """Return the weights of a model, given copies of `weights`: more where some of them are not trained."""
        return kept

    def remember(self, wanted: Array) -> None:
        """Keep a copy of the present weights of the runs that are wanted, (R,) bool, without waiting for the device.

        Only the loop of a GPU asks for it; a loop that sees every epoch copies `weights` itself.
        """
        raise NotImplementedError

    def remembered(self) -> list[Array]:
        """Return every run's weights as last remembered, at first the initial ones, in the shapes of `weights`."""
        raise NotImplementedError

    @abstractmethod
    def keep(self, slots: Array) -> None:
        """Drop all slots but these, given as int64 positions on the trainer's device."""

    def parts(self) -> tuple[int, list[Trainer]]:
        """Return trainers of some of the runs each, with the same numbers, and how many threads may drive one each.

        A backend whose runs gain nothing from being trained together returns one trainer per run; the default is itself.
        """
        return 1, [self]

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Free memory and threads. A closed trainer cannot be used again."""
