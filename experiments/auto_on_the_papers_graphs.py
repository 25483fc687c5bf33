"""Whether `AutoClassifier` costs accuracy on the paper's graphs, beside its rule of version 97b68ec: four candidates, judged by accuracy.

    PPROP_DATA=folder python experiments/auto_on_the_papers_graphs.py --reading now
    PPROP_DATA=folder PYTHONPATH=OLD/src python experiments/auto_on_the_papers_graphs.py --reading 97b68ec
    python experiments/auto_on_the_papers_graphs.py --table

OLD is a folder with that commit (``git archive 97b68ec src | tar -x -C OLD``). The splits are the paper's validation splits, so that
no test node of the paper is read: 20 training nodes per class and 500 validation nodes are given to `fit`, and accuracy is
measured on the other known nodes. Rows go to results/auto_on_the_papers_graphs.json; a script that is stopped goes on from there.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import RESULTS, Rows, difference

from pprop import VALIDATION_SEEDS, AutoClassifier, load_dataset, paper_split

NOW, BEFORE = "now", "97b68ec"
DATASETS = ("citeseer", "cora_ml", "pubmed", "ms_academic")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reading", choices=(NOW, BEFORE), help="what the installed package is")
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--splits", type=int, default=len(VALIDATION_SEEDS))
    parser.add_argument("--device", default="cpu", help="of the networks: cpu or cuda")
    parser.add_argument("--out", type=Path, default=RESULTS / "auto_on_the_papers_graphs.json")
    parser.add_argument("--table", action="store_true", help="print the results that are there, and run nothing")
    how = parser.parse_args()
    if not how.table:
        for dataset in how.datasets:
            run(dataset, how)
    print(table(Rows(how.out)))


def run(dataset: str, how: argparse.Namespace) -> None:
    """Fit on the splits that have no row yet."""
    graph = load_dataset(dataset)
    labels: Any = graph.labels
    for seed in VALIDATION_SEEDS[: how.splits]:
        if seed in Rows(how.out).by_split(dataset, how.reading, "accuracy"):
            continue
        split = paper_split(graph, seed, test=False)
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            model: Any = AutoClassifier(graph, random_state=0, device=how.device)
            model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
        row = {
            "dataset": dataset,
            "split": seed,
            "reading": how.reading,
            "accuracy": 100 * float((model.predict(split.evaluation) == labels[split.evaluation]).mean()),
            "chosen": [model.chosen_] if isinstance(model.chosen_, str) else [*model.chosen_],
            "seconds": round(time.perf_counter() - start, 1),
        }
        Rows(how.out).add(row)  # read again: the other reading may run beside
        print(row, file=sys.stderr, flush=True)


def table(rows: Rows) -> str:
    """Return accuracies and paired differences in points, with Student's 95 % interval over splits."""
    lines = ["| graph | before | now | difference (splits) |", "|---|---|---|---|"]
    for dataset in DATASETS:
        now, before = (rows.by_split(dataset, reading, "accuracy") for reading in (NOW, BEFORE))
        both = [seed for seed in now if seed in before]
        if both:
            means = [f"{np.mean([each[seed] for seed in both]):.2f}" for each in (before, now)]
            lines.append(f"| {dataset} | {' | '.join(means)} | {difference(now, before)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
