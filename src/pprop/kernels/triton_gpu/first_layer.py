"""What the fused trainer asks of a first layer, for a sparse or a dense X."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor

from pprop.kernels.triton_gpu.bits import RowWords


class FirstState(NamedTuple):
    """The buffers of a network that its first layer reads and writes; R runs of them are in use.

    Attributes
    ----------
    weights, means, squares
        W_1 and its moments, (R, slices, f + 1, C).
    norms
        |W_1|^2 of each run in slices times parts, (R, slices * parts).
    hidden, quiet
        The hidden layer of the training pass and of the evaluation, (R, slices, n + 1, C). On the way back `hidden` holds
        its gradient, with the scale of kept features. `quiet` is empty where the layer predicts.
    biases
        Those of the hidden units, then of the classes, (R, units + classes); (R, 0) for none.
    hidden_words
        Keep decisions of hidden units.
    penalty
        lambda of lambda / 2 * |W_1|^2.
    """

    runs: int
    weights: Tensor
    means: Tensor
    squares: Tensor
    norms: Tensor
    hidden: Tensor
    quiet: Tensor
    biases: Tensor
    hidden_words: RowWords
    penalty: float


class Predictions(NamedTuple):
    """Where the predictions of both passes go.

    Attributes
    ----------
    second
        W_2, (R, units, classes).
    start
        Predictions, (R, n + 1, 2 row).
    states, column_scale
        Of the steps to come: the first of their states (R, 2, n + 1, 2 row) is S_c H; None where there are none.
    """

    second: Tensor
    start: Tensor
    states: Tensor | None
    column_scale: Tensor | None

    @property
    def arguments(self) -> tuple[Tensor, Tensor, Tensor]:
        """What kernels write to and scale by; without steps only the first is touched."""
        return (
            self.start,
            self.start if self.states is None else self.states,
            self.start if self.column_scale is None else self.column_scale,
        )


class FirstLayer(ABC):
    """X W_1 for both passes, and the step of W_1.

    Attributes
    ----------
    parts
        In how many parts of the features a slice of W_1 steps: each leaves a sum of squares.
    predicts
        Whether `forward` also makes the predictions, and leaves no hidden layer of the evaluation.
    """

    parts: int
    predicts: bool = False

    @abstractmethod
    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw the masks of epoch clock + ahead: what is new in it, or everything."""

    @abstractmethod
    def forward(self, state: FirstState, target: Predictions, clock: Tensor, *, ahead: int) -> None:
        """Fill the hidden layers of both passes, or where it `predicts` that of the training pass and the predictions."""

    @abstractmethod
    def step(self, state: FirstState, clock: Tensor, corrections: Tensor, rate: float) -> None:
        """Step W_1 by drop(X)^T times the gradient in `state.hidden`; at a rate of 0 only make the norms."""
