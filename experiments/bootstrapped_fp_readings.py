"""How bootstrapped feature propagation may be read, and what each reading gives on validation splits.

    PPROP_DATA=folder python experiments/bootstrapped_fp_readings.py [--only pubmed] [--splits 5] [--readings "C = 10"]
    python experiments/bootstrapped_fp_readings.py --table

The two readings that docs/results.md shows beside the paper's row, on all 20 validation splits; on a GPU the last of
these commands takes two minutes, on a busy CPU three minutes per split:

    PPROP_DATA=folder python experiments/bootstrapped_fp_readings.py --splits 20 --only citeseer cora_ml pubmed \
        --readings "the authors' code" "the authors' code, stopping nodes labelled too"
    PPROP_DATA=folder python experiments/bootstrapped_fp_readings.py --splits 20 --only ms_academic --device cuda \
        --readings "the authors' code" "the authors' code, stopping nodes labelled too"

The paper gives the diffusion, the number of rounds, and how many nodes a round adds. It says neither how features are
scaled, nor which logistic regression it is and how strong its penalty, nor which round counts. Validation splits hold
no test nodes. The table compares each reading with ours, Bt. FP, tuned, on the same splits. Its first row subtracts our
test values from the paper's row, as if that row were of the test splits. On Citeseer, Cora-ML and PubMed it is most
likely of the validation splits (docs/study.md), so the first row is no measure of a reading. The means over all 20
splits are compared with the paper's row directly. Every split is written down as it ends, so that the command goes on
where it was stopped. `--table` writes the table of docs/study.md, and means of accuracy and macro F1 with their
intervals for the readings that have all 20 splits. A row has the commit (from the environment variable COMMIT where the
sources are in no git checkout), the machine and the command that made it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import hypot
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch
from _common import RESULTS, Rows, difference, published
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.linear_model import LogisticRegression

from pprop import VALIDATION_SEEDS, Graph, load_dataset, paper_split, transition_matrix
from pprop.datasets import Split
from pprop.models.feature_propagation import BootstrappedFP, Diffused, lowest_entropy
from pprop.models.feature_rows import CPU, Device, Floats, device_named, leading_directions
from pprop.models.one_vs_rest import LearningRows, Regression, fit_one_vs_rest
from pprop.study.experiment_folder import load_experiments
from pprop.study.revisions import provenance_here
from pprop.study.stats.estimate import estimate, f1_paper, half_by_chance

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
    loops
        Whether the matrix has self-loops: D^-1/2 (A + I) D^-1/2, or D^-1/2 A D^-1/2.
    solver
        ``"ours"``; ``"penalised"``, ours with a penalty on the intercept, as the authors' code has it; ``"ones"``,
        scikit-learn's as it was by default in 2018: one class against the rest, tolerance 1e-4,
        100 steps, and the intercept the coefficient of a column of ones, so that it has a penalty; or ``"softmax"``, its
        default now.
    again
        Whether every round labels all it adds anew, the nodes of earlier rounds included.
    open
        Whether rounds may add stopping nodes, too, with the class that is predicted for them.
    """

    C: float = 1000.0
    rows: Literal["sum", "length", "stored"] = "sum"
    loops: bool = True
    solver: Literal["ours", "penalised", "ones", "softmax"] = "ours"
    again: bool = False
    open: bool = False


OURS = "ours: rows sum to one, C = 1000"
READINGS = {
    OURS: Reading(),
    "C = 300": Reading(C=300.0),
    "C = 100": Reading(C=100.0),
    "C = 10": Reading(C=10.0),
    "C = 1": Reading(C=1.0),
    "no self-loops": Reading(loops=False),
    "features as stored, C = 1": Reading(C=1.0, rows="stored"),
    "rows of length one, C = 1": Reading(C=1.0, rows="length"),
    "penalty on the intercept, features as stored, C = 1": Reading(C=1.0, rows="stored", solver="ones"),
    "softmax, features as stored, C = 1": Reading(C=1.0, rows="stored", solver="softmax"),
    "every round labels anew": Reading(again=True),
    "no self-loops, features as stored, C = 1": Reading(C=1.0, rows="stored", loops=False),
    "no self-loops, rows of length one, C = 1": Reading(C=1.0, rows="length", loops=False),
    "features as stored, C = 10": Reading(C=10.0, rows="stored"),
    "the authors' code": Reading(C=1.0, rows="stored", loops=False, solver="penalised"),
    "the authors' code, but self-loops": Reading(C=1.0, rows="stored", solver="penalised"),
    "the authors' code, stopping nodes labelled too": Reading(
        C=1.0, rows="stored", loops=False, solver="penalised", open=True
    ),
}
ON_TEST = {  # ours with its interval, in percent
    "citeseer": (75.11, 0.87),
    "cora_ml": (85.29, 0.68),
    "pubmed": (77.84, 1.22),
    "ms_academic": (92.83, 0.18),
}
ROUNDS = {"first": "no bootstrapping", "best": "best round", "last": "last round"}


