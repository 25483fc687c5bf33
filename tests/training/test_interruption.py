"""Runs that several threads train side by side: an error or Ctrl-C ends them all, and is raised where `train` was called.

Nothing here waits for a clock. The trainings are long but not endless, so that one that is not ended early is seen in
the number of its reports.
"""

from __future__ import annotations

import gc
import importlib
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numba
import pytest

import pprop
from pprop import Graph, Split, Stopping
from pprop.kernels.numba_cpu.trainer import _Run

RUNS, EPOCHS = 6, 30_000
FIRST = 40  # reports before the interruption

# by name: the function `train` hides the module of that name
TRAIN = importlib.import_module("pprop.training.train")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba.get_num_threads() < 2, reason="needs two threads"),
]


@pytest.fixture(autouse=True)
def two_threads() -> Generator[None]:
    """A test before this one may have asked numba for fewer."""
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    yield
    numba.set_num_threads(before)


class Watcher:
    """A progress that does something to the training after some reports of two threads: once, or at every report then."""

    def __init__(self, act: Callable[[], None], *, once: bool) -> None:
        self.reports, self.acts, self.threads = 0, 0, set[threading.Thread]()
        self._act, self._once = act, once

    def __call__(self, epoch: int, runs_ended: int, work: int) -> None:
        self.reports += 1
        self.threads.add(threading.current_thread())
        if self.reports >= FIRST and len(self.threads) > 1 and not (self._once and self.acts):
            self.acts += 1
            self._act()


@pytest.fixture
def train_watched(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Watcher], pprop.Trained]:
    def train(watcher: Watcher) -> pprop.Trained:
        @contextmanager
        def show(*arguments: object, **options: object) -> Generator[Watcher]:
            yield watcher

        monkeypatch.setattr(TRAIN, "show_progress", show)
        rule = Stopping(patience=EPOCHS, max_epochs=EPOCHS)
        model = pprop.APPNP(hidden=8, steps=2)
        return pprop.train(model, community_graph, community_splits, seeds=range(RUNS), stopping=rule, backend="numba")

    return train


def interrupt_main_thread() -> None:
    """What Ctrl-C does, from any thread."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


def fail() -> None:
    raise RuntimeError("the terminal is gone")


def assert_ended_early(watcher: Watcher) -> None:
    assert threading.main_thread() not in watcher.threads
    assert len(watcher.threads) >= 2
    assert not any(thread.is_alive() for thread in watcher.threads)
    assert watcher.reports < RUNS * EPOCHS // 10


def test_an_error_in_the_progress_ends_all_runs_and_is_raised(train_watched):
    watcher = Watcher(fail, once=False)
    with pytest.raises(RuntimeError, match="the terminal is gone"):
        train_watched(watcher)
    assert_ended_early(watcher)


def test_an_error_in_one_run_alone_ends_the_others_too(train_watched):
    watcher = Watcher(fail, once=True)
    with pytest.raises(RuntimeError, match="the terminal is gone"):
        train_watched(watcher)
    assert_ended_early(watcher)


def test_ctrl_c_ends_all_runs_and_is_raised(train_watched):
    watcher = Watcher(interrupt_main_thread, once=True)
    with pytest.raises(KeyboardInterrupt):
        train_watched(watcher)
    assert_ended_early(watcher)


def test_a_training_after_an_interrupted_one_is_as_any_other(train_watched, community_graph, community_splits):
    with pytest.raises(KeyboardInterrupt):
        train_watched(Watcher(interrupt_main_thread, once=True))

    def train() -> pprop.Trained:
        rule = Stopping(max_epochs=5)
        return pprop.train(pprop.MLP(hidden=8), community_graph, community_splits, stopping=rule, backend="numba")

    assert (train().logits == train().logits).all()


@pytest.mark.parametrize("moment", range(5))
def test_ctrl_c_ends_one_run_that_several_threads_share(moment, community_graph, community_splits, monkeypatch):
    """The other threads of the team wait inside compiled code for the one that was interrupted."""
    monkeypatch.setattr("pprop.kernels.numba_cpu.trainer._WORK_PER_THREAD", 1)
    calls = 0

    def interrupt_at_last(run: _Run, work: Callable[[_Run], None] = _Run._meet) -> None:
        nonlocal calls
        if threading.current_thread() is threading.main_thread():
            calls += 1
            if calls == 100 + moment:
                raise KeyboardInterrupt
        work(run)

    monkeypatch.setattr(_Run, "_meet", interrupt_at_last)
    before = set(threading.enumerate())
    rule = Stopping(patience=EPOCHS, max_epochs=EPOCHS)
    with pytest.raises(KeyboardInterrupt):
        pprop.train(pprop.MLP(hidden=8), community_graph, community_splits[0], stopping=rule, backend="numba")
    gc.collect()  # the trainer goes, and with it its team
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
