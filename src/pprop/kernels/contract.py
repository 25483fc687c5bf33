"""What a backend computes: the hot loops of training, for R independent runs at once.

All arrays have the runs axis first; a single run is R = 1. Those of the CPU backend are numpy's, those of a GPU's are
tensors: see `pprop.kernels.tensors` for models and training, which have tensors on every device. The shapes below use

    R runs, n nodes, f features, h hidden units, c classes, m nodes of a loss, K power steps.

Every operator that drops entries takes a `Draw`. The mask it applies is a pure function of the run's seed, the epoch
and the original coordinates of the entry (see ``docs/randomness.md``), so that any two backends drop the same entries
and an adjoint recomputes the mask of its forward pass. Kept entries are divided by the keep probability.

A `Trainer` is the whole training of the paper's models as one operation of a backend, which may fuse it and choose its
layout. Any model can be built from the other operations, and the program built that way on the reference backend is what
every trainer is tested against. A trainer computes the same numbers for the one network that the paper trains a hundred
times a cell: X W_1, ReLU, dropout, W_2, then a propagation, cross entropy and Adam.

Two things become possible when one object sees the whole epoch. The evaluation after step e and the training pass of
step e + 1 read the same weights, so that one pass over X and over the edges serves both: entries that are kept feed one
sum, the others a second one, and the evaluation's value is the two together. And the gradient of W_1 needs no memory:
the row that the adjoint has just summed goes straight into Adam.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

from scipy import sparse

from pprop.graph import Transition
from pprop.graph.features.scaling import DenseRows
from pprop.kernels.arrays import Array
from pprop.kernels.losses import CROSS_ENTROPY
from pprop.kernels.random_bits import Draw
from pprop.kernels.solves import Solves, System

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
    all count as one. A weight of zero counts for nothing. `targets` (R, m, c), float32, are the numbers that an elementwise
    loss compares the outputs with, NaN where unknown: then there are weights, and labels only tell padding from nodes.
    """

    nodes: Array
    labels: Array
    weights: Array | None = None
    targets: Array | None = None

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
        more = (None if array is None else change(array) for array in (self.weights, self.targets))
        return LabelledNodes(change(self.nodes), change(self.labels), *more)

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
    loss
        What the outputs are compared with.
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
    loss: str = CROSS_ENTROPY


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


# Slope of the attention's LeakyReLU below zero, that of the graph attention network.
SLOPE = 0.2
# A transition matrix with at least this many entries is large: the states of one run no longer fit into a cache, and
# steps without masks have kernels of their own. The choice never depends on the number of runs, so that a run has the
# same bits alone and in a batch.
LARGE_ENTRIES = 2**20


class FeatureProduct(ABC):
    """The first layer, X W, for one feature matrix X of shape (n, f) and R weight matrices.

    A sparse and a dense matrix have masks of their own: the one a sequence for every nonzero, the other one for every row.
    """

    def forward(self, weights: Array, draw: Draw | None) -> Array:
        """Return drop(X) W: weights (R, f, h) to (R, n, h)."""
        return self.apply(0, weights, draw)

    def adjoint(self, gradient: Array, draw: Draw | None) -> Array:
        """Return drop(X)^T G: gradient (R, n, h) to (R, f, h)."""
        return self.apply(1, gradient, draw)

    @abstractmethod
    def apply(self, side: int, operand: Array, draw: Draw | None) -> Array:
        """Return the product of X (side 0) or of its transpose (side 1) with an operand (R, columns, h)."""


@final
class Sides:
    """A sparse matrix (0) and its transpose (1), both by rows; the transpose, indices sorted, is made when it is asked for.

    >>> [side.shape for side in Sides(sparse.csr_array((2, 3)))]
    [(2, 3), (3, 2)]
    """

    def __init__(self, matrix: sparse.csr_array) -> None:
        self._matrix = matrix

    @cached_property
    def _flipped(self) -> sparse.csr_array:
        flipped = self._matrix.T.tocsr()
        flipped.sort_indices()
        return flipped

    def __getitem__(self, side: int) -> sparse.csr_array:
        return self._flipped if side else self._matrix

    def __iter__(self) -> Iterator[sparse.csr_array]:
        yield self._matrix
        yield self._flipped


