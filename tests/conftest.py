"""Shared by all tests: the marker for tests that need the paper's files, and the way to those files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

if not Path("/dev/nvidiactl").exists():  # no GPU: triton's kernels are interpreted, which is settled at its import
    os.environ.setdefault("TRITON_INTERPRET", "1")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background: programs under test would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "data: needs the paper's four graphs in the folder named by PPROP_DATA")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("PPROP_DATA"):
        return
    skip = pytest.mark.skip(reason="PPROP_DATA names no folder with the paper's four graphs")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(skip)


@pytest.fixture
def data_folder() -> Path:
    """The folder named by PPROP_DATA; for tests with the marker `data`."""
    return Path(os.environ["PPROP_DATA"])


@pytest.fixture
def only_bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No folder of one's own and an empty cache, which is returned."""
    monkeypatch.delenv("PPROP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pprop"
