"""The first layer of the fused trainer for a sparse X: its entries by rows and by columns, and their mask planes."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pprop.kernels.contract import Sides
from pprop.kernels.random_bits import FEATURES
from pprop.kernels.triton_gpu import layers
from pprop.kernels.triton_gpu.bits import Planes
from pprop.kernels.triton_gpu.first_layer import FirstLayer, FirstState, Predictions
from pprop.kernels.triton_gpu.launch import Shape, Tuning, multiprocessors
from pprop.kernels.triton_gpu.plan import row_plan


@final
class SparseFirst(FirstLayer):
    """X W_1 and the step of W_1 by the nonzeros of X."""

    def __init__(
        self, matrix: sparse.csr_array, shape: Shape, runs: int, dropout: float, tuning: Tuning, device: torch.device
    ) -> None:
        self._shape, self._tuning = shape, tuning
        self._entries: list[Tensor] = []
        self._planes: list[Planes] = []
        for side, one in enumerate(Sides(matrix)):
            plan = row_plan(
                one.indptr,
                one.indices,
                one.shape[1],
                slots=128 * tuning.feature_warps // shape.width,
                unroll=tuning.feature_unroll,
                limit=tuning.feature_limit,
                device=device,
                values=torch.from_numpy(one.data.astype(np.float32)),
            )
            self._entries.append(plan.packed())
            self._planes.append(Planes(plan, FEATURES, 1, runs, dropout, flipped=side == 1, walked=side == 1))
        self.parts = self._planes[1].plan.count

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        for planes in self._planes:
            planes.draw(clock, seeds, ahead=ahead, held=None if force else clock)

    def forward(self, state: FirstState, target: Predictions, clock: Tensor, *, ahead: int) -> None:
        # all multiprocessors work on the same few runs at a time, whose slices then stay in the L2 cache
        planes, units, hidden_words = self._planes[0], self._units(state, 0), state.hidden_words
        layers.forward_first[(min(multiprocessors(state.weights) * self._tuning.programs, units),)](
            clock, ahead, units, *planes.structure(self._entries[0]), state.weights, hidden_words.words, state.hidden,
            state.quiet, state.biases, self._shape.n, self._shape.f, planes.law.scale, planes.law.scale,
            WORDS=hidden_words.per_node, BIAS=state.biases.shape[1], **self._constants(planes),
        )  # fmt: skip

    def step(self, state: FirstState, clock: Tensor, corrections: Tensor, rate: float) -> None:
        planes = self._planes[1]
        layers.backward_first[(self._units(state, 1),)](
            clock, corrections, *planes.structure(self._entries[1]), state.hidden, state.weights, state.means,
            state.squares, state.norms, self._shape.n, self._shape.f, rate, state.penalty if rate > 0 else 0.0,
            WIDE=self._shape.n * self._shape.width >= 2**31, **self._constants(planes),
        )  # fmt: skip

    def _units(self, state: FirstState, side: int) -> int:
        """Return how many units (run, slice, tile) one side of the layer has."""
        return state.runs * self._shape.slices * self._planes[side].plan.count

    def _constants(self, planes: Planes) -> dict[str, Any]:
        tuning = self._tuning
        return {
            "T": planes.plan.slots,
            "C": self._shape.width,
            "U": tuning.feature_unroll,
            "SLICES": self._shape.slices,
            "DROP": planes.law.digits > 0,
            "num_warps": tuning.feature_warps,
            **tuning.registers(tuning.feature_registers, tuning.feature_warps),
        }
