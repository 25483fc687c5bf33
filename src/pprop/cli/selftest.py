"""The self-test of ``pprop doctor``: every backend against a dense solve, then a short training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop.datasets import TEST_SEEDS, load_dataset, paper_split
from pprop.graph import Graph
from pprop.kernels import BACKENDS, Backend
from pprop.models import APPNP
from pprop.propagation import Exact, PowerIteration, propagate
from pprop.training import Stopping, train

TESTED_ALPHA = 0.2
EPOCHS = 20


@final
@dataclass(frozen=True)
class TestResult:
    """One test: its name, whether it passed, how long it took, and what was seen."""

    name: str
    passed: bool
    seconds: float
    detail: str


def self_test() -> Iterator[TestResult]:
    """Yield the tests one by one; an error in one of them is its result."""
    for backend in BACKENDS:
        # the CPU's backends are no extras: one that is missing there has failed
        for device in usable_on(backend) or [d for d in backend.devices if d == "cpu"]:
            yield _run(_on(f"backend {backend.name}", device), partial(_compare_with_dense, backend, device))
    for device in _devices():
        yield _run(_on("training", device), partial(_train_briefly, device))


def usable_on(backend: Backend) -> list[str]:
    """Return the devices of this machine, "cpu" and "cuda", that a backend can be used on."""
    return [device for device in _devices() if backend.available and device in backend.devices]


def _devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def _on(name: str, device: str) -> str:
    return name if device == "cpu" else f"{name} on {device}"


def _run(name: str, test: Callable[[], tuple[bool, str]]) -> TestResult:
    begin = time.perf_counter()
    try:
        passed, detail = test()
    except Exception as error:  # the report goes on with the next test
        passed, detail = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
    return TestResult(name, passed, time.perf_counter() - begin, detail)


def _compare_with_dense(backend: Backend, device: str) -> tuple[bool, str]:
    """Solve Z = (1 - alpha) A_hat Z + alpha H on a path with an isolated node, and compare with numpy's solve."""
    links = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))
    graph = Graph.from_scipy(sparse.block_diag([links, sparse.csr_array((1, 1))]))
    A: NDArray[np.float64] = graph.adjacency.toarray() + np.eye(5)
    scale = 1 / np.sqrt(A.sum(axis=1))
    A_hat = scale[:, None] * A * scale
    H = np.arange(10.0).reshape(5, 2)
    M = np.eye(5) - (1 - TESTED_ALPHA) * A_hat
    expected = TESTED_ALPHA * np.asarray(np.linalg.solve(M, H), dtype=np.float64)
    placed = torch.from_numpy(H).to(device)
    found = [
        propagate(graph, placed, TESTED_ALPHA, solver, backend=backend.name)
        for solver in (Exact(), PowerIteration(200))
    ]
    error = max(float(abs(Z.cpu().numpy() - expected).max()) for Z in found)
    return error < 1e-12, f"{backend.summary}; differs from a dense solve by {error:.0e}"


def _train_briefly(device: str) -> tuple[bool, str]:
    """Train a few epochs on the bundled graph; six classes guessed at random would give an accuracy of 17 %."""
    graph = load_dataset("citeseer")
    split = paper_split(graph, TEST_SEEDS[0])
    trained = train(APPNP(), graph, split, stopping=Stopping(max_epochs=EPOCHS), device=device, progress=False)
    accuracy = float(trained.accuracy()[0])
    return accuracy > 0.4, f"APPNP is right on {accuracy:.0%} of Citeseer's test nodes after {EPOCHS} epochs"
