"""``pprop doctor``: what is installed, what works here, and a self-test."""

from __future__ import annotations

from typing import Any

import typer

from pprop.cli.output import UNEXPECTED, DebugOption, JsonOption, Session

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = ("pprop doctor",)

PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn", "safetensors", "typer")
OPTIONAL = {"matplotlib": "figures", "pyarrow": "parquet"}


def doctor(json: JsonOption = False, debug: DebugOption = False) -> None:
    """Report versions and data sources, and test the backends.

    The test takes a few seconds: every backend against a dense solve, and a short training. Exit code 1 if it fails.
    The first run after an installation also compiles, which takes longer.
    """
    with Session("doctor", json=json, debug=debug) as session:
        record: dict[str, Any] = {"machine": _machine(), "packages": _packages(), "datasets": _datasets()}
        lines = [f"{key:<14}{value}" for key, value in record["machine"].items()]
        for name, version in record["packages"].items():
            extra = "" if name not in OPTIONAL or version else f': pip install "pprop[{OPTIONAL[name]}]"'
            lines.append(f"{name:<14}{version or f'not installed{extra}'}")
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

    from pprop._memory import physical_memory
    from pprop._version import __version__

    memory = physical_memory()
    return {
        "pprop": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": None if memory is None else f"{memory / 1e9:.1f} GB",
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


def _datasets() -> dict[str, str]:
    from pprop.cli.sources import where
    from pprop.datasets import DATASETS

    return {name: where(info) for name, info in DATASETS.items()}
