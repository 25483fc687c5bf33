"""Shared by all tests: the marker for tests that need the paper's files, and the way to those files."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

if not Path("/dev/nvidiactl").exists():  # no GPU: triton's kernels are interpreted, which is settled at its import
    os.environ.setdefault("TRITON_INTERPRET", "1")

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads leave the cores to the other test processes
if "PYTEST_XDIST_WORKER" in os.environ:
    threads = max(2, (os.cpu_count() or 2) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))  # two show a race, one none
    for library in ("NUMBA", "OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", str(threads))

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background: programs under test would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def kernels_are_compiled_without_a_word() -> None:
    """Which test compiles a kernel depends on the order of the tests, and what a verb prints must not."""
    from pprop._process import compiling

    compiling._told = True


# The fixtures that start a browser and Spark, by the marker of the tests that use them; see tools/require.py.
NEEDS = {"browser": "explorer", "spark": "spark"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "data: needs the paper's four graphs in the folder named by PPROP_DATA")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Files with slow tests first: the processes then end at about the same time, with files of a second or less.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        for marker, fixture in NEEDS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
    if os.environ.get("PPROP_DATA"):
        return
    skip = pytest.mark.skip(reason="PPROP_DATA names no folder with the paper's four graphs")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(skip)


@pytest.fixture
def every_kernel_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of any size are shared by as many threads as numba has; usually one thread makes a small one."""
    monkeypatch.setattr("pprop.kernels.numba_cpu._jit.LARGE", 0)


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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A new folder that every user of this machine may look into, unlike `tmp_path`."""
    folder = Path(tempfile.mkdtemp(prefix="pprop-test-"))
    folder.chmod(0o755)
    yield folder
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o755)
    shutil.rmtree(folder)


def as_ordinary_user(function: Callable[[], object]) -> str:
    """Call a function in a process that has no rights beyond those of an ordinary user; return what it gave or raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            said = str(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode(errors="replace"))
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def ordinary_user() -> Callable[[Callable[[], object]], str]:
    """Calls a function as an ordinary user, for whom read-only folders are just that, also where root runs the tests."""
    return as_ordinary_user
