"""Claim: what an edit of a live graph costs, and that it keeps its word.

- RMAT, 16 million entries, 8 columns, tolerance 1e-4 in the norm of `pprop.live`, 1000 edits, half of them uniform pairs
  of nodes (one in ten with one of the hundred largest hubs), half existing edges: the median is at most 2 ms and at
  least 3000 times, the 99th percentile at least 500 times as fast as a fresh solve to the same tolerance;
- ten thousand random edits on Cora-ML stay within the bound throughout;
- with ``--batch``: batches of 10,000 of these edits, made together, at least 60,000 edits a second with 1.2 million edges
  and 8,000 a second with 124 million entries, within the bound.

    python benchmarks/live.py                                         # two cores, ten minutes
    python benchmarks/live.py --entries 1e6 --edits 200 --random-edits 0
    python benchmarks/live.py --batch 10000 --entries 2.4e6           # 1.2 million edges
    python benchmarks/live.py --batch 10000 --entries 124e6
    python benchmarks/live.py --batch 10000 --entries 2.4e6 --uniform 170000

The fresh solve is the library's Chebyshev polynomial in float64 with as few products as reach the tolerance, found
beforehand, on a transition matrix that is at hand: neither the search nor the set-up is counted. It takes its turn
before each block of edits, and ratios are formed block by block. An edit is timed from the call to its return, checks of
its arguments included. On Cora-ML the bound is checked after every edit with scipy, from a list of edges of its own. A batch
is timed from the list of its edits to its return; single edits take their turn before each batch, and the bound is checked by
scipy's residual after the last one. ``--uniform N`` draws the ends of all edges among N nodes instead of an RMAT graph.
The last line is one JSON object; ``--json FILE`` writes it to a file too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from _measure import describe_machine, percentiles, use_threads, warn_if_busy

if TYPE_CHECKING:  # nothing heavy is imported before the number of threads is set
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pprop import Graph, LiveGraph

GOALS = {"median_ms": 2.0, "median_ratio": 3000, "p99_ratio": 500}
BATCH_GOALS = {"edits_a_second_with_1.2M_edges": 60_000, "edits_a_second_with_124M_entries": 8_000}


def main() -> None:
    """Measure; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=float, default=16e6, help="self-loops not included")
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=5, help="fresh solves, each before its share of the edits")
    parser.add_argument("--random-edits", type=int, default=10_000, help="on Cora-ML; 0 leaves it out")
    parser.add_argument("--batch", type=int, default=0, help="edits in a batch; 0 measures single edits")
    parser.add_argument("--uniform", type=int, default=0, help="nodes of a uniform random graph for the batches")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="file for the report")
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(arguments.threads)
    report: dict[str, Any] = {"benchmark": "live", "machine": describe_machine("cpu"), "goals": GOALS}
    if arguments.batch:
        report |= {"goals": BATCH_GOALS, "batches": measure_batches(arguments)}
    else:
        report["rmat"] = measure(arguments)
    if arguments.random_edits and not arguments.batch:
        report["cora_ml"] = stay_within(arguments.random_edits, arguments.alpha, arguments.tol)
        say(f"Cora-ML: {report['cora_ml']}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report))


def say(text: str) -> None:
    """Tell people on standard error."""
    print(text, file=sys.stderr, flush=True)


def rmat_graph(entries: int) -> Graph:
    """Return an RMAT graph of about so many entries, without self-loops."""
    from scipy import sparse

    import pprop
    from _rmat import rmat

    drawn = rmat(entries, self_loops=False)
    structure = (np.ones(drawn.n_entries, np.float32), drawn.indices.numpy(), drawn.indptr.numpy())
    return pprop.Graph.from_scipy(sparse.csr_array(structure, shape=(drawn.n_nodes, drawn.n_nodes)))


def uniform_graph(entries: int, n: int) -> Graph:
    """Return a graph whose edges have both ends drawn among n nodes."""
    from scipy import sparse

    import pprop

    ends = np.random.default_rng(0).integers(n, size=(2, entries // 2))
    u, v = ends[:, ends[0] != ends[1]]
    half: Any = sparse.coo_array((np.ones(len(u)), (u, v)), shape=(n, n)).tocsr()
    adjacency: Any = half + half.T
    adjacency.data[:] = 1.0  # an edge that was drawn twice is one
    return pprop.Graph.from_scipy(adjacency)


def measure_batches(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the report on batches of edits, single edits in between."""
    import pprop

    entries = int(arguments.entries)
    graph = uniform_graph(entries, arguments.uniform) if arguments.uniform else rmat_graph(entries)
    H = np.random.default_rng(1).standard_normal((graph.n_nodes, arguments.columns))
    say(f"{graph.n_nodes} nodes, {graph.n_entries} entries, {arguments.columns} columns, tolerance {arguments.tol:g}")
    changing = pprop.live(graph, H, arguments.alpha, tol=arguments.tol)
    rng, there = np.random.default_rng(2), dict[tuple[int, int], bool]()
    singly = max(1, arguments.batch // 50)
    changing.apply(as_calls(graph, draw_edits(graph, arguments.batch, rng), there))  # compiled, and arrays made
    rates: dict[str, list[float]] = {"batch": [], "single": []}
    read: dict[str, list[float]] = {"batch": [], "single": []}
    for _ in range(arguments.blocks):
        for kind, count in (("single", singly), ("batch", arguments.batch)):
            calls = as_calls(graph, draw_edits(graph, count, rng), there)
            begin = time.perf_counter()
            if kind == "batch":
                seen = changing.apply(calls).entries
            else:
                seen = sum(getattr(changing, name)(*ends).entries for name, *ends in calls)
            rates[kind].append(count / (time.perf_counter() - begin))
            read[kind].append(seen / count)
    report: dict[str, Any] = {
        "nodes": graph.n_nodes,
        "entries": graph.n_entries,
        "columns": arguments.columns,
        "alpha": arguments.alpha,
        "tol": arguments.tol,
        "batch": arguments.batch,
        "batches": arguments.blocks,
        "edits_a_second": percentiles(rates["batch"]),
        "single_edits_a_second": percentiles(rates["single"]),
        "ratio": percentiles([batch / single for batch, single in zip(rates["batch"], rates["single"], strict=True)]),
        "entries_read_an_edit": {kind: digits(np.mean(found)) for kind, found in read.items()},
        "bound_over_tol": digits(bound(changing, arguments.alpha, H) / arguments.tol),
    }
    say(
        f"{report['edits_a_second']['p50']:.0f} edits a second in batches, "
        f"{report['single_edits_a_second']['p50']:.0f} one by one; bound {report['bound_over_tol']} of the tolerance"
    )
    return report


def as_calls(
    graph: Graph, pairs: list[tuple[int, int]], there: dict[tuple[int, int], bool]
) -> list[tuple[str, int, int]]:
    """Return edits that remove the edges that are there and add the others; `there` has those met before, and is updated."""
    calls: list[tuple[str, int, int]] = []
    for u, v in pairs:
        key = (min(u, v), max(u, v))
        if key not in there:
            row = graph.indices[graph.indptr[u] : graph.indptr[u + 1]]
            at = int(np.searchsorted(row, v))
            there[key] = at < len(row) and int(row[at]) == v
        calls.append(("remove_edge" if there[key] else "add_edge", u, v))
        there[key] = not there[key]
    return calls


def bound(changing: LiveGraph, alpha: float, H: NDArray[np.float64]) -> float:
    """Return what the residual says at most of |Z_i - Z*_i| / sqrt(d_i), by scipy from the graph as it is now."""
    A = changing.graph.adjacency
    d = np.asarray(A.sum(axis=1), np.float64).ravel() + 1.0  # no edit here makes a self-loop
    largest = 0.0
    Z = changing.logits()
    for column in range(H.shape[1]):
        Y, G = Z[:, column] / np.sqrt(d), H[:, column] / np.sqrt(d)
        residual = alpha * G + (1 - alpha) * (A @ Y + Y) / d - Y
        largest = max(largest, float(np.abs(residual).max()) / alpha)
    return largest


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the report on an RMAT graph."""
    import pprop

    graph = rmat_graph(int(arguments.entries))
    n, entries = graph.n_nodes, graph.n_entries
    H = np.random.default_rng(1).standard_normal((n, arguments.columns))
    say(f"RMAT: {n} nodes, {entries} entries, {arguments.columns} columns, tolerance {arguments.tol:g}")
    fresh, products = fresh_solve(graph, H, arguments.alpha, arguments.tol)
    begin = time.perf_counter()
    changing = pprop.live(graph, H, arguments.alpha, tol=arguments.tol)
    start = time.perf_counter() - begin
    edits = draw_edits(graph, arguments.edits, np.random.default_rng(2))
    changing.remove_edge(*edits[1])  # compiled, both ways, and taken back
    changing.undo()
    adjacency = graph.adjacency
    there = {(min(u, v), max(u, v)): bool(adjacency[u, v]) for u, v in edits}
    solves: list[float] = []
    blocks: list[NDArray[np.float64]] = []
    read: list[int] = []
    for block in np.array_split(np.arange(len(edits)), arguments.blocks):
        begin = time.perf_counter()
        fresh()
        solves.append(1000 * (time.perf_counter() - begin))
        times: list[float] = []
        for u, v in edits[block[0] : block[-1] + 1]:
            pair = (min(u, v), max(u, v))
            edit = changing.remove_edge if there[pair] else changing.add_edge
            there[pair] = not there[pair]
            begin = time.perf_counter()
            update = edit(u, v)
            times.append(1000 * (time.perf_counter() - begin))
            read.append(update.entries)
        blocks.append(np.array(times))
    every = np.concatenate(blocks)
    pairs = list(zip(solves, blocks, strict=True))
    report: dict[str, Any] = {
        "nodes": n,
        "entries": entries,
        "columns": arguments.columns,
        "alpha": arguments.alpha,
        "tol": arguments.tol,
        "fresh_products": products,
        "fresh_ms": percentiles(solves),
        "start_seconds": round(start, 2),
        "edits": len(every),
        "edit_ms": {
            **percentiles(every.tolist()),
            "p99": digits(np.percentile(every, 99)),
            "most": digits(every.max()),
        },
        "entries_read": {**percentiles(read), "p99": digits(np.percentile(read, 99)), "most": max(read)},
        "median_ratio": percentiles([solve / float(np.median(block)) for solve, block in pairs]),
        "p99_ratio": percentiles([solve / float(np.percentile(block, 99)) for solve, block in pairs]),
        "p99_ratio_of_all": digits(float(np.median(solves)) / np.percentile(every, 99)),
        "error_over_tol": digits(true_error(changing, arguments.alpha, H) / arguments.tol),
        "drift": changing.refresh().drift,
    }
    say(
        f"fresh {report['fresh_ms']['p50']} ms ({products} products), edit {report['edit_ms']}: "
        f"{report['median_ratio']['p50']} times by the median, {report['p99_ratio_of_all']} times by the 99th percentile"
    )
    return report


def digits(value: Any) -> float:
    """Return four digits of a number."""
    return float(f"{float(value):.4g}")


def fresh_solve(graph: Graph, H: NDArray[np.float64], alpha: float, tol: float) -> tuple[Callable[[], object], int]:
    """Return a solve with as few products as reach |Z_i - Z*_i| <= tol sqrt(d_i) by the residual, and their number."""
    import torch

    from pprop.graph import transition_matrix
    from pprop.kernels import choose_backend
    from pprop.propagation.operator import FixedPoint

    kernels = choose_backend("numba", "cpu", "benchmark").kernels
    transition, given = transition_matrix(graph), torch.from_numpy(H)[None]
    once = kernels.steps(transition, alpha, 1)
    scale = torch.from_numpy(transition.row_scale)[:, None]
    accuracy = 0.1
    while True:
        solver = FixedPoint(transition, alpha, kernels, accuracy)
        Z = solver.forward(given)
        residual = alpha * (given - Z) + (once.forward(Z, None) - Z)
        if float((residual[0] * scale).abs().max()) <= alpha * tol:
            return partial(solver.forward, given), solver.matrix_products
        accuracy *= 0.63  # less than one product's gain at alpha = 0.1


def draw_edits(graph: Graph, count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return pairs of nodes: uniform ones, of which every tenth has a hub, and existing edges, in turn."""
    hubs = np.argsort(np.diff(graph.indptr))[-100:]
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count:
        if len(pairs) % 2:
            pair = existing(graph, rng)
        else:
            u = int(rng.choice(hubs)) if len(pairs) % 20 == 0 else int(rng.integers(graph.n_nodes))
            pair = (u, int(rng.integers(graph.n_nodes)))
        if pair[0] != pair[1]:
            pairs.append(pair)
    return pairs


def existing(graph: Graph, rng: np.random.Generator) -> tuple[int, int]:
    """Return an edge, each entry as likely as any other: hubs are met as often as they have neighbours."""
    entry = int(rng.integers(graph.n_entries))
    return int(np.searchsorted(graph.indptr, entry, side="right")) - 1, int(graph.indices[entry])


def true_error(changing: LiveGraph, alpha: float, H: NDArray[np.float64]) -> float:
    """Return the largest |Z_i - Z*_i| / sqrt(d_i), against a solve to rounding on the graph as it is now."""
    import pprop

    Z = pprop.propagate(changing.graph, H, alpha, pprop.Exact())
    return float((np.abs(changing.logits() - Z).max(axis=1) / (changing.error_bound() / changing.tol)).max())


def stay_within(edits: int, alpha: float, tol: float, name: str = "cora_ml", every: int = 500) -> dict[str, float]:
    """Edit a graph at random and return the largest bound over `tol`, by scipy's residual from a list of edges of its own.

    Every so many edits the error itself is computed, by a direct sparse solve. Nodes keep their H, some get another.
    """
    from scipy import sparse
    from scipy.sparse import linalg

    import pprop

    graph, rng = pprop.load_dataset(name), np.random.default_rng(4)
    n = graph.n_nodes
    H = 3 * rng.standard_normal((n, graph.n_classes))
    changing = pprop.live(graph, H, alpha, tol=tol)
    matrix = sparse.triu(graph.adjacency).tocoo()
    edges = {(int(i), int(j)) for i, j in zip(matrix.row, matrix.col, strict=True)}
    listed = sorted(edges)
    bound, error, step = 0.0, 0.0, 0
    while step < edits:
        kind = rng.random()
        if kind < 0.45:
            u, v = sorted(int(end) for end in rng.integers(n, size=2))
            if (u, v) in edges:
                continue
            changing.add_edge(u, v)
            edges.add((u, v))
            listed.append((u, v))
        elif kind < 0.9:
            at = int(rng.integers(len(listed)))
            listed[at], listed[-1] = listed[-1], listed[at]
            pair = listed.pop()
            changing.remove_edge(*pair)
            edges.remove(pair)
        else:
            u = int(rng.integers(n))
            H[u] = 3 * rng.standard_normal(H.shape[1])
            changing.set_predictions(u, H[u])
        step += 1
        ends = np.array(listed)
        half = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
        A: Any = half + half.T
        A.setdiag(1.0)  # a self-loop of weight one: the one that is added, or that which was there
        d = np.asarray(A.sum(axis=1)).ravel()
        Y, G = changing.logits() / np.sqrt(d)[:, None], H / np.sqrt(d)[:, None]
        residual = alpha * G + (1 - alpha) * (A @ Y) / d[:, None] - Y
        bound = max(bound, float(np.abs(residual).max()) / alpha)
        if step % every == 0 or step == edits:
            P = sparse.diags_array(1 / d) @ A
            system = sparse.csc_array(sparse.eye_array(n) - (1 - alpha) * P)
            exact = linalg.splu(system).solve(alpha * G)
            error = max(error, float(np.abs(Y - exact).max()))
    return {
        "edits": edits,
        "largest_bound_over_tol": digits(bound / tol),
        "largest_error_over_tol": digits(error / tol),
    }


if __name__ == "__main__":
    main()
