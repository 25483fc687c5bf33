"""The fused training of R runs on a GPU: some thirty launches an epoch, whatever R is, and no wait for the device.

An epoch begins with a training pass that is already made: its gradient goes back through the propagation and the
network, Adam steps, and one pair of passes at the new weights serves the evaluation and the next training step.
Everything that changes from epoch to epoch, the counter included, is in device memory, so that `epoch` can be captured
in a CUDA graph and replayed; after `keep` it has to be captured anew.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from pprop.kernels.trainer import LabelledNodes, Trainer, TrainerSpec
from pprop.kernels.triton_gpu.losses import cross_entropy_rows, finish_epoch
from pprop.kernels.triton_gpu.network import Network
from pprop.kernels.triton_gpu.propagate import Propagation, make_propagation
from pprop.kernels.triton_gpu.tuning import Tuning

__all__ = ["TritonTrainer"]

_LOSS_ROWS = 128


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
        self.network = Network(spec.features, spec.weights, spec.dropout, spec.rate, spec.penalty, tuning)
        sets = [spec.train, spec.stopping]
        self.propagation = make_propagation(
            spec.propagation, sets, self.network.shape, spec.matrix_dropout, tuning, device
        )
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

    @property
    def _runs(self) -> int:
        return self.network.runs

    def epoch(self) -> Tensor:
        self.propagation.backward(self.clock, self.seeds)
        self.network.backward(self.propagation.above, self.clock, self.corrections, self.network.rate)
        self._look(ahead=1, force=False)
        return self._out[: 3 * self._runs].view(3, self._runs)

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

    def _look(self, *, ahead: int, force: bool) -> None:
        """Make the evaluation and the training pass of epoch clock + ahead, up to its gradient, and end the epoch."""
        self.draw(ahead=ahead, force=force)
        self.network.forward(self.clock, ahead=ahead)
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
            cross_entropy_rows[(labels.blocks, self._runs)](
                values, values.stride(0), values.stride(1), labels.labels, labels.counts, labels.sizes,
                labels.labels.stride(0), labels.sums, gradient.total, gradient.total.stride(0), gradient.states,
                gradient.states.stride(0), gradient.column_scale, gradient.alphas, labels.rows, shape.classes,
                labels.blocks, MODE=mode, CLASSES=shape.padded_classes, B=_LOSS_ROWS, num_warps=4,
            )  # fmt: skip

    def finish(self, *, advance: int) -> None:
        """Write the results; with `advance`, go on to the next epoch."""
        train, stopping = self._sets
        finish_epoch[(self._runs,)](
            train.sums, stopping.sums, train.sizes, stopping.sizes, self.network.norms, self._pending, self._out,
            self.clock, self._powers, self._betas, self.corrections, train.blocks, stopping.blocks,
            self.network.norms.shape[1], self._runs, self.network.penalty, advance, B=256, num_warps=4,
        )  # fmt: skip


@final
class _Labels:
    """What a loss kernel reads: for every row of the logits its label and how often it counts, (R, rows)."""

    def __init__(self, nodes: LabelledNodes, propagation: Propagation, n: int, device: torch.device) -> None:
        labels, at = nodes.labels.to(device), nodes.nodes.to(device)
        known = labels >= 0
        self.sizes = known.sum(dim=1).float()
        if propagation.by_node:
            self.rows = n
            at = at.where(known, n)  # what pads a set goes to a column that nobody reads
            self.labels = torch.full((len(labels), n + 1), -1, dtype=torch.int32, device=device)
            self.labels.scatter_(1, at, labels.int())
            self.counts = torch.zeros(len(labels), n + 1, device=device).scatter_add_(1, at, known.float())
        else:
            self.rows, self.labels, self.counts = labels.shape[1], labels.int(), known.float()
        self.blocks = -(-self.rows // _LOSS_ROWS)
        self.sums = torch.zeros(len(labels), self.blocks, 2, device=device)

    def keep(self, slots: Tensor) -> _Labels:
        self.sizes, self.labels, self.counts = self.sizes[slots], self.labels[slots], self.counts[slots]
        return self