def diffused(graph: Graph, rows: str, loops: bool) -> Floats:
    """Return the diffused features of a reading, (n, f)."""
    stored: Any = graph.features  # dense or sparse
    begin: Floats = sparse.csr_array(stored).toarray().astype(np.float64)
    if rows != "stored":
        begin = begin / np.linalg.norm(begin, ord=1 if rows == "sum" else 2, axis=1, keepdims=True).clip(1e-12)
    matrix = transition_matrix(graph, self_loops=loops).to_scipy().astype(np.float64)
    found, settings = begin, BootstrappedFP()
    for _ in range(settings.steps):
        found = (1 - settings.alpha) * (matrix @ found) + settings.alpha * begin
    return found


@final
class Learner:
    """The regressions of readings with the same diffused features, on one graph."""

    def __init__(self, graph: Graph, rows: str, loops: bool, ones: bool, device: Device) -> None:
        self._features, self._n_classes = diffused(graph, rows, loops), graph.n_classes
        self._ours = Diffused(device.put(self._features), device, penalised=ones)

    def rounds(self, reading: Reading, split: Split, labels: Nodes) -> Iterator[Floats]:
        """Yield the log probabilities of all nodes, (n, c), after each round."""
        settings = BootstrappedFP(C=reading.C)
        barred = split.stopping[:0] if reading.open else split.stopping
        if reading.again:
            yield from self._anew(settings, split, labels)
        elif reading.solver in ("ours", "penalised"):
            found = self._ours.rounds(settings, split.train, labels[split.train], barred, self._n_classes)
            yield from (shares for _, shares in found)
        else:
            nodes, classes = split.train, labels[split.train]
            free = np.ones(len(self._features), dtype=np.bool_)
            free[nodes], free[barred] = False, False
            for _ in range(settings.rounds + 1):
                yield (shares := self._by_sklearn(nodes, classes, reading))
                more = lowest_entropy(shares, free, settings.share)
                if not len(more):
                    return
                free[more] = False
                nodes, classes = np.concatenate([nodes, more]), np.concatenate([classes, shares[more].argmax(axis=1)])

    def _anew(self, settings: BootstrappedFP, split: Split, labels: Nodes) -> Iterator[Floats]:
        directions = leading_directions(self._features, CPU())
        turned = directions.turned(self._features)
        nodes, classes = split.train, labels[split.train]
        others = np.ones(len(self._features), dtype=np.bool_)
        others[nodes], others[split.stopping] = False, False
        found = Regression(np.zeros((self._n_classes, self._features.shape[1])), np.zeros(self._n_classes))
        for number in range(1, settings.rounds + 2):
            rows = LearningRows(self._features, turned, directions, CPU())
            rows.add(nodes)
            found = fit_one_vs_rest(rows, classes, found, settings.C)
            odds = self._features @ found.coefficients.T + found.intercepts
            yield (shares := special.log_softmax(special.log_expit(odds), axis=1))
            more = lowest_entropy(shares, others, min(1.0, number * settings.share))
            nodes = np.concatenate([split.train, more])
            classes = np.concatenate([labels[split.train], shares[more].argmax(axis=1)])

    def _by_sklearn(self, nodes: Nodes, classes: Nodes, reading: Reading) -> Floats:
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


graph_of = cache(load_dataset)


@cache
def learner_of(dataset: str, rows: str, loops: bool, ones: bool, device: str) -> Learner:
    return Learner(graph_of(dataset), rows, loops, ones, device_named(device))


@cache
def made_by(device: str) -> dict[str, str]:
    """Return the commit, the machine and the command of this process."""
    here = provenance_here()
    machine = here.cpu if device == "cpu" else torch.cuda.get_device_name()
    commit = os.environ.get("COMMIT") or here.commit or "unknown"
    words = (f'"{word}"' if " " in word else word for word in sys.argv[1:])
    command = " ".join(["python", str(Path(__file__).resolve().relative_to(RESULTS.resolve().parent)), *words])
    return {"commit": commit, "machine": machine, "command": command}


