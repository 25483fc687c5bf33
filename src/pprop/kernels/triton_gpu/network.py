"""The network's part of the fused trainer: weights, moments, hidden layer, and the kernels that work on them."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from pprop.kernels.contract import both_sides
from pprop.kernels.random_bits import FEATURES
from pprop.kernels.trainer import TrainerSpec
from pprop.kernels.triton_gpu import layers
from pprop.kernels.triton_gpu.bits import HiddenWords, Planes
from pprop.kernels.triton_gpu.launch import Tuning, multiprocessors, power_of_two
from pprop.kernels.triton_gpu.plan import row_plan


@final
class Shape:
    """Sizes as the kernels see them: hidden units in slices of C, classes padded to a power of two."""

    def __init__(self, n: int, f: int, hidden: int, classes: int, tuning: Tuning) -> None:
        self.n, self.f, self.hidden, self.classes = n, f, hidden, classes
        self.width = min(tuning.slice_width, power_of_two(hidden, least=8))
        self.slices = -(-hidden // self.width)
        self.units = self.slices * self.width
        self.padded_classes = power_of_two(classes, least=tuning.least_classes)


@final
class Network:
    """X W_1, ReLU, dropout, W_2 for R runs, twice in one pass; and the way back, which ends in Adam.

    The first axis of every buffer is the run. After `keep` the first R of them are in use.
    """

    def __init__(self, spec: TrainerSpec, tuning: Tuning) -> None:
        weights, dropout = spec.weights, spec.dropout
        runs, f, hidden = weights[0].shape
        self.shape = shape = Shape(spec.features.shape[0], f, hidden, weights[1].shape[2], tuning)
        self.rate, self.penalty, self.tuning, self.runs = spec.rate, spec.penalty, tuning, runs
        device = weights[0].device
        n, slices, width, classes = shape.n, shape.slices, shape.width, shape.padded_classes

        self._entries: list[Tensor] = []
        self._planes: list[Planes] = []
        for side, matrix in enumerate(both_sides(spec.features)):
            plan = row_plan(
                matrix.indptr, matrix.indices, matrix.shape[1], slots=128 * tuning.feature_warps // width,
                unroll=tuning.feature_unroll, limit=tuning.feature_limit, device=device,
            )  # fmt: skip
            self._entries.append(plan.packed(matrix.data))
            self._planes.append(Planes(plan, FEATURES, 1, runs, dropout, flipped=side == 1))
        self._hidden_words = HiddenWords(runs, n, shape.units, dropout, device)

        self.first = torch.zeros(runs, slices, f + 1, width, device=device)
        self.first[:, :, :f] = self._sliced(weights[0])
        self.second = torch.zeros(runs, shape.units, classes, device=device)
        self.second[:, :hidden, : shape.classes] = weights[1]
        self.best = self.first.clone(), self.second.clone()
        self.moments = [torch.zeros_like(w) for w in (self.first, self.first, self.second, self.second)]
        self.norms = torch.zeros(runs, slices * self._planes[1].plan.count, device=device)

        # row n of what is gathered is zero: entries that only fill a tile point there
        self.hidden = torch.zeros(runs, slices, n + 1, width, device=device)
        self.quiet = torch.zeros_like(self.hidden)
        self._rows = tuning.second_rows
        self._repeat = max(1, 512 // self._rows)
        self._blocks = -(-n // (self._rows * self._repeat))
        self._second_part = torch.zeros(runs, self._blocks, shape.units, classes, device=device)

    def _sliced(self, weights: Tensor) -> Tensor:
        """(R, f, h) to (R, slices, f, C), padded with zeros."""
        runs, f, _ = weights.shape
        padded = torch.nn.functional.pad(weights, (0, self.shape.units - self.shape.hidden))
        return padded.reshape(runs, f, self.shape.slices, self.shape.width).transpose(1, 2)

    def weights(self, *, best: bool = False) -> list[Tensor]:
        """W_1 (R, f, h), put together from its slices, and a view of W_2 (R, h, c); live, or as last remembered."""
        shape, runs = self.shape, self.runs
        first, second = self.best if best else (self.first, self.second)
        whole = first[:runs, :, : shape.f].transpose(1, 2).reshape(runs, shape.f, shape.units)
        return [whole[..., : shape.hidden], second[:runs, : shape.hidden, : shape.classes]]

    def remember(self, wanted: Tensor) -> None:
        """Copy the weights of the runs that are wanted, (R,) bool, without asking the device which."""
        for live, kept in zip((self.first, self.second), self.best, strict=True):
            size = live[0].numel()
            layers.copy_where[(-(-size // 4096), self.runs)](wanted, live, kept, size, B=4096, num_warps=8)

    def keep(self, slots: Tensor) -> None:
        """Move the weights and moments of these runs to the front."""
        for buffer in (self.first, self.second, self.norms, *self.moments, *self.best):
            buffer[: len(slots)] = buffer[slots]
        self.runs = len(slots)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw the masks of epoch clock + ahead."""
        for planes in self._planes:
            planes.draw(clock, seeds, ahead=ahead, force=force)
        self._hidden_words.draw(clock, seeds, ahead=ahead)

    def forward(self, clock: Tensor, *, ahead: int) -> None:
        """Leave the hidden layer of the training pass in `hidden` and that of the evaluation in `quiet`.

        All multiprocessors work on the same few runs at a time, whose slices then stay in the L2 cache.
        """
        planes, units = self._planes[0], self._units(0)
        layers.forward_first[(min(multiprocessors(self.first) * self.tuning.programs, units),)](
            clock, ahead, units, *planes.structure(self._entries[0]), self.first, self._hidden_words.words, self.hidden,
            self.quiet, self.shape.n, self.shape.f, planes.law.scale, planes.law.scale,
            WORDS=self._hidden_words.per_node, **self._constants(planes),
        )  # fmt: skip

    def _units(self, side: int) -> int:
        """Return how many units (run, slice, tile) one side of the first layer has."""
        return self.runs * self.shape.slices * self._planes[side].plan.count

    def _constants(self, planes: Planes) -> dict[str, Any]:
        tuning = self.tuning
        return {
            "T": planes.plan.slots, "C": self.shape.width, "U": tuning.feature_unroll, "SLICES": self.shape.slices,
            "DROP": planes.law.digits > 0, "num_warps": tuning.feature_warps,
            **tuning.registers(tuning.feature_registers, tuning.feature_warps),
        }  # fmt: skip

    def predict(self, start: Tensor, states: Tensor | None, column_scale: Tensor | None) -> None:
        """Fill start (R, n + 1, 2 classes) with both passes' H, and states[:, 0] with S_c H if there are any."""
        shape = self.shape
        rows = max(16, 1024 // max(shape.padded_classes, shape.width))
        layers.forward_second[(-(-shape.n // rows), self.runs)](
            self.hidden, self.quiet, self.second, start, start if states is None else states,
            start if column_scale is None else column_scale, shape.n, SLICES=shape.slices, C=shape.width,
            CLASSES=shape.padded_classes, B=rows, STEPS=states is not None, num_warps=4,
        )  # fmt: skip

    def backward(self, above: Tensor, clock: Tensor, corrections: Tensor, rate: float) -> None:
        """Make one Adam step, given the gradient (R, n + 1, classes) of the training pass's predictions."""
        self.backward_second(above)
        self.adam_second(corrections, rate)
        self.backward_first(clock, corrections, rate)

    def backward_second(self, above: Tensor) -> None:
        """Turn `hidden` into the gradient before the activation, ready for X^T; collect that of W_2."""
        shape = self.shape
        scale = self._planes[0].law.scale ** 2  # kept hidden units, and kept features
        layers.backward_second[(self._blocks, self.runs)](
            above, self.second, self.hidden, self._second_part, shape.n, self._blocks, scale, SLICES=shape.slices,
            C=shape.width, CLASSES=shape.padded_classes, K=max(16, shape.padded_classes), B=self._rows,
            REPEAT=self._repeat, num_warps=self.tuning.second_warps,
        )  # fmt: skip

    def adam_second(self, corrections: Tensor, rate: float) -> None:
        """Step W_2."""
        size = self.shape.units * self.shape.padded_classes
        layers.adam_second[(-(-size // 256), self.runs)](
            self._second_part, self.second, self.moments[2], self.moments[3], corrections, size, self._blocks, rate,
            B=256, num_warps=4,
        )  # fmt: skip

    def backward_first(self, clock: Tensor, corrections: Tensor, rate: float) -> None:
        """Step W_1 by X^T times the gradient in `hidden`."""
        planes = self._planes[1]
        layers.backward_first[(self._units(1),)](
            clock, corrections, *planes.structure(self._entries[1]), self.hidden, self.first, self.moments[0],
            self.moments[1], self.norms, self.shape.n, self.shape.f, rate, self.penalty if rate > 0 else 0.0,
            **self._constants(planes),
        )  # fmt: skip
