"""Claim: a change costs no speed. Two checkouts run the same benchmarks in turns; ratios are formed turn by turn.

    git worktree add ../before main
    PPROP_DATA=folder python benchmarks/side_by_side.py ../before . --turns 5
    PPROP_DATA=folder python benchmarks/side_by_side.py ../before . --device cuda

`epoch.py` (one run, one epoch), `cell.py` (many runs to their end) and `propagate.py` (ten power steps, 16 M entries), without
their peers. The scripts are those of this checkout, the package that of each. A ratio above 1 says that the second checkout is
slower. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _measure import percentiles

HERE = Path(__file__).parent


def commands(device: str) -> dict[str, list[str]]:
    """Return the benchmarks: script and arguments."""
    cell = ["--max-epochs", "300"] if device == "cpu" else []
    return {
        "epoch": ["epoch.py", "--blocks", "5", "--peers", "--device", device],
        "cell": ["cell.py", "--runs", "20" if device == "cpu" else "100", *cell, "--peers", "--device", device],
        "propagate": ["propagate.py", "--blocks", "5", "--peers", "--device", device],
    }


def measure(checkout: Path, command: list[str]) -> dict[str, float]:
    """Return the times of one call by name: milliseconds of an epoch or of all steps, seconds of a cell."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    script = [sys.executable, str(HERE / command[0]), *command[1:]]
    done = subprocess.run(script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "datasets" in report:
        return {name: row["ms"]["pprop"]["p50"] for name, row in report["datasets"].items()}
    if "seconds" in report:
        return {report["dataset"]: report["seconds"]}
    return {f"{report['graph']['entries']} entries": report["ms"]["pprop"]["p50"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", nargs="*", default=["epoch", "cell", "propagate"])
    given = parser.parse_args()
    report: dict[str, Any] = {"benchmark": "side_by_side", "device": given.device, "turns": given.turns}
    for name, command in commands(given.device).items():
        if name not in given.only:
            continue
        for checkout in (given.before, given.after):
            measure(checkout, command)  # compiles
        turns: list[dict[str, tuple[float, float]]] = []
        for turn in range(given.turns):
            first, second = (given.before, given.after) if turn % 2 else (given.after, given.before)
            times = {checkout: measure(checkout, command) for checkout in (first, second)}
            turns.append({what: (times[given.before][what], times[given.after][what]) for what in times[first]})
        report[name] = {}
        for what in turns[0]:
            ratio = percentiles([after / before for before, after in (turn[what] for turn in turns)])
            report[name][what] = {"ratio": ratio, "before_after": [turn[what] for turn in turns]}
            print(
                f"{name} {what}: {ratio['p50']:.3f} times the time ({ratio['p20']:.3f} to {ratio['p80']:.3f})",
                file=sys.stderr,
                flush=True,
            )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
