"""How the paper's jumping knowledge network (JK) may be read, and what each reading gives on validation splits.

    PPROP_DATA=folder python experiments/jk_readings.py [--only citeseer cora_ml] [--runs 8] [--device cuda]
    python experiments/jk_readings.py --table

The paper says: concatenation, three layers, 64 hidden units each, penalty 0.001 and dropout 0.5 on all layers, none on
the adjacency matrix. It says neither whether the last product is propagated, nor which layers the three are, nor where
masks are shared. Validation splits hold no test nodes. Runs of one split and initialisation are compared with each
other: a reading with the plain one of `pprop.JK`, and with vanilla GCN, which agrees with the paper on all four graphs.
Every run is written down as it ends, so that the command goes on where it was stopped. `--table` writes the table of
docs/study.md.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any, Literal, final

import numpy as np
import torch
from _common import RESULTS, Rows, difference, published
from numpy.typing import NDArray
from torch import Tensor

import pprop
from pprop import VALIDATION_SEEDS, Graph, Stopping
from pprop.kernels import Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, drop, linear, relu_drop


@final
@dataclass(frozen=True)
class Reading(Architecture):
    """JK with all that the paper leaves open.

    Attributes
    ----------
    convolutions
        How many, each `hidden` wide; the last layer comes after them.
    propagated
        Whether the last layer is a convolution too, Z = A_hat [H_1 | ... ] W, or a plain product.
    mask
        Dropout on the concatenation: ``"own"``, ``"shared"`` with the input of the next convolution, or ``"none"``.
    between
        Whether there is dropout between convolutions too, where the concatenation has a mask of its own or none.
    biases
        Whether each layer adds a vector, after propagation.
    penalised
        The matrices with a penalty: ``"all"``, the ``"convolutions"`` or the ``"first"``.
    penalty
        lambda of lambda / 2 * |W|^2.
    last_relu
        Whether the last convolution has a ReLU.
    dropout
        On the features and, as `mask` and `between` say, behind them.
    hidden
        Width of each convolution.
    """

    convolutions: int = 3
    propagated: bool = False
    mask: Literal["own", "shared", "none"] = "own"
    between: bool = True
    biases: bool = False
    penalised: Literal["all", "convolutions", "first"] = "all"
    penalty: float = 0.001
    last_relu: bool = True
    dropout: float = 0.5
    hidden: int = 64

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        inner = [(self.hidden, self.hidden)] * (self.convolutions - 1)
        shapes = [(n_features, self.hidden), *inner, (self.convolutions * self.hidden, n_classes)]
        counts = {"all": len(shapes), "convolutions": self.convolutions, "first": 1}[self.penalised]
        matrices = [
            Weight(f"layer{at}", shape, self.penalty if at < counts else 0.0, fans=shape)
            for at, shape in enumerate(shapes)
        ]
        return (*matrices, *(Weight(f"bias{at}", (1, shape[1])) for at, shape in enumerate(shapes) if self.biases))

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundReading(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        return (4 * self.convolutions + 1) * self.hidden + 5 * n_classes


@final
class _BoundReading(BoundModel):
    def __init__(self, model: Reading, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        self._A_hat = kernels.steps(pprop.transition_matrix(graph), 0.0, 1)

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        model, count = self._model, self._model.convolutions + 1
        matrices, biases = weights[:count], weights[count:]
        draw = masks.draw(model.dropout)
        shared = draw if model.mask == "shared" else None  # H is dropped once, for all who use it
        between = draw if model.between else None
        seen: list[Tensor] = []
        for layer, W in enumerate(matrices[:-1]):
            if layer == 0:
                values = applied(self._X, W, draw)
            else:
                before = seen[-1] if shared is not None else drop(self.kernels, seen[-1], layer, between)
                values = linear(self.kernels, before, W)
            values = applied(self._A_hat, values)
            if biases:
                values = values + biases[layer]
            dropped = relu_drop if layer < count - 2 or model.last_relu else drop
            seen.append(dropped(self.kernels, values, layer + 1, shared))
        together = torch.cat(seen, dim=-1)
        if model.mask == "own":
            together = drop(self.kernels, together, count - 1, draw)
        outputs = linear(self.kernels, together, matrices[-1])
        if model.propagated:
            outputs = applied(self._A_hat, outputs)
        return outputs + biases[-1] if biases else outputs


PLAIN = "plain"
REFERENCE = "V. GCN"
READINGS: dict[str, Architecture] = {
    REFERENCE: pprop.GCN(hidden=16, matrix_dropout=0.0, penalty=5e-4),
    PLAIN: pprop.JK(layers=3),
    "last layer propagated": Reading(propagated=True),
    "two convolutions": Reading(convolutions=2),
    "two convolutions, last layer propagated": Reading(convolutions=2, propagated=True),
    "penalty on the convolutions alone": Reading(penalised="convolutions"),
    "penalty on the first matrix alone": Reading(penalised="first"),
    "penalty twice as strong": Reading(penalty=0.002),
    "penalty half as strong": Reading(penalty=0.0005),
    "masks shared": Reading(mask="shared"),
    "no mask on the concatenation": Reading(mask="none"),
    "no mask between convolutions": Reading(between=False),
    "the same, last layer propagated": Reading(between=False, propagated=True),
    "biases": Reading(biases=True),
    "no ReLU in the last convolution": Reading(last_relu=False),
}
FORMER = {  # 100 test runs of plain JK here: accuracy in percent, and its interval
    "citeseer": (71.90, 0.45),
    "cora_ml": (81.71, 0.34),
    "pubmed": (77.79, 0.38),
    "ms_academic": (89.73, 0.12),
}


def compute(dataset: str, reading: str, runs: int, rows: Rows, device: str) -> None:
    """Train the runs of a reading that are not there yet, one initialisation on each validation split."""
    there = rows.by_split(dataset, reading, "accuracy")
    seeds = [seed for seed in VALIDATION_SEEDS[:runs] if seed not in there]
    if not seeds:
        return
    graph = pprop.load_dataset(dataset)
    rule = Stopping(10, 200, "loss") if reading == REFERENCE else Stopping()
    begin = time.perf_counter()

    def take(ended: pprop.Trained, which: NDArray[np.int64]) -> None:
        for run, accuracy, epochs in zip(which, ended.accuracy(), ended.epochs, strict=True):
            row: dict[str, Any] = {"dataset": dataset, "reading": reading, "split": seeds[int(run)]}
            rows.add(row | {"accuracy": round(100 * float(accuracy), 4), "epochs": int(epochs), "device": ended.device})

    splits = [pprop.paper_split(graph, seed=seed, test=False) for seed in seeds]
    chosen = [pprop.run_seed(seed, 0) for seed in seeds]
    pprop.train(
        READINGS[reading], graph, splits, seeds=chosen, stopping=rule, device=device, progress=False, on_end=take
    )
    mean = np.mean(list(rows.by_split(dataset, reading, "accuracy").values()))
    print(f"{dataset:11} {reading:42} {mean:.2f}  {time.perf_counter() - begin:.0f} s", flush=True)


def table(rows: Rows, other: str) -> list[str]:
    """Return how far each reading is from another on the same splits, as lines of Markdown, in points of accuracy."""
    wanted: list[str] = []
    for dataset, (ours, our_interval) in FORMER.items():
        paper, interval = published("jk", dataset)
        if other == PLAIN:
            wanted.append(f"{paper - ours:+.2f} ± {hypot(interval, our_interval):.2f}")
        else:
            wanted.append(f"{paper - published('vanilla_gcn', dataset)[0]:+.2f}")
    lines = [
        f"| minus {other} | {' | '.join(FORMER)} |",
        f"|---|{'---|' * len(FORMER)}",
        f"| the paper's JK, on test | {' | '.join(wanted)} |",
    ]
    for reading in READINGS:
        sides = ([rows.by_split(dataset, each, "accuracy") for each in (reading, other)] for dataset in FORMER)
        if reading not in (other, REFERENCE):
            lines.append(f"| {reading} | {' | '.join(difference(*both) for both in sides)} |")
    return lines


def main() -> None:
    """Train what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=tuple(FORMER), default=tuple(FORMER), help="datasets")
    parser.add_argument("--readings", nargs="*", choices=tuple(READINGS), default=tuple(READINGS))
    parser.add_argument("--runs", type=int, default=20, help="validation splits")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--table", action="store_true", help="train nothing; write what there is as two tables")
    how = parser.parse_args()
    rows = Rows(RESULTS / "jk_readings.json")
    if how.table:
        print("\n".join([*table(rows, PLAIN), "", *table(rows, REFERENCE)]))
        return
    for dataset, reading in itertools.product(how.only, how.readings):
        compute(dataset, reading, how.runs, rows, how.device)


if __name__ == "__main__":
    main()
