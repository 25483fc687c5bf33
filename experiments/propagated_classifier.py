"""Logistic regression alone against `PropagatedClassifier` around it, on the paper's splits.

    PPROP_DATA=folder OMP_NUM_THREADS=1 python experiments/propagated_classifier.py --out results/propagated_classifier.json

First the validation splits, which hold no test nodes, choose: C of each side by itself, on each graph; what is spread and
by which matrix, on all graphs together. Then the test splits are run, once, with those choices. Both sides learn from
the 20 nodes per class of a split; neither reads its stopping nodes. Rows are scaled to length one. With `--table`, the
file that was written is printed as the table of docs/predictors.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from pprop import TEST_SEEDS, VALIDATION_SEEDS, Graph, PropagatedClassifier, Split, load_dataset, paper_split
from pprop.datasets import DATASETS
from pprop.study.stats.estimate import bootstrap_interval

CHOICES = (0.1, 1.0, 10.0, 100.0, 1000.0)
WAYS = (("probabilities", "row"), ("probabilities", "sym"), ("logits", "sym"), ("logits", "row"))
TITLES = {"citeseer": "Citeseer", "cora_ml": "Cora-ML", "pubmed": "PubMed", "ms_academic": "MS Academic"}


def accuracies(graph: Graph, split: Split, strength: float, ways: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """Return the share of evaluation nodes that the regression gets right, alone and spread in each way."""
    assert graph.labels is not None
    labels, nodes = graph.labels, split.evaluation
    regression: Any = make_pipeline(Normalizer(), LogisticRegression(C=strength, max_iter=5000))
    regression.fit(graph.features[split.train], labels[split.train])  # pyright: ignore[reportOptionalSubscript]
    found = {"alone": share(regression.predict(graph.features)[nodes], labels[nodes])}
    for response, normalization in ways:
        model = PropagatedClassifier(
            regression, graph, response=response, normalization=normalization, prefit=True
        ).fit()
        found[f"{response} {normalization}"] = share(model.predict(nodes), labels[nodes])
    return found


def share(predicted: NDArray[Any], labels: NDArray[np.int64]) -> float:
    return np.count_nonzero(predicted == labels) / len(labels)


def choose(names: list[str], n_splits: int) -> tuple[dict[str, Any], str, dict[str, float], dict[str, float]]:
    """Return mean validation accuracies, the way to spread, and the C of either side on each graph."""
    means: dict[str, Any] = {}
    for name in names:
        graph = load_dataset(name)
        splits = [paper_split(graph, seed, test=False) for seed in VALIDATION_SEEDS[:n_splits]]
        means[name] = {}
        for strength in CHOICES:
            runs = [accuracies(graph, split, strength, WAYS) for split in splits]
            means[name][f"{strength:g}"] = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            say(name, "validation", f"C={strength:g}", means[name][f"{strength:g}"])

    def best(name: str, key: str) -> str:
        return max(means[name], key=lambda strength: means[name][strength][key])

    ways = [f"{response} {normalization}" for response, normalization in WAYS]
    way = max(ways, key=lambda way: np.mean([means[name][best(name, way)][way] for name in names]))
    alone, spread = ({name: float(best(name, key)) for name in names} for key in ("alone", way))
    return means, way, alone, spread


def compare(name: str, way: str, alone: float, spread: float, n_splits: int) -> dict[str, Any]:
    """Return the accuracies of both sides on the test splits of a graph, and the interval of their difference."""
    graph = load_dataset(name)
    response, normalization = way.split()
    pairs: list[tuple[float, float]] = []
    for seed in TEST_SEEDS[:n_splits]:
        split = paper_split(graph, seed)
        once = accuracies(graph, split, spread, ((response, normalization),))
        other = once if alone == spread else accuracies(graph, split, alone, ())
        pairs.append((other["alone"], once[way]))
    difference = np.array([second - first for first, second in pairs])
    low, high = bootstrap_interval(difference)
    assert graph.recommended is not None
    return {
        "alpha": graph.recommended.alpha,
        "C_alone": alone,
        "C_propagated": spread,
        "alone": [first for first, _ in pairs],
        "propagated": [second for _, second in pairs],
        "difference": float(difference.mean()),
        "interval": [low, high],
    }


def table(record: dict[str, Any]) -> str:
    """Return the comparison as a table in Markdown, in percent."""
    lines = [
        "| graph | logistic regression | propagated | difference (95 % interval) | C alone, propagated | alpha |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in record["test"].items():
        first, second = (100 * sum(entry[side]) / len(entry[side]) for side in ("alone", "propagated"))
        low, high = (100 * end for end in entry["interval"])
        gain = f"+{100 * entry['difference']:.2f} ({low:.2f} to {high:.2f})"
        strengths = f"{entry['C_alone']:g}, {entry['C_propagated']:g}"
        lines.append(f"| {TITLES[name]} | {first:.2f} | {second:.2f} | {gain} | {strengths} | {entry['alpha']:g} |")
    return "\n".join(lines)


def say(*parts: object) -> None:
    print(*parts, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--splits", type=int, default=20, help="of either kind")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, metavar="FILE", help="print this file as a table, and run nothing")
    arguments = parser.parse_args()
    if arguments.table is not None:
        print(table(json.loads(arguments.table.read_text())))
        return
    means, way, alone, spread = choose(arguments.datasets, arguments.splits)
    say("chosen:", way, alone, spread)
    record: dict[str, Any] = {"splits": arguments.splits, "spread": way, "validation": means, "test": {}}
    for name in arguments.datasets:
        record["test"][name] = compare(name, way, alone[name], spread[name], arguments.splits)
    print(table(record))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
