"""Graphs with their raw adjacency, and dense twins made from it entry by entry with plain loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop import Graph, propagate
from pprop.kernels import BACKENDS
from pprop.kernels.numba_cpu.large_steps import LargeSteps

Dense = NDArray[np.float64]

# (receiver, sender): node 0 has a self-loop, node 6 only sends, node 7 only receives, node 8 is alone
_EDGES = [(0, 0), (0, 1), (1, 2), (2, 3), (3, 0), (3, 1), (4, 1), (5, 4), (2, 5), (0, 5), (7, 2), (7, 4), (1, 6)]


@pytest.fixture(params=[backend.name for backend in BACKENDS if "cpu" in backend.devices])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of every registered CPU backend in turn."""
    return request.param


@pytest.fixture
def large_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Make every graph a large one to the numba backend; the function returned counts the calls of its large kernels."""
    monkeypatch.setattr("pprop.kernels.numba_cpu.backend.LARGE_ENTRIES", 0)
    calls, forward = list[None](), LargeSteps.forward

    def counted(steps: LargeSteps, predictions: Any, draw: Any) -> Any:
        calls.append(None)
        return forward(steps, predictions, draw)

    monkeypatch.setattr(LargeSteps, "forward", counted)
    return lambda: len(calls)


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., tuple[Graph, Dense]]:
    """Nine nodes: one with a self-loop, one that only sends, one that only receives (if directed), one alone."""

    def make(*, directed: bool, weighted: bool) -> tuple[Graph, Dense]:
        A = np.zeros((9, 9))
        for k, (i, j) in enumerate(_EDGES):
            A[i, j] = 0.5 + 0.3 * k if weighted else 1.0
            if not directed:
                A[j, i] = A[i, j]
        return Graph.from_scipy(sparse.csr_array(A), directed=directed), A

    return make


@pytest.fixture(scope="session")
def make_random() -> Callable[..., tuple[Graph, Dense]]:
    """A connected random graph of n nodes: a ring with chords."""

    def make(n: int, *, directed: bool = False, weighted: bool = False, seed: int = 1) -> tuple[Graph, Dense]:
        rng = np.random.default_rng(seed)
        A = np.zeros((n, n))
        for k in range(3 * n):
            i, j = (k, (k + 1) % n) if k < n else (int(x) for x in rng.integers(0, n, 2))
            if i != j:
                A[i, j] = rng.uniform(0.2, 4.0) if weighted else 1.0
                if not directed:
                    A[j, i] = A[i, j]
        return Graph.from_scipy(sparse.csr_array(A), directed=directed), A

    return make


@pytest.fixture(scope="session")
def dense_transition() -> Callable[..., Dense]:
    """T entry by entry from the raw adjacency."""

    def transition(A: Dense, normalization: str = "sym", self_loops: bool = True) -> Dense:
        n = len(A)
        B = [[float(entry) for entry in row] for row in A]
        for i in range(n):
            if (self_loops and B[i][i] == 0.0) or not any(B[i]):
                B[i][i] = 1.0
        row_sum = [sum(B[i]) for i in range(n)]
        column_sum = [sum(B[i][j] for i in range(n)) for j in range(n)]
        T = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if B[i][j] != 0.0:
                    row_part = {"sym": row_sum[i] ** 0.5, "row": row_sum[i], "col": 1.0}[normalization]
                    column_part = {"sym": column_sum[j] ** 0.5, "row": 1.0, "col": column_sum[j]}[normalization]
                    T[i, j] = B[i][j] / (row_part * column_part)
        return T

    return transition


@pytest.fixture(scope="session")
def exact_twin() -> Callable[..., NDArray[Any]]:
    """The fixed point Z = (1 - alpha) T Z + alpha H by numpy.linalg.solve."""

    def solve(T: Dense, H: Dense, alpha: float) -> NDArray[Any]:
        return np.linalg.solve(np.eye(len(T)) - (1 - alpha) * T, alpha * H)

    return solve


@pytest.fixture(scope="session")
def power_twin() -> Callable[..., Dense]:
    """K power steps with a dense matrix."""

    def steps(T: Dense, H: Dense, alpha: float, K: int) -> Dense:
        state = H
        for _ in range(K):
            state = (1 - alpha) * (T @ state) + alpha * H
        return state

    return steps


@pytest.fixture(scope="session")
def library_matrix() -> Callable[..., Dense]:
    """The matrix of the library's linear map, three columns at a time (kernels are compiled for one width)."""

    def matrix(graph: Graph, **arguments: Any) -> Dense:
        identity = np.eye(graph.n_nodes, -(-graph.n_nodes // 3) * 3)
        parts = [propagate(graph, identity[:, k : k + 3], **arguments) for k in range(0, identity.shape[1], 3)]
        return np.concatenate(parts, axis=1)[:, : graph.n_nodes]

    return matrix


@pytest.fixture(scope="session")
def rounding() -> Callable[[Any], float]:
    """64 units of rounding of a numpy or torch floating type."""

    def unit(dtype: Any) -> float:
        return 64 * float(torch.finfo(dtype).eps if isinstance(dtype, torch.dtype) else np.finfo(dtype).eps)

    return unit