def row_of(dataset: str, name: str, seed: int, device: str = "cpu") -> dict[str, Any]:
    """Return how a reading does on the evaluation nodes of one validation split.

    Accuracies are those of the first, the best and the last round. The best is the one with the best stopping accuracy,
    of equal ones the first, or, where the name begins with ``last_best``, the last. F1 is the paper's.
    """
    reading, graph = READINGS[name], graph_of(dataset)
    labels = graph.labels
    assert labels is not None
    learner = learner_of(dataset, reading.rows, reading.loops, reading.solver == "penalised", device)
    split = paper_split(graph, seed=seed, test=False)
    begin = time.monotonic()
    found = [shares.argmax(axis=1) for shares in learner.rounds(reading, split, labels)]
    watched, right = (
        [np.count_nonzero(each[nodes] == labels[nodes]) / len(nodes) for each in found]
        for nodes in (split.stopping, split.evaluation)
    )
    best, seconds = int(np.argmax(watched)), round(time.monotonic() - begin, 1)
    last_best = len(watched) - 1 - int(np.argmax(watched[::-1]))

    def f1(at: int) -> float:
        return f1_paper(found[at][split.evaluation], labels[split.evaluation], graph.n_classes)

    return {
        "dataset": dataset,
        "reading": name,
        "split": seed,
        "first": right[0],
        "best": right[best],
        "last": right[-1],
        "best_at": best,
        "f1": f1(best),
        "last_best": right[last_best],
        "last_best_at": last_best,
        "last_best_f1": f1(last_best),
        "seconds": seconds,
        **made_by(device),
    }


def table(rows: Rows) -> str:
    """Return, per reading and round, the mean difference to ours on the same splits, in points, with its 95 % interval."""
    paper: list[str] = []
    for dataset, (ours, interval) in ON_TEST.items():
        known, its_interval = published("bootstrapped_fp", dataset)
        paper.append(f"{known - ours:+.2f} ± {hypot(its_interval, interval):.2f}")

    def accuracies(dataset: str, name: str, kind: str) -> dict[int, float]:
        return {split: 100 * value for split, value in rows.by_split(dataset, name, kind).items()}

    lines = [
        f"| minus ours | {' | '.join(ON_TEST)} |",
        f"|---|{'---|' * len(ON_TEST)}",
        f"| the paper, if on test splits | {' | '.join(paper)} |",
    ]
    for name, (kind, words) in itertools.product(READINGS, ROUNDS.items()):
        sides = ((accuracies(dataset, name, kind), accuracies(dataset, OURS, "best")) for dataset in ON_TEST)
        if (name, kind) != (OURS, "best"):
            lines.append(f"| {name}, {words} | {' | '.join(difference(*both) for both in sides)} |")
    return "\n".join(lines)


def widths(rows: Rows) -> str:
    """Return means with their ± and its range by chance, of the readings that have all validation splits; the paper's first."""
    lines = [
        "| dataset | reading | accuracy | range of its ± | macro F1 | range of its ± |",
        "|---|---|---|---|---|---|",
    ]
    for dataset in ON_TEST:
        paper = load_experiments()[f"gasteiger_2019_bootstrapped_fp_{dataset}"].published
        assert paper is not None
        known = (
            f"{paper.accuracy:.2f} ± {paper.accuracy_interval:.2f} | - | {paper.f1:.4f} ± {paper.f1_interval:.4f} | -"
        )
        lines.append(f"| {dataset} | the paper | {known} |")
        for name, (best, f1) in itertools.product(READINGS, (("best", "f1"), ("last_best", "last_best_f1"))):
            of = [row for row in rows.rows if (row["dataset"], row["reading"]) == (dataset, name) and f1 in row]
            if {row["split"] for row in of} != set(VALIDATION_SEEDS):
                continue
            cells = [dataset, f"{name}, {best.replace('_', ' ')}"]
            for key, unit, digits in ((best, 100, 2), (f1, 1, 4)):
                values = [unit * row[key] for row in of]
                found, (low, high) = estimate(values), half_by_chance(values)
                cells += [
                    f"{found.mean:.{digits}f} ± {found.half:.{digits}f}",
                    f"{low:.{digits}f} to {high:.{digits}f}",
                ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(ON_TEST), default=list(ON_TEST)[:3])
    parser.add_argument("--readings", nargs="+", choices=tuple(READINGS), default=list(READINGS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="of our regressions; scikit-learn's run on the CPU"
    )
    parser.add_argument("--table", action="store_true")
    how = parser.parse_args()
    rows = Rows(RESULTS / "bootstrapped_fp_readings.json")
    if how.table:
        print(f"{table(rows)}\n\n{widths(rows)}")
        return
    with CPU().fixed_order():
        for seed in VALIDATION_SEEDS[: how.splits]:
            for name, dataset in itertools.product(how.readings, how.only):
                if seed not in rows.by_split(dataset, name, "best"):
                    rows.add(row_of(dataset, name, seed, how.device))
                    print(json.dumps(rows.rows[-1]), flush=True)


if __name__ == "__main__":
    main()
