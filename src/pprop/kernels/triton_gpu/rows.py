"""PPNP's block of dense PPR rows, with dropout on its entries. One keep word covers 32 columns of a row."""

from __future__ import annotations

from typing import Any, final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.contract import Draw, RowPropagation
from pprop.kernels.random_bits import PPR, Bernoulli
from pprop.kernels.triton_gpu._jit import device, epoch_tensor, kernel, power_of_two
from pprop.kernels.triton_gpu.bits import keep_word

__all__ = ["TritonRows", "launch_rows_adjoint", "launch_rows_forward"]

_ROWS = 16  # rows of a tile; its columns are those of one keep word


@device
def _dropped(
    block,
    nodes,
    at,
    there,
    j,
    n,
    seed,
    epoch,
    part,
    threshold,
    digits,
    DROP: tl.constexpr,
    ACC: tl.constexpr,
    STREAM: tl.constexpr = PPR,
):
    """Rows `at` of the block, the 32 columns j of word `part`; dropped entries are zero."""
    value = tl.load(block + at[:, None] * n + j[None, :], mask=there[:, None] & (j < n)[None, :], other=0.0).to(ACC)
    if DROP:
        node = tl.load(nodes + at, mask=there, other=0).to(tl.uint32)
        stream = tl.full((), STREAM, tl.int32)
        keep = keep_word(seed, stream, node, node * 0 + epoch, part.to(tl.int64), threshold, digits)
        bit = tl.arange(0, 32).to(tl.uint32)
        value = tl.where(((keep[:, None] >> bit[None, :]) & 1) == 1, value, 0.0)
    return value


