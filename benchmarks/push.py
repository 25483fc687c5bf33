"""Claim: sparse PPR rows by local push, on two cores, against PyTorch Geometric's `get_ppr` at the same eps.

- >= 25 times as fast on Cora-ML, PubMed and an RMAT graph with 16 million entries;
- the true error, summed over the nodes, at most 1.05 times theirs;
- at most 1 / (alpha eps) entries touched for a node (and once the row of the node itself);
- the time of a node grows at most 3 times from 1 million to 64 million entries.

    python benchmarks/push.py                              # two cores, 6 GB, ten minutes
    python benchmarks/push.py --rmat 1e5 --sizes 1e5 4e5 --nodes 200 --blocks 2      # a try

Normalisation "row", no added self-loops, since that is all `get_ppr` offers. The peer is measured twice, and both ratios
are reported. `pyg` is its public function, which the claim names; at every call it sorts the edges (here already sorted)
and makes lists, so that on a large graph its time a row, and the ratio, depend on how many rows (`--nodes`) share that.
`pyg_loop` is its compiled loop alone, given CSR arrays, as `LocalPush` is given a prepared graph: the ratio that does not
depend on `--nodes`, and the one that compares the pushes themselves.

The true error of a row is 1 less its sum: exact rows add up to 1, and neither method exceeds them; on Cora-ML the sum is
compared with exact rows. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from _measure import describe_machine, interleave, percentiles, ratios, use_threads, warn_if_busy

if TYPE_CHECKING:  # nothing heavy is imported before the number of threads is set
    from collections.abc import Callable

    from pprop import Graph

LEAST_RATIO, MOST_ERROR, MOST_GROWTH = 25, 1.05, 3


def main() -> None:
    """Race on three graphs, then let RMAT graphs grow; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--eps", type=float, default=1e-4)
    parser.add_argument("--datasets", nargs="*", default=["cora_ml", "pubmed"])
    parser.add_argument("--rmat", type=float, default=16e6, help="entries of the RMAT graph of the race; 0 for none")
    parser.add_argument("--sizes", type=float, nargs="*", default=[1e6, 4e6, 16e6, 64e6], help="entries of the others")
    parser.add_argument("--nodes", type=int, default=2000, help="rows in one turn")
    parser.add_argument("--blocks", type=int, default=5, help="turns")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads and cores")
    parser.add_argument("--json", metavar="FILE", help="write the JSON object there as well")
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(arguments.threads)
    raced: list[dict[str, Any]] = []
    for name in arguments.datasets:
        import pprop

        raced.append(race(name, pprop.load_dataset(name), arguments))
    if arguments.rmat:
        raced.append(race("rmat", rmat_graph(int(arguments.rmat)), arguments))
    grown = [grow(rmat_graph(entries), arguments) for entries in sorted(int(size) for size in arguments.sizes)]
    report = {
        "benchmark": "push",
        "machine": describe_machine("cpu"),
        "alpha": arguments.alpha,
        "eps": arguments.eps,
        "nodes": arguments.nodes,
        "race": raced,
        "least_ratio": LEAST_RATIO,
        "most_error": MOST_ERROR,
        "sizes": grown,
        "growth": grown[-1]["microseconds"]["p50"] / grown[0]["microseconds"]["p50"] if grown else None,
        "most_growth": MOST_GROWTH,
    }
    line = json.dumps(report)
    if arguments.json:
        Path(arguments.json).write_text(f"{line}\n")
    print(line)


def rmat_graph(entries: int) -> Graph:
    """Return an RMAT graph without self-loops."""
    import numpy as np
    from scipy import sparse

    from _rmat import rmat
    from pprop import Graph

    made = rmat(entries, self_loops=False)
    shape = (made.n_nodes, made.n_nodes)
    ones = np.ones(made.n_entries, dtype=np.int8)
    return Graph.from_scipy(sparse.csr_array((ones, made.indices.numpy(), made.indptr.numpy()), shape=shape))


def sample(graph: Graph, count: int) -> Any:
    """Return nodes that have an edge, at random: `get_ppr` divides by zero at the others."""
    import numpy as np

    joined = np.flatnonzero(np.diff(graph.indptr))
    return np.random.default_rng(0).choice(joined, min(count, len(joined)), replace=False)


