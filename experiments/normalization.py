"""Which normalisation ranks and classifies best, on twelve graphs: the evidence for the default of graphs of one's own.

    PPROP_DATA=folder OMP_NUM_THREADS=1 python experiments/normalization.py --tables TABLES --out results/normalization.json
    python experiments/normalization.py --table

TABLES holds people_edges.csv, people_nodes.csv, fraud_edges.csv, fraud_nodes.csv, and the folders rings1 and rings3 with
accounts.csv, transfers.csv and truth.csv. PPROP_DATA holds the paper's four graphs and the folder strangers.

Every graph is divided into training, validation and test nodes, once per seed. On the paper's graphs these are the validation
splits of the paper, so that none of its test nodes is read. A network is trained alone, and APPNP with each normalisation and
alpha. The logits and the probabilities of the network alone are also propagated after the training. Each is judged by its
accuracy and by its average precision: of two classes that of the rarer one, else the mean over the classes.

"sym, divided" is "sym" with the logits of every node divided by the propagation of ones, the same trained model. `--table` prints
test scores; alpha, and between logits and probabilities, is chosen by the same score of the validation nodes.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import RESULTS, Rows
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import average_precision_score

from pprop import (
    APPNP,
    MLP,
    VALIDATION_SEEDS,
    Graph,
    Split,
    Stopping,
    load_dataset,
    paper_split,
    propagate,
    read_edges,
    train,
)
from pprop.cli.splits import own_split
from pprop.estimators.node import uses_bias

SEEDS = 3
LARGE = 5000  # nodes: a graph with more has one split
ALPHAS = (0.1, 0.3)
STOPPING = Stopping(patience=30, max_epochs=100)
# Ways to compute the scores of the nodes; the first is the network without the graph.
ALONE, TRAINED, LOGITS, PROBABILITIES = "network alone", "APPNP", "logits afterwards", "probabilities afterwards"
NORMALIZATIONS = ("sym", "sym, divided", "row")
MEASURES = ("accuracy", "average_precision")

# A graph, the class of every node by position (-1: unknown), and a split per seed.
Task = tuple[Graph, NDArray[np.int64], list[Split]]


def _papers(name: str) -> Task:
    graph = load_dataset(name)
    assert graph.labels is not None
    return graph, graph.labels, [paper_split(graph, seed, test=False) for seed in VALIDATION_SEEDS[:SEEDS]]


def _stored(file: Path) -> Task:
    with np.load(file) as arrays:
        n, labels = len(arrays["node_labels"]), arrays["node_labels"].astype(np.int64)
        nodes = np.arange(n)
        graph = Graph.from_edges(*arrays["edges"].T, nodes=nodes, features=arrays["node_features"], labels=labels)
        masks = [arrays[f"{part}_masks"] for part in ("train", "val", "test")]
    parts = [[np.flatnonzero(mask[seed]) for mask in masks] for seed in range(SEEDS)]
    return graph, labels, [Split(train, validation, test) for train, validation, test in parts]


def _divided(graph: Graph, test: float = 0.2, stopping: float = 0.2) -> Task:
    assert graph.labels is not None
    return graph, graph.labels, [own_split(graph, test, stopping, seed) for seed in range(SEEDS)]


def _strangers(folder: Path, name: str, label: str, ends: tuple[str, str], identity: str) -> Task:
    edges, nodes = (folder / f"{name}_{part}.csv.gz" for part in ("edges", "nodes"))
    source, target = ends
    return _divided(read_edges(edges, nodes, source=source, target=target, id_column=identity, label_column=label))


def _rings(folder: Path) -> Task:
    """Half of the accounts have a label; the class of all others is read for the test alone."""
    graph = read_edges(
        *(folder / "transfers.csv", folder / "accounts.csv"),
        source="from_account", target="to_account", id_column="account_id", label_column="label",
    )  # fmt: skip
    truth: Any = pd.read_csv(folder / "truth.csv")
    names = list(graph.class_names or ())
    classes = np.array([names.index(name) for name in truth["truth"]])
    assert graph.ids is not None
    assert graph.ids.tolist() == truth["account_id"].tolist()
    assert graph.labels is not None
    unknown = np.flatnonzero(graph.labels < 0)
    splits = [own_split(graph, 0.0, 0.3, seed) for seed in range(SEEDS)]
    return graph, classes, [Split(split.train, split.stopping, unknown) for split in splits]


def tasks(tables: Path) -> Mapping[str, Callable[[], Task]]:
    """Return what makes each graph, by its name."""
    strangers = Path(os.environ["PPROP_DATA"], "strangers")

    def table(name: str) -> Task:
        return _divided(read_edges(tables / f"{name}_edges.csv", tables / f"{name}_nodes.csv", label_column="label"))

    return {
        "people": lambda: table("people"),
        "fraud": lambda: table("fraud"),
        "Chameleon": lambda: _stored(strangers / "chameleon_filtered.npz"),
        "Citeseer": lambda: _papers("citeseer"),
        "Cora-ML": lambda: _papers("cora_ml"),
        "rings, well connected": lambda: _rings(tables / "rings3"),
        "rings, badly connected": lambda: _rings(tables / "rings1"),
        "Minesweeper": lambda: _stored(strangers / "minesweeper.npz"),
        "PubMed": lambda: _papers("pubmed"),
        "Twitch DE": lambda: _strangers(strangers, "twitch_de", "mature", ("from", "to"), "node"),
        "Facebook pages": lambda: _strangers(strangers, "facebook", "page_type", ("id_1", "id_2"), "node"),
        "MS Academic": lambda: _papers("ms_academic"),
    }


def judged(
    scores: NDArray[Any], labels: NDArray[np.int64], nodes: NDArray[np.int64], rare: int | None
) -> dict[str, float]:
    """Return accuracy and average precision of scores (n, c) on some nodes; `rare` is the rarer of two classes."""
    found, truth = scores[nodes], labels[nodes]
    classes: list[int] = np.unique(truth).tolist() if rare is None else [rare]
    measure: Any = average_precision_score
    precision: list[float] = [float(measure(truth == one, found[:, one])) for one in classes]
    right: NDArray[np.bool_] = np.equal(np.argmax(found, axis=1), truth)
    return dict(zip(MEASURES, (float(np.mean(right)), float(np.mean(precision))), strict=True))


def run(name: str, task: Task, rows: Rows) -> None:
    """Train and propagate on one graph, and write down the rows of all seeds."""
    graph, labels, splits = task
    splits = splits[:1] if graph.n_nodes > LARGE else splits
    scaled = graph.replace(labels=None, class_names=None).scaled("auto")
    how: dict[str, Any] = {"bias": uses_bias("auto", scaled)}
    counts = np.bincount(labels[splits[0].train])
    rare = int(counts.argmin()) if len(counts) == 2 else None

    def logits(model: Any) -> NDArray[Any]:
        given: dict[str, Any] = {
            "seeds": list(range(len(splits))),
            "labels": labels,
            "stopping": STOPPING,
            "progress": False,
        }
        return train(model, scaled, splits, **given).logits

    def add(way: str, normalization: str | None, alpha: float | None, scores: Sequence[NDArray[Any]]) -> None:
        for seed, (one, split) in enumerate(zip(scores, splits, strict=True)):
            key = {"graph": name, "seed": seed, "way": way, "normalization": normalization, "alpha": alpha}
            validation, test = (judged(one, labels, nodes, rare) for nodes in (split.stopping, split.evaluation))
            rows.add({**key, "validation": validation, "test": test})

    alone = logits(MLP(**how))
    shares = softmax(alone, axis=2)
    add(ALONE, None, None, list(shares))
    for alpha in ALPHAS:
        for matrix in ("sym", "row"):
            ones = propagate(scaled, np.ones((graph.n_nodes, 1)), alpha, normalization=matrix)
            trained = logits(APPNP(alpha, normalization=matrix, **how))
            spread = np.stack([propagate(scaled, H, alpha, normalization=matrix) for H in alone])
            mixed = np.stack([propagate(scaled, H, alpha, normalization=matrix) for H in shares])
            add(TRAINED, matrix, alpha, list(softmax(trained, axis=2)))
            add(LOGITS, matrix, alpha, list(softmax(spread, axis=2)))
            add(PROBABILITIES, matrix, alpha, list(mixed))
            if matrix == "sym":
                add(TRAINED, "sym, divided", alpha, list(softmax(trained / ones, axis=2)))
                add(LOGITS, "sym, divided", alpha, list(softmax(spread / ones, axis=2)))
                add(PROBABILITIES, "sym, divided", alpha, list(mixed / ones))


def chosen(rows: Sequence[Mapping[str, Any]], measure: str) -> tuple[float, float]:
    """Return the mean over seeds of a measure, of validation and test nodes: per seed of the row that is best by validation."""
    seeds = sorted({row["seed"] for row in rows})
    best = [max((r for r in rows if r["seed"] == seed), key=lambda row: row["validation"][measure]) for seed in seeds]
    validation, test = (100 * float(np.mean([row[part][measure] for row in best])) for part in ("validation", "test"))
    return validation, test


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return test scores in percent as tables in Markdown, and the mean validation score of each normalisation."""
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    columns = [(way, one) for way in (TRAINED, LOGITS, PROBABILITIES) for one in NORMALIZATIONS]
    lines = list[str]()
    for measure in MEASURES:
        head = [measure.replace("_", " "), ALONE, *(f"{way}, {one}" for way, one in columns)]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        means = list[list[float]]()
        for graph in graphs:
            of_graph = [row for row in rows if row["graph"] == graph]
            picks = [chosen([row for row in of_graph if row["way"] == ALONE], measure)]
            for way, one in columns:
                some = [row for row in of_graph if (row["way"], row["normalization"]) == (way, one)]
                picks.append(chosen(some, measure))
            means.append([validation for validation, _ in picks])
            lines.append(f"| {graph} | " + " | ".join(f"{test:.1f}" for _, test in picks) + " |")
        overall = np.mean(means, axis=0)
        lines += ["| mean, validation nodes | " + " | ".join(f"{value:.1f}" for value in overall) + " |", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "normalization.json")
    parser.add_argument("--tables", type=Path, help="the folder with the tables of people, fraud and rings")
    parser.add_argument("--table", action="store_true", help="print the results that are there, and run nothing")
    how = parser.parse_args()
    rows = Rows(how.out)
    if not how.table:
        done = {row["graph"] for row in rows.rows}
        for name, make in tasks(how.tables).items():
            if name not in done:
                print(name, file=sys.stderr, flush=True)
                with warnings.catch_warnings(action="ignore"):  # runs end at 100 epochs
                    run(name, make(), rows)
    print(table(rows.rows))


if __name__ == "__main__":
    main()
