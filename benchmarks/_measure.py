"""How the benchmarks measure: interleaved blocks, ratios block by block, percentiles, and a description of the machine.

All contestants take turns (A B C A B C ...), and a ratio is formed within one turn, so that a machine that is slower for
a while is slower for everyone.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def use_threads(threads: int | None) -> None:
    """Let torch, numba and BLAS use that many threads, and the process that many cores; None: all.

    Call it before anything heavy is imported: numba and BLAS read the number once.
    """
    if threads is None:
        return
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import torch

    torch.set_num_threads(threads)


def warn_if_busy() -> None:
    """Say so on standard error if others are computing: they slow the contestants unequally."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f"The load of this machine is {load:.1f}: wait until it is quiet, or distrust the figures.", file=sys.stderr
        )


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the 20th, 50th and 80th percentile, to four digits.

    >>> percentiles([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    {'p20': 2.0, 'p50': 3.5, 'p80': 5.0}
    """
    return {f"p{q}": float(f"{np.percentile(values, q):.4g}") for q in (20, 50, 80)}


def time_epochs(epoch: Callable[[], object], seconds: float, device: str) -> float:
    """Return the milliseconds of one epoch: as many epochs as fill `seconds`, at least one, and their mean."""
    synchronize(device)
    begin = time.perf_counter()
    done = 0
    while done == 0 or time.perf_counter() - begin < seconds:
        epoch()
        done += 1
    synchronize(device)
    return 1000 * (time.perf_counter() - begin) / done


def interleave(contestants: dict[str, Callable[[], float]], blocks: int) -> dict[str, list[float]]:
    """Let the contestants take turns; return what each measured, one value per block.

    >>> interleave({"a": lambda: 1.0, "b": lambda: 2.0}, blocks=2)
    {'a': [1.0, 1.0], 'b': [2.0, 2.0]}
    """
    measured: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(blocks):
        for name, measure in contestants.items():
            measured[name].append(measure())
    return measured


def ratios(measured: dict[str, list[float]], ours: str = "pprop") -> dict[str, dict[str, float]]:
    """Return percentiles of (other / ours) for every other contestant, formed block by block.

    >>> ratios({"pprop": [1.0, 2.0], "other": [10.0, 20.0]})
    {'other': {'p20': 10.0, 'p50': 10.0, 'p80': 10.0}}
    """
    return {
        name: percentiles([their / our for their, our in zip(values, measured[ours], strict=True)])
        for name, values in measured.items()
        if name != ours
    }


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def describe_machine(device: str) -> dict[str, object]:
    """Return what a reader needs to judge the milliseconds."""
    import torch

    described: dict[str, object] = {
        "cpu": _cpu_model(),
        "cores_used": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "load": round(os.getloadavg()[0], 2),
    }
    if device != "cpu":
        described["gpu"] = torch.cuda.get_device_name()
    return described


def describe_sources() -> dict[str, str]:
    """Return the commit of the sources and a digest of the package's; COMMIT names it where there is no git folder."""
    from pprop.study.revisions import provenance_here

    here = provenance_here()
    return {"commit": os.environ.get("COMMIT") or here.commit or "unknown", "sources": here.source}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    parts = {line.partition(":")[2].strip() for line in lines if line.startswith("CPU part")}
    return names[0] if names else f"{platform.machine()} part {', '.join(sorted(parts))}"


def scipy_product_seconds(entries: int = 4_200_000, columns: int = 16, steps: int = 10) -> float:
    """Return the seconds of ten power steps in scipy on an RMAT graph, float32: the best of three.

    This is the yardstick between machines: scipy's product runs on one thread, needs no BLAS, and is bound by the same
    gathers as the propagation of a peer.
    """
    from _rmat import rmat, sym_transition

    matrix = sym_transition(rmat(entries)).to_scipy().astype(np.float32)
    start = np.random.default_rng(0).random((matrix.shape[0], columns), dtype=np.float32)
    times: list[float] = []
    for _ in range(3):
        begin, state = time.perf_counter(), start
        for _ in range(steps):
            state = np.float32(0.9) * (matrix @ state) + np.float32(0.1) * start
        times.append(time.perf_counter() - begin)
    return min(times)
