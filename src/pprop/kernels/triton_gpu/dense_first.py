"""The first layer of the fused trainer for a dense X: products on tensor cores, masks from one word for 32 columns.

Factors are float16, 11 significant bits, in units of powers of two such that the largest is near 2^14: of X each column in
its own, so that none of its numbers is lost beside larger columns; sums are in float32. One pass over X serves both passes
of the state, and where all hidden units are one slice it goes on to the predictions. The gradient of W_1 is a sum over all
nodes; where the features and runs alone are too few programs for the device, parts of the nodes make a share of it each,
and the shares are added in their order.
"""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.graph.features.scaling import DenseRows
from pprop.kernels.device_rows import DeviceRows
from pprop.kernels.random_bits import DENSE_FEATURES
from pprop.kernels.triton_gpu.bits import RowWords
from pprop.kernels.triton_gpu.first_layer import FirstLayer, FirstState, Predictions
from pprop.kernels.triton_gpu.launch import FEW_CLASSES, Shape, Tuning, device, kernel
from pprop.kernels.triton_gpu.layers import activated, adam, write_predictions

_ADAM_ROWS = 16  # of W_1 in one program
_SHARE_NODES = 1024  # least nodes of a share of the gradient
# Programs on the way back that keep a device of any size busy: there are as many shares of the gradient.
SHARES = 528


