"""The triton backend: what it offers. Dense products are torch's, which on a GPU are cuBLAS's, in full float32.

torch uses TF32 in them only where a program asks for it (`torch.set_float32_matmul_precision`); pprop does not.
"""

from __future__ import annotations

from functools import partial
from typing import final

import triton.language as tl
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import LARGE_ENTRIES, FeatureMatrix, FeatureProduct, TrainerBytes, TrainerSizes, TrainerSpec
from pprop.kernels.losses import CROSS_ENTROPY
from pprop.kernels.random_bits import HIDDEN, Draw, stream
from pprop.kernels.reference.backend import ReferenceDenseFeatures, TorchKernels
from pprop.kernels.solves import System
from pprop.kernels.triton_gpu.attention import TritonAttention
from pprop.kernels.triton_gpu.bits import keep_word
from pprop.kernels.triton_gpu.large_steps import LargeSteps
from pprop.kernels.triton_gpu.launch import Masks, Tuning, kernel
from pprop.kernels.triton_gpu.planned_steps import step_mask_bytes
from pprop.kernels.triton_gpu.rows import TritonRows
from pprop.kernels.triton_gpu.solves import TritonSolves
from pprop.kernels.triton_gpu.sparse import TritonFeatures, TritonSteps
from pprop.kernels.triton_gpu.trainer import TritonTrainer, trainer_bytes

_ROWS = 64


@kernel("n", "width", "run_stride", "row_stride", "column_stride", "number", "threshold", "digits")
def _activate(
    values, run_stride, row_stride, column_stride, n, width, seeds, epoch, scale, number, threshold, digits,
    RELU: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """values = scale * keep * values, or * max(values, 0), in place: 32 columns of B rows of one run."""
    part, run = tl.program_id(1), tl.program_id(2)
    row = tl.program_id(0) * B + tl.arange(0, B)
    column = part * 32 + tl.arange(0, 32)
    at = values + run.to(tl.int64) * run_stride + row[:, None].to(tl.int64) * row_stride
    at += column[None, :] * column_stride
    inside = (row < n)[:, None] & (column < width)[None, :]
    site = row.to(tl.uint32)
    second = site * 0 + tl.load(epoch).to(tl.uint32)
    word = keep_word(tl.load(seeds + run), number, site, second, part.to(tl.int64), threshold, digits)
    keep = (word[:, None] >> tl.arange(0, 32).to(tl.uint32)[None, :]) & 1
    value = tl.load(at, mask=inside, other=0.0)
    dropped = keep == 0
    if RELU:
        dropped = dropped | (value <= 0)
    tl.store(at, tl.where(dropped, 0.0, value * tl.load(scale)), mask=inside)


def _launch(values: Tensor, layer: int, draw: Draw, *, relu: bool) -> Tensor:
    runs, n, width = values.shape
    drawn = Masks.of(draw, runs, values.device)
    _activate[(-(-n // _ROWS), -(-width // 32), runs)](
        values, *values.stride(), n, width, drawn.seeds, drawn.epoch, values.new_full((1,), drawn.law.scale),
        stream(HIDDEN, layer), *drawn.law, RELU=relu, B=_ROWS, num_warps=4,
    )  # fmt: skip
    return values


@final
class TritonKernels(TorchKernels):
    """Kernels for CUDA tensors of float32 or float64, and for small CPU tensors where triton is interpreted."""

    capturable = True

    def trainer(self, spec: TrainerSpec) -> TritonTrainer | None:
        """Bind the fused training of R runs; its weights say on which device. None: it has no such loss."""
        return TritonTrainer(spec) if spec.loss == CROSS_ENTROPY else None

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes:
        return trainer_bytes(sizes)

    def step_mask_bytes(self, nodes: int, entries: int, steps: int, columns: int) -> int:
        tuning = Tuning()
        return step_mask_bytes(nodes, entries, steps, tuning.row(columns), tuning)

    def features(self, matrix: FeatureMatrix) -> FeatureProduct:
        return (TritonFeatures if isinstance(matrix, sparse.csr_array) else ReferenceDenseFeatures)(matrix)

    def steps(self, transition: Transition, alpha: float | Tensor, steps: int) -> TritonSteps:
        large = len(transition.indices) >= LARGE_ENTRIES and steps > 0 and not isinstance(alpha, Tensor)
        return (LargeSteps if large else TritonSteps)(transition, alpha, steps)

    def solves(self, system: System) -> TritonSolves:
        large = len(system.transition.indices) >= LARGE_ENTRIES
        return TritonSolves(system, partial(self.steps, system.transition, 0.0, 1), large=large)

    def rows(self, block: Tensor, nodes: Tensor) -> TritonRows:
        return TritonRows(block, nodes)

    def attention(self, transition: Transition) -> TritonAttention:
        return TritonAttention(transition)

    def activate(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        return values.relu_() if draw is None else _launch(values, layer, draw, relu=True)

    def drop(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        return values if draw is None else _launch(values, layer, draw, relu=False)
