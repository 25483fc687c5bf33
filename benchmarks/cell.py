"""Claim: the paper's 100 runs of APPNP on Cora-ML take at most a 25th of the time that plain PyTorch sparse COO code
needs for as many epochs on two cores; and on one H200 at most a 300th of PyTorch Geometric's.

    PPROP_DATA=folder python benchmarks/cell.py                                     # Cora-ML, two cores
    PPROP_DATA=folder python benchmarks/cell.py --device cuda --dataset pubmed
    PPROP_DATA=folder python benchmarks/cell.py --runs 4 --max-epochs 50            # a quick try

20 test splits x 5 initialisations, patience 100, at most 10000 epochs: the published protocol, set-up and predictions of
all nodes included in our time. The peers train one run at a time; their time is the milliseconds of an epoch, measured
in this process before and after our training, times the sum of our runs' epochs. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from _measure import describe_machine, interleave, percentiles, use_threads, warn_if_busy

PEERS = ("coo", "pyg", "pyg_dense")
GOALS = {("cora_ml", "cpu"): {"coo": 25}, ("cora_ml", "cuda"): {"pyg": 300}}
PUBLISHED = {  # accuracy in percent and half width of its 95 % interval, 100 runs
    "citeseer": (75.73, 0.30),
    "cora_ml": (85.09, 0.25),
    "pubmed": (79.73, 0.31),
    "ms_academic": (93.27, 0.08),
}


def main() -> None:
    """Train the cell between two measurements of the peers; print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora_ml")
    parser.add_argument("--runs", type=int, default=100, help="the first of the cell's 100; 100 is the claim")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, help="CPU threads and cores.  [default: 2; all with --device cuda]")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--patience", type=int, default=100)
    parser.add_argument("--max-epochs", type=int, default=10000)
    parser.add_argument("--blocks", type=int, default=5, help="turns of every peer before, and after")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a peer's turn, at least one epoch")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    arguments = parser.parse_args()
    threads = 2 if arguments.threads is None and arguments.device == "cpu" else arguments.threads
    warn_if_busy()
    use_threads(threads)
    report = measure(arguments)
    print(_text(report), file=sys.stderr)
    print(json.dumps(report))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the cell's time, epochs and accuracy, and the ratios."""
    from scipy import stats

    import pprop
    from _ours import train_runs
    from _peers import load_problem, peer_timers

    name, device = arguments.dataset, arguments.device
    graph = pprop.load_dataset(name)
    pairs = [(split_seed, init) for init in range(5) for split_seed in pprop.TEST_SEEDS][: arguments.runs]
    train_runs(graph, pairs, pprop.Stopping(max_epochs=3), device, arguments.backend)  # compiles
    timers, tried = peer_timers(load_problem(name, device), arguments.peers, arguments.seconds)
    before = interleave(timers, arguments.blocks)
    begin = time.perf_counter()
    rule = pprop.Stopping(patience=arguments.patience, max_epochs=arguments.max_epochs)
    trained = train_runs(graph, pairs, rule, device, arguments.backend, progress=None)
    seconds = time.perf_counter() - begin
    after = interleave(timers, arguments.blocks)
    accuracy, epochs = 100 * trained.accuracy(), int(trained.epochs.sum())
    interval = stats.bootstrap((accuracy,), np.mean, method="percentile", rng=0).confidence_interval
    report: dict[str, Any] = {
        "benchmark": "cell",
        "dataset": name,
        "device": device,
        "backend": trained.backend,
        "machine": describe_machine(device),
        "runs": len(pairs),
        "seconds": round(seconds, 3),
        "epochs": epochs,
        "mean_epochs": round(epochs / len(pairs), 1),
        "longest_run": int(trained.epochs.max()),
        "ms_per_run_epoch": float(f"{1000 * seconds / epochs:.4g}"),
        "accuracy": round(float(accuracy.mean()), 3),
        "interval": [round(float(bound), 3) for bound in interval],
        "published": PUBLISHED.get(name),
        "peer_ms": {peer: percentiles(before[peer] + after[peer]) for peer in timers},
        "peer_drift": {peer: round(float(np.median(after[peer]) / np.median(before[peer])), 3) for peer in timers},
        "peer_seconds": {},
        "ratio": {},
        **tried,
    }
    for peer in timers:
        turns = [ms / 1000 * epochs for ms in before[peer] + after[peer]]
        report["peer_seconds"][peer] = round(float(np.median(turns)), 1)
        report["ratio"][peer] = percentiles([turn / seconds for turn in turns])
    goals = GOALS.get((name, device), {})
    if goals and len(pairs) == 100:
        report["goals"] = goals
        report["reached"] = all(report["ratio"][peer]["p50"] >= goal for peer, goal in goals.items() if peer in timers)
    return report


def _text(report: dict[str, Any]) -> str:
    ratio = "  ".join(f"vs {peer} {values['p50']:.1f}x" for peer, values in report["ratio"].items())
    return (
        f"{report['dataset']}: {report['runs']} runs, {report['epochs']} epochs in {report['seconds']:.1f} s, "
        f"accuracy {report['accuracy']:.2f} [{report['interval'][0]:.2f}, {report['interval'][1]:.2f}]   {ratio}"
    )


if __name__ == "__main__":
    main()