class LinearMap(ABC):
    """Predictions (R, n, c) to propagated predictions (R, n, c), with the adjoint."""

    matrix_products: int = 0  # products with the transition matrix in one application
    takes_half: bool = False  # else half precision is computed in float32 and rounded at the end

    @abstractmethod
    def forward(self, predictions: Array, draw: Draw | None) -> Array:
        """Return Z for H."""

    @abstractmethod
    def adjoint(self, gradient: Array, draw: Draw | None) -> Array:
        """Return the gradient with respect to H for that with respect to Z."""


class StepPropagation(LinearMap):
    """K power steps Z <- (1 - alpha) drop_k(T) Z + alpha H from Z = H, with a fresh mask of T at every step.

    Attributes
    ----------
    alpha
        One number for all runs, or an array (R,) of float64 with one a run.
    """

    alpha: float | Array

    def of_runs(self, slots: Array | slice) -> Self:
        """Return the steps of some of the runs, given by position: each keeps its alpha."""
        if isinstance(self.alpha, float | int):
            return self
        some = copy.copy(self)
        some.alpha = self.alpha[slots]
        return some


class RowPropagation(ABC):
    """Rows of the dense PPR matrix applied to predictions, Z_rows = drop(Pi_rows) H."""

    @abstractmethod
    def forward(self, predictions: Array, rows: Array, draw: Draw | None) -> Array:
        """Return the products of `rows` (R, m) of the block with predictions (R, n, c), shape (R, m, c)."""

    @abstractmethod
    def adjoint(self, gradient: Array, rows: Array, draw: Draw | None) -> Array:
        """Return the gradient with respect to H: (R, m, c) to (R, n, c)."""


class EdgeAttention(ABC):
    """Attention over the entries (i, j) of a sparsity pattern, self-loops included.

    With e_ij = LeakyReLU(left_i + right_j), of slope `SLOPE` below zero, and a_ij the softmax of row i of e,

        out_i = sum_j drop(a_ij) values_j.

    Coefficients are dropped after they are normalised, by the mask that a single power step would have. The heads of a
    layer are runs like others, each with a seed of its own. A row without entries gives zero.
    """

    @abstractmethod
    def forward(self, values: Array, left: Array, right: Array, draw: Draw | None) -> Array:
        """Return the sums: values (R, n, d), left and right (R, n) to (R, n, d)."""

    @abstractmethod
    def adjoint(
        self, gradient: Array, values: Array, left: Array, right: Array, draw: Draw | None
    ) -> tuple[Array, Array, Array]:
        """Return the gradients of values (R, n, d), left (R, n) and right (R, n), given that of the sums (R, n, d)."""


