"""Claim: the time per entry of a power step grows by at most 60 % on two cores, 15 % on an H200, from 16 to 256 million.

    python benchmarks/scaling.py                                  # two cores, 12 GB, ten minutes
    python benchmarks/scaling.py --device cuda
    python benchmarks/scaling.py --order generator --entries 16e6 64e6

RMAT graphs, 16 columns in float32. Every graph takes turns with the smallest, and growth is formed turn by turn, so that
a slow moment of the machine slows both. Two graphs with the same rows but other columns say what the cache does: in one
all entries name the same 512 nodes, whose rows stay in the fastest cache; in the other they name nodes at random, so that
nearly every row comes from memory. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from _measure import describe_machine, interleave, percentiles, ratios, use_threads, warn_if_busy

if TYPE_CHECKING:  # nothing heavy is imported before the number of threads is set
    from collections.abc import Callable

    from pprop.graph import Transition

MOST_GROWTH = {"cpu": 1.60, "cuda": 1.15}
CACHE = {"cpu": 32 << 20, "cuda": 50 << 20}
HOT = 512


def main() -> None:
    """Measure every size; print a table on standard error, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--entries", type=float, nargs="+", default=[16e6, 32e6, 64e6, 128e6, 256e6])
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--order", choices=["shuffled", "generator"], default="shuffled", help="of the nodes' numbers")
    parser.add_argument("--threads", type=int, help="CPU threads and cores.  [default: 2; all with --device cuda]")
    parser.add_argument("--blocks", type=int, default=3, help="turns of every graph")
    parser.add_argument("--cache", type=float, help="bytes of the last cache.  [default: 32 MB; 50 MB on a GPU]")
    parser.add_argument(
        "--direct", action="store_true", help="the kernels for large graphs, whatever the backend chose"
    )
    arguments = parser.parse_args()
    warn_if_busy()
    use_threads(2 if arguments.threads is None and arguments.device == "cpu" else arguments.threads)
    sizes = sorted(int(entries) for entries in arguments.entries)
    smallest = load(sizes[0], arguments)
    timers = {"smallest": timer(smallest, arguments)}
    rows: list[dict[str, Any]] = []
    for size in sizes:
        transition = smallest if size == sizes[0] else load(size, arguments)
        rows.append(measure(transition, timers["smallest"], arguments))
        print(row_text(rows[-1]), file=sys.stderr, flush=True)
        del transition
    report = {
        "benchmark": "scaling",
        "device": arguments.device,
        "machine": describe_machine(arguments.device),
        "columns": arguments.columns,
        "steps": arguments.steps,
        "order": arguments.order,
        "sizes": rows,
        "growth": rows[-1]["growth"],
        "most_growth": MOST_GROWTH[arguments.device],
    }
    print(json.dumps(report))


def load(entries: int, arguments: argparse.Namespace) -> Transition:
    """Make a graph, on the GPU if there is one, and normalise it."""
    import torch

    from _rmat import rmat, sym_transition

    transition = sym_transition(rmat(entries, shuffle=arguments.order == "shuffled", device=arguments.device))
    if arguments.device != "cpu":
        torch.cuda.empty_cache()
    return transition


def timer(transition: Transition, arguments: argparse.Namespace) -> Callable[[], float]:
    """Bind the steps to a graph; return what measures their nanoseconds per entry and step."""
    import torch

    from _large import bind_ours, milliseconds

    device, work = arguments.device, len(transition.indices) * arguments.steps
    bound = bind_ours(transition, 0.1, arguments.steps, device, direct=arguments.direct)
    generator = torch.Generator(device).manual_seed(1)
    H = torch.randn(1, transition.n_nodes, arguments.columns, generator=generator, device=device)
    bound.forward(H, None)  # compiles, and moves the structure to the device
    repeats = 1 if device == "cpu" else 5
    return lambda: 1e6 * milliseconds(lambda: bound.forward(H, None), device, repeats) / work


def measure(transition: Transition, smallest: Callable[[], float], arguments: argparse.Namespace) -> dict[str, Any]:
    """Let a graph take turns with the smallest one; then the two graphs with other columns."""
    import numpy as np

    own = interleave({"this": timer(transition, arguments), "smallest": smallest}, arguments.blocks)
    n, entries = transition.n_nodes, len(transition.indices)
    cache = arguments.cache or CACHE[arguments.device]
    degrees = np.sort(np.diff(transition.indptr))[::-1]
    row: dict[str, Any] = {
        "entries": entries,
        "nodes": n,
        "state_mb": round(n * arguments.columns * 4 / 2**20, 1),
        "share_of_the_hottest_rows_that_fit_the_cache": round(
            float(degrees[: int(cache) // (4 * arguments.columns)].sum() / entries), 3
        ),
        "ns": percentiles(own["this"]),
        "smallest_ns": percentiles(own["smallest"]),
        # how many times as long an entry takes as one of the smallest graph
        "growth": ratios({"pprop": own["smallest"], "this": own["this"]})["this"],
    }
    generator = np.random.default_rng(2)
    for name, most in (("cached_ns", min(HOT, n)), ("random_ns", n)):
        other = replace_columns(transition, generator.integers(0, most, entries, dtype=np.int32))
        row[name] = float(f"{min(timer(other, arguments)() for _ in range(2)):.4g}")
    return row


def replace_columns(transition: Transition, columns: Any) -> Transition:
    """Return a matrix with the same rows and other columns. It is no longer symmetric."""
    from pprop.graph import Transition

    return Transition(transition.indptr, columns, None, transition.row_scale, transition.column_scale, symmetric=False)


def row_text(row: dict[str, Any]) -> str:
    """Return one line for people."""
    return (
        f"{row['entries']:>11} entries, state {row['state_mb']:7.1f} MB: {row['ns']['p50']:.3f} ns an entry and step, "
        f"{row['growth']['p50']:.2f} x the smallest; cached {row['cached_ns']}, random {row['random_ns']}"
    )


if __name__ == "__main__":
    main()
