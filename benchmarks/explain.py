"""Claim: how long an explanation takes on PubMed, two cores, everything but the first call counted.

- APPNP exact: at most 3 ms a node, 1 ms a node in batches of 16;
- PPNP exact: at most 15 ms a node, 4 ms in batches of 16;
- fast mode: at most 1 ms a node;
- exact contributions sum to the logit within 1e-4 max|H|.

    python benchmarks/explain.py                              # two minutes, most of it two short trainings
    python benchmarks/explain.py --dataset citeseer --nodes 8 --epochs 2

The peer makes the same row of the matrix by scipy's products (APPNP) or scipy's conjugate gradients to 1e-8 (PPNP), and
the ten largest contributions by numpy. All contestants take turns over the same nodes; a value is the mean over the
nodes of a turn. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from _measure import describe_machine, interleave, percentiles, ratios, use_threads, warn_if_busy

GOALS = {
    "appnp": {"exact": 3.0, "batch": 1.0, "fast": 1.0},
    "ppnp": {"exact": 15.0, "batch": 4.0, "fast": 1.0},
}
SUM = 1e-4
BATCH = 16


def main() -> None:
    """Measure; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="pubmed")
    parser.add_argument("--nodes", type=int, default=64, help="explained in a turn, drawn anew for each")
    parser.add_argument("--blocks", type=int, default=7, help="turns of every contestant")
    parser.add_argument("--epochs", type=int, default=20, help="of the training before")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(arguments.threads)
    print(json.dumps(measure(arguments)))


def say(text: str) -> None:
    """Tell people on standard error."""
    print(text, file=sys.stderr, flush=True)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the whole report."""
    import pprop

    graph = pprop.load_dataset(arguments.dataset)
    split = pprop.paper_split(graph, pprop.TEST_SEEDS[0])
    labels = graph.labels
    assert labels is not None
    report: dict[str, Any] = {
        "benchmark": "explain",
        "dataset": arguments.dataset,
        "machine": describe_machine("cpu"),
        "goals": GOALS,
        "models": {},
    }
    for name, kind in (("appnp", pprop.APPNPClassifier), ("ppnp", pprop.PPNPClassifier)):
        model = kind(graph, max_epochs=arguments.epochs, random_state=0)
        watched = split.stopping
        model.fit(split.train, labels[split.train], stopping=(watched, labels[watched]))
        report["models"][name] = measure_model(name, model, arguments)
    return report


def measure_model(name: str, model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the milliseconds a node of every contestant, and how far the sums are from the logits."""
    import numpy as np

    import pprop

    n = model.graph_.n_nodes
    begin = time.perf_counter()
    pprop.explain(model, 0)
    first = time.perf_counter() - begin
    pprop.explain(model, range(BATCH))
    pprop.explain(model, 0, mode="fast")
    peer, largest = scipy_peer(model)
    random = np.random.default_rng(0)
    turns: list[Any] = [random.choice(n, arguments.nodes, replace=False) for _ in range(arguments.blocks)]
    compare(model, peer, int(turns[0][0]))

    def batches(nodes: Any) -> None:
        for begin in range(0, len(nodes), BATCH):
            pprop.explain(model, nodes[begin : begin + BATCH])

    ways: dict[str, Callable[[Any], object]] = {
        "exact": lambda nodes: [pprop.explain(model, int(node)) for node in nodes],
        "batch": batches,
        "fast": lambda nodes: [pprop.explain(model, int(node), mode="fast") for node in nodes],
        "scipy": lambda nodes: [peer(int(node)) for node in nodes],
    }
    done = dict.fromkeys(ways, 0)

    def timed(way: str) -> float:
        nodes, done[way] = turns[done[way]], done[way] + 1
        begin = time.perf_counter()
        ways[way](nodes)
        return 1000 * (time.perf_counter() - begin) / len(nodes)

    measured = interleave({way: (lambda way=way: timed(way)) for way in ways}, arguments.blocks)
    error = 0.0
    nodes: list[int] = np.concatenate(turns).tolist()
    for one in pprop.explain(model, nodes):
        whole = one.contributions.sum(axis=0) + one.others
        error = max(error, float(np.abs(whole - model.logits_[one.node]).max()) / largest)
    missing = [
        one.error / max(float(np.abs(one.value).sum()), 1e-300) for one in pprop.explain(model, nodes, mode="fast")
    ]
    found: dict[str, Any] = {
        "ms": {way: percentiles(values) for way, values in measured.items()},
        "reached": {way: percentiles(measured[way])["p50"] <= goal for way, goal in GOALS[name].items()},
        "ratios": ratios(measured, ours="exact"),
        "first_call_ms": round(1000 * first, 1),
        "sum_error_over_max_H": float(f"{error:.3g}"),
        "sum_reached": error <= SUM,
        "fast_error_over_logits": percentiles(missing),
    }
    for way, row in found["ms"].items():
        goal = GOALS[name].get(way)
        say(f"{name:>6} {way:>6} {row['p50']:8.3f} ms a node (p20 {row['p20']}, p80 {row['p80']}), goal {goal}")
    say(f"{name:>6} sums within {error:.2g} max|H|, goal {SUM}")
    return found


def scipy_peer(model: Any) -> tuple[Callable[[int], Any], float]:
    """Return what makes the ten largest contributors of a node by scipy and numpy, and max|H|."""
    import numpy as np
    import torch
    from scipy import sparse
    from scipy.sparse.linalg import cg

    from pprop.graph import transition_matrix
    from pprop.kernels import choose_backend
    from pprop.models.inference import Inference
    from pprop.propagation import PowerIteration

    settings, n = model.model_.propagation, model.graph_.n_nodes
    weights = [torch.from_numpy(np.array(array))[None] for array in model.weights_.values()]
    kernels = choose_backend("auto", "cpu", "benchmark").kernels
    H = Inference(model.model_, model.graph_, kernels).alone(weights)[0].numpy().astype(np.float64)
    size = np.abs(H).sum(axis=1)
    T = sparse.csr_array(transition_matrix(model.graph_).to_scipy().T)
    alpha = settings.alpha
    back, system = (1 - alpha) * T, sparse.csr_array(sparse.eye_array(n)) - (1 - alpha) * T

    def row_of(node: int) -> Any:
        unit = np.zeros(n)
        unit[node] = 1.0
        if not isinstance(settings.solver, PowerIteration):
            return cg(system, alpha * unit, rtol=1e-8, atol=0.0)[0]
        state = unit
        for _ in range(settings.solver.steps):
            state = back @ state
            state[node] += alpha
        return state

    def peer(node: int) -> Any:
        row = row_of(node)
        scores = np.abs(row) * size
        best = np.argpartition(scores, n - 10)[n - 10 :]
        best = best[np.argsort(-scores[best])]
        contributions = row[best, None] * H[best]
        return best, contributions, row @ H - contributions.sum(axis=0), scores[best] / scores.sum()

    return peer, float(np.abs(H).max())


def compare(model: Any, peer: Callable[[int], Any], node: int) -> None:
    """Stop where the peer finds something else."""
    import numpy as np

    import pprop

    best, contributions, others, shares = peer(node)
    ours = pprop.explain(model, node)
    np.testing.assert_array_equal(ours.nodes, best)
    for one, other in ((ours.contributions, contributions), (ours.others, others), (ours.shares, shares)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)


if __name__ == "__main__":
    main()
