"""The fused training of R runs on a GPU: some thirty launches an epoch for any R, and no wait for the device.

An epoch begins with a training pass that is already made: its gradient goes back through the propagation and the
network, Adam steps, and one pair of passes at the new weights serves the evaluation and the next training step.
Everything that changes from epoch to epoch, the counter included, is in device memory, so that `epoch` can be captured
in a CUDA graph and replayed; after `keep` it has to be captured anew.
"""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.contract import LabelledNodes, Trainer, TrainerBytes, TrainerSizes, TrainerSpec
from pprop.kernels.triton_gpu.bits import mask_words
from pprop.kernels.triton_gpu.dense_first import SHARES
from pprop.kernels.triton_gpu.launch import Shape, Tuning, device, kernel
from pprop.kernels.triton_gpu.network import Network
from pprop.kernels.triton_gpu.planned_steps import step_mask_bytes
from pprop.kernels.triton_gpu.propagate import GpuPropagation, make_propagation

_LOSS_ROWS = 128


@kernel("m", "blocks", "label_stride")
def _cross_entropy(
    logits, logits_run, logits_row, labels, counts, sizes, label_stride, sums, gradient, gradient_run, states,
    states_run, column_scale, alphas, m, c, blocks, MODE: tl.constexpr, CLASSES: tl.constexpr, ROW: tl.constexpr,
    B: tl.constexpr,
):  # fmt: skip
    """sums[run, block] = the cross entropy of this block's rows and its right answers, every row weighted by `counts`.

    MODE 0 makes no gradient, 1 writes it, 2 begins the adjoint steps with it: alpha g to the total and S_c g to the
    state. Rows that are in no set get a zero.
    """
    block, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, column = (block * B + tl.arange(0, B)).to(tl.int64), tl.arange(0, CLASSES)
    real = (column < c)[None, :]
    label = tl.load(labels + run * label_stride + row, mask=row < m, other=-1)
    times = tl.load(counts + run * label_stride + row, mask=(row < m) & (label >= 0), other=0.0)
    counted = times > 0
    value = tl.load(
        logits + run * logits_run + row[:, None] * logits_row + column[None, :], mask=counted[:, None] & real, other=0.0
    )
    shown = tl.where(real, value, -float("inf"))
    top = tl.max(shown, axis=1)
    power = tl.where(real, tl.exp(shown - top[:, None]), 0.0)
    norm = tl.sum(power, axis=1)
    hit = column[None, :] == label[:, None]
    loss = tl.log(norm) + top - tl.sum(tl.where(hit, value, 0.0), axis=1)
    # of equal logits the first counts, as in torch
    answer = tl.min(tl.where(shown == top[:, None], column[None, :], CLASSES), axis=1)
    at = sums + (run * blocks + block) * 2
    tl.store(at, tl.sum(tl.where(counted, loss * times, 0.0), axis=0))
    tl.store(at + 1, tl.sum(tl.where(counted & (answer == label), times, 0.0), axis=0))
    if MODE > 0:
        share = tl.where(counted, times / tl.load(sizes + run), 0.0)
        slope = (power / norm[:, None] - tl.where(hit, 1.0, 0.0)) * share[:, None]
        slope = tl.where(counted[:, None] & real, slope, 0.0)
        place = row[:, None] * ROW + column[None, :]
        there = (row < m)[:, None] & (column < ROW)[None, :]
        if MODE == 1:
            tl.store(gradient + run * gradient_run + place, slope, mask=there)
        else:
            scale = tl.load(column_scale + row, mask=row < m, other=0.0)
            tl.store(gradient + run * gradient_run + place, tl.load(alphas + run) * slope, mask=there)
            tl.store(states + run * states_run + place, scale[:, None] * slope, mask=there)


@device
def _sum_blocks(sums, count, STRIDE: tl.constexpr, B: tl.constexpr):
    """Add up every STRIDE-th of some numbers, B at a time."""
    lane = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    k = 0
    while k < count:
        acc += tl.load(sums + (k + lane) * STRIDE, mask=k + lane < count, other=0.0)
        k += B
    return tl.sum(acc, axis=0)


