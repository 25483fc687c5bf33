"""Make the example tables beside this file: a corner of the bundled Citeseer, with most labels left out.

python examples/papers/make.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy import sparse

import pprop

PAPERS, WORDS, LABELLED_PER_CLASS = 400, 100, 50


def main() -> None:
    """Write edges.csv and nodes.csv."""
    graph = pprop.load_dataset("citeseer")
    assert graph.labels is not None
    hub = int(np.argmax(np.diff(graph.indptr)))
    order = sparse.csgraph.breadth_first_order(graph.adjacency, hub, return_predecessors=False)
    part = graph.subgraph(np.sort(order[:PAPERS]))
    assert part.labels is not None
    assert isinstance(part.features, sparse.csr_array)
    counts = np.asarray(part.features.sum(axis=0)).ravel()
    words = np.sort(np.argsort(-counts, kind="stable")[:WORDS])
    table = part.features[:, words].toarray().astype(int)
    rng = np.random.default_rng(0)
    shown = np.zeros(PAPERS, dtype=bool)
    for k in range(part.n_classes):
        members = np.flatnonzero(part.labels == k)
        shown[rng.permutation(members)[:LABELLED_PER_CLASS]] = True
    folder = Path(__file__).parent
    names = part.class_names or tuple(str(k) for k in range(part.n_classes))
    with (folder / "nodes.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "topic", *(f"word{w}" for w in words)])
        for i in range(PAPERS):
            writer.writerow([f"p{i:03}", names[part.labels[i]] if shown[i] else "", *table[i]])
    edges = sparse.triu(part.adjacency).tocoo()
    with (folder / "edges.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["source", "target"])
        writer.writerows((f"p{i:03}", f"p{j:03}") for i, j in zip(edges.row, edges.col, strict=True))


if __name__ == "__main__":
    main()
