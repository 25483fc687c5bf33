"""Kill ``pprop study run`` at random moments, start it again each time, and compare with a study nobody disturbed.

    python experiments/study_kill.py quick --runs 20 --kills 20

Both studies are computed on the CPU. The moments are drawn by a seed: uniformly over twice the time that a start and a
share of the work take, so that the kills meet imports, claims, trainings and writes alike. Reports how many rows each kill
found, whether the final tables (time columns apart) are the same bit for bit, and how many runs were computed twice.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path

from pprop.study.row import Row
from pprop.study.store import Store

APART = ("seconds", "together", "created", "predictions")


def command(names: list[str], runs: int | None, out: Path) -> list[str]:
    more = [] if runs is None else ["--runs", str(runs)]
    return [sys.executable, "-m", "pprop", "study", "run", *names, *more, "--out", str(out)]


def table(folder: Path) -> list[tuple[object, ...]]:
    names = [field.name for field in fields(Row) if field.name not in APART]
    with Store.open(folder) as store:
        return [(*(repr(getattr(row, name)) for name in names), row.predictions.tobytes()) for row in store.rows()]


def computed_twice(folder: Path) -> int:
    """Return how many attempts were begun on runs that had a row by then."""
    with Store.open(folder) as store:
        ((again,),) = store.execute(
            "SELECT count(*) FROM attempts a JOIN rows USING (config, code, data, split, init) "
            "WHERE a.begun > (julianday(rows.created) - 2440587.5) * 86400 + 0.5"
        )
    return again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    moments = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        # kernels that are not compiled yet shall not count as work
        subprocess.run(command(given.names, 1, Path(place) / "cold"), check=True, capture_output=True)
        begin = time.monotonic()
        subprocess.run(command(given.names, given.runs, whole), check=True, capture_output=True)
        first = time.monotonic() - begin
        begin = time.monotonic()
        subprocess.run(command(given.names, given.runs, whole), check=True, capture_output=True)
        start = time.monotonic() - begin  # nothing is missing now: what remains is the start
        span = 2 * (0.8 * start + (first - start) / given.kills)
        print(f"undisturbed: {len(table(whole))} rows in {first:.0f} s, a start takes {start:.1f} s")
        for kill in range(1, given.kills + 1):
            process = subprocess.Popen(
                command(given.names, given.runs, broken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            moment = moments.uniform(0.0, span)
            time.sleep(moment)
            process.kill()
            ended = "killed" if process.wait() < 0 else "was finished"
            there = len(table(broken)) if (broken / "rows.sqlite").exists() else 0
            print(f"{kill:2d}: {ended} after {moment:.1f} s, {there} rows", flush=True)
        subprocess.run(command(given.names, given.runs, broken), check=True, capture_output=True)
        same = table(broken) == table(whole)
        print(f"the final tables are {'the same bit for bit' if same else 'DIFFERENT'}")
        twice = computed_twice(broken)
        print(f"runs begun after they were finished: {twice}")
    sys.exit(0 if same and not twice else 1)


if __name__ == "__main__":
    main()