@kernel("advance", "runs", "norm_count", "train_blocks", "stop_blocks")
def _finish_epoch(
    train_sums, stop_sums, train_sizes, stop_sizes, norms, pending, out, clock, powers, betas, corrections,
    train_blocks, stop_blocks, norm_count, runs, penalty, advance, B: tl.constexpr,
):  # fmt: skip
    """Write the results of an epoch and remember the training loss of the next one, whose pass is already made.

    With `advance` the epoch counter and the powers of Adam's constants go on; no other program of this kernel reads
    them.
    """
    run = tl.program_id(0)
    stop_at = stop_sums + run * stop_blocks * 2
    norm = _sum_blocks(norms + run.to(tl.int64) * norm_count, norm_count, 1, B)
    train = _sum_blocks(train_sums + run * train_blocks * 2, train_blocks, 2, B)
    stop, right = _sum_blocks(stop_at, stop_blocks, 2, B), _sum_blocks(stop_at + 1, stop_blocks, 2, B)
    share = 0.5 * penalty * norm
    tl.store(out + run, tl.load(pending + run))
    tl.store(pending + run, train / tl.load(train_sizes + run) + share)
    size = tl.load(stop_sizes + run)
    tl.store(out + runs + run, stop / size + share)
    tl.store(out + 2 * runs + run, right / size)
    if (run == 0) & (advance == 1):
        tl.store(clock, tl.load(clock) + 1)
        which = tl.arange(0, 2)
        power = tl.load(powers + which) * tl.load(betas + which)
        tl.store(powers + which, power)
        tl.store(corrections + which, (1.0 - power).to(tl.float32))


@final
class TritonTrainer(Trainer):
    """R runs of the paper's network with a propagation, in float32. See `Trainer`.

    Parameters
    ----------
    spec
        What to train; its weights say on which device.
    tuning
        Launch shapes.
    """

    capturable = True

    def __init__(self, spec: TrainerSpec, tuning: Tuning | None = None) -> None:
        tuning = tuning or Tuning()
        device = spec.weights[0].device
        runs = len(spec.seeds)
        self.network = Network(spec, tuning)
        self.propagation = make_propagation(spec, self.network.shape, tuning)
        sets = (spec.train, spec.stopping)
        self._sets = [_Labels(nodes, self.propagation, self.network.shape.n, device) for nodes in sets]
        self.seeds = spec.seeds.to(device).clone()
        self.clock = torch.zeros(1, dtype=torch.int64, device=device)
        self._betas = torch.tensor([0.9, 0.999], dtype=torch.float64).to(device)
        self._powers = self._betas.clone()
        self.corrections = (1.0 - self._powers).float()
        self._pending = torch.zeros(runs, device=device)
        self._out = torch.zeros(3 * runs, device=device)
        # A step of rate 0 leaves the weights as they are, sums their squares, and compiles the kernels of the way back.
        self.propagation.backward(self.clock, self.seeds)
        self.network.backward(self.propagation.above, self.clock, self.corrections, 0.0)
        self._look(ahead=0, force=True)

    def epoch(self) -> Tensor:
        self.propagation.backward(self.clock, self.seeds)
        self.network.backward(self.propagation.above, self.clock, self.corrections, self.network.rate)
        self._look(ahead=1, force=False)
        return self._out[: 3 * self.network.runs].view(3, self.network.runs)

    def weights(self) -> list[Tensor]:
        return self.network.weights()

    def remember(self, wanted: Tensor) -> None:
        """Keep a copy of the weights of the runs that are wanted, (R,) bool on the device; can be captured.

        A run that is not wanted costs nothing, where copying by `weights` costs all of them every time.
        """
        self.network.remember(wanted)

    def remembered(self) -> list[Tensor]:
        """Return every run's weights as last remembered, at first the initial ones, in the shapes of `weights`."""
        return self.network.weights(best=True)

    def keep(self, slots: Tensor) -> None:
        self.network.keep(slots)
        self.propagation.keep(slots)
        self.seeds = self.seeds[slots]
        self._sets = [labels.keep(slots) for labels in self._sets]
        self._look(ahead=0, force=True)

    def close(self) -> None:
        vars(self).clear()

    def _look(self, *, ahead: int, force: bool) -> None:
        """Make the evaluation and the training pass of epoch clock + ahead, up to its gradient, and end the epoch."""
        self.draw(ahead=ahead, force=force)
        logits = self.propagation.forward(self.network, self.clock, self.seeds, ahead=ahead)
        self.losses(logits)
        self.finish(advance=ahead)

    def draw(self, *, ahead: int, force: bool) -> None:
        """Draw the masks of epoch clock + ahead."""
        self.network.draw(self.clock, self.seeds, ahead=ahead, force=force)
        self.propagation.draw(self.clock, self.seeds, ahead=ahead, force=force)

    def losses(self, logits: tuple[Tensor, Tensor]) -> None:
        """Sum up losses and right answers by blocks, and begin the way back."""
        gradient, shape = self.propagation.gradient, self.network.shape
        for labels, values, mode in zip(self._sets, logits, (gradient.mode, 0), strict=True):
            _cross_entropy[(labels.blocks, self.network.runs)](
                values, values.stride(0), values.stride(1), labels.labels, labels.counts, labels.sizes,
                labels.labels.stride(0), labels.sums, gradient.total, gradient.total.stride(0), gradient.states,
                gradient.states.stride(0), gradient.column_scale, gradient.alphas, labels.rows, shape.classes,
                labels.blocks, MODE=mode, CLASSES=shape.padded_classes, ROW=shape.row, B=_LOSS_ROWS, num_warps=4,
            )  # fmt: skip

    def finish(self, *, advance: int) -> None:
        """Write the results; with `advance`, go on to the next epoch."""
        train, stopping = self._sets
        _finish_epoch[(self.network.runs,)](
            train.sums, stopping.sums, train.sizes, stopping.sizes, self.network.norms, self._pending, self._out,
            self.clock, self._powers, self._betas, self.corrections, train.blocks, stopping.blocks,
            self.network.norms.shape[1], self.network.runs, self.network.penalty, advance, B=256, num_warps=4,
        )  # fmt: skip


