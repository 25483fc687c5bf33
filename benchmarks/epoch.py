"""Claim: one run of APPNP on two cores makes an epoch at least 15 times as fast as plain PyTorch sparse COO code on all
four graphs, and 30 times as fast as PyTorch Geometric's layer on Cora-ML and Citeseer.

    PPROP_DATA=folder python benchmarks/epoch.py                       # four graphs, two cores
    PPROP_DATA=folder python benchmarks/epoch.py citeseer --blocks 3   # a quick try
    PPROP_DATA=folder python benchmarks/epoch.py cora_ml --device cuda

An epoch is one training step and the evaluation on the stopping nodes. pprop and its peers take turns in one process;
ratios are formed turn by turn. The last line is one JSON object; `benchmarks/README.md` explains it.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from _measure import describe_machine, interleave, percentiles, ratios, scipy_product_seconds, use_threads, warn_if_busy

PEERS = ("coo", "pyg", "pyg_dense")
DATASETS = ("citeseer", "cora_ml", "pubmed", "ms_academic")
GOALS = {  # how many times as fast as each peer, one run on two cores
    "citeseer": {"coo": 15, "pyg": 30},
    "cora_ml": {"coo": 15, "pyg": 30},
    "pubmed": {"coo": 15},
    "ms_academic": {"coo": 15},
}
AUTHORS_MS = {"citeseer": 60, "cora_ml": 106, "pubmed": 618, "ms_academic": 987}
"""The authors' own PyTorch code on two CPU cores, on a machine where `scipy_product_seconds` took about 1.2 s."""
AUTHORS_SCIPY_SECONDS = 1.2
LEAST_COO = 1.1  # our plain COO code must not be slower than this many times the authors'


def main() -> None:
    """Measure every dataset; print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(DATASETS), metavar="DATASET", help=", ".join(DATASETS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, help="CPU threads and cores.  [default: 2; all with --device cuda]")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--blocks", type=int, default=9, help="turns of every contestant")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one contestant's turn, at least one epoch")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    arguments = parser.parse_args()
    threads = 2 if arguments.threads is None and arguments.device == "cpu" else arguments.threads
    warn_if_busy()
    use_threads(threads)
    speed = scipy_product_seconds() / AUTHORS_SCIPY_SECONDS
    report: dict[str, Any] = {
        "benchmark": "epoch",
        "device": arguments.device,
        "machine": describe_machine(arguments.device),
        "scipy_seconds": round(speed * AUTHORS_SCIPY_SECONDS, 3),
        "datasets": {},
    }
    for name in arguments.datasets:
        row = measure(name, arguments)
        if "coo" in row["ms"] and arguments.device == "cpu" and name in AUTHORS_MS:
            row["authors_ms"] = AUTHORS_MS[name]
            row["authors_ms_rescaled"] = round(AUTHORS_MS[name] * speed, 1)
            row["coo_over_authors"] = round(row["ms"]["coo"]["p50"] / (AUTHORS_MS[name] * speed), 3)
            row["coo_is_strong_enough"] = row["coo_over_authors"] <= LEAST_COO
        if arguments.device == "cpu":
            row["goals"] = GOALS.get(name, {})
            row["reached"] = all(
                row["ratio"][peer]["p50"] >= goal for peer, goal in row["goals"].items() if peer in row["ratio"]
            )
        report["datasets"][name] = row
        print(_line(name, row), file=sys.stderr)
    print(json.dumps(report))


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return milliseconds and ratios of one dataset."""
    import pprop
    from _ours import epoch_timer
    from _peers import load_problem, peer_timers

    device, seconds = arguments.device, arguments.seconds
    timers, row = peer_timers(load_problem(name, device), arguments.peers, seconds)
    pairs = [(pprop.TEST_SEEDS[0], 0)]
    ours = epoch_timer(pprop.load_dataset(name), pairs, device, seconds, arguments.backend)
    measured = interleave({"pprop": ours, **timers}, arguments.blocks)
    return {
        "ms": {contestant: percentiles(values) for contestant, values in measured.items()},
        "ratio": ratios(measured),
        **row,
    }


def _line(name: str, row: dict[str, Any]) -> str:
    ms = "  ".join(f"{contestant} {values['p50']:8.2f} ms" for contestant, values in row["ms"].items())
    ratio = "  ".join(f"vs {peer} {values['p50']:.1f}x" for peer, values in row["ratio"].items())
    return f"{name:12} {ms}   {ratio}"


if __name__ == "__main__":
    main()