@kernel(
    "m", "n", "width", "ahead", "threshold", "digits", "rows_run", "operand_run", "operand_row", "out_run", "out_row"
)
def _rows_forward(
    block, nodes, rows, rows_run, operand, operand_run, operand_row, out, out_run, out_row, clock, ahead, seeds, scale, m, n,
    width, threshold, digits, DROP: tl.constexpr, ACC: tl.constexpr, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """out[r, k] = sum_j drop(block)[rows[r, k], j] operand[r, j]."""
    run = tl.program_id(2).to(tl.int64)
    k = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * C + tl.arange(0, C)
    at = tl.load(rows + run * rows_run + k, mask=k < m, other=0).to(tl.int64)
    epoch = (tl.load(clock) + ahead).to(tl.uint32)
    seed = tl.load(seeds + run)
    acc = tl.zeros((M, 32, C), ACC)
    part = tl.full((), 0, tl.int32)
    while part * 32 < n:
        j = part * 32 + tl.arange(0, 32)
        value = _dropped(block, nodes, at, k < m, j, n, seed, epoch, part, threshold, digits, DROP, ACC)
        inside = (j < n)[:, None] & (column < width)[None, :]
        other = tl.load(
            operand + run * operand_run + j[:, None] * operand_row + column[None, :], mask=inside, other=0.0
        )
        acc += value[:, :, None] * other.to(ACC)[None, :, :]
        part += 1
    total = tl.sum(acc, axis=1) * tl.load(scale)
    to = out + run * out_run + k[:, None] * out_row + column[None, :]
    tl.store(to, total, mask=(k < m)[:, None] & (column < width)[None, :])


@kernel(
    "m", "n", "width", "ahead", "threshold", "digits", "rows_run", "operand_run", "operand_row", "out_run", "out_row"
)
def _rows_adjoint(
    block, nodes, rows, rows_run, operand, operand_run, operand_row, out, out_run, out_row, clock, ahead, seeds, scale, m, n,
    width, threshold, digits, DROP: tl.constexpr, ACC: tl.constexpr, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """out[r, j] = sum_k drop(block)[rows[r, k], j] operand[r, k]; a program owns 32 columns j."""
    part, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    j = part * 32 + tl.arange(0, 32)
    column = tl.program_id(1) * C + tl.arange(0, C)
    epoch = (tl.load(clock) + ahead).to(tl.uint32)
    seed = tl.load(seeds + run)
    acc = tl.zeros((M, 32, C), ACC)
    begin = 0
    while begin < m:
        k = begin + tl.arange(0, M)
        at = tl.load(rows + run * rows_run + k, mask=k < m, other=0).to(tl.int64)
        value = _dropped(block, nodes, at, k < m, j, n, seed, epoch, part, threshold, digits, DROP, ACC)
        inside = (k < m)[:, None] & (column < width)[None, :]
        other = tl.load(
            operand + run * operand_run + k[:, None] * operand_row + column[None, :], mask=inside, other=0.0
        )
        acc += value[:, :, None] * other.to(ACC)[:, None, :]
        begin += M
    total = tl.sum(acc, axis=0) * tl.load(scale)
    to = out + run * out_run + j[:, None] * out_row + column[None, :]
    tl.store(to, total, mask=(j < n)[:, None] & (column < width)[None, :])


def launch_rows_forward(block: Tensor, nodes: Tensor, rows: Tensor, operand: Tensor, out: Tensor, mask: Any) -> None:
    """Fill out (R, m, c); rows (R, m), operand (R, at least n, c), both with any run and row stride."""
    grid = (-(-rows.shape[1] // _ROWS), *_columns(out), len(rows))
    _rows_forward[grid](*_arguments(block, nodes, rows, operand, out, mask), **_constants(block, operand, out, mask))


def launch_rows_adjoint(block: Tensor, nodes: Tensor, rows: Tensor, operand: Tensor, out: Tensor, mask: Any) -> None:
    """Fill out (R, n, c) from operand (R, m, c)."""
    grid = (-(-block.shape[1] // 32), *_columns(out), len(rows))
    _rows_adjoint[grid](*_arguments(block, nodes, rows, operand, out, mask), **_constants(block, operand, out, mask))


def _columns(out: Tensor) -> tuple[int]:
    return (-(-out.shape[2] // _chunk(out)),)


def _chunk(out: Tensor) -> int:
    return min(power_of_two(out.shape[2]), 8)


def _arguments(block: Tensor, nodes: Tensor, rows: Tensor, operand: Tensor, out: Tensor, mask: Any) -> tuple[Any, ...]:
    clock, ahead, seeds, scale, law = mask
    law = law or Bernoulli(1, 1)
    return (
        block, nodes, rows, rows.stride(0), operand, operand.stride(0), operand.stride(1), out, out.stride(0),
        out.stride(1), clock, ahead, seeds, scale, rows.shape[1], block.shape[1], out.shape[2], law.threshold, law.digits,
    )  # fmt: skip


def _constants(block: Tensor, operand: Tensor, out: Tensor, mask: Any) -> dict[str, Any]:
    wide = torch.promote_types(block.dtype, operand.dtype) == torch.float64
    return {
        "DROP": mask[4] is not None,
        "ACC": tl.float64 if wide else tl.float32,
        "M": _ROWS,
        "C": _chunk(out),
        "num_warps": 4,
    }


@final
class TritonRows(RowPropagation):
    """drop(Pi_rows) H and its adjoint; sums are made in the wider of the two types."""

    def __init__(self, block: Tensor, nodes: Tensor) -> None:
        self._block, self._nodes = block.contiguous(), nodes

    def forward(self, predictions: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        out = predictions.new_empty(*rows.shape, predictions.shape[2])
        self._launch(launch_rows_forward, predictions, rows, out, draw)
        return out

    def adjoint(self, gradient: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        out = gradient.new_empty(len(rows), self._block.shape[1], gradient.shape[2])
        self._launch(launch_rows_adjoint, gradient, rows, out, draw)
        return out

    def _launch(self, launch: Any, operand: Tensor, rows: Tensor, out: Tensor, draw: Draw | None) -> None:
        device = operand.device
        self._block, self._nodes = self._block.to(device), self._nodes.to(device)
        law = None if draw is None else Bernoulli.from_probability(draw.probability)
        wide = torch.promote_types(self._block.dtype, operand.dtype)
        scale = torch.full((1,), 1.0 if law is None else law.scale, dtype=wide, device=device)
        clock = epoch_tensor(draw, device)
        seeds = clock.expand(len(rows)) if draw is None else draw.seeds
        mask = (clock, 0, seeds.contiguous(), scale, law)
        launch(self._block, self._nodes, rows.contiguous(), operand.contiguous(), out, mask)