@final
class _Labels:
    """What a loss kernel reads: for every row of the logits its label and how much it counts, (R, rows)."""

    def __init__(self, nodes: LabelledNodes, propagation: GpuPropagation, n: int, device: torch.device) -> None:
        labels, at = nodes.labels.to(device), nodes.nodes.to(device)
        known = labels >= 0
        self.sizes = nodes.sizes.float().to(device)
        much = known.float() if nodes.weights is None else nodes.weights.to(device).float().where(known, 0.0)
        if propagation.by_node:
            self.rows = n
            at = at.where(known, n)  # padding goes to a column that is never read
            self.labels = torch.full((len(labels), n + 1), -1, dtype=torch.int32, device=device)
            self.labels.scatter_(1, at, labels.int())
            self.counts = torch.zeros(len(labels), n + 1, device=device).scatter_add_(1, at, much)
        else:
            self.rows, self.labels, self.counts = labels.shape[1], labels.int(), much
        self.blocks = -(-self.rows // _LOSS_ROWS)
        self.sums = torch.zeros(len(labels), self.blocks, 2, device=device)

    def keep(self, slots: Tensor) -> _Labels:
        self.sizes, self.labels, self.counts = self.sizes[slots], self.labels[slots], self.counts[slots]
        return self


def trainer_bytes(sizes: TrainerSizes, tuning: Tuning | None = None) -> TrainerBytes:
    """Return the bytes of the buffers of `TritonTrainer`, those of mask planes from above.

    `keep` needs the first layer's bytes once more for a moment.

    Examples
    --------
    >>> found = trainer_bytes(TrainerSizes(2810, 2879, 64, 7, feature_entries=142286, entries=18772, steps=10))
    >>> round(sum(found.run.values()) / 2**20), round(sum(found.shared.values()) / 2**20)
    (9, 5)
    """
    tuning = tuning or Tuning()
    n, f, nonzeros, entries = sizes.nodes, sizes.features, sizes.feature_entries, sizes.entries
    shape = Shape(n, f, sizes.hidden, sizes.classes, tuning, dense=nonzeros is None)
    units, columns = shape.units, shape.padded_classes
    first, second, steps = (f + 1) * units, units * columns, sizes.steps > 0
    feature_masks = edge_masks = 0
    if sizes.dropout:
        slots = 128 * tuning.feature_warps // shape.width
        if nonzeros is None:
            feature_masks = 4 * n * -(-f // 32)
        else:
            words = [mask_words(rows, nonzeros, slots, tuning.feature_limit) for rows in (n, f)]
            feature_masks = 32 * (4 * sum(words) + words[1] // slots)
        if steps:
            edge_masks = step_mask_bytes(n, entries, sizes.steps, 2 * shape.row, tuning)
    labelled = 0 if not sizes.ppr_rows else sizes.train_nodes + sizes.stopping_nodes  # else labels are kept by node
    run = {
        "weights": 4 * (first + second),
        "best weights": 4 * (first + second),
        "moments": 4 * 2 * (first + second),
        "hidden layer": 4 * 2 * (n + 1) * units + 4 * n * -(-units // 32) * sizes.dropout,
        "states": 4 * (n + 1) * 3 * shape.row * (3 if steps else 1),
        "feature masks": feature_masks,
        "edge masks": edge_masks,
        "sums": 4 * second * -(-n // 512) + 8 * shape.row * labelled + 16 * (labelled or 2 * (n + 1)),
    }
    features = 2 * (8 + 4) * 3 * (nonzeros or 0) // 2
    if (
        nonzeros is None
    ):  # in float32 and float16 for a moment; a share of the gradient for each run, and some for a few
        features = 6 * n * f + 4 * SHARES * tuning.dense_columns * shape.width
        run["sums"] += 4 * f * units
    graph = 2 * (4 + 4 * sizes.weighted) * 3 * entries // 2 + 16 * n if steps else 0
    return TrainerBytes({"features": features, "graph": graph, "PPR rows": 4 * sizes.ppr_rows * n}, run)
