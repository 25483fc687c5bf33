"""How the paper's jumping knowledge network (JK) may be read, and what each reading gives on validation splits.

    PPROP_DATA=folder nice python experiments/jk_readings.py [--only citeseer cora_ml] [--runs 8] [--device cuda]
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
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from reading_rows import Rows
from scipy.stats import t as student
from torch import Tensor

from pprop import (
    GCN,
    JK,
    VALIDATION_SEEDS,
    Graph,
    Stopping,
    Trained,
    load_dataset,
    paper_split,
    run_seed,
    train,
    transition_matrix,
)
from pprop.kernels import Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.network import Weight
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
        self._A_hat = kernels.steps(transition_matrix(graph), 0.0, 1)

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        model, count = self._model, self._model.convolutions + 1
        matrices, biases = weights[:count], weights[count:]
        draw = masks.draw(model.dropout)
        shared = (
            draw if model.mask == "shared" else None
        )  # then H is dropped as soon as it is there, for all who use it
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
            if layer < count - 2 or model.last_relu:
                seen.append(relu_drop(self.kernels, values, layer + 1, shared))
            else:
                seen.append(drop(self.kernels, values, layer + 1, shared))
        together = torch.cat(seen, dim=-1)
        if model.mask == "own":
            together = drop(self.kernels, together, count - 1, draw)
        outputs = linear(self.kernels, together, matrices[-1])
        if model.propagated:
            outputs = applied(self._A_hat, outputs)
        return outputs + biases[-1] if biases else outputs


PLAIN = "plain"
REFERENCE = "V. GCN"
PAPER = Stopping()
READINGS: dict[str, tuple[Architecture, Stopping]] = {
    REFERENCE: (GCN(hidden=16, matrix_dropout=0.0, penalty=5e-4), Stopping(10, 200, "loss")),
    PLAIN: (JK(layers=3), PAPER),
    "last layer propagated": (Reading(propagated=True), PAPER),
    "two convolutions": (Reading(convolutions=2), PAPER),
    "two convolutions, last layer propagated": (Reading(convolutions=2, propagated=True), PAPER),
    "penalty on the convolutions alone": (Reading(penalised="convolutions"), PAPER),
    "penalty on the first matrix alone": (Reading(penalised="first"), PAPER),
    "penalty twice as strong": (Reading(penalty=0.002), PAPER),
    "penalty half as strong": (Reading(penalty=0.0005), PAPER),
    "masks shared": (Reading(mask="shared"), PAPER),
    "no mask on the concatenation": (Reading(mask="none"), PAPER),
    "no mask between convolutions": (Reading(between=False), PAPER),
    "the same, last layer propagated": (Reading(between=False, propagated=True), PAPER),
    "biases": (Reading(biases=True), PAPER),
    "no ReLU in the last convolution": (Reading(last_relu=False), PAPER),
}
PUBLISHED = {  # test: JK in the paper and its interval, V. GCN in the paper, and plain JK here with its interval
    "citeseer": (73.03, 0.47, 73.51, 71.90, 0.45),
    "cora_ml": (82.69, 0.35, 82.30, 81.71, 0.34),
    "pubmed": (77.88, 0.38, 77.65, 77.79, 0.38),
    "ms_academic": (91.71, 0.10, 91.65, 89.73, 0.12),
}
RUNS = {"citeseer": 20, "cora_ml": 20, "pubmed": 20, "ms_academic": 5}


def compute(dataset: str, reading: str, runs: int, rows: Rows, device: str) -> None:
    """Train the runs of a reading that are not there yet, one initialisation on each validation split."""
    there = rows.of(dataset, reading)
    seeds = [seed for seed in VALIDATION_SEEDS[:runs] if seed not in there]
    if not seeds:
        return
    graph = load_dataset(dataset)
    labels = graph.labels
    assert labels is not None
    model, rule = READINGS[reading]
    begin = time.perf_counter()

    def take(ended: Trained, which: NDArray[np.int64]) -> None:
        found: list[dict[str, Any]] = []
        for place, run in enumerate(which.tolist()):
            nodes = ended.splits[place].evaluation
            accuracy = 100 * np.count_nonzero(ended.predict(nodes)[place] == labels[nodes]) / len(nodes)
            found.append(
                {
                    "dataset": dataset, "reading": reading, "split": seeds[run], "accuracy": round(accuracy, 4),
                    "epochs": int(ended.epochs[place]), "device": ended.device,
                }
            )  # fmt: skip
        rows.add(found)

    splits = [paper_split(graph, seed=seed, test=False) for seed in seeds]
    chosen = [run_seed(seed, 0) for seed in seeds]
    train(model, graph, splits, seeds=chosen, stopping=rule, device=device, progress=False, on_end=take)
    mean = np.mean([row["accuracy"] for row in rows.of(dataset, reading).values()])
    print(f"{dataset:11} {reading:42} {mean:.2f}  {time.perf_counter() - begin:.0f} s", flush=True)


def difference(rows: Rows, dataset: str, reading: str, other: str) -> str:
    """Return the mean difference of two readings over the splits that both have, with its 95 % interval, or a dash."""
    ours, theirs = rows.of(dataset, reading), rows.of(dataset, other)
    apart = np.array([ours[split]["accuracy"] - theirs[split]["accuracy"] for split in ours if split in theirs])
    if len(apart) < 2:
        return "-"
    half = student.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / sqrt(len(apart))
    return f"{apart.mean():+.2f} ± {half:.2f} ({len(apart)})"


def table(rows: Rows, other: str) -> list[str]:
    """Return how far each reading is from another on the same splits, as lines of Markdown, in points of accuracy."""
    lines = [f"| minus {other} | {' | '.join(PUBLISHED)} |", f"|---|{'---|' * len(PUBLISHED)}"]
    wanted: list[str] = []
    for paper, interval, reference, ours, our_interval in PUBLISHED.values():
        if other == PLAIN:
            wanted.append(f"{paper - ours:+.2f} ± {sqrt(interval**2 + our_interval**2):.2f}")
        else:
            wanted.append(f"{paper - reference:+.2f}")
    lines.append(f"| the paper's JK, on test | {' | '.join(wanted)} |")
    for reading in READINGS:
        cells = [difference(rows, dataset, reading, other) for dataset in PUBLISHED]
        if reading not in (other, REFERENCE) and set(cells) != {"-"}:
            lines.append(f"| {reading} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Train what is not yet in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=tuple(PUBLISHED), default=tuple(PUBLISHED), help="datasets")
    parser.add_argument("--readings", nargs="*", choices=tuple(READINGS), default=tuple(READINGS))
    parser.add_argument("--runs", type=int, help="validation splits; default: 20, on ms_academic 5")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("results/jk_readings.json"))
    parser.add_argument("--table", action="store_true", help="train nothing; write what there is as two tables")
    arguments = parser.parse_args()
    rows = Rows(arguments.out)
    if arguments.table:
        print("\n".join([*table(rows, PLAIN), "", *table(rows, REFERENCE)]))
        return
    for dataset in arguments.only:
        for reading in arguments.readings:
            compute(dataset, reading, arguments.runs or RUNS[dataset], rows, arguments.device)


if __name__ == "__main__":
    main()