@device
def _kept(value, words, row, there, first, WORDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return `value` (ROWS, COLUMNS) with zeros where the decision on (row, first + column) is to drop it."""
    column = tl.arange(0, COLUMNS)
    spread = tl.zeros((ROWS, COLUMNS), tl.int32)
    for k in tl.static_range(COLUMNS // 32):
        at = first // 32 + k
        word = tl.load(words + row * WORDS + at, mask=there & (at < WORDS), other=0)
        spread = tl.where((column // 32 == k)[None, :], word[:, None], spread)
    return tl.where(((spread >> (column % 32)[None, :]) & 1) == 1, value, 0.0)


@kernel("n", "f")
def _forward(
    X, units, words, weights, hidden_words, hidden, quiet, biases, second, start, states, column_scale, n, f, unit_scale,
    kept_scale, hidden_scale,
    SLICES: tl.constexpr, C: tl.constexpr, WORDS: tl.constexpr, UNIT_WORDS: tl.constexpr, DROP: tl.constexpr,
    BIAS: tl.constexpr, CLASSES: tl.constexpr, ROW: tl.constexpr, STEPS: tl.constexpr, PREDICTS: tl.constexpr,
    B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Both passes of B nodes of one slice of hidden units of a run: drop(X) W and X W, ReLU, dropout.

    X is `unit_scale` times too large; column j in addition, by 1 / `units[j]`. With PREDICTS the slice is all there is, and
    goes on to the predictions.
    """
    copy = tl.program_id(1)
    run, group = (copy // SLICES).to(tl.int64), copy % SLICES
    row, unit = (tl.program_id(0) * B + tl.arange(0, B)).to(tl.int64), tl.arange(0, C)
    there = row < n
    source, mask = weights + copy.to(tl.int64) * (f + 1) * C, words + run * n * WORDS
    whole, train = tl.zeros((B, C), tl.float32), tl.zeros((B, C), tl.float32)
    for first in range(0, f, K):
        column = first + tl.arange(0, K)
        inside = column < f
        value = tl.load(X + row[:, None] * f + column[None, :], mask=there[:, None] & inside[None, :], other=0.0)
        weight = tl.load(source + column[:, None] * C + unit[None, :], mask=inside[:, None], other=0.0)
        weight = (weight * tl.load(units + column, mask=inside, other=0.0)[:, None]).to(tl.float16)
        whole = tl.dot(value, weight, whole)
        if DROP:
            train = tl.dot(_kept(value, mask, row, there, first, WORDS, B, K), weight, train)
    calm, noisy = activated(whole / unit_scale, train / unit_scale, row, there, hidden_words, biases, n, run, group,
                            kept_scale, hidden_scale, C, UNIT_WORDS, DROP, BIAS)  # fmt: skip
    at = (copy.to(tl.int64) * (n + 1) + row)[:, None] * C + unit[None, :]
    tl.store(hidden + at, noisy, mask=there[:, None])
    if not PREDICTS:
        tl.store(quiet + at, calm, mask=there[:, None])
    else:
        weight = tl.load(second + (run * C + unit[:, None]) * CLASSES + tl.arange(0, CLASSES)[None, :])
        trained, seen = (tl.dot(noisy, weight, input_precision="ieee"), tl.dot(calm, weight, input_precision="ieee"))
        write_predictions(trained, seen, row, biases, start, states, column_scale, n, run, C, CLASSES, ROW, STEPS, BIAS)


@kernel("n", "f", "nodes", "shares")
def _gradient(
    X, units, words, gradient, peaks, share, n, f, unit_scale, nodes, shares,
    SLICES: tl.constexpr, C: tl.constexpr, WORDS: tl.constexpr, DROP: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """share[copy, part] = drop(X)^T G over a part of the nodes, for B features and one slice of a run.

    `peaks` are the largest absolute numbers of G in each slice of a run.
    """
    block, part, copy = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    column, unit = block * B + tl.arange(0, B), tl.arange(0, C)
    inside = column < f
    source, mask = gradient + copy.to(tl.int64) * (n + 1) * C, words + (copy // SLICES).to(tl.int64) * n * WORDS
    total = tl.zeros((B, C), tl.float32)
    peak = tl.load(peaks + copy)
    scale = tl.exp2(14.0 - tl.ceil(tl.log2(tl.where((peak > 1e-37) & (peak < 1e37), peak, 1.0))))
    last = tl.minimum(n, (part + 1) * nodes)
    for begin in range(part * nodes, last, K):
        row = (begin + tl.arange(0, K)).to(tl.int64)
        there = row < last
        value = tl.load(X + row[:, None] * f + column[None, :], mask=there[:, None] & inside[None, :], other=0.0)
        if DROP:
            value = _kept(value, mask, row, there, block * B, WORDS, K, B)
        slope = tl.load(source + row[:, None] * C + unit[None, :], mask=there[:, None], other=0.0)
        total = tl.dot(tl.trans(value), (slope * scale).to(tl.float16), total)
    at = ((copy * shares + part).to(tl.int64) * f + column[:, None]) * C + unit[None, :]
    own = tl.load(units + column, mask=inside, other=0.0)[:, None]
    tl.store(share + at, total / scale / unit_scale * own, mask=inside[:, None])


@kernel("f", "shares")
def _step(
    share, weights, means, squares, norms, corrections, f, shares, rate, penalty, C: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    """Add up the shares of the gradient of B rows of one slice of W_1 and make one Adam step; norms = |W_new|^2."""
    block, copy = tl.program_id(0), tl.program_id(1)
    row = block * B + tl.arange(0, B)
    there = (row < f)[:, None]
    place = row[:, None] * C + tl.arange(0, C)[None, :]
    total = tl.zeros((B, C), tl.float32)
    part = 0
    while part < shares:
        total += tl.load(share + (copy * shares + part).to(tl.int64) * f * C + place, mask=there, other=0.0)
        part += 1
    at = copy.to(tl.int64) * (f + 1) * C + place
    new = adam(weights, means, squares, at, there, total, penalty, corrections, rate, True)
    tl.store(norms + copy * tl.num_programs(0) + block, tl.sum(tl.sum(tl.where(there, new * new, 0.0), axis=1), axis=0))


@final
class DenseFirst(FirstLayer):
    """X W_1 and the step of W_1 by whole rows of X."""

    def __init__(
        self, rows: DenseRows, shape: Shape, runs: int, dropout: float, tuning: Tuning, device: torch.device
    ) -> None:
        self._shape, self._tuning = shape, tuning
        self._matrix, self._units, self._scale = _in_units(DeviceRows(rows, device))
        self._words = RowWords(runs, shape.n, shape.f, dropout, DENSE_FEATURES, device)
        self.parts = -(-shape.f // _ADAM_ROWS)
        # more classes take more registers than a product in full float32 has beside X W_1
        self.predicts = shape.slices == 1 and shape.padded_classes <= FEW_CLASSES
        self._blocks = -(-shape.f // tuning.dense_columns)
        programs = self._blocks * runs * shape.slices
        wanted = max(1, -(-SHARES // programs))
        self._shares = min(wanted, max(1, shape.n // _SHARE_NODES))
        step = tuning.dense_nodes
        self._nodes = -(-shape.n // (self._shares * step)) * step
        self._peaks = torch.empty(runs * shape.slices, device=device)
        self._share = torch.empty(runs * shape.slices, self._shares, shape.f, shape.width, device=device)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        self._words.draw(clock, seeds, ahead=ahead)

    def forward(self, state: FirstState, target: Predictions, clock: Tensor, *, ahead: int) -> None:
        shape, tuning, scale = self._shape, self._tuning, self._words.law.scale
        _forward[(-(-shape.n // tuning.dense_rows), state.runs * shape.slices)](
            self._matrix, self._units, self._words.words, state.weights, state.hidden_words.words, state.hidden,
            state.quiet, state.biases, target.second, *target.arguments, shape.n, shape.f, self._scale, scale, scale,
            SLICES=shape.slices, C=shape.width, WORDS=self._words.per_node, UNIT_WORDS=state.hidden_words.per_node,
            DROP=self._words.law.digits > 0, BIAS=state.biases.shape[1], CLASSES=shape.padded_classes, ROW=shape.row,
            STEPS=target.states is not None, PREDICTS=self.predicts, B=tuning.dense_rows, K=tuning.dense_inner,
            num_warps=tuning.dense_warps, num_stages=tuning.dense_stages,
        )  # fmt: skip

    def step(self, state: FirstState, clock: Tensor, corrections: Tensor, rate: float) -> None:
        shape, tuning, copies = self._shape, self._tuning, state.runs * self._shape.slices
        slopes = state.hidden[: state.runs].view(copies, -1)
        torch.linalg.vector_norm(slopes, torch.inf, dim=1, out=self._peaks[:copies])
        _gradient[(self._blocks, self._shares, copies)](
            self._matrix, self._units, self._words.words, state.hidden, self._peaks, self._share, shape.n, shape.f, self._scale,
            self._nodes, self._shares,
            SLICES=shape.slices, C=shape.width, WORDS=self._words.per_node, DROP=self._words.law.digits > 0,
            B=tuning.dense_columns, K=tuning.dense_nodes, num_warps=tuning.back_warps, num_stages=tuning.back_stages,
        )  # fmt: skip
        _step[(self.parts, copies)](
            self._share, state.weights, state.means, state.squares, state.norms, corrections, shape.f,
            self._shares, rate, state.penalty if rate > 0 else 0.0, C=shape.width, B=_ADAM_ROWS, num_warps=4,
        )  # fmt: skip


def _in_units(rows: DeviceRows) -> tuple[Tensor, Tensor, float]:
    """Return X in float16 times a power of two and, column by column, over `units` (f,): as large as float16 holds with room."""
    (n, f), device = rows.shape, rows.device
    largest = torch.zeros(f, device=device)
    for _, part in rows.blocks():
        largest = torch.maximum(largest, part.abs().amax(dim=0))
    exponents = torch.frexp(largest.double())[1].where(largest > 0, -1000)
    top = int(exponents.max().clamp(min=-126)) if f else 0
    # a column is brought up to the largest, by a power of two that float32 holds
    units = torch.exp2(-(top - exponents.double()).clamp(0, 100)).where(largest > 0, 1.0).float()
    matrix, scale = torch.empty(n, f, dtype=torch.float16, device=device), 2.0 ** min(14 - top, 120)
    for at, part in rows.blocks():
        matrix[at] = (part / units * scale).half()
    return matrix, units, scale
