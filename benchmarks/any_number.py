"""Claim: on numbers `ColumnsRegressor` is at least as good as gradient boosting on two hops of neighbour means and degree.

    PPROP_DATA=folder python benchmarks/any_number.py > results/any_number.jsonl
    python benchmarks/any_number.py --table results/any_number.jsonl

wiki_chameleon, the logarithm of one more than the monthly traffic, and twitch_de, the logarithm of the views, of PPROP_DATA/strangers; five
random divisions, 60 % of the nodes to train and 40 % to test. R2 on the test nodes. The peer is scikit-learn's
`HistGradientBoostingRegressor` with the same settings on the nodes' own columns (words as 64 components), their means one and two steps
away, and the degree, written out with scipy. Beside them: the same on the own columns alone, `APPNPRegressor`, and `MLPNodeRegressor`,
which keep a fifth of the training nodes for early stopping. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import r2_score

import pprop
from _measure import describe_machine, warn_if_busy
from pprop import APPNPRegressor, ColumnsRegressor, Graph, MLPNodeRegressor
from pprop.estimators.columns_regressor import boosting
from pprop.estimators.propagated_features import own_columns

GRAPHS: dict[str, dict[str, Any]] = {
    "wiki_chameleon": {
        "ends": ("id1", "id2"),
        "target": "monthly_traffic",
        "columns": {"words": "text"},
        "add": 1,
    },
    "twitch_de": {
        "ends": ("from", "to"),
        "target": "views",
        "columns": {"days": "number", "mature": "boolean", "partner": "boolean", "words": "text"},
        "add": 0,
    },
}
COMPONENTS = 64
# From training nodes and their numbers to the predictions of all nodes.
Fit = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.float64]]


def main() -> None:
    """Fit and score, division by division, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--divisions", type=int, default=5)
    parser.add_argument("--table", type=Path, help="print the results of this file, and run nothing")
    how = parser.parse_args()
    if how.table:
        print(table(how.table))
        return
    warn_if_busy()
    for name in how.graphs:
        graph, numbers = read(name)
        for number in range(how.divisions):
            order = np.random.default_rng(number).permutation(graph.n_nodes)
            train, test = np.split(order, [round(0.6 * graph.n_nodes)])
            for model, fitted in models(graph, number).items():
                start = time.perf_counter()
                found = fitted(train, numbers[train])[test]
                seconds, r2 = round(time.perf_counter() - start, 1), float(cast("Any", r2_score)(numbers[test], found))
                row = {"graph": name, "division": number, "model": model, "r2": r2, "seconds": seconds}
                print(json.dumps(row), flush=True)
    print(json.dumps({"machine": describe_machine("cpu")}))


def models(graph: Graph, seed: int) -> dict[str, Fit]:
    """Return functions from training nodes and their numbers to the predictions of all nodes."""
    own, near = tables(graph, seed)

    def boosted(columns: NDArray[np.float32]) -> Fit:
        def fit(train: NDArray[np.int64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
            return boosting(seed).fit(columns[train], numbers).predict(columns)

        return fit

    how: dict[str, Any] = {"random_state": seed}
    return {
        "boosting, own columns": boosted(own),
        "boosting, two hops": boosted(near),
        "network": lambda train, numbers: MLPNodeRegressor(graph, **how).fit(train, numbers).predict(),
        "APPNP": lambda train, numbers: APPNPRegressor(graph, **how).fit(train, numbers).predict(),
        "columns": lambda train, numbers: ColumnsRegressor(graph, **how).fit(train, numbers).predict(),
    }


def tables(graph: Graph, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the own columns of all nodes; and these, their means one and two steps away, and the degree."""
    own = np.column_stack(list(own_columns(graph, COMPONENTS, seed).values())).astype(np.float32)
    adjacency = graph.adjacency
    degree: NDArray[np.float64] = np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()
    mean: Any = sparse.diags_array(1 / np.maximum(degree, 1)) @ adjacency
    once: NDArray[np.float32] = mean @ own
    twice: NDArray[np.float32] = mean @ once
    return own, np.column_stack([own, once, twice, degree[:, None]]).astype(np.float32)


def read(name: str) -> tuple[Graph, NDArray[np.float64]]:
    """Return a graph without labels, and the logarithm of the number of each node."""
    import pandas as pd

    described, folder = GRAPHS[name], Path(os.environ.get("PPROP_DATA", "data"), "strangers")
    nodes: Any = pd.read_csv(folder / f"{name}_nodes.csv.gz", dtype={"node": str})
    graph = pprop.read_edges(
        folder / f"{name}_edges.csv.gz",
        folder / f"{name}_nodes.csv.gz",
        source=described["ends"][0],
        target=described["ends"][1],
        id_column="node",
        feature_columns=described["columns"] | {described["target"]: "unused"},
    )
    assert graph.ids is not None
    by_id = dict(zip(nodes["node"], nodes[described["target"]], strict=True))
    numbers = np.array([by_id[str(one)] for one in graph.ids.tolist()], dtype=float)
    return graph, np.log(numbers + described["add"])


def table(file: Path) -> str:
    """Return mean and standard deviation of R2 over divisions, and the median of seconds."""
    rows = [row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()) if "r2" in row]
    names = list(dict.fromkeys(row["model"] for row in rows))
    lines = [f"| graph | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for graph in dict.fromkeys(row["graph"] for row in rows):
        cells: list[str] = []
        for name in names:
            ours = [row for row in rows if (row["graph"], row["model"]) == (graph, name)]
            found, seconds = [row["r2"] for row in ours], np.median([row["seconds"] for row in ours])
            cells.append(f"{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f} ({seconds:.0f} s)")
        lines.append(f"| {graph} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
