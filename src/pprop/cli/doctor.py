"""``pprop doctor``: what is installed, what works here, and a self-test."""

from __future__ import annotations

from typing import Any

import typer

from pprop.cli.output import UNEXPECTED, DebugOption, JsonOption, Session

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = ("pprop doctor",)

PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn", "safetensors", "typer")
OPTIONAL = {"matplotlib": "figures", "pyarrow": "parquet", "triton": "gpu"}


def doctor(json: JsonOption = False, debug: DebugOption = False) -> None:
    """Report versions, backends and data sources, and test what works here.

    The test takes a few seconds: every backend against a dense solve, and a short training, on the CPU and on a GPU if
    there is one. Exit code 1 if it fails. The first run after an installation also compiles, which takes longer.
    """
    with Session("doctor", json=json, debug=debug) as session:
        record: dict[str, Any] = {
            "machine": _machine(),
            "packages": _packages(),
            "backends": _backends(),
            "datasets": _datasets(),
        }
        shown = record["machine"] | {"gpu": record["machine"]["gpu"] or "none that torch can use"}
        lines = [f"{key:<14}{value}" for key, value in shown.items()]
        for name, version in record["packages"].items():
            extra = "" if name not in OPTIONAL or version else f': pip install "pprop[{OPTIONAL[name]}]"'
            lines.append(f"{name:<14}{version or f'not installed{extra}'}")
        lines.append("backends      " + ", ".join(f"{name} ({state})" for name, state in record["backends"].items()))
        lines.append("datasets      " + ", ".join(f"{name} ({where})" for name, where in record["datasets"].items()))
        if not json:
            session.result(record, "\n".join(lines))
        session.say("Testing ...")

        from pprop.cli.selftest import self_test

        record["tests"] = [
            {"name": test.name, "passed": test.passed, "seconds": test.seconds, "detail": test.detail}
            for test in self_test()
        ]
        tests = [
            f"{'ok' if test['passed'] else 'FAILED':<7}{test['name']}: {test['detail']} ({test['seconds']:.1f} s)"
            for test in record["tests"]
        ]
        record["healthy"] = all(test["passed"] for test in record["tests"])
        verdict = "All is well." if record["healthy"] else "Something is wrong here: see the lines marked FAILED."
        session.result(record, "\n".join([*tests, verdict]))
        if not record["healthy"]:
            raise typer.Exit(UNEXPECTED)


def _machine() -> dict[str, Any]:
    import os
    import platform

    import torch

    from pprop._memory import usable_memory
    from pprop._version import __version__

    memory = usable_memory()
    return {
        "pprop": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": None if memory is None else f"{memory / 1e9:.1f} GB",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _packages() -> dict[str, str | None]:
    from importlib import metadata

    found: dict[str, str | None] = {}
    for name in (*PACKAGES, *OPTIONAL):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _backends() -> dict[str, str]:
    """Return for every backend where it can be used here, or what it lacks."""
    from pprop.cli.selftest import usable_on
    from pprop.kernels import BACKENDS

    states: dict[str, str] = {}
    for backend in BACKENDS:
        places = " and ".join(usable_on(backend))
        lack = f"needs {' or '.join(backend.devices)}" if backend.available else f"not installed: {backend.install}"
        states[backend.name] = f"usable on {places}" if places else lack
    return states


def _datasets() -> dict[str, str]:
    from pprop.cli.sources import where
    from pprop.datasets import DATASETS

    return {name: where(info) for name, info in DATASETS.items()}
