"""Claim: with four busy loops on two cores, what is computed on a few thousand nodes takes at most twice one thread's time.

    python benchmarks/busy.py --out results/busy_cpu.json

A step of a torch module with `Propagation`, the layer alone, and an epoch of APPNP and of GCN: in processes of one thread and
of two, all measured in turns, beside as many busy loops as given; of two also where torch was loaded before pprop, whose
threads then spin while they wait. A ratio is formed turn by turn: two threads over one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import describe_machine, percentiles

NODES, STEPS, EPOCHS = 3000, 60, 60
WORKER, TORCH_FIRST = "--worker", "--torch-first"


def work() -> dict[str, float]:
    """Return the mean milliseconds of each kind of work in this process."""
    if TORCH_FIRST in sys.argv:
        import torch

    import pprop  # noqa: I001

    import numpy as np
    import scipy.sparse as sp
    import torch

    rng = np.random.default_rng(0)
    one_way = sp.random_array((NODES, NODES), density=4.5 / NODES, rng=rng)
    features = sp.random_array((NODES, 1000), density=0.02, rng=rng, format="csr", dtype=np.float32)
    edges = sp.csr_array(((one_way + one_way.T) > 0).astype(float))
    graph = pprop.Graph.from_scipy(edges, features=features, labels=rng.integers(0, 7, NODES))
    split = pprop.Split(np.arange(140), np.arange(200, 700), np.arange(1000, 2000))
    layer, inputs = pprop.Propagation(graph, alpha=0.1), torch.randn(NODES, 64)
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer, predictions = torch.optim.Adam(network.parameters()), torch.randn(NODES, 4)

    def step() -> None:
        optimizer.zero_grad()
        layer(network(inputs)).square().mean().backward()
        optimizer.step()

    def mean(function: Callable[[], object]) -> float:
        for _ in range(3):
            function()
        begin = time.perf_counter()
        for _ in range(STEPS):
            function()
        return 1000 * (time.perf_counter() - begin) / STEPS

    def epoch(model: pprop.Model | pprop.Architecture) -> float:
        def train(epochs: int) -> float:
            rule = pprop.Stopping(max_epochs=epochs, patience=None)
            return 1000 / pprop.train(model, graph, split, stopping=rule).run_epochs_per_second

        train(3)
        return train(EPOCHS)

    return {
        "propagation": mean(lambda: layer(predictions)),
        "module step": mean(step),
        "APPNP epoch": epoch(pprop.APPNP()),
        "GCN epoch": epoch(pprop.GCN()),
    }


def measured(threads: int, *more: str) -> dict[str, float]:
    """Return what a process of so many threads measures."""
    names = ("NUMBA", "OMP", "OPENBLAS", "MKL")
    environment = {**os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in names}}
    done = subprocess.run(
        [sys.executable, __file__, WORKER, *more], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measured(2)  # compiles
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.loops)]
    ways: dict[str, tuple[Any, ...]] = {
        "one thread": (1,),
        "two threads": (2,),
        "two threads, torch loaded before pprop": (2, TORCH_FIRST),
    }
    turns: list[dict[str, dict[str, float]]] = []
    try:
        for _ in range(arguments.turns):
            turns.append({name: measured(*way) for name, way in ways.items()})
            print(turns[-1], file=sys.stderr, flush=True)
    finally:
        for loop in busy:
            loop.kill()
    kinds = turns[0]["one thread"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    found = {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit,
        "busy_loops": arguments.loops,
        "machine": {**describe_machine("cpu"), "system": platform.platform()},
        "ms": {way: {kind: percentiles([turn[way][kind] for turn in turns]) for kind in kinds} for way in ways},
        "ratio_to_one_thread": {
            way: {kind: percentiles([turn[way][kind] / turn["one thread"][kind] for turn in turns]) for kind in kinds}
            for way in list(ways)[1:]
        },
    }
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    if WORKER in sys.argv:
        print(json.dumps(work()))
    else:
        main()
