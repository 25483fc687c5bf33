"""A study killed from outside at random moments, and two processes in one study: nothing is lost, nothing done twice.

``experiments/study_kill.py`` does the same to the command itself, always inside a computation.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections import Counter
from dataclasses import fields
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from pprop.study.store.row import Row
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow

KILLS, LATE_KILLS = 10, 3
RUNS = 60

# Processes are forked from a server that has imported everything: each would else spend seconds on it.
SERVER = multiprocessing.get_context("forkserver")
PRELOADED = ["pprop.study.run.runner", "pprop.study.run.user_model", "pprop.kernels.numba_cpu.backend"]

# Forty short runs of a model without kernels, whose loading takes a second, then twenty that are trained together.
MODEL = """
import time
import numpy as np

class Nearest:
    def __init__(self, graph, seed):
        self.features = graph.features.toarray() @ np.random.default_rng(seed).normal(size=(graph.features.shape[1], 8))

    def fit(self, nodes, y, stopping):
        time.sleep(0.02)
        self.centres = np.stack([self.features[nodes[y == label]].mean(axis=0) for label in range(6)])

    def predict(self, nodes):
        return ((self.features[nodes, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)
"""
STUDY = """
import os, time
from pprop import TEST_SEEDS
from pprop.study.cell import Seeds
from pprop.study.run.user_model import user_cell
from pprop.study.run.runner import Job, run_study
from pprop.study.store.store import Store
from pprop.study.run.progress import show_study
from pprop.study.cell import make_cell

os.chdir(folder)
own, mlp = user_cell("kill_model:Nearest", "citeseer"), make_cell("mlp", {"max_epochs": 20}, "citeseer")
jobs = [Job(cell, tuple(Seeds(split, init) for init in range(inits) for split in TEST_SEEDS))
        for cell, inits in ((own, 2), (mlp, 1))]
log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
real = Store.add

def add(self, row):
    real(self, row)
    os.write(log, f"{os.getpid()} {row.key.config} {row.key.seeds}\\n".encode())

Store.add = add
with Store.open(folder, create=True) as store, show_study(lambda text: None, 2, 60, show=False) as watch:
    (folder / f"ready {os.getpid()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    run_study(store, jobs, watch)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was not killed."""
    SERVER.set_forkserver_preload(PRELOADED)
    folder = tmp_path_factory.mktemp("whole")
    (folder / "go").touch()
    process = start(folder)
    process.join()
    assert process.exitcode == 0
    return folder


def start(folder: Path) -> BaseProcess:
    (folder / "kill_model.py").write_text(MODEL)
    process = SERVER.Process(target=exec, args=(STUDY, {"folder": folder}))
    process.start()
    return process


def wait_for(process: BaseProcess, folder: Path) -> None:
    while not (folder / f"ready {process.pid}").exists():
        assert process.is_alive()
        time.sleep(0.001)


def results(folder: Path) -> list[dict[str, Any]]:
    """The final table, time columns apart."""
    apart = {"seconds", "together", "created", "predictions"}
    with Store.open(folder) as store:
        return [
            {f.name: repr(getattr(row, f.name)) for f in fields(Row) if f.name not in apart}
            | {"predictions": row.predictions.tobytes()}
            for row in store.rows()
        ]


def begun_and_ended(folder: Path, together: int) -> list[tuple[float, float]]:
    """When each attempt on the runs of a cell was begun, and ended."""
    with Store.open(folder) as store:
        (config,) = (group.config for group in store.groups() if group.runs == together)
        return [(a, b) for a, b in store.execute("SELECT begun, ended FROM attempts WHERE config = ?", (config,))]


def assert_nothing_was_done_twice(folder: Path) -> None:
    log = [line.split(maxsplit=1)[1] for line in (folder / "log").read_text().splitlines()]
    assert max(Counter(log).values()) == 1
    with Store.open(folder) as store:
        key = "config, code, data, split, init"
        last = store.execute(  # what was begun after the attempt that gave the row
            f"SELECT count(*) FROM attempts a JOIN rows USING ({key}) "
            "WHERE a.begun > (julianday(rows.created) - 2440587.5) * 86400 + 0.5"
        )
        open_claims = store.execute("SELECT count(*) FROM attempts WHERE ended IS NULL")
    assert (last, open_claims) == ([(0,)], [(0,)])


def count(store: Store, table: str, where: str = "1") -> int:
    ((number,),) = store.execute(f"SELECT count(*) FROM {table} WHERE {where}")
    return number


def test_a_study_killed_ten_times_has_the_rows_of_one_that_was_not_killed(whole: Path, tmp_path: Path):
    a_run = sum(end - begin for begin, end in begun_and_ended(whole, together=40)) / 40
    first, *_, last = sorted(moment for pair in begun_and_ended(whole, together=20) for moment in pair)
    moments = random.Random(20190506)
    (tmp_path / "go").touch()
    killed, done = 0, [0]
    for kill in range(KILLS):
        process = start(tmp_path)
        assert process.pid is not None
        if kill % 5 == 0:  # while it starts
            time.sleep(moments.uniform(0.0, 0.2))
        else:
            wait_for(process, tmp_path)
            late = kill >= KILLS - LATE_KILLS  # among the runs that are trained together, else among the short ones
            with Store.open(tmp_path) as store:
                while process.is_alive() and not count(store, "attempts", f"pid = {process.pid} AND ended IS NULL"):
                    time.sleep(0.005)
                while late and process.is_alive() and count(store, "rows") < 40:
                    time.sleep(0.005)
            time.sleep(moments.uniform(0.0, min(last - first, 4.0) if late else 4 * a_run))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        with Store.open(tmp_path, create=True) as store:
            done.append(count(store, "rows"))
    assert done == sorted(done)
    assert killed >= KILLS // 2  # the others came too late
    assert len(set(done)) > 3
    last_one = start(tmp_path)
    last_one.join()
    assert last_one.exitcode == 0
    assert len(results(whole)) == RUNS
    assert results(tmp_path) == results(whole)
    assert_nothing_was_done_twice(tmp_path)


def test_two_processes_share_one_study(whole: Path, tmp_path: Path):
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        wait_for(process, tmp_path)
    (tmp_path / "go").touch()
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert results(tmp_path) == results(whole)
    assert_nothing_was_done_twice(tmp_path)
    workers = {line.split()[0] for line in (tmp_path / "log").read_text().splitlines()}
    assert workers == {str(process.pid) for process in both}
