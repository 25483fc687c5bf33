"""What a backend computes: the hot loops of training, for R independent runs at once.

All arrays have the runs axis first; a single run is R = 1. Those of the CPU backend are numpy's, those of a GPU's are
tensors: see `pprop.kernels.tensors` for models and training, which have tensors on every device. The shapes below use

    R runs, n nodes, f features, h hidden units, c classes, m nodes of a loss, K power steps.

Every operator that drops entries takes a `Draw`. The mask it applies is a pure function of the run's seed, the epoch
and the original coordinates of the entry (see ``docs/randomness.md``), so that any two backends drop the same entries
and an adjoint recomputes the mask of its forward pass. Kept entries are divided by the keep probability.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Self, final

from scipy import sparse

from pprop.graph import Transition
from pprop.kernels.arrays import Array
from pprop.kernels.random_bits import Draw
from pprop.kernels.solves import Solves, System
from pprop.kernels.trainer import FeatureMatrix, Trainer, TrainerBytes, TrainerSizes, TrainerSpec

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
    def adam(
        self, weights: Array, gradient: Array, mean: Array, square: Array, *,
        step: int | Array, rate: float, penalty: float,
    ) -> Array:  # fmt: skip
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
