"""Claim: a training takes at most 1.1 times the memory that its plan says, and on the CPU at most 1.3 times the features and
the graph, plus the states of its runs.

    python benchmarks/memory.py                    # the grid on the CPU, a process for every shape
    python benchmarks/memory.py --device cuda      # on a GPU, by torch's own count
    python benchmarks/memory.py 100000,128,1,20,1  # nodes, features, share of them that is not zero, classes, runs

On the CPU the peak is the system's count of the process's memory in main memory (VmHWM), set back before the training, less
what was held then: the interpreter, the libraries and compiled kernels, and the graph. "of the plan" is that peak over
`RunPlan.peak` less the features that the graph holds already, which are used where they lie. "of the graph" is the
graph, its features and what a training holds once for all runs, over graph and features alone; a test compares that part
of the plan with the arrays. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Shape = tuple[int, int, float, int, int]  # nodes, features, share of them that is not zero, classes, runs
DEGREE, EPOCHS = 12, 2  # entries a node of the random graphs, and epochs of a training
GRID: tuple[Shape, ...] = (
    (5_000, 16, 1.0, 2, 4),
    (5_000, 2_000, 1.0, 7, 2),
    (20_000, 500, 1.0, 7, 1),
    (20_000, 500, 1.0, 50, 4),
    (100_000, 128, 1.0, 20, 1),
    (100_000, 128, 1.0, 2, 2),
    (200_000, 16, 1.0, 10, 1),
    (200_000, 64, 1.0, 50, 1),
    (5_000, 2_000, 0.01, 6, 4),
    (20_000, 500, 0.1, 3, 2),
    (100_000, 1_000, 0.01, 20, 1),
    (200_000, 300, 0.02, 40, 1),
)


def main() -> None:
    """Measure every shape in a process of its own; print a line each, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="N,F,SHARE,C,R")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shapes = [_shape(text) for text in arguments.shapes] or list(GRID)
    if arguments.alone:
        print(json.dumps(measure(shapes[0], arguments.device)))
        return
    report: dict[str, Any] = {"benchmark": "memory", "device": arguments.device, "shapes": []}
    for shape in shapes:
        text = ",".join(map(str, shape))
        command = [sys.executable, __file__, "--alone", "--device", arguments.device, text]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        report["shapes"].append(row)
        print(f"{text}: {json.dumps(row)}", file=sys.stderr, flush=True)
    print("\n".join(table(report["shapes"])))
    print(json.dumps(report))


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table for people."""
    lines = ["   nodes  features  not zero  classes  runs  plan MB  peak MB  of the plan"]
    if "of_the_graph" in rows[0]:
        lines[0] += "  of the graph"
    for row in rows:
        n, f, share, c, runs = row["shape"]
        lines.append(
            f"{n:>8,}  {f:>8,}  {share:>8.0%}  {c:>7}  {runs:>4}  {row['plan_mb']:>7.1f}  {row['peak_mb']:>7.1f}"
            f"  {row['of_the_plan']:>11.2f}"
        )
        if "of_the_graph" in row:
            lines[-1] += f"  {row['of_the_graph']:>12.2f}"
    return lines


def _shape(text: str) -> Shape:
    n, f, share, c, runs = text.split(",")
    return int(n), int(f), float(share), int(c), int(runs)


def measure(shape: Shape, device: str) -> dict[str, Any]:
    """Return megabytes planned and taken by one training, and their ratio."""
    from pprop.training import train as module
    from pprop.training.memory import RunPlan, plan_runs

    plans: list[RunPlan] = []

    def remember(*args: Any, **options: Any) -> RunPlan:
        plans.append(plan_runs(*args, **options))
        return plans[-1]

    sys.modules["pprop.training.train"].plan_runs = remember  # pyright: ignore[reportAttributeAccessIssue]
    assert module is not None
    n, f, share, c, runs = shape
    train(make_graph(n, f, share, c), c, runs, device)  # loads what is compiled
    graph = make_graph(n, f, share, c)
    held = _graph_bytes(graph)
    read = _settle(device)
    train(graph, c, runs, device)
    peak, plan = read(), plans[-1]
    lying = held[0] if share == 1 else 0  # a dense matrix is not copied
    planned = plan.peak - (lying if device == "cpu" else 0)
    row = {
        "shape": shape,
        "plan_mb": round(planned / 1e6, 1),
        "peak_mb": round(peak / 1e6, 1),
        "of_the_plan": round(peak / planned, 3),
    }
    if device == "cpu":
        once = sum(plan.bytes.shared.values()) - lying + 16 * n  # with the scales of the transition matrix
        row["of_the_graph"] = round(1 + once / sum(held), 3)
    return row


def make_graph(nodes: int, features: int, share: float, classes: int) -> Any:
    """Return a random graph with dense normal features, or with sparse counts."""
    import numpy as np
    from scipy import sparse

    import pprop

    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, DEGREE * nodes // 2))
    matrix = sparse.coo_array((np.ones(ends.shape[1], np.float32), ends), shape=(nodes, nodes)).tocsr()
    matrix = ((matrix + matrix.T) > 0).astype(np.float64)
    if share == 1:
        values: Any = rng.standard_normal((nodes, features), dtype=np.float32)
        values.flags.writeable = False
    else:
        values = sparse.random_array((nodes, features), density=share, rng=rng, dtype=np.float32, format="csr")
    return pprop.Graph.from_scipy(matrix, features=values, labels=rng.integers(0, classes, nodes))


def train(graph: Any, classes: int, runs: int, device: str) -> None:
    """Make a few epochs of APPNP."""
    import numpy as np

    import pprop

    order = np.random.default_rng(1).permutation(graph.n_nodes)
    split = pprop.Split(order[: 10 * classes], order[10 * classes : 10 * classes + 100], order[-50:])
    rule = pprop.Stopping(patience=EPOCHS, max_epochs=EPOCHS)
    pprop.train(pprop.APPNP(), graph, split, seeds=list(range(runs)), device=device, progress=False, stopping=rule)


def _graph_bytes(graph: Any) -> tuple[int, int]:
    """Return the bytes of the features and of the structure."""
    features = graph.features
    parts = [features] if not hasattr(features, "indptr") else [features.data, features.indices, features.indptr]
    return sum(part.nbytes for part in parts), graph.indptr.nbytes + graph.indices.nbytes


def _settle(device: str) -> Any:
    """Give back what is free, and return a function that says how many bytes more were in use at once since."""
    gc.collect()
    if device != "cpu":
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        return lambda: torch.cuda.max_memory_allocated() - before
    begin = _settled()
    Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back
    return lambda: _status("VmHWM") - begin


def _settled() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> int:
    lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


if __name__ == "__main__":
    main()
