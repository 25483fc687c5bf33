"""Independent oracles for the kernels: random bits in Python integers, dense matrices made entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from pprop import Graph
from pprop.graph import Transition, transition_matrix
from pprop.kernels import BACKENDS, Draw, Kernels
from pprop.kernels.solves import Limits, Norm, Solved, System

WORD = 2**32


@pytest.fixture(autouse=True)
def _every_kernel_threaded(every_kernel_threaded: None) -> None:
    """Small calls, too, are shared by threads here, so that what they compute is tested."""


@lru_cache(maxsize=2**18)
def _philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10, as defined by Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011."""
    left, right = key
    a, b, c, d = counter
    for _ in range(10):
        high_a, low_a = divmod(0xD2511F53 * a, WORD)
        high_c, low_c = divmod(0xCD9E8D57 * c, WORD)
        a, b, c, d = high_c ^ b ^ left, low_c, high_a ^ d ^ right, low_a
        left, right = (left + 0x9E3779B9) % WORD, (right + 0xBB67AE85) % WORD
    return a, b, c, d


def _word(seed: int, stream: int, first: int, second: int, index: int) -> int:
    """Word `index` of the sequence of a site: key = the seed, counter = (first, second, stream, index // 4)."""
    high, low = divmod(seed % 2**64, WORD)
    return _philox((low, high), (first, second, stream, index // 4))[index % 4]


def _law(p: float) -> tuple[int, int]:
    """The drop probability as a reduced binary fraction: (threshold, digits) with threshold / 2**digits near p."""
    threshold, digits = min(max(round(p * 2**16), 1), 2**16 - 1), 16
    while threshold % 2 == 0:
        threshold, digits = threshold // 2, digits - 1
    return threshold, digits


def _keep(seed: int, stream: int, first: int, second: int, position: int, p: float) -> int:
    """1 unless the `digits`-bit number u drawn for this position is below the threshold.

    32 neighbouring positions share `digits` words: word d of them holds binary digit d of each u, the most significant
    digit first, and position 32 b + k reads bit k.
    """
    threshold, digits = _law(p)
    block, bit = divmod(position, 32)
    u = 0
    for d in range(digits):
        u = 2 * u + (_word(seed, stream, first, second, block * digits + d) >> bit) % 2
    return int(u >= threshold)


def _scale(p: float) -> float:
    threshold, digits = _law(p)
    return 2**digits / (2**digits - threshold)


@pytest.fixture(scope="session")
def oracle() -> SimpleNamespace:
    """The specification of the random bits in Python integers; shares no code with the library."""
    return SimpleNamespace(philox=_philox, word=_word, law=_law, keep=_keep, scale=_scale)


IN_PLACE = ("activate", "activate_adjoint", "adam", "drop", "elu", "elu_adjoint")
MOST_INTERPRETED, MOST_STEPPED = 40, 400
"""Longest axis, and most nodes times steps, that triton's interpreter, which takes a millisecond a line, is given."""


class Elsewhere:
    """An object whose methods take CPU tensors, compute on a device, and answer with CPU tensors.

    What a method changes in place is changed in the caller's tensor too. Interpreted kernels skip what is too large.
    """

    def __init__(self, inner: Any, device: str) -> None:
        self._inner, self._device = inner, device

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if self._device == "cpu":
                skip_if_large(name, arguments)
                return self._home(method(*arguments, **named), {})
            moved = [self._away(a) for a in arguments]
            result = method(*moved, **named)
            for before, after in zip(arguments, moved, strict=True):
                if isinstance(before, torch.Tensor) and name in IN_PLACE:
                    before.copy_(after)
            own = {id(after): before for before, after in zip(arguments, moved, strict=True)}
            return self._home(result, own)

        return call

    def _away(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            moved = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=self._device)
            return moved.copy_(value)
        if isinstance(value, Draw):
            epoch = value.epoch.to(self._device) if isinstance(value.epoch, torch.Tensor) else value.epoch
            return Draw(value.seeds.to(self._device), epoch, value.probability)
        return value

    def _home(self, value: Any, own: dict[int, Any]) -> Any:
        if isinstance(value, torch.Tensor):
            return own.get(id(value), value.cpu())
        if isinstance(value, tuple):
            return tuple(self._home(part, own) for part in value)
        return Elsewhere(value, self._device)


def skip_if_large(name: str, arguments: tuple[Any, ...]) -> None:
    sizes = [tuple(getattr(a, "shape", ())) or (getattr(a, "n_nodes", 0),) for a in arguments]
    longest = max(max(size, default=0) for size in sizes)
    if longest > MOST_INTERPRETED:
        pytest.skip(f"triton's interpreter is too slow for an axis of {longest} (more than {MOST_INTERPRETED})")
    if name == "steps" and longest * arguments[2] > MOST_STEPPED:
        pytest.skip(f"triton's interpreter is too slow for {arguments[2]} steps of {longest} nodes")


@lru_cache
def kernels_of(name: str) -> Any:
    """The operations of a backend, for CPU tensors: on the GPU if there is one and the backend needs it."""
    backend = next(backend for backend in BACKENDS if backend.name == name)
    if not backend.available:
        pytest.skip(f"{backend.requires} is not installed")
    if "cpu" in backend.devices:
        return backend.kernels
    if torch.cuda.is_available():
        return Elsewhere(backend.kernels, "cuda")
    if not backend.computes_on("cpu"):
        pytest.skip(f"no GPU, and {backend.interpreter} was not set when the tests began")
    return Elsewhere(backend.kernels, "cpu")


@pytest.fixture(scope="session")
def reference() -> Kernels:
    """The yardstick."""
    return kernels_of("reference")


@pytest.fixture(params=[backend.name for backend in BACKENDS])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """The operations of every registered backend in turn."""
    return kernels_of(request.param)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Both floating types."""
    return request.param


@pytest.fixture(scope="session")
def assert_close() -> Callable[..., None]:
    """Compare a tensor with its float64 twin: the difference may be `factor` units of the tensor's own rounding."""

    def check(actual: torch.Tensor, expected: NDArray[np.float64], factor: float = 64.0) -> None:
        assert tuple(actual.shape) == expected.shape
        tolerance = factor * torch.finfo(actual.dtype).eps * max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(actual.double().numpy(), expected, rtol=0, atol=tolerance)

    return check


def _dense_graph(n: int, *, directed: bool, weighted: bool, seed: int = 5) -> tuple[Graph, NDArray[np.float64]]:
    """A sparse random graph and its raw adjacency: about four entries a row, some self-loops, an isolated node."""
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    for _ in range(2 * n):
        i, j = (int(k) for k in rng.integers(0, n, 2))
        weight = float(rng.uniform(0.2, 3.0)) if weighted else 1.0
        A[i, j] = weight
        if not directed:
            A[j, i] = weight
    if n > 3:
        A[n // 2, :] = 0.0
        A[:, n // 2] = 0.0  # isolated
        A[0, 0] = 2.5 if weighted else 1.0
        A[1, 1] = 0.0
    return Graph.from_scipy(sparse.csr_array(A), directed=directed), A


def _dense_transition(A: NDArray[np.float64], normalization: str, *, self_loops: bool = True) -> NDArray[np.float64]:
    """T entry by entry: D_row^-1/2 A D_col^-1/2, D_row^-1 A or A D_col^-1, with the missing self-loops added to A."""
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
                divisor = {
                    "sym": (row_sum[i] * column_sum[j]) ** 0.5,
                    "row": row_sum[i],
                    "col": column_sum[j],
                }[normalization]
                T[i, j] = B[i][j] / divisor
    return T


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., tuple[Graph, NDArray[np.float64]]]:
    """Graphs of any size together with their raw dense adjacency."""
    return lru_cache(_dense_graph)


@pytest.fixture(scope="session")
def dense_transition() -> Callable[..., NDArray[np.float64]]:
    """The transition matrix, made from the raw adjacency entry by entry."""
    known: dict[tuple[int, str, bool], NDArray[np.float64]] = {}

    def transition(A: NDArray[np.float64], normalization: str, *, self_loops: bool = True) -> NDArray[np.float64]:
        key = id(A), normalization, self_loops  # make_graph keeps every A alive
        if key not in known:
            known[key] = _dense_transition(A, normalization, self_loops=self_loops)
        return known[key]

    return transition


@pytest.fixture
def normal() -> Callable[..., Any]:
    """Standard normal tensors (always the same ones in the same test) with their float64 twins."""
    rng = np.random.default_rng(11)

    def draw(*shape: int, dtype: torch.dtype) -> tuple[torch.Tensor, NDArray[np.float64]]:
        tensor = torch.from_numpy(rng.standard_normal(shape)).to(dtype)
        return tensor, tensor.double().numpy().copy()  # the twin starts from the rounded values

    return draw


@pytest.fixture(scope="session")
def system_of() -> Callable[..., tuple[System, NDArray[np.float64]]]:
    """The system that solves to a tolerance are bound to, of a graph, and its matrix I - (1 - alpha) S A."""

    def make(
        graph: Graph, alpha: float = 0.5, norm: Norm = "euclidean", measure: NDArray[np.float64] | None = None
    ) -> tuple[System, NDArray[np.float64]]:
        whole = transition_matrix(graph, "row")
        scale = whole.row_scale * whole.column_scale
        moved = Transition(whole.indptr, whole.indices, whole.weights, scale, np.ones_like(scale), whole.symmetric)
        dense = np.eye(graph.n_nodes) - (1 - alpha) * moved.to_scipy().toarray()
        return System(moved, alpha, 1.0 / scale if measure is None else measure, norm), dense

    return make


@pytest.fixture(scope="session")
def all_three() -> Callable[..., list[Solved]]:
    """All ways to solve, also those of a backend that computes elsewhere."""

    def solve(solves: Any, b: torch.Tensor, limits: Limits) -> list[Solved]:
        return [
            getattr(result, "_inner", result)
            for result in (
                solves.chebyshev(b, limits),
                solves.conjugate_gradient(b, None, limits),
                solves.contraction(b, b, limits),
            )
        ]

    return solve


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what triton's interpreter runs as slow: `make test-fast` leaves it out."""
    for item in items:
        if "triton" in item.name and not torch.cuda.is_available():
            item.add_marker(pytest.mark.slow)
