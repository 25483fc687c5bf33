"""Claim: on dense features one run of APPNP makes an epoch 5 times as fast as PyTorch Geometric's layer on a GPU, and 7 to 12
times as fast as plain PyTorch on two cores.

    python benchmarks/dense.py                         # two cores
    python benchmarks/dense.py --device cuda           # a GPU, 1, 8 or 100 runs at once
    python benchmarks/dense.py 20k_500 --blocks 3      # one shape

Graphs and features are random; K = 10, h = 64, dropout 0.5. An epoch is one training step and the evaluation on the
stopping nodes. Contestants take turns in one process. Set-up is all that `pprop.train` does besides epochs, from the second
call on. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from _measure import describe_machine, interleave, percentiles, ratios, use_threads, warn_if_busy

if TYPE_CHECKING:
    import pprop

# nodes, entries of the adjacency, features, share of them that is not zero, classes, runs at once
CPU_SHAPES = {
    "20k_500": (20_000, 100_000, 500, 1.0, 7, 1),
    "100k_128": (100_000, 1_200_000, 128, 1.0, 20, 1),
}
GPU_SHAPES = {
    "89k_500": (89_250, 900_000, 500, 1.0, 7, 1),
    "89k_500_8_runs": (89_250, 900_000, 500, 1.0, 7, 8),
    "169k_128": (169_343, 2_300_000, 128, 1.0, 40, 1),
    "20k_500": (19_717, 89_000, 500, 1.0, 3, 1),
    "20k_500_100_runs": (19_717, 89_000, 500, 1.0, 3, 100),
    "7k_745_100_runs": (7_500, 240_000, 745, 1 / 3, 8, 100),
    "2m_100": (2_450_000, 124_000_000, 100, 1.0, 47, 1),
}
GOALS = {  # milliseconds of an epoch of all runs
    ("cpu", "20k_500"): 75,
    ("cpu", "100k_128"): 350,
    ("cuda", "89k_500"): 1,
    ("cuda", "89k_500_8_runs"): 4,
    ("cuda", "169k_128"): 3.3,
    ("cuda", "20k_500_100_runs"): 6,
    ("cuda", "7k_745_100_runs"): 3.8,
    ("cuda", "2m_100"): 200,
}
SETUP_GOAL, LARGE_SETUP_GOAL = 0.5, 10  # seconds
LARGE = 1_000_000  # nodes, of a graph with no peers: they run out of memory; measured once
SHORT = 5


def main() -> None:
    """Measure every shape; print a line each, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join({**CPU_SHAPES, **GPU_SHAPES}))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--blocks", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one contestant's turn, at least one epoch")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--to-the-end", action="store_true", help="also 2,600 epochs of all runs in one call")
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(2 if arguments.device == "cpu" else None)
    known = CPU_SHAPES if arguments.device == "cpu" else GPU_SHAPES
    report: dict[str, Any] = {"benchmark": "dense", "machine": describe_machine(arguments.device), "shapes": {}}
    for name in arguments.shapes or known:
        row = report["shapes"][name] = measure(known[name], arguments)
        row["goal_ms"] = GOALS.get((arguments.device, name))
        row["setup_goal_s"] = LARGE_SETUP_GOAL if known[name][0] >= LARGE else SETUP_GOAL
        print(f"{name}: {json.dumps(row)}", file=sys.stderr, flush=True)
    print(json.dumps(report))


def make_graph(nodes: int, entries: int, features: int, share: float, classes: int) -> pprop.Graph:
    """Return a random graph with normal features, or positive ones of which only a share is not zero."""
    import numpy as np
    from scipy import sparse

    import pprop

    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, entries // 2), dtype=np.int32)
    ends = ends[:, ends[0] != ends[1]]
    both = np.concatenate([ends, ends[::-1]], axis=1)
    matrix = sparse.csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    dense = rng.standard_normal((nodes, features), dtype=np.float32)
    some = rng.random(dense.shape, dtype=np.float32) < share if share < 1 else None
    values = dense if some is None else sparse.csr_array(np.abs(dense) * some)
    return pprop.Graph.from_scipy(matrix, features=values, labels=rng.integers(0, classes, nodes))


def measure(shape: tuple[int, int, int, float, int, int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return milliseconds of an epoch, set-up and ratios of one shape."""
    import numpy as np
    import torch

    import pprop
    from _ours import difference_timer
    from _peers import CooPeer, Problem, PygPeer
    from pprop.graph import transition_matrix
    from pprop.models.model import network_inputs

    (nodes, entries, features, share, classes, runs), device = shape, arguments.device
    graph = make_graph(nodes, entries, features, share, classes)
    order = np.random.default_rng(1).permutation(graph.n_nodes)
    split = pprop.Split(order[: 20 * classes], order[20 * classes : 20 * classes + 500], order[-1000:])

    def train(epochs: int) -> float:
        begin = time.perf_counter()
        pprop.train(
            pprop.APPNP(alpha=0.1),
            graph,
            split,
            seeds=list(range(runs)),
            device=device,
            progress=False,
            stopping=pprop.Stopping(patience=epochs, max_epochs=epochs),
        )
        return time.perf_counter() - begin

    first, large = train(SHORT), nodes >= LARGE
    ours = difference_timer(train, arguments.seconds)
    contestants = {"pprop": ours}
    if not arguments.no_peers and not large:
        assert graph.labels is not None
        problem = Problem(
            name="random",
            alpha=0.1,
            features=network_inputs(graph),
            transition=transition_matrix(graph).to_scipy().astype(np.float32),
            adjacency=graph.adjacency,
            labels=torch.tensor(graph.labels, device=device),
            train=torch.tensor(split.train, device=device),
            stopping=torch.tensor(split.stopping, device=device),
            n_classes=classes,
            device=device,
        )
        if device == "cpu":
            contestants["torch"] = _timer(CooPeer(problem), arguments.seconds, device)
        else:
            contestants["pyg_edges"] = _timer(PygPeer(problem, "dense", "index"), arguments.seconds, device)
            contestants["pyg_csr"] = _timer(PygPeer(problem, "dense", "csr"), arguments.seconds, device)
    measured = interleave(contestants, 1 if large else arguments.blocks)
    found = {name: percentiles(values) for name, values in measured.items()}
    setup = min(train(SHORT) for _ in range(1 if large else 3)) - SHORT * found["pprop"]["p50"] / 1000
    row = {
        "runs": runs,
        "ms": found,
        "ratio": ratios(measured),
        "setup_s": round(setup, 3),
        "first_call_s": round(first, 2),
    }
    if arguments.to_the_end:
        row["seconds_of_2600_epochs"] = round(train(2600), 2)
    if device != "cpu":
        row["gpu_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        torch.cuda.reset_peak_memory_stats()
    return row


def _timer(peer: Any, seconds: float, device: str) -> Any:
    from _measure import time_epochs

    peer.epoch()
    return lambda: time_epochs(peer.epoch, seconds, device)


if __name__ == "__main__":
    main()
