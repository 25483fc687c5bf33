"""Claim: mean, standard deviation, smallest and largest value of 32 columns over 10 million edges, three hops, in under 30 s.

    python benchmarks/columns.py --out results/columns_cpu.json     # two cores, 12 GB
    python benchmarks/columns.py --edges 1e5                        # a try

`PropagatedFeatures` with ``hops=3, spread=3`` on an undirected RMAT graph with random columns: all of `fit` is timed, in
memory, and with a file for the columns of a graph whose arrays are mapped from a graph folder. Compiling is left out: the same
is done on a small graph before. On sampled nodes the statistics of the first hop are compared with numpy's, in float64.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import describe_machine, percentiles, use_threads, warn_if_busy

COLUMNS, HOPS, MOST_SECONDS, SAMPLE = 32, 3, 30.0, 200


def main() -> None:
    """Time both, compare a sample with numpy, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=10e6)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads and cores")
    parser.add_argument("--out", metavar="FILE", help="write the JSON object there as well")
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(arguments.threads)
    import pprop

    graph = _graph(arguments.edges)
    print(f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges", file=sys.stderr)
    seconds: dict[str, list[float]] = {"memory": [], "file": []}
    with tempfile.TemporaryDirectory() as place:
        mapped = pprop.write_folder(graph, Path(place, "graph")).graph()
        given: dict[str, tuple[Any, Path | None]] = {
            "memory": (graph, None),
            "file": (mapped, Path(place, "columns.npy")),
        }
        error = 0.0
        for turn in range(arguments.turns + 1):
            for kind, (whole, file) in given.items():
                columns = _columns(whole, file)
                begin = time.perf_counter()
                columns.fit()
                seconds[kind].append(time.perf_counter() - begin)
                print(f"turn {turn}, {kind}: {seconds[kind][-1]:.1f} s", file=sys.stderr)
                error = max(error, _error(graph, columns))
    seconds = {kind: values[1:] for kind, values in seconds.items()}
    record: dict[str, Any] = {
        "command": f"python benchmarks/columns.py --edges {arguments.edges:g} --turns {arguments.turns}",
        "machine": describe_machine("cpu"),
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "columns": COLUMNS,
        "hops": HOPS,
        "seconds": {kind: percentiles(values) for kind, values in seconds.items()},
        "largest_relative_error": float(f"{error:.2g}"),
        "claim_holds": max(percentiles(values)["p50"] for values in seconds.values()) < MOST_SECONDS and error < 1e-4,
    }
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record))


def _columns(graph: Any, file: Path | None) -> Any:
    import pprop

    return pprop.PropagatedFeatures(graph, hops=HOPS, spread=HOPS, alphas=(), structure=False, labels=False, file=file)


def _graph(edges: float) -> Any:
    import numpy as np
    import scipy.sparse as sp

    from _rmat import rmat
    from pprop import Graph

    made = rmat(int(2 * edges), self_loops=False)
    ones = np.ones(made.n_entries)
    shape = made.n_nodes, made.n_nodes
    graph = Graph.from_scipy(sp.csr_array((ones, made.indices.numpy(), made.indptr.numpy()), shape=shape))
    features = np.random.default_rng(0).normal(size=(graph.n_nodes, COLUMNS)).astype(np.float32)
    return graph.replace(features=features)


def _error(graph: Any, columns: Any) -> float:
    """Return the largest error of the first hop at sampled nodes, relative to the spread of the columns, which is 1."""
    import numpy as np

    names = columns.get_feature_names_out().tolist()
    degree = np.diff(graph.indptr)
    nodes = np.random.default_rng(1).choice(np.flatnonzero(degree > 0), SAMPLE)
    found = columns.transform(nodes)
    worst = 0.0
    for row, node in enumerate(nodes.tolist()):
        there = graph.features[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]].astype(np.float64)
        wanted = {"mean": there.mean(0), "deviation": there.std(0), "smallest": there.min(0), "largest": there.max(0)}
        for word, values in wanted.items():
            places = [names.index(f"{column}: {word} 1 away") for column in range(COLUMNS)]
            worst = max(worst, float(np.abs(found[row, places] - values).max()))
    return worst


if __name__ == "__main__":
    main()
