"""Kill the driver or a worker of Spark in the middle of a propagation, and let it go on: the answer must be the same.

    python experiments/spark_kill.py --kills 10 > results/spark_kill.txt

A child process packs a graph and makes the steps, with Spark on two cores. At a random moment either the whole child
(driver, Java and workers) or one Python worker gets SIGKILL; the same call is then made again, in the same folder. At the
end the values are compared, bit by bit, with those of a propagation that was left alone, and the steps that were made are
counted: one that was finished before a kill is not made again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pprop.spark.foreign import arrow

N, STEPS = 200_000, 60


def child(folder: Path) -> None:
    """Pack and propagate, in Spark; every step that is begun is written down."""
    from pprop.spark import propagate
    from pprop.spark.session import session_of

    session_of(master="local[2,4]")  # a task may fail three times
    module = sys.modules[propagate.__module__]
    step = vars(module)["_one_step"]

    def noted(spark: Any, job: Any, one: Any) -> Any:
        with (folder / "begun").open("a") as stream:
            stream.write(f"{one.number}\n")
        return step(spark, job, one)

    module.__dict__["_one_step"] = noted
    propagate(str(folder / "edges.parquet"), str(folder / "scores.parquet"), 0.1, STEPS, work=folder / "work", tasks=6)


def write_tables(folder: Path) -> None:
    """Write a random graph and predictions."""
    pa, pq = arrow(), importlib.import_module("pyarrow.parquet")

    rng = np.random.default_rng(0)
    ends = {name: pa.array([f"n{one}" for one in rng.integers(0, N, 4 * N)]) for name in ("source", "target")}
    pq.write_table(pa.table(ends), folder / "edges.parquet")
    scores = {"id": pa.array([f"n{one}" for one in range(N)])} | {f"c{k}": rng.standard_normal(N) for k in range(4)}
    pq.write_table(pa.table(scores), folder / "scores.parquet")


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start a child in a group of its own."""
    command = [sys.executable, __file__, "--child", str(folder)]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def workers(group: int) -> list[int]:
    """Return the Python workers of a child."""
    found = subprocess.run(
        ["pgrep", "-g", str(group), "-f", "pyspark.worker"], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def done(folder: Path) -> int:
    """Return the steps that are finished."""
    file = folder / "work" / "progress.json"
    return json.loads(file.read_text())["step"] if file.exists() else 0


def main() -> None:
    """Kill children until there were enough kills, then let one end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path)
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        killed, alone = Path(place, "killed"), Path(place, "alone")
        for folder in (killed, alone):
            folder.mkdir()
            write_tables(folder)
        kills = again = 0
        while kills < given.kills:
            running, worker, before = start(killed), kills % 2 == 1, done(killed)
            while running.poll() is None and done(killed) < before + 1:  # until it has come further than the one before
                time.sleep(0.05)
            time.sleep(draw.uniform(0.0, 1.5))
            if running.poll() is not None:
                break
            if worker and (found := workers(running.pid)):
                os.kill(draw.choice(found), signal.SIGKILL)  # Spark starts another, and makes its task again
                time.sleep(draw.uniform(0.5, 2.0))
            reached = done(killed)
            if not worker:
                os.killpg(running.pid, signal.SIGKILL)
                again += 1
            kills += 1
            sys.stdout.write(f"kill {kills}: {'a worker' if worker else 'the driver'}, after {reached} steps\n")
            sys.stdout.flush()
            if worker:
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        for folder in (killed, alone):
            if start(folder).wait():
                raise SystemExit(f"The propagation in {folder.name!r} has failed.")
        values = [(folder / "work" / "values.npy").read_bytes() for folder in (killed, alone)]
        begun = [len((folder / "begun").read_text().split()) for folder in (killed, alone)]
        same = "the same bits" if values[0] == values[1] else "OTHER BITS"
        sys.stdout.write(f"{kills} kills, {same}; {begun[0]} steps begun for {begun[1]}: {begun[0] - begun[1]} again\n")
        if values[0] != values[1] or begun[0] - begun[1] > kills:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