class Kernels(ABC):
    """One backend's implementation of every operation. Instances hold no state of a training run.

    Attributes
    ----------
    capturable
        Whether a CUDA graph of its operations can be replayed: none waits for the device, and all take the epoch as a
        tensor.
    """

    capturable: bool = False

    @abstractmethod
    def features(self, matrix: FeatureMatrix) -> FeatureProduct:
        """Bind the first layer to a feature matrix of shape (n, f), sparse or dense."""

    @abstractmethod
    def steps(self, transition: Transition, alpha: float | Array, steps: int) -> StepPropagation:
        """Bind K power steps to a transition matrix; `alpha` as in `StepPropagation`."""

    @abstractmethod
    def rows(self, block: Array, nodes: Array) -> RowPropagation:
        """Bind a block (b, n) of PPR rows; `nodes` (b,) are the nodes they belong to."""

    @abstractmethod
    def attention(self, transition: Transition) -> EdgeAttention:
        """Bind attention to the pattern of a transition matrix; its values are ignored."""

    @abstractmethod
    def activate(self, values: Array, layer: int, draw: Draw | None) -> Array:
        """Apply ReLU, then dropout, in place: (R, n, h). `layer` tells the masks of several layers apart."""

    @abstractmethod
    def activate_adjoint(self, gradient: Array, activated: Array, draw: Draw | None) -> Array:
        """Turn the gradient after `activate` into that before it, in place; `activated` is the result of `activate`."""

    @abstractmethod
    def drop(self, values: Array, layer: int, draw: Draw | None) -> Array:
        """Apply dropout without ReLU in place, with the mask of `activate`: (R, n, h). It is its own adjoint."""

    @abstractmethod
    def elu(self, values: Array) -> Array:
        """Replace every negative x by exp(x) - 1, in place: (R, n, h)."""

    @abstractmethod
    def elu_adjoint(self, gradient: Array, result: Array) -> Array:
        """Turn the gradient after `elu` into that before it, in place; `result` is the result of `elu`."""

    @abstractmethod
    def softmax(self, values: Array) -> Array:
        """Return the softmax over the last axis; any shape."""

    @abstractmethod
    def softmax_adjoint(self, gradient: Array, result: Array) -> Array:
        """Return the gradient before `softmax`, given that after it; `result` is the result of `softmax`."""

    @abstractmethod
    def linear(self, inputs: Array, weights: Array) -> Array:
        """Return inputs (R, n, h) times weights (R, h, c), shape (R, n, c)."""

    @abstractmethod
    def linear_input_adjoint(self, gradient: Array, weights: Array) -> Array:
        """Return G W^T: gradient (R, n, c) and weights (R, h, c) to (R, n, h)."""

    @abstractmethod
    def linear_weight_adjoint(self, inputs: Array, gradient: Array) -> Array:
        """Return inputs^T G: inputs (R, n, h) and gradient (R, n, c) to (R, h, c)."""

    @abstractmethod
    def cross_entropy(self, logits: Array, labels: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
        """Return the mean cross entropy (R,), the number of right answers (R,) in int64, and the gradient (R, m, c).

        `logits` has shape (R, m, c), `labels` (R, m); a label of -1 pads a shorter set and counts for nothing. With
        `weights` (R, m) the mean is weighted, and in place of the number of right answers there is their weight, in
        float64. A weight of zero counts for nothing, whatever the logits.
        """

    @abstractmethod
    def likelihood(
        self, probabilities: Array, labels: Array, weights: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return what `cross_entropy` does, from probabilities (R, m, c) and with their gradient (R, m, c).

        The loss is the mean negative log likelihood. A probability of the label below the smallest normal number
        counts as that number.
        """

    @abstractmethod
    def elementwise_loss(self, outputs: Array, targets: Array, weights: Array, kind: str) -> tuple[Array, Array, Array]:
        """Return a mean loss (R,), how good the outputs are, (R,) in float64, and the gradient (R, m, c).

        Outputs and targets have shape (R, m, c); a target of NaN is unknown and counts for nothing. The mean is over known
        entries, weighted by their node's weight, (R, m), times c: the sum over the outputs of a node. With o an output and t
        its target, the loss is

            squared_error   (o - t)^2 / 2
            huber           the same up to |o - t| = HUBER_TURN, and from there on the line that continues it
            logistic        log(1 + exp(o)) - t o

        How good: the weight of all nodes, times the share of targets that the sign of the output tells for the logistic
        loss, and for others 1 less the mean of (o - t)^2.
        """

    @abstractmethod
    def adam(
        self,
        weights: Array,
        gradient: Array,
        mean: Array,
        square: Array,
        *,
        step: int | Array,
        rate: float,
        penalty: float,
    ) -> Array:
        """Make one Adam step in place with the gradient of penalty / 2 * |W|^2 added; return |W_new|^2 per run, (R,).

        All four tensors have shape (R, a, b); `step` counts from 1, and may be a tensor like `Draw.epoch`. Adam's
        constants are 0.9, 0.999 and 1e-8.
        """

    @abstractmethod
    def solves(self, system: System) -> Solves:
        """Return the solves to a tolerance of a system."""

    @abstractmethod
    def uniform(self, seeds: Array, stream: int, rows: int, columns: int, limit: float) -> Array:
        """Return float32 numbers uniform in [-limit, limit), shape (R, rows, columns); see `draws.uniform`."""

    def runs_at_once(self, runs: int) -> int:
        """Return how many of `runs` runs a trainer trains at the same time."""
        return runs

    def trainer(self, spec: TrainerSpec) -> Trainer | None:
        """Return the fused training of the paper's models, or None where a backend has none."""
        return None

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes | None:
        """Return the memory that such a trainer will take, or None where a backend has none."""
        return None

    def step_mask_bytes(self, nodes: int, entries: int, steps: int, columns: int) -> int:
        """Return the bytes of masks that `steps` with dropout keeps for a run on a GPU: none, drawn as they are needed."""
        return 0
