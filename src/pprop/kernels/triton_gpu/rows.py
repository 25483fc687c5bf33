"""PPNP's block of dense PPR rows, with dropout on its entries. One keep word covers 32 columns of a row."""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.contract import RowPropagation
from pprop.kernels.random_bits import PPR, Draw
from pprop.kernels.triton_gpu.bits import keep_word
from pprop.kernels.triton_gpu.launch import Masks, kernel, power_of_two

_ROWS = 16  # rows of a tile; its columns are those of one keep word


@kernel(
    "m", "n", "width", "ahead", "threshold", "digits", "rows_run", "operand_run", "operand_row", "out_run", "out_row"
)
def _rows_product(
    block, nodes, rows, rows_run, operand, operand_run, operand_row, out, out_run, out_row, clock, ahead, seeds, scale,
    m, n, width, threshold, digits,
    STREAM: tl.constexpr, ADJOINT: tl.constexpr, DROP: tl.constexpr, ACC: tl.constexpr, M: tl.constexpr,
    C: tl.constexpr,
):  # fmt: skip
    """out[r, k] = sum_j drop(block)[rows[r, k], j] operand[r, j]; a program owns M rows k.

    ADJOINT: out[r, j] = sum_k drop(block)[rows[r, k], j] operand[r, k]; a program owns the 32 columns j of one word.
    """
    run = tl.program_id(2).to(tl.int64)
    column = tl.program_id(1) * C + tl.arange(0, C)
    epoch = (tl.load(clock) + ahead).to(tl.uint32)
    seed = tl.load(seeds + run)
    acc = tl.zeros((M, 32, C), ACC)
    if ADJOINT:
        part = tl.program_id(0)
    else:
        k = tl.program_id(0) * M + tl.arange(0, M)
        at = tl.load(rows + run * rows_run + k, mask=k < m, other=0).to(tl.int64)
    done = tl.full((), 0, tl.int32)
    while done < (m if ADJOINT else n):
        if ADJOINT:
            k = done + tl.arange(0, M)
            at = tl.load(rows + run * rows_run + k, mask=k < m, other=0).to(tl.int64)
        else:
            part = done // 32
        j = part * 32 + tl.arange(0, 32)
        inside = (k < m)[:, None] & (j < n)[None, :]
        value = tl.load(block + at[:, None] * n + j[None, :], mask=inside, other=0.0).to(ACC)
        if DROP:
            node = tl.load(nodes + at, mask=k < m, other=0).to(tl.uint32)
            stream = tl.full((), STREAM, tl.int32)
            keep = keep_word(seed, stream, node, node * 0 + epoch, part.to(tl.int64), threshold, digits)
            bit = tl.arange(0, 32).to(tl.uint32)
            value = tl.where(((keep[:, None] >> bit[None, :]) & 1) == 1, value, 0.0)
        over, past = (k, m) if ADJOINT else (j, n)  # what is summed over
        there = (over < past)[:, None] & (column < width)[None, :]
        from_ = operand + run * operand_run + over[:, None] * operand_row + column[None, :]
        other = tl.load(from_, mask=there, other=0.0).to(ACC)
        if ADJOINT:
            acc += value[:, :, None] * other[:, None, :]
            done += M
        else:
            acc += value[:, :, None] * other[None, :, :]
            done += 32
    total = tl.sum(acc, axis=0 if ADJOINT else 1) * tl.load(scale)
    mine, past = (part * 32 + tl.arange(0, 32), n) if ADJOINT else (k, m)
    to = out + run * out_run + mine[:, None] * out_row + column[None, :]
    tl.store(to, total, mask=(mine < past)[:, None] & (column < width)[None, :])


def launch_rows(
    block: Tensor,
    nodes: Tensor,
    rows: Tensor,
    operand: Tensor,
    out: Tensor,
    drawn: Masks,
    scale: Tensor,
    *,
    adjoint: bool,
    ahead: int = 0,
) -> None:
    """Fill out (R, m, c) from operand (R, at least n, c), or adjoint (R, n, c) from (R, m, c).

    `rows` (R, m), operand and out may have any run and row stride. Masks are those of the drawn epoch + ahead; sums are
    multiplied by `scale` (1,).
    """
    chunk = min(power_of_two(out.shape[2]), 8)
    wide = torch.promote_types(block.dtype, operand.dtype) == torch.float64
    programs = -(-block.shape[1] // 32) if adjoint else -(-rows.shape[1] // _ROWS)
    _rows_product[(programs, -(-out.shape[2] // chunk), len(rows))](
        block, nodes, rows, rows.stride(0), operand, *operand.stride()[:2], out, *out.stride()[:2], drawn.epoch, ahead,
        drawn.seeds, scale, rows.shape[1], block.shape[1], out.shape[2], *drawn.law,
        STREAM=PPR, ADJOINT=adjoint, DROP=drawn.law.digits > 0, ACC=tl.float64 if wide else tl.float32, M=_ROWS,
        C=chunk, num_warps=4,
    )  # fmt: skip


@final
class TritonRows(RowPropagation):
    """drop(Pi_rows) H and its adjoint; sums are made in the wider of the two types."""

    def __init__(self, block: Tensor, nodes: Tensor) -> None:
        self._block, self._nodes = block.contiguous(), nodes

    def forward(self, predictions: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        out = predictions.new_empty(*rows.shape, predictions.shape[2])
        return self._launch(predictions, rows, out, draw, adjoint=False)

    def adjoint(self, gradient: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        out = gradient.new_empty(len(rows), self._block.shape[1], gradient.shape[2])
        return self._launch(gradient, rows, out, draw, adjoint=True)

    def _launch(self, operand: Tensor, rows: Tensor, out: Tensor, draw: Draw | None, *, adjoint: bool) -> Tensor:
        self._block, self._nodes = self._block.to(operand.device), self._nodes.to(operand.device)
        drawn = Masks.of(draw, len(rows), operand.device)
        wide = torch.promote_types(self._block.dtype, operand.dtype)
        scale = torch.full((1,), drawn.law.scale, dtype=wide, device=operand.device)
        launch_rows(
            self._block, self._nodes, rows.contiguous(), operand.contiguous(), out, drawn, scale, adjoint=adjoint
        )
        return out