def seconds(function: Callable[[], object], rows: int) -> float:
    """Return the microseconds of a row."""
    begin = time.perf_counter()
    function()
    return 1e6 * (time.perf_counter() - begin) / rows


def race(name: str, graph: Graph, arguments: argparse.Namespace) -> dict[str, Any]:
    """Let our rows and those of PyTorch Geometric take turns on one graph; compare their errors."""
    import numba
    import numpy as np
    import torch

    from pprop.propagation import LocalPush

    peer: Any = importlib.import_module("torch_geometric.utils.ppr")  # it has no types
    alpha, eps, nodes = arguments.alpha, arguments.eps, sample(graph, arguments.nodes)
    push = LocalPush(graph, alpha, "row", self_loops=False)
    owner = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    edges = torch.from_numpy(np.stack([owner, graph.indices.astype(np.int64)]))
    del owner
    compiled: Any = numba.jit(nopython=True, parallel=True)(peer._get_ppr)
    wide = graph.indices.astype(np.int64)
    calls: dict[str, Callable[[], Any]] = {
        "pprop": lambda: push.rows(nodes, eps),
        "pyg_loop": lambda: compiled(graph.indptr, wide, alpha, eps, nodes),
        "pyg": lambda: peer.get_ppr(edges, alpha, eps, torch.from_numpy(nodes), graph.n_nodes),
    }
    rows, (_, theirs), _ = (call() for call in calls.values())  # compiles
    timers = {key: partial(seconds, call, len(nodes)) for key, call in calls.items()}
    measured = interleave(timers, arguments.blocks)
    error, their_error = float(rows.error.sum()), float(sum(1 - sum(values) for values in theirs))
    own_row = np.diff(graph.indptr)[nodes]
    result: dict[str, Any] = {
        "graph": name,
        "nodes": graph.n_nodes,
        "entries": graph.n_entries,
        "microseconds": {key: percentiles(values) for key, values in measured.items()},
        "ratio": ratios(measured),
        "error_over_theirs": error / their_error,
        "mean_error": error / len(nodes),
        "entries_touched": {"mean": float(rows.entries_touched.mean()), "max": int(rows.entries_touched.max())},
        "most_touched_over_bound": float((rows.entries_touched / np.maximum(1 / (alpha * eps), own_row)).max()),
    }
    if graph.n_nodes < 4000:
        exact = exact_rows(graph, alpha)
        result["exact_error_over_claimed"] = float(np.abs(exact[nodes] - rows.matrix.toarray()).sum() / error)
    print(
        f"{name:>8}: {result['microseconds']['pprop']['p50']:8.1f} us a row, {result['ratio']['pyg_loop']['p50']:.1f} x "
        f"the loop, {result['ratio']['pyg']['p50']:.1f} x get_ppr; error {result['error_over_theirs']:.3f} x theirs; "
        f"touched {result['entries_touched']}",
        file=sys.stderr,
        flush=True,
    )
    return result


def exact_rows(graph: Graph, alpha: float) -> Any:
    """Return alpha (I - (1 - alpha) D^-1 A)^-1, dense, of a graph all of whose nodes have an edge."""
    import numpy as np

    dense: np.ndarray[Any, np.dtype[np.float64]] = np.asarray(graph.adjacency.toarray(), dtype=np.float64)
    steps = dense / dense.sum(axis=1, keepdims=True)
    identity = np.eye(graph.n_nodes)
    exact: Any = cast("Any", np.linalg).solve(identity - (1 - alpha) * steps, alpha * identity)
    return exact


def grow(graph: Graph, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the time of a row on one RMAT graph."""
    from pprop.propagation import LocalPush

    nodes = sample(graph, arguments.nodes)
    begin = time.perf_counter()
    push = LocalPush(graph, arguments.alpha, "row", self_loops=False)
    prepared = time.perf_counter() - begin
    rows = push.rows(nodes, arguments.eps)
    times = [seconds(lambda: push.rows(nodes, arguments.eps), len(nodes)) for _ in range(arguments.blocks)]
    result = {
        "entries": graph.n_entries,
        "microseconds": percentiles(times),
        "prepare_seconds": prepared,
        "entries_touched": float(rows.entries_touched.mean()),
    }
    print(f"{graph.n_entries:>11} entries: {result}", file=sys.stderr, flush=True)
    return result


if __name__ == "__main__":
    main()
