"""Logistic regression alone against `PropagatedClassifier` around it, on the paper's splits.

    PPROP_DATA=folder OMP_NUM_THREADS=1 python experiments/propagated_classifier.py --out results/propagated_classifier.json
    python experiments/propagated_classifier.py --table

First the validation splits, which hold no test nodes, choose: C of each side by itself, on each graph; what is spread and
by which matrix, on all graphs together. Then the test splits are run, once, with those choices. Both sides learn from
the 20 nodes per class of a split; neither reads its stopping nodes. Rows are scaled to length one. `--table` prints the
results that are there as the table of docs/predictors.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from _common import RESULTS
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from pprop import TEST_SEEDS, VALIDATION_SEEDS, Graph, PropagatedClassifier, Split, load_dataset, paper_split
from pprop.datasets import DATASETS
from pprop.study.stats.estimate import accuracy, bootstrap_interval
from pprop.study.tables.entries import dataset_title

CHOICES = ("0.1", "1", "10", "100", "1000")
WAYS = ("probabilities row", "probabilities sym", "logits sym", "logits row")


def accuracies(graph: Graph, split: Split, strength: float, *ways: str) -> dict[str, float]:
    """Return the accuracy of the regression on evaluation nodes, alone and spread in each way."""
    labels: Any = graph.labels
    features: Any = graph.features
    regression: Any = make_pipeline(Normalizer(), LogisticRegression(C=strength, max_iter=5000))
    regression.fit(features[split.train], labels[split.train])
    found = {"alone": regression.predict(features)[split.evaluation]}
    for way in ways:
        response, normalization = way.split()
        model = PropagatedClassifier(regression, graph, response=response, normalization=normalization, prefit=True)
        found[way] = model.fit().predict(split.evaluation)
    return {way: accuracy(predicted, labels[split.evaluation]) for way, predicted in found.items()}


def validation_means(name: str) -> dict[str, dict[str, float]]:
    """Return mean accuracies over the validation splits of a graph by C and way."""
    graph, means = load_dataset(name), dict[str, dict[str, float]]()
    for strength in CHOICES:
        splits = (paper_split(graph, seed, test=False) for seed in VALIDATION_SEEDS)
        runs = [accuracies(graph, split, float(strength), *WAYS) for split in splits]
        means[strength] = {way: float(np.mean([run[way] for run in runs])) for way in runs[0]}
        print(name, "validation", strength, means[strength], file=sys.stderr, flush=True)
    return means


def compare(name: str, way: str, alone: float, spread: float) -> dict[str, Any]:
    """Return the accuracies of both sides on the test splits of a graph, and the interval of their difference."""
    graph, first, second = load_dataset(name), list[float](), list[float]()
    for seed in TEST_SEEDS:
        split = paper_split(graph, seed)
        first.append(accuracies(graph, split, alone)["alone"])
        second.append(accuracies(graph, split, spread, way)[way])
    gains = np.subtract(second, first)
    return {
        "alpha": DATASETS[name].recommended.alpha,
        "C_alone": alone,
        "C_propagated": spread,
        "alone": first,
        "propagated": second,
        "difference": float(gains.mean()),
        "interval": list(bootstrap_interval(gains)),
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
        lines.append(
            f"| {dataset_title(name)} | {first:.2f} | {second:.2f} | {gain} | {strengths} | {entry['alpha']:g} |"
        )
    return "\n".join(lines)


def measure() -> dict[str, Any]:
    """Choose on validation splits, and compare on test splits."""
    means = {name: validation_means(name) for name in DATASETS}

    def best(name: str, way: str) -> str:
        return max(CHOICES, key=lambda strength: means[name][strength][way])

    way = max(WAYS, key=lambda way: np.mean([means[name][best(name, way)][way] for name in DATASETS]))
    test = {name: compare(name, way, float(best(name, "alone")), float(best(name, way))) for name in DATASETS}
    return {"splits": len(TEST_SEEDS), "spread": way, "validation": means, "test": test}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "propagated_classifier.json")
    parser.add_argument("--table", action="store_true", help="print the results that are there, and run nothing")
    how = parser.parse_args()
    if not how.table:
        how.out.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    print(table(json.loads(how.out.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
