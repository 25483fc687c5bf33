"""A child forked from a process that has computed: it answers, and with the same bytes.

The process that runs the tests is not forked: every test starts one of its own, which computes first and forks then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]

PATIENCE = 600  # seconds, for a machine that is busy and has to compile; without an answer the test fails

PRELUDE = """
import multiprocessing, os, threading
import numpy as np, torch
from scipy import sparse
from pprop import *

random = np.random.default_rng(0)
upper = sparse.random_array((1200, 1200), density=3 / 1200, rng=random) > 0
y, some = random.integers(0, 3, 1200), np.arange(1200)
X = sparse.csr_array(sparse.random_array((1200, 50), density=0.1, rng=random))
graph = Graph.from_scipy(sparse.csr_array((upper + upper.T).astype(np.float64)), features=X)
H = random.standard_normal((1200, 64))  # so large that torch, too, shares it out to threads

def propagated(_=None):
    return propagate(graph, H, 0.1).tobytes()

def in_child(function, *arguments):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, function(*arguments))  # at most a few KiB, which a pipe holds
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        return answer.read()

def digest(_=None):
    import hashlib
    return hashlib.sha256(propagated()).digest()
"""

EVERY_CALL = """
def every_call(_=None):
    made = [propagate(graph, H, 0.1), propagate(graph, H, 0.1, Exact())]
    for solver in (Chebyshev(1e-6), ConjugateGradient(1e-6), Contraction(1e-6)):
        made.append(solve(graph, H[:, :3], 0.2, solver).value)
    made.append(ppr(graph, some[:50], 0.2, eps=1e-4).matrix.toarray())
    model = APPNPClassifier(graph, hidden=8, max_epochs=5, random_state=0)
    model.fit(some[:60], y[:60], stopping=(some[60:120], y[60:120]))
    made.append(model.predict_proba(some))
    made.append(np.array([one.value for one in explain(model, [3, 5, 8])]))
    return [array.tobytes() for array in made]
"""


def run(body: str) -> None:
    """Run a program with two threads, and fail if it does; end it with all its children when it hangs."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + body],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"no answer from a forked child; the program said: {process.communicate()[0]}")
    assert process.returncode == 0, said


def test_a_pool_of_forked_workers_gives_the_bytes_of_its_parent():
    """Every call does, but for predictors of torch and the reference backend, whose sums depend on the threads."""
    run(
        EVERY_CALL
        + """
def train_both(_=None):
    network = lambda: torch.nn.Sequential(torch.nn.Linear(50, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    model = APPNPClassifier(graph, predictor=network, max_epochs=2, random_state=0)
    model.fit(some[:60], y[:60], stopping=(some[60:120], y[60:120]))
    return np.stack([model.predict_proba(some)[:, :3], propagate(graph, H, 0.1, backend="reference")[:, :3]])

here, about = every_call(), train_both()
with multiprocessing.get_context("fork").Pool(2) as pool:
    for there in (pool.apply(every_call), *pool.map(every_call, range(2))):  # the first compiles for the others
        assert [a == b for a, b in zip(here, there, strict=True)] == [True] * len(here)
    np.testing.assert_allclose(pool.map(train_both, range(1))[0], about, rtol=1e-4)
"""
    )


def test_workers_of_joblib_and_torch_and_children_of_threads_of_children_and_of_a_busy_process_answer():
    run(
        """
from joblib import Parallel, delayed
from numba.core.compiler_lock import global_compiler_lock
from torch.utils.data import DataLoader, Dataset

class Propagated(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return digest()

here = digest()
assert Parallel(2, backend="multiprocessing")(delayed(digest)() for _ in range(2)) == [here, here]
loader = DataLoader(Propagated(), batch_size=None, num_workers=2, multiprocessing_context="fork")
assert list(loader) == [here] * 4

answers = []
forking = threading.Thread(target=lambda: answers.append(in_child(digest)))
forking.start()
forking.join()
answers.append(in_child(in_child, digest))

over = threading.Event()
def keep_busy():
    while not over.is_set():
        propagated()
busy = threading.Thread(target=keep_busy)
busy.start()
answers += [in_child(digest) for _ in range(3)]
over.set()
busy.join()

held = threading.Event()
def compile_for_a_while():
    with global_compiler_lock:
        held.set()
        over.wait(0.3)
over.clear()
compiling = threading.Thread(target=compile_for_a_while)
compiling.start()
held.wait()
answers.append(in_child(digest))
assert answers == [here] * 6, answers
assert digest() == here  # and the parent still has its threads
"""
    )


def test_the_child_of_a_process_that_has_not_computed_has_threads_of_its_own():
    run(
        """
import numba
from pprop.kernels.numba_cpu import backend  # loaded, and not used

def layer():
    propagated()
    return f"{numba.threading_layer()} {torch.get_num_threads()}".encode()

there = in_child(layer)
assert there == layer() and there.endswith(b" 2"), there
"""
    )
