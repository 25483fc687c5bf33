"""``pprop doctor``: what is installed, what works here, and a self-test: every backend, then a short training."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from pprop._process import usable_memory
from pprop._version import __version__
from pprop.cli.data import where
from pprop.cli.output import UNEXPECTED, Session
from pprop.cli.verbs import verb

if TYPE_CHECKING:
    from pprop.kernels import Backend

PACKAGES = ("numpy", "scipy", "torch", "numba", "pyarrow", "scikit-learn", "safetensors", "typer")
OPTIONAL = ("matplotlib", "triton")
TESTED_ALPHA = 0.2
EPOCHS = 20


@verb("doctor", "pprop doctor")
def doctor(session: Session) -> None:
    """Report versions, backends and data sources, and test what works here.

    The test takes a few seconds: every backend against a dense solve, and a short training, on the CPU and on a GPU if
    there is one. Exit code 1 if it fails. The first run after an installation also compiles, which takes longer.
    """
    import torch

    from pprop.datasets import DATASETS

    memory = usable_memory()
    record: dict[str, Any] = {
        "machine": {
            "pprop": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory": None if memory is None else f"{memory / 1e9:.1f} GB",
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "threads": _waiting(os.environ.get("OMP_WAIT_POLICY", "")),
        },
        "packages": {name: _version(name) for name in (*PACKAGES, *OPTIONAL)},
        "backends": _backends(),
        "datasets": {name: where(info) for name, info in DATASETS.items()},
    }
    if not session.json:
        session.result(record, _text(record))
    session.say("Testing ...")
    record["tests"] = list(_self_test())
    lines = [
        f"{'ok' if test['passed'] else 'FAILED':<7}{test['name']}: {test['detail']} ({test['seconds']:.1f} s)"
        for test in record["tests"]
    ]
    record["healthy"] = all(test["passed"] for test in record["tests"])
    lines.append("All is well." if record["healthy"] else "Something is wrong here: see the lines marked FAILED.")
    session.result(record, "\n".join(lines))
    if not record["healthy"]:
        raise typer.Exit(UNEXPECTED)


def _waiting(policy: str) -> str:
    """Return what threads of OpenMP do while they wait.

    >>> _waiting("ACTIVE")
    'spin while they wait (OMP_WAIT_POLICY=ACTIVE), which is slow beside busy processes'
    """
    if policy.strip().lower() == "active":
        return f"spin while they wait (OMP_WAIT_POLICY={policy}), which is slow beside busy processes"
    return (
        f"sleep while they wait (OMP_WAIT_POLICY={policy}); in Python, import pprop before torch or set this variable"
    )


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _backends() -> dict[str, str]:
    """Return for every backend where it can be used here, or what is missing."""
    from pprop.kernels import BACKENDS

    states: dict[str, str] = {}
    for backend in BACKENDS:
        places = " and ".join(_usable_on(backend))
        lack = f"needs {' or '.join(backend.devices)}" if backend.available else f"not installed: {backend.install}"
        states[backend.name] = f"usable on {places}" if places else lack
    return states


def _text(record: dict[str, Any]) -> str:
    shown = record["machine"] | {"gpu": record["machine"]["gpu"] or "none that torch can use"}
    for name, version in record["packages"].items():
        extra = f": pip install {name}" if name in OPTIONAL else ""
        shown[name] = version or f"not installed{extra}"
    for group in ("backends", "datasets"):
        shown[group] = ", ".join(f"{name} ({state})" for name, state in record[group].items())
    return "\n".join(f"{key:<14}{value}" for key, value in shown.items())


def _devices() -> list[str]:
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def _usable_on(backend: Backend) -> list[str]:
    """Return the devices of this machine, "cpu" and "cuda", that a backend can be used on."""
    return [device for device in _devices() if backend.available and device in backend.devices]


def _self_test() -> Iterator[dict[str, Any]]:
    """Yield the tests one by one; an error in one of them is its result."""
    from pprop.kernels import BACKENDS

    for backend in BACKENDS:
        # the CPU's backends are no extras: one that is missing there has failed
        for device in _usable_on(backend) or [d for d in backend.devices if d == "cpu"]:
            yield _run(f"backend {backend.name}", device, partial(_compare_with_dense, backend))
    for device in _devices():
        yield _run("training", device, _train_briefly)


def _run(name: str, device: str, test: Callable[[str], tuple[bool, str]]) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        passed, detail = test(device)
    except Exception as error:  # the report goes on with the next test
        passed, detail = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
    title = name if device == "cpu" else f"{name} on {device}"
    return {"name": title, "passed": passed, "seconds": time.perf_counter() - begin, "detail": detail}


def _compare_with_dense(backend: Backend, device: str) -> tuple[bool, str]:
    """Solve Z = (1 - alpha) A_hat Z + alpha H on a path with an isolated node, and compare with numpy's solve."""
    import numpy as np
    import torch
    from scipy import sparse

    from pprop.graph import Graph
    from pprop.propagation import Exact, PowerIteration, propagate

    links = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))
    graph = Graph.from_scipy(sparse.block_diag([links, sparse.csr_array((1, 1))]))
    A = np.asarray(graph.adjacency.toarray(), dtype=np.float64) + np.eye(5)
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
    from pprop.datasets import TEST_SEEDS, load_dataset, paper_split
    from pprop.models import APPNP
    from pprop.training import Stopping, train

    graph = load_dataset("citeseer")
    split = paper_split(graph, TEST_SEEDS[0])
    trained = train(APPNP(), graph, split, stopping=Stopping(max_epochs=EPOCHS), device=device, progress=False)
    accuracy = float(trained.accuracy()[0])
    return accuracy > 0.4, f"APPNP is right on {accuracy:.0%} of Citeseer's test nodes after {EPOCHS} epochs"
