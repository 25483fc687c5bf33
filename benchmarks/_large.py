"""Contestants of `propagate.py` and `scaling.py`: K power steps over one large graph, the operator prepared beforehand.

Every contestant is bound to the same matrix T = D^-1/2 A D^-1/2 and maps H to Z in float32. What a method computes
from the graph once (normalised values, another order of the nodes) is done at binding and measured apart.
"""

from __future__ import annotations

import importlib
import resource
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import StepPropagation

Propagation = Callable[[Tensor], Tensor]


def large_steps(transition: Transition, alpha: float, steps: int, device: str, **tuning: Any) -> StepPropagation:
    """Return the kernels for large graphs, without asking a backend which of its kernels it would choose."""
    if device == "cpu":
        from pprop.kernels.numba_cpu.large_steps import LargeSteps
        from pprop.kernels.tensors import TensorSteps

        return TensorSteps(LargeSteps(transition, alpha, steps))
    from pprop.kernels.triton_gpu.large_steps import LargeSteps as GpuLargeSteps
    from pprop.kernels.triton_gpu.launch import LargeTuning

    return GpuLargeSteps(transition, alpha, steps, LargeTuning(**tuning))


def bind_ours(transition: Transition, alpha: float, steps: int, device: str, *, direct: bool) -> StepPropagation:
    """Return what `pprop.propagate` applies on that device; `direct`: the kernels for large graphs in any case."""
    if direct:
        return large_steps(transition, alpha, steps, device)
    from pprop.kernels import choose_backend

    return choose_backend("auto", device, "benchmark").kernels.steps(transition, alpha, steps)


def _values(transition: Transition, factor: float = 1.0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the entries of factor * T in float32, made in blocks of rows so that no float64 copy of all is held."""
    indptr, scale = transition.indptr, (transition.row_scale * factor).astype(np.float32)
    column_scale = transition.column_scale.astype(np.float32)
    out = np.empty(len(transition.indices), np.float32)
    for first in range(0, transition.n_nodes, 1 << 18):
        past = min(transition.n_nodes, first + (1 << 18))
        begin, end = indptr[first], indptr[past]
        rows = np.repeat(scale[first:past], np.diff(indptr[first : past + 1]))
        np.multiply(rows, column_scale[transition.indices[begin:end]], out=out[begin:end])
    return out


def scipy_peer(transition: Transition, alpha: float, steps: int, device: str) -> Propagation:
    """scipy's CSR product on one thread, 1 - alpha already in the matrix, the sum in place."""
    from scipy import sparse

    n, small = transition.n_nodes, len(transition.indices) < 2**31
    indptr = transition.indptr.astype(np.int32) if small else transition.indptr
    matrix = sparse.csr_array((_values(transition, 1 - alpha), transition.indices, indptr), shape=(n, n))

    def propagate(H: Tensor) -> Tensor:
        start = H.numpy()
        own, state = np.float32(alpha) * start, start
        for _ in range(steps):
            state = matrix @ state
            state += own
        return torch.from_numpy(state)

    return propagate


def _torch_csr(transition: Transition, factor: float, device: str) -> Tensor:
    n = transition.n_nodes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CSR tensors are announced as beta
        indptr = torch.from_numpy(transition.indptr.astype(np.int32))
        values = torch.from_numpy(_values(transition, factor))
        indices = torch.from_numpy(transition.indices)
        return torch.sparse_csr_tensor(indptr, indices, values, (n, n), check_invariants=False).to(device)


def torch_peer(transition: Transition, alpha: float, steps: int, device: str) -> Propagation:
    """torch's CSR product (cuSPARSE on a GPU), 32-bit indices, 1 - alpha already in the matrix.

    The faster of a product with the sum fused into it and of one followed by a sum in place, tried at the first call.
    """
    matrix = _torch_csr(transition, 1 - alpha, device)

    def fused(own: Tensor, state: Tensor) -> Tensor:
        return torch.addmm(own, matrix, state)

    def apart(own: Tensor, state: Tensor) -> Tensor:
        return (matrix @ state).add_(own)

    forms: list[Callable[[Tensor, Tensor], Tensor]] = []

    def propagate(H: Tensor) -> Tensor:
        own, state = alpha * H, H
        if not forms:
            tried: dict[float, Callable[[Tensor, Tensor], Tensor]] = {}
            for form in (fused, apart):
                form(own, state)
                tried[milliseconds(lambda step=form: step(own, state), device)] = form
            forms.append(tried[min(tried)])
        for _ in range(steps):
            state = forms[0](own, state)
        return state

    return propagate


def _pyg_layer() -> Any:
    return importlib.import_module("torch_geometric.nn").APPNP


def pyg_peer(transition: Transition, alpha: float, steps: int, device: str) -> Propagation:
    """PyTorch Geometric's APPNP layer with an edge list, its normalisation cached at the first call."""
    layer = _pyg_layer()(steps, alpha, cached=True, add_self_loops=False).to(device).eval()
    lengths = torch.from_numpy(np.diff(transition.indptr)).to(device)
    target = torch.arange(transition.n_nodes, device=device).repeat_interleave(lengths)
    edges = torch.stack([torch.from_numpy(transition.indices).to(device).long(), target])
    return lambda H: layer(H, edges)


def pyg_csr_peer(transition: Transition, alpha: float, steps: int, device: str) -> Propagation:
    """PyTorch Geometric's layer given a normalised sparse CSR matrix: torch's product behind its interface."""
    layer = _pyg_layer()(steps, alpha, normalize=False).to(device).eval()
    matrix = _torch_csr(transition, 1.0, device)
    return lambda H: layer(H, matrix)


PEERS: dict[str, Callable[[Transition, float, int, str], Propagation]] = {
    "scipy": scipy_peer,
    "torch_csr": torch_peer,
    "pyg": pyg_peer,
    "pyg_csr": pyg_csr_peer,
}


def milliseconds(call: Callable[[], object], device: str, repeats: int = 1) -> float:
    """Return the milliseconds of one call, the mean of several in a row."""
    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return 1000 * (time.perf_counter() - begin) / repeats
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    first.record()
    for _ in range(repeats):
        call()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / repeats


def copy_bandwidth(device: str, size: int = 1 << 30) -> float:
    """Return the bytes read and written a second by torch's copy of `size` bytes."""
    source = torch.ones(size // 4, device=device)
    target = torch.zeros_like(source)
    target.copy_(source)
    times = [milliseconds(lambda: target.copy_(source), device) for _ in range(7)]
    return 2 * size / (float(np.median(times)) / 1000)


def peak_resident(call: Callable[[], object]) -> tuple[int, int]:
    """Return by how many bytes the resident memory grew at most during a call, and what it was before.

    Sampled every millisecond; the pages that the call touches stay resident until it returns.
    """
    before = _resident()
    peak, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return peak[0] - before, before


def cpu_peak() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
