"""How many threads make a call: by its size, by what has been quicker, and by what the process may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
import pytest

import pprop
from pprop.kernels.numba_cpu import _jit
from pprop.kernels.numba_cpu._jit import LARGE, ThreadChoice, ThreadChoices, Trials, size_of

THREADS = cast("Any", numba).config.NUMBA_NUM_THREADS


@pytest.fixture(autouse=True)
def _every_kernel_threaded() -> None:
    """Of all tests of kernels; here the choice itself is tested."""


def follow(choice: ThreadChoice, seconds: Callable[[bool], float], calls: int) -> tuple[float, float, int]:
    """Make so many calls; return the time of all, that of one thread alone, and how many were shared."""
    total, alone, shared = 0.0, 0.0, 0
    for _ in range(calls):
        several = choice.several
        spent = seconds(several)
        choice.took(several, spent)
        total, alone, shared = total + spent, alone + seconds(False), shared + several
    return total, alone, shared


def test_calls_that_take_a_moment_are_never_shared():
    assert follow(ThreadChoice(Trials()), lambda several: 1e-6 if several else 1e-4, 100_000)[2] == 0


def test_calls_that_threads_make_quicker_are_shared_after_a_while():
    _, _, shared = follow(ThreadChoice(Trials()), lambda several: 0.0011 if several else 0.002, 5000)
    assert shared > 4500


def test_on_a_busy_machine_trials_cost_a_small_share_of_the_time():
    """Threads need 60 ms for what one makes in 0.5: the turn of a thread that other processes hold up."""
    total, alone, shared = follow(ThreadChoice(Trials()), lambda several: 0.06 if several else 0.0005, 20_000)
    assert shared > 0
    assert total < 1.1 * alone


def test_a_machine_that_becomes_busy_is_noticed_within_a_call_and_one_that_becomes_free_too():
    trials = Trials()
    choice = ThreadChoice(trials)
    follow(choice, lambda several: 0.0011 if several else 0.002, 5000)
    assert choice.several
    total, alone, _ = follow(choice, lambda several: 0.06 if several else 0.002, 3000)
    assert not choice.several
    assert total < 1.2 * alone
    follow(choice, lambda several: 0.0011 if several else 0.002, 30_000)
    assert choice.several


def test_the_call_that_loads_what_is_compiled_says_nothing_about_the_others():
    choice, first = ThreadChoice(Trials()), iter([0.5])
    _, _, shared = follow(choice, lambda several: 0.06 if several else next(first, 0.0005), 2000)
    assert shared < 30


def test_kernels_share_the_account_of_trials():
    first, second = ThreadChoices(), ThreadChoices()
    one, other = first.of(1000), second.of(1000)
    assert one is not None
    assert other is not None
    assert one._trials is other._trials
    assert first.of(1000) is one
    assert first.of(4000) is not one


def test_a_large_call_is_shared_at_once():
    assert ThreadChoices().of(LARGE) is None


def test_the_size_of_a_call_counts_arrays_also_in_tuples():
    assert size_of((np.zeros((3, 4)), 5, None, (np.zeros(7), (np.zeros(2),)))) == 21


def number(out):
    for k in numba.prange(len(out)):
        out[k] = k


@pytest.mark.skipif(THREADS < 2, reason="needs two threads")
def test_a_process_with_one_core_compiles_and_calls_nothing_parallel(monkeypatch):
    made: list[Any] = []
    stamped = _jit._stamped
    monkeypatch.setattr(_jit, "_stamped", lambda dispatcher: made.append(dispatcher) or stamped(dispatcher))
    monkeypatch.setattr(_jit, "LARGE", 0)  # every call is large
    run, out = _jit.kernel(number), np.zeros(4)
    parallel, alone = made
    monkeypatch.setattr(_jit, "usable_cores", lambda: 1)
    run(out)
    assert (len(parallel.signatures), len(alone.signatures)) == (0, 1)
    monkeypatch.setattr(_jit, "usable_cores", lambda: 2)
    run(out)
    assert (len(parallel.signatures), len(alone.signatures)) == (1, 1)
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.skipif(THREADS < 2, reason="needs two threads")
def test_numba_s_threads_are_limited_for_a_call_and_not_for_others(monkeypatch):
    chosen: list[int] = []
    own = numba.get_num_threads()
    monkeypatch.setattr(_jit, "LARGE", 0)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 8)
    monkeypatch.setattr(numba, "set_num_threads", chosen.append)
    monkeypatch.setattr(_jit, "usable_cores", lambda: 3)
    _jit.kernel(number)(np.zeros(4))
    assert chosen == [3, 8]
    monkeypatch.undo()
    assert numba.get_num_threads() == own


@pytest.mark.skipif(THREADS < 2, reason="needs two threads")
def test_a_small_propagation_is_made_by_one_thread_and_a_parallel_kernel_is_not_compiled(monkeypatch):
    shared: list[str] = []
    monkeypatch.setattr(ThreadChoice, "took", lambda _, several, seconds: shared.append(several))
    import scipy.sparse as sp

    path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(50, 50)))
    pprop.propagate(path, np.ones((50, 3)))
    assert shared
    assert not any(shared)


@pytest.mark.skipif(THREADS < 2, reason="needs two threads")
def test_a_team_has_no_more_threads_than_cores(monkeypatch):
    from pprop.kernels import BACKENDS

    kernels = BACKENDS[0].kernels
    monkeypatch.setattr(_jit, "usable_cores", lambda: 1)
    assert kernels.runs_at_once(100) == 1
    monkeypatch.setattr(_jit, "usable_cores", lambda: 64)
    assert kernels.runs_at_once(100) == numba.get_num_threads()
