"""How bootstrapped feature propagation may be read, and what each reading gives on validation splits.

    PPROP_DATA=folder python experiments/bootstrapped_fp_readings.py [--only pubmed] [--splits 5] [--seconds 230]
    python experiments/bootstrapped_fp_readings.py --table

The paper gives the diffusion, the number of rounds, and how many nodes a round adds. It says neither how features are
scaled, nor which logistic regression it is and how strong its penalty, nor which round counts. Validation splits hold no
test nodes. Readings are compared with ours on the same splits; one that explains the difference to the paper loses as
much as the paper's value on test does, on all graphs. Every split is written down as it ends, so that the command goes
on where it was stopped. `--table` writes the table of docs/study.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from reading_rows import Rows
from scipy import special
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from pprop import VALIDATION_SEEDS, Graph, load_dataset, paper_split, transition_matrix
from pprop.datasets import Split
from pprop.models.feature_propagation import BootstrappedFP, lowest_entropy
from pprop.models.feature_rows import CPU, Directions, Floats, leading_directions
from pprop.models.one_vs_rest import LearningRows, Regression, fit_one_vs_rest

Nodes = NDArray[np.int64]


@final
@dataclass(frozen=True)
class Reading:
    """What the paper leaves open.

    Attributes
    ----------
    C
        Inverse strength of the penalty.
    rows
        Features before diffusion: rows that ``"sum"`` to one, have ``"length"`` one, or are as ``"stored"``.
    matrix
        ``"loops"``, D^-1/2 (A + I) D^-1/2, or ``"none"``, without self-loops, as in the original, or ``"mean"``,
        D^-1 A.
    solver
        ``"ours"``; ``"ones"``, scikit-learn's as it was by default in 2018: one class against the rest, tolerance 1e-4,
        100 steps, and the intercept the coefficient of a column of ones, so that it has a penalty; or ``"softmax"``, its
        default now.
    again
        Whether every round labels all it adds anew, the nodes of earlier rounds included.
    """

    C: float = 1000.0
    rows: Literal["sum", "length", "stored"] = "sum"
    matrix: Literal["loops", "none", "mean"] = "loops"
    solver: Literal["ours", "ones", "softmax"] = "ours"
    again: bool = False


OURS = "ours: rows sum to one, C = 1000"
READINGS = {
    OURS: Reading(),
    "C = 300": Reading(C=300.0),
    "C = 100": Reading(C=100.0),
    "C = 10": Reading(C=10.0),
    "C = 1": Reading(C=1.0),
    "no self-loops": Reading(matrix="none"),
    "features as stored, C = 1": Reading(C=1.0, rows="stored"),
    "features as stored, C = 0.1": Reading(C=0.1, rows="stored"),
    "rows of length one, C = 1": Reading(C=1.0, rows="length"),
    "penalty on the intercept, C = 1": Reading(C=1.0, solver="ones"),
    "penalty on the intercept, features as stored, C = 1": Reading(C=1.0, rows="stored", solver="ones"),
    "softmax, C = 1": Reading(C=1.0, solver="softmax"),
    "softmax, features as stored, C = 1": Reading(C=1.0, rows="stored", solver="softmax"),
    "every round labels anew": Reading(again=True),
    "no self-loops, features as stored, C = 1": Reading(C=1.0, rows="stored", matrix="none"),
    "no self-loops, C = 10": Reading(C=10.0, matrix="none"),
    "mean over neighbours": Reading(matrix="mean"),
    "softmax, rows of length one, C = 1": Reading(C=1.0, rows="length", solver="softmax"),
    "no self-loops, rows of length one, C = 1": Reading(C=1.0, rows="length", matrix="none"),
    "features as stored, C = 10": Reading(C=10.0, rows="stored"),
}
PUBLISHED = {  # test: the paper's, ours, with their intervals
    "citeseer": (73.55, 0.57, 75.11, 0.87),
    "cora_ml": (80.84, 0.97, 85.29, 0.68),
    "pubmed": (72.94, 1.00, 77.84, 1.22),
    "ms_academic": (91.61, 0.24, 92.83, 0.18),
}
ROUNDS = {"first": "no bootstrapping", "best": "best round", "last": "last round"}


def diffused(graph: Graph, reading: Reading) -> Floats:
    """Return the diffused features of a reading, (n, f)."""
    stored = graph.features
    assert stored is not None
    begin: Floats = (stored if isinstance(stored, np.ndarray) else stored.toarray()).astype(np.float64)
    if reading.rows != "stored":
        begin = begin / np.linalg.norm(begin, ord=1 if reading.rows == "sum" else 2, axis=1, keepdims=True).clip(1e-12)
    if reading.matrix == "mean":
        links: Any = graph.adjacency.astype(np.float64)
        matrix: Any = (links / np.asarray(links.sum(axis=1)).clip(1)[:, None]).tocsr()
    else:
        matrix = transition_matrix(graph, self_loops=reading.matrix == "loops").to_scipy().astype(np.float64)
    found, settings = begin, BootstrappedFP()
    for _ in range(settings.steps):
        found = (1 - settings.alpha) * (matrix @ found) + settings.alpha * begin
    return found


@final
class Learner:
    """The regressions of a reading on one graph."""

    def __init__(self, features: Floats, directions: Directions, n_classes: int) -> None:
        self._features, self._directions, self._n_classes = features, directions, n_classes
        self._turned = directions.turned(features)

    def rounds(self, reading: Reading, split: Split, labels: Nodes) -> Iterator[Floats]:
        """Yield the log probabilities of all nodes, (n, c), after each round."""
        settings, n = BootstrappedFP(), len(self._features)
        nodes, classes = split.train, labels[split.train]
        free = np.ones(n, dtype=np.bool_)
        free[nodes], free[split.stopping] = False, False
        others = free.copy()
        found = Regression(np.zeros((self._n_classes, self._features.shape[1])), np.zeros(self._n_classes))
        for number in range(1, settings.rounds + 2):
            if reading.solver == "ours":
                found = self._ours(nodes, classes, found, reading.C)
                odds = self._features @ found.coefficients.T + found.intercepts
                shares = special.log_softmax(special.log_expit(odds), axis=1)
            else:
                shares = self._theirs(nodes, classes, reading)
            yield shares
            if reading.again:
                nodes = np.concatenate([split.train, lowest_entropy(shares, others, min(1.0, number * settings.share))])
                classes = np.concatenate([labels[split.train], shares[nodes[len(split.train) :]].argmax(axis=1)])
                continue
            more = lowest_entropy(shares, free, settings.share)
            if not len(more):
                return
            free[more] = False
            nodes, classes = np.concatenate([nodes, more]), np.concatenate([classes, shares[more].argmax(axis=1)])

    def _ours(self, nodes: Nodes, classes: Nodes, start: Regression, strength: float) -> Regression:
        rows = LearningRows(self._features, self._turned, self._directions, CPU())
        rows.add(nodes)
        return fit_one_vs_rest(rows, classes, start, strength)

    def _theirs(self, nodes: Nodes, classes: Nodes, reading: Reading) -> Floats:
        present = np.unique(classes)
        shares = np.full((len(self._features), self._n_classes), -50.0)
        if len(present) == 1:
            shares[:, present] = 0.0
        elif reading.solver == "softmax":
            model: Any = LogisticRegression(C=reading.C, max_iter=100)
            model.fit(self._features[nodes], classes)
            odds: Any = self._features @ model.coef_.T + model.intercept_
            if len(present) == 2:
                odds = np.concatenate([np.zeros_like(odds), odds], axis=1)
            shares[:, present] = special.log_softmax(odds, axis=1)
        else:
            wide = np.concatenate([self._features, np.ones((len(self._features), 1))], axis=1)
            for code in present:
                one: Any = LogisticRegression(C=reading.C, max_iter=100, fit_intercept=False)
                shares[:, code] = special.log_expit(wide @ one.fit(wide[nodes], classes == code).coef_[0])
            shares = special.log_softmax(shares, axis=1)
        return shares


@final
class Graphs:
    """Graphs and the learners of their readings, each made once."""

    def __init__(self) -> None:
        self._graphs: dict[str, Graph] = {}
        self._learners: dict[tuple[str, str, str], Learner] = {}

    def row(self, dataset: str, name: str, seed: int) -> dict[str, Any]:
        """Return the accuracies of a reading on the evaluation nodes of one validation split."""
        reading = READINGS[name]
        graph = self._graphs.setdefault(dataset, load_dataset(dataset))
        labels = graph.labels
        assert labels is not None
        key = dataset, reading.rows, reading.matrix
        if key not in self._learners:
            features = diffused(graph, reading)
            self._learners[key] = Learner(features, leading_directions(features, CPU()), graph.n_classes)
        split, begin = paper_split(graph, seed=seed, test=False), time.monotonic()
        found = [shares.argmax(axis=1) for shares in self._learners[key].rounds(reading, split, labels)]
        watched, right = (
            [np.count_nonzero(row[nodes] == labels[nodes]) / len(nodes) for row in found]
            for nodes in (split.stopping, split.evaluation)
        )
        best, seconds = int(np.argmax(watched)), round(time.monotonic() - begin, 1)
        return {"dataset": dataset, "reading": name, "split": seed, "first": right[0], "best": right[best],
                "last": right[-1], "best_at": best, "seconds": seconds}  # fmt: skip


def compute(datasets: list[str], readings: list[str], splits: int, rows: Rows, seconds: float) -> None:
    """Try readings on the validation splits that are not there yet, as long as there is time."""
    until, graphs = time.monotonic() + seconds, Graphs()
    for seed, name, dataset in itertools.product(VALIDATION_SEEDS[:splits], readings, datasets):
        if seed in rows.of(dataset, name):
            continue
        if time.monotonic() > until:
            return
        row = graphs.row(dataset, name, seed)
        rows.add([row])
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


def table(rows: Rows) -> str:
    """Return, per reading and round, the mean difference to ours on the same splits, in points, with its 95 % interval."""
    datasets = [dataset for dataset in PUBLISHED if rows.of(dataset, OURS)]
    lines = ["| minus ours | " + " | ".join(datasets) + " |", "|---|" + "---|" * len(datasets)]
    paper = [
        f"{known[0] - known[2]:+.2f} ± {sqrt(known[1] ** 2 + known[3] ** 2):.2f}"
        for known in map(PUBLISHED.__getitem__, datasets)
    ]
    lines.append("| the paper, on test | " + " | ".join(paper) + " |")
    for name in READINGS:
        for kind, words in ROUNDS.items():
            cells: list[str] = []
            for dataset in datasets:
                mine, ours = rows.of(dataset, name), rows.of(dataset, OURS)
                apart = np.array([100 * (mine[seed][kind] - ours[seed]["best"]) for seed in mine if seed in ours])
                if len(apart) < 2:
                    cells.append("-")
                    continue
                margin = float(student.ppf(0.975, len(apart) - 1)) * float(apart.std(ddof=1)) / sqrt(len(apart))
                cells.append(f"{apart.mean():+.2f} ± {margin:.2f} ({len(apart)})")
            if set(cells) != {"-"} and (name, kind) != (OURS, "best"):
                lines.append(f"| {name}, {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(PUBLISHED), default=list(PUBLISHED)[:3])
    parser.add_argument("--readings", nargs="+", choices=tuple(READINGS), default=list(READINGS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no split after that many")
    parser.add_argument("--out", type=Path, default=Path("results/bootstrapped_fp_readings.json"))
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    rows = Rows(arguments.out)
    if arguments.table:
        sys.stdout.write(table(rows))
        return
    with CPU().fixed_order():
        compute(arguments.only, arguments.readings, arguments.splits, rows, arguments.seconds)


if __name__ == "__main__":
    main()
