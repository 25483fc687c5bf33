"""The clock of compilation: what counts, what does not, and who is told."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numba
import numpy as np
import pytest

import pprop
from pprop._process import COMPILING, CompileClock, compiling
from pprop.cli.output import Session
from pprop.estimators.manifest import MANIFEST
from pprop.training.loop import show_progress


class Time:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> tuple[CompileClock, Time]:
    moment = Time()
    monkeypatch.setattr("pprop._process.time.perf_counter", moment)
    return CompileClock(), moment


def compile_for(clock: CompileClock, moment: Time, seconds: float) -> None:
    clock.begin()
    moment.now += seconds
    clock.end()


def test_a_kernel_that_another_one_calls_counts_once(clock):
    clock, moment = clock
    clock.begin()
    moment.now += 2
    compile_for(clock, moment, 3)
    moment.now += 1
    assert clock.seconds == 6  # also before it ends
    clock.end()
    moment.now += 100
    compile_for(clock, moment, 1)
    assert clock.seconds == 7


def test_it_is_told_once_to_the_innermost_block_and_not_for_a_moment(clock):
    (clock, moment), told = clock, []
    with clock.telling(lambda: told.append("outer")), clock.telling(lambda: told.append("inner")):
        compile_for(clock, moment, 0.1)
        compile_for(clock, moment, 0.1)
        assert told == []
        compile_for(clock, moment, 1)
        compile_for(clock, moment, 1)
        assert told == ["inner"]
    with clock.telling(lambda: told.append("later")):
        compile_for(clock, moment, 1)
    assert told == ["inner"]


@pytest.mark.parametrize(("module", "counts"), [("pprop.kernels.invented", True), ("somebody.else", False)])
def test_kernels_of_this_package_count_and_other_functions_do_not(module, counts):
    from pprop.kernels.numba_cpu import _jit  # it registers the clock

    assert _jit.serial is not None

    def double(values):
        return 2 * values

    double.__module__ = module
    before = compiling.seconds
    numba.njit(double)(np.ones(3))
    assert (compiling.seconds > before) == counts


def path_graph() -> tuple[pprop.Graph, pprop.Split]:
    import scipy.sparse as sp

    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    return graph, pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))


class Compiles:
    """A trainer's epoch that has to be compiled first."""

    def __init__(self, epoch: Any) -> None:
        self.epoch = epoch

    def __call__(self) -> Any:
        compiling.begin()
        time.sleep(0.05)
        compiling.end()
        return self.epoch()


@pytest.fixture
def _slow_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each epoch waits for a compiler, for 0.05 seconds."""
    from pprop.kernels.numba_cpu.trainer import NumbaTrainer

    epoch = NumbaTrainer.epoch
    monkeypatch.setattr(NumbaTrainer, "epoch", lambda self: Compiles(lambda: epoch(self))())


@pytest.mark.usefixtures("_slow_to_compile")
def test_a_training_says_how_long_it_compiled_and_its_pace_leaves_that_out():
    graph, split = path_graph()
    trained = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=4))
    assert 0.2 <= trained.compile_seconds < trained.seconds
    assert 4 / trained.run_epochs_per_second <= trained.seconds - trained.compile_seconds


@pytest.mark.usefixtures("_slow_to_compile")
@pytest.mark.parametrize("kind", [pprop.APPNPClassifier, pprop.APPNPEnsembleClassifier])
def test_the_record_of_a_fit_has_it_and_the_time_of_an_epoch_does_not(kind):
    graph, split = path_graph()
    fitted = kind(graph, hidden=4, max_epochs=4).fit(split.train, [0, 1], stopping=(split.stopping, [0]))
    record = fitted.record_
    assert 0.2 <= record.compile_seconds < record.seconds
    assert record.ms_per_epoch == 1000 * (record.seconds - record.compile_seconds) / record.epochs


def test_a_model_saved_before_it_was_noted_loads_with_zero(tmp_path):
    graph, split = path_graph()
    fitted = pprop.APPNPClassifier(graph, hidden=4, max_epochs=2, stopping=None).fit(split.train, [0, 1])
    fitted.save(tmp_path / "model")
    manifest = tmp_path / "model" / MANIFEST
    content = json.loads(manifest.read_text())
    assert content["training"].pop("compile_seconds") == fitted.record_.compile_seconds
    content["format_version"] = 2
    manifest.write_text(json.dumps(content))
    assert pprop.load(tmp_path / "model", graph).record_.compile_seconds == 0.0


def test_a_verb_says_that_it_compiles(clock, capsys, monkeypatch):
    clock, moment = clock
    monkeypatch.setattr("pprop.cli.output.compiling", clock)
    with Session("train"):
        for _ in range(3):
            compile_for(clock, moment, 1)
    assert capsys.readouterr().err == f"{COMPILING}\n"


@pytest.mark.parametrize("drawn", [True, False])
def test_it_stands_above_the_line_of_progress_where_there_is_one(drawn, clock, capsys, monkeypatch):
    clock, moment = clock
    for module in ("cli.output", "training.loop"):
        monkeypatch.setattr(f"pprop.{module}.compiling", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with Session("train"), show_progress(drawn, 1, max_epochs=10) as report:
        for _ in range(3):
            compile_for(clock, moment, 1)
        report(1, 1, 1)
    assert capsys.readouterr().err.count(COMPILING) == 1
