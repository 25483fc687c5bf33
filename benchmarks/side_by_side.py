"""Claim: a change costs no speed. Two checkouts run the same benchmarks in turns; ratios are formed turn by turn.

    git worktree add ../before main
    PPROP_DATA=folder python benchmarks/side_by_side.py ../before . --turns 5
    PPROP_DATA=folder python benchmarks/side_by_side.py ../before . --device cuda --only epoch

An epoch of one run (as in `epoch.py`), `cell.py` (many runs to their end) and `propagate.py` (ten power steps, 16 M entries),
without their peers; the trainings of `minibatch.py` on the neighbourhoods of labelled nodes, from the search for these on; and
the processes of ``import pprop`` and ``pprop --help``, from their start to their end. The scripts are those of this checkout,
the package that of each. In a turn of the epoch both checkouts start a process that stays, and are
measured in alternation, so that a machine that slows down slows both. A ratio above 1 says that the second checkout is slower.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from _measure import percentiles, use_threads

HERE = Path(__file__).parent
DATASETS = ("citeseer", "cora_ml", "pubmed", "ms_academic")
STARTS = {
    "import": "import pprop",
    "help": "import sys; sys.argv = ['pprop', '--help']; from pprop.cli import main; main()",
}
WORKER = "--worker"  # the first argument of the process that measures epochs of one checkout


def start(checkout: Path, script: list[str], stderr: int | None = None) -> subprocess.Popen[str]:
    """Start a script of this folder with the package of a checkout."""
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, str(HERE / script[0]), *script[1:]]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=stderr, text=True)


def worker(device: str, dataset: str) -> None:
    """Print the milliseconds of an epoch whenever a line is read."""
    use_threads(2 if device == "cpu" else None)
    import pprop
    from _ours import epoch_timer

    graph = pprop.load_dataset(dataset)
    timer = epoch_timer(graph, [(pprop.TEST_SEEDS[0], 0)], device, 0.2)
    timer()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(timer(), flush=True)


def epochs(checkouts: tuple[Path, Path], device: str, dataset: str, blocks: int) -> list[float]:
    """Return the median milliseconds of an epoch of both checkouts, measured in alternation."""
    script = ["side_by_side.py", WORKER, device, dataset]
    running = [start(checkout, script) for checkout in checkouts]
    times: list[list[float]] = [[], []]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # compiled
    for block in range(2 * blocks):
        at = (block + block // 2) % 2  # 0 1 1 0 0 1 1 0: neither is always first
        process = running[at]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        times[at].append(float(process.stdout.readline()))
    for process in running:
        process.communicate()
    return [median(values) for values in times]


def script_times(checkouts: tuple[Path, Path], script: list[str]) -> list[float]:
    """Return what a script measures with both checkouts, one after the other, as `measured` says."""
    times: list[float] = []
    for checkout in checkouts:
        process = start(checkout, script, subprocess.DEVNULL)
        report: dict[str, Any] = json.loads(process.communicate()[0].splitlines()[-1])
        times.append(measured(report))
    return times


def measured(report: dict[str, Any]) -> float:
    """Return the time in a report: seconds of a cell, or of mini-batch training on all graphs, or milliseconds of all steps."""
    if "graphs" in report:
        return sum(minibatch for _, minibatch in (graph["seconds"] for graph in report["graphs"].values()))
    return report["seconds"] if "seconds" in report else report["ms"]["pprop"]["p50"]


def starts(checkouts: tuple[Path, Path], code: str, blocks: int) -> list[float]:
    """Return the median milliseconds of a process that runs some code with each checkout, started in alternation."""
    times: list[list[float]] = [[], []]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for block in range(2 * blocks):
        at = (block + block // 2) % 2
        paths = {"PYTHONPATH": str(checkouts[at].resolve() / "src")}
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=environment | paths, stdout=subprocess.DEVNULL, check=True)
        times[at].append(1000 * (time.perf_counter() - begin))
    return [median(values) for values in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=9, help="epochs' measurements of each checkout in a turn")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", nargs="*", default=["epoch", "cell", "propagate", "minibatch", *STARTS])
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), help="of epoch and minibatch")
    parser.add_argument("--splits", type=int, default=5, help="of minibatch: as many runs on each graph")
    parser.add_argument("--max-epochs", type=int, default=300, help="of minibatch, and on a CPU of cell")
    given = parser.parse_args()
    limit = ["--max-epochs", str(given.max_epochs)]
    cell = ["--runs", "20", *limit] if given.device == "cpu" else ["--runs", "100"]
    minibatch = ["--splits", str(given.splits), *limit]
    scripts = {
        "cell": ["cell.py", *cell, "--peers", "--device", given.device],
        "propagate": ["propagate.py", "--blocks", "5", "--peers", "--device", given.device],
        "minibatch": ["minibatch.py", *given.datasets, *minibatch, "--device", given.device],
    }
    report: dict[str, Any] = {"benchmark": "side_by_side", "device": given.device, "turns": given.turns}
    for what in [f"epoch {dataset}" for dataset in given.datasets] + [*scripts, *STARTS]:
        name, _, dataset = what.partition(" ")
        if name not in given.only:
            continue
        turns: list[tuple[float, float]] = []
        for turn in range(-1, given.turns):  # the first compiles
            pair = (given.before, given.after) if turn % 2 else (given.after, given.before)
            if dataset:
                times = epochs(pair, given.device, dataset, given.blocks)
            else:
                started = name in STARTS
                times = starts(pair, STARTS[name], given.blocks) if started else script_times(pair, scripts[name])
            before, after = times if turn % 2 else reversed(times)
            if turn >= 0:
                turns.append((before, after))
        ratio = percentiles([after / before for before, after in turns])
        report[what] = {"ratio": ratio, "before_after": turns}
        line = f"{what}: {ratio['p50']:.3f} times the time ({ratio['p20']:.3f} to {ratio['p80']:.3f})"
        print(line, file=sys.stderr, flush=True)
    print(json.dumps(report))


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(*sys.argv[2:])
    else:
        main()
