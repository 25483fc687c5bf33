"""Kill ``pprop study run`` inside its computations, start it again each time, and compare with an undisturbed study.

    for seed in 0 1 2 3 4; do python experiments/study_kill.py --kills 40 --seed $seed; done     # make kills

The study has short trainings of APPNP, which are claimed twenty at a time, and bootstrapped feature propagation, one run
at a time, all on Citeseer. Each time the command is started, the store is watched until the process has claimed runs; it
is killed (SIGKILL) after a random time, up to twice what a first row takes: four of five kills come before that, the others
meet the runs after it. Processes are forked from one that has imported everything, so that a start takes little time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import fields
from multiprocessing.process import BaseProcess
from pathlib import Path

from pprop.study.store.row import Row
from pprop.study.store.store import Store

SERVER = multiprocessing.get_context("forkserver")
PRELOADED = [
    "pprop.cli.app",
    "pprop.study.run.runner",
    "pprop.kernels.numba_cpu.backend",
    "pprop.study.experiment_folder",
]
KEY = "config, code, data, split, init"
APART = ("seconds", "together", "created", "predictions")
SHARED = 'shows = "accuracy"\ndataset = "citeseer"\nn_inits = 1\n'
STUDY = {
    "trained.toml": f'title = "Trained"\nmodel = "appnp"\n{SHARED}[settings]\nmax_epochs = 40\n',
    "fitted.toml": f'title = "Fitted"\nmodel = "bootstrapped_fp"\n{SHARED}[settings]\nrounds = 1\n[grid]\nalpha = [0.1, 0.2]\n',
}


def study(folder: Path, out: Path) -> None:
    """Run the command, silently."""
    from pprop.cli.app import run

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(run(["study", "run", *(str(folder / name) for name in STUDY), "--out", str(out)]))


def start(folder: Path, out: Path) -> BaseProcess:
    process = SERVER.Process(target=study, args=(folder, out))
    process.start()
    return process


def finish(folder: Path, out: Path) -> list[tuple[object, ...]]:
    """Run the command to its end; return the rows."""
    process = start(folder, out)
    process.join()
    if process.exitcode != 0:
        sys.exit(f"pprop study run ended with {process.exitcode}")
    names = [field.name for field in fields(Row) if field.name not in APART]
    with Store.open(out) as store:
        return [(*(repr(getattr(row, name)) for name in names), row.predictions.tobytes()) for row in store.rows()]


def claims_of(store: Store, process: BaseProcess, since: float) -> list[tuple[object, ...]]:
    """Return the runs that a process has claimed and not finished."""
    return store.execute(
        f"SELECT {KEY} FROM attempts WHERE pid = ? AND begun >= ? AND ended IS NULL EXCEPT SELECT {KEY} FROM rows",
        (process.pid, since),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    moments = random.Random(given.seed)
    SERVER.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as place:
        folder, whole, broken = Path(place), Path(place) / "whole", Path(place) / "broken"
        for name, text in STUDY.items():
            (folder / name).write_text(text, encoding="utf-8")
        wanted = finish(folder, whole)
        with Store.open(whole) as store:  # by the hash of a cell, the seconds from its first claim to its first row
            first = dict(store.execute("SELECT config, min(ended) - min(begun) FROM attempts GROUP BY config"))
        each = ", ".join(f"{seconds:.2f}" for seconds in first.values())
        print(f"undisturbed: {len(wanted)} rows; seconds from a claim to the first row, by cell: {each}", flush=True)
        seen: dict[tuple[object, ...], str] = {}  # rows after some kill, and when they were made
        in_flight: Counter[tuple[object, ...]] = Counter()
        inside = late = lost = 0
        with Store.open(broken, create=True) as store:
            while inside < given.kills and len(seen) < len(wanted):
                since, process = time.time(), start(folder, broken)
                while not (claimed := claims_of(store, process, since)) and process.is_alive():
                    time.sleep(0.005)
                if claimed:
                    time.sleep(2 * first[str(claimed[0][0])] * moments.random() ** 3)
                process.kill()
                process.join()
                open_ones = claims_of(store, process, since)
                hit = process.exitcode == -signal.SIGKILL and bool(open_ones)
                inside, late = inside + hit, late + (not hit)
                in_flight.update(open_ones)
                there = {row[:-1]: row[-1] for row in store.execute(f"SELECT {KEY}, created FROM rows")}
                lost += sum(there.get(key) != made for key, made in seen.items())
                seen = there
        found = finish(folder, broken)
        with Store.open(broken) as store:
            begun: Counter[tuple[object, ...]] = Counter(store.execute(f"SELECT {KEY} FROM attempts"))
    twice = sum(count - 1 - in_flight[key] for key, count in begun.items())
    print(f"kills with runs in flight: {inside}; others: {late}")
    print(f"runs in flight at a kill, and begun again: {in_flight.total()} times, {len(in_flight)} runs")
    print(f"rows lost or made again: {lost}")
    print(f"runs begun twice that were not in flight: {twice}")
    print(f"the final tables are {'the same bit for bit' if found == wanted else 'DIFFERENT'} ({len(found)} rows)")
    sys.exit(0 if found == wanted and not lost and not twice and inside >= given.kills else 1)


if __name__ == "__main__":
    main()
