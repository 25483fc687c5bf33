"""The network's part of the fused trainer: weights, moments, hidden layer, and the kernels that work on them."""

from __future__ import annotations

from typing import final

import torch
from scipy import sparse
from torch import Tensor

from pprop.kernels.contract import TrainerSpec
from pprop.kernels.random_bits import HIDDEN, Bernoulli, stream
from pprop.kernels.triton_gpu import layers
from pprop.kernels.triton_gpu.bits import RowWords
from pprop.kernels.triton_gpu.dense_first import DenseFirst
from pprop.kernels.triton_gpu.first_layer import FirstLayer, FirstState, Predictions
from pprop.kernels.triton_gpu.launch import FEW_CLASSES, Shape, Tuning
from pprop.kernels.triton_gpu.sparse_first import SparseFirst


@final
class Network:
    """X W_1, ReLU, dropout, W_2 for R runs, twice in one pass; and the way back, which ends in Adam.

    The first axis of every buffer is the run. After `keep` the first R of them are in use.
    """

    def __init__(self, spec: TrainerSpec, tuning: Tuning) -> None:
        weights, dropout = spec.weights, spec.dropout
        (runs, f, hidden), dense = weights[0].shape, not isinstance(spec.features, sparse.csr_array)
        self.shape = shape = Shape(spec.features.shape[0], f, hidden, weights[1].shape[2], tuning, dense=dense)
        self.rate, self.penalty, self.tuning, self.runs = spec.rate, spec.penalty, tuning, runs
        device = weights[0].device
        n, slices, width, classes = shape.n, shape.slices, shape.width, shape.padded_classes

        first = SparseFirst if isinstance(spec.features, sparse.csr_array) else DenseFirst
        self._first: FirstLayer = first(spec.features, shape, runs, dropout, tuning, device)
        self._scale = Bernoulli.from_probability(dropout).scale
        self._hidden_words = RowWords(runs, n, shape.units, dropout, stream(HIDDEN, 1), device)

        self.first = torch.zeros(runs, slices, f + 1, width, device=device)
        self.first[:, :, :f] = self._sliced(weights[0])
        self.second = torch.zeros(runs, shape.units, classes, device=device)
        self.second[:, :hidden, : shape.classes] = weights[1]
        biased = len(weights) > 2
        self.biases = torch.zeros(runs, shape.units + classes if biased else 0, device=device)
        if biased:
            self.biases[:, :hidden], self.biases[:, shape.units :][:, : shape.classes] = (
                weights[2][:, 0],
                weights[3][:, 0],
            )
        self._live = self.first, self.second, self.biases
        self.best = [live.clone() for live in self._live]
        self.moments = [torch.zeros_like(live) for live in self._live for _ in range(2)]
        self.norms = torch.zeros(runs, slices * self._first.parts, device=device)

        # row n of what is gathered is zero: entries that only fill a tile point there
        self.hidden = torch.zeros(runs, slices, n + 1, width, device=device)
        self.quiet = self.hidden[:0] if self._first.predicts else torch.zeros_like(self.hidden)
        self._rows = tuning.second_rows if classes <= FEW_CLASSES else 16
        self._repeat = max(1, 512 // self._rows)
        self._blocks = -(-n // (self._rows * self._repeat))
        self._second_part = torch.zeros(runs, self._blocks, shape.units, classes, device=device)
        self._bias_part = torch.zeros(runs, self._blocks, self.biases.shape[1], device=device)

    def _sliced(self, weights: Tensor) -> Tensor:
        """(R, f, h) to (R, slices, f, C), padded with zeros."""
        runs, f, _ = weights.shape
        padded = torch.nn.functional.pad(weights, (0, self.shape.units - self.shape.hidden))
        return padded.reshape(runs, f, self.shape.slices, self.shape.width).transpose(1, 2)

    def weights(self, *, best: bool = False) -> list[Tensor]:
        """W_1 (R, f, h), put together from its slices, and a view of W_2 (R, h, c); live, or as last remembered.

        With biases also views of these, (R, 1, h) and (R, 1, c).
        """
        shape, runs = self.shape, self.runs
        first, second, biases = (buffer[:runs] for buffer in (self.best if best else self._live))
        whole = first[:, :, : shape.f].transpose(1, 2).reshape(runs, shape.f, shape.units)
        layers_ = [whole[..., : shape.hidden], second[:, : shape.hidden, : shape.classes]]
        if biases.shape[1] == 0:
            return layers_
        return [*layers_, biases[:, None, : shape.hidden], biases[:, None, shape.units :][..., : shape.classes]]

    def remember(self, wanted: Tensor) -> None:
        """Copy the weights of the runs that are wanted, (R,) bool, without asking the device which."""
        for live, kept in zip(self._live, self.best, strict=True):
            size = live[0].numel()
            if size == 0:
                continue
            layers.copy_where[(-(-size // 4096), self.runs)](wanted, live, kept, size, B=4096, num_warps=8)

    def keep(self, slots: Tensor) -> None:
        """Move the weights and moments of these runs to the front."""
        for buffer in (*self._live, self.norms, *self.moments, *self.best):
            buffer[: len(slots)] = buffer[slots]
        self.runs = len(slots)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw the masks of epoch clock + ahead."""
        self._first.draw(clock, seeds, ahead=ahead, force=force)
        self._hidden_words.draw(clock, seeds, ahead=ahead)

    @property
    def _state(self) -> FirstState:
        buffers = self.first, self.moments[0], self.moments[1], self.norms, self.hidden, self.quiet, self.biases
        return FirstState(self.runs, *buffers, self._hidden_words, self.penalty)

    def predict(
        self, start: Tensor, states: Tensor | None, column_scale: Tensor | None, clock: Tensor, *, ahead: int
    ) -> None:
        """Fill start (R, n + 1, 2 row) with both passes' H, and states[:, 0] with S_c H if there are any."""
        shape, target = self.shape, Predictions(self.second, start, states, column_scale)
        self._first.forward(self._state, target, clock, ahead=ahead)
        if self._first.predicts:
            return
        rows = max(16, 1024 // max(shape.padded_classes, shape.width))
        layers.forward_second[(-(-shape.n // rows), self.runs)](
            self.hidden, self.quiet, self.second, self.biases, *target.arguments, shape.n, SLICES=shape.slices,
            C=shape.width,
            CLASSES=shape.padded_classes, ROW=shape.row, B=rows, STEPS=states is not None,
            BIAS=self.biases.shape[1], num_warps=4,
        )  # fmt: skip

    def backward(self, above: Tensor, clock: Tensor, corrections: Tensor, rate: float) -> None:
        """Make one Adam step, given the gradient (R, n + 1, row) of the training pass's predictions."""
        self.backward_second(above)
        self.adam_second(corrections, rate)
        self.backward_first(clock, corrections, rate)

    def backward_second(self, above: Tensor) -> None:
        """Turn `hidden` into the gradient before the activation, ready for X^T; collect that of W_2."""
        shape = self.shape
        scale = self._scale**2  # kept hidden units, and kept features
        layers.backward_second[(self._blocks, self.runs)](
            above, self.second, self.hidden, self._second_part, self._bias_part, shape.n, self._blocks, scale,
            1.0 / self._scale, SLICES=shape.slices, BIAS=self.biases.shape[1], C=shape.width,
            CLASSES=shape.padded_classes, ROW=shape.row, K=max(16, shape.padded_classes), B=self._rows,
            REPEAT=self._repeat, num_warps=self.tuning.second_warps,
        )  # fmt: skip

    def adam_second(self, corrections: Tensor, rate: float) -> None:
        """Step W_2 and the biases."""
        parts = (self._second_part, self.second, self.moments[2:4]), (self._bias_part, self.biases, self.moments[4:])
        for part, weights, moments in parts:
            size = weights[0].numel()
            if size > 0:
                layers.adam_second[(-(-size // 256), self.runs)](
                    part, weights, *moments, corrections, size, self._blocks, rate, B=256, num_warps=4
                )

    def backward_first(self, clock: Tensor, corrections: Tensor, rate: float) -> None:
        """Step W_1 by X^T times the gradient in `hidden`."""
        self._first.step(self._state, clock, corrections, rate)
