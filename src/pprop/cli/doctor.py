"""``pprop doctor``: what is installed, what works here, and a self-test."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import typer

from pprop._memory import usable_memory
from pprop._version import __version__
from pprop.cli.data import where
from pprop.cli.output import UNEXPECTED, Session
from pprop.cli.verbs import verb

PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn", "safetensors", "typer")
OPTIONAL = {"matplotlib": "figures", "pyarrow": "parquet", "triton": "gpu"}


@verb("doctor", "pprop doctor")
def doctor(session: Session) -> None:
    """Report versions, backends and data sources, and test what works here.

    The test takes a few seconds: every backend against a dense solve, and a short training, on the CPU and on a GPU if
    there is one. Exit code 1 if it fails. The first run after an installation also compiles, which takes longer.
    """
    from pprop.cli.selftest import self_test
    from pprop.datasets import DATASETS

    record: dict[str, Any] = {
        "machine": _machine(),
        "packages": {name: _version(name) for name in (*PACKAGES, *OPTIONAL)},
        "backends": _backends(),
        "datasets": {name: where(info) for name, info in DATASETS.items()},
    }
    if not session.json:
        session.result(record, _text(record))
    session.say("Testing ...")
    record["tests"] = [vars(test) for test in self_test()]
    lines = [
        f"{'ok' if test['passed'] else 'FAILED':<7}{test['name']}: {test['detail']} ({test['seconds']:.1f} s)"
        for test in record["tests"]
    ]
    record["healthy"] = all(test["passed"] for test in record["tests"])
    lines.append("All is well." if record["healthy"] else "Something is wrong here: see the lines marked FAILED.")
    session.result(record, "\n".join(lines))
    if not record["healthy"]:
        raise typer.Exit(UNEXPECTED)


def _machine() -> dict[str, Any]:
    import torch

    memory = usable_memory()
    return {
        "pprop": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": None if memory is None else f"{memory / 1e9:.1f} GB",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _backends() -> dict[str, str]:
    """Return for every backend where it can be used here, or what is missing."""
    from pprop.cli.selftest import usable_on
    from pprop.kernels import BACKENDS

    states: dict[str, str] = {}
    for backend in BACKENDS:
        places = " and ".join(usable_on(backend))
        lack = f"needs {' or '.join(backend.devices)}" if backend.available else f"not installed: {backend.install}"
        states[backend.name] = f"usable on {places}" if places else lack
    return states


def _text(record: dict[str, Any]) -> str:
    shown = record["machine"] | {"gpu": record["machine"]["gpu"] or "none that torch can use"}
    for name, version in record["packages"].items():
        extra = f': pip install "pprop[{OPTIONAL[name]}]"' if name in OPTIONAL else ""
        shown[name] = version or f"not installed{extra}"
    for group in ("backends", "datasets"):
        shown[group] = ", ".join(f"{name} ({state})" for name, state in record[group].items())
    return "\n".join(f"{key:<14}{value}" for key, value in shown.items())
