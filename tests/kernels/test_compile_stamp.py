"""What a compiled kernel in the cache depends on: the sources and constants that it was made of, and no others."""

from __future__ import annotations

import ast
import importlib
import pickle
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pprop.kernels import contract
from pprop.kernels.numba_cpu import _jit, bits

FOLDER = Path(_jit.__file__).parent
NAMES = sorted(file.stem for file in FOLDER.glob("*.py"))


def forget() -> None:
    _jit.made_of.cache_clear()
    _jit.stamp_of.cache_clear()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the backend's sources, which stamps are computed of."""
    for name in NAMES:
        importlib.import_module(f"pprop.kernels.numba_cpu.{name}")
        shutil.copy(FOLDER / f"{name}.py", tmp_path)
    monkeypatch.setattr(_jit, "_FOLDER", tmp_path)
    forget()
    yield tmp_path
    forget()


def stamps() -> dict[str, str]:
    forget()
    return {name: _jit.stamp_of(name) for name in NAMES}


def changed_by(file: Path) -> set[str]:
    """Return the modules whose kernels are compiled anew after a change of a file."""
    before = stamps()
    file.write_text(file.read_text() + "# changed\n")
    after = stamps()
    return {name for name in NAMES if before[name] != after[name]}


def test_a_kernel_is_compiled_anew_after_a_change_of_what_it_imports_and_not_of_other_kernels(sources: Path):
    assert changed_by(sources / "push.py") == {"push", "push_rows"}
    assert changed_by(sources / "live.py") == {"live", "live_batch"}
    assert changed_by(sources / "attention.py") == {"attention", "backend"}


def test_what_is_imported_by_something_imported_counts(sources: Path):
    changed = changed_by(sources / "bits.py")  # trainer imports fused_network, which imports it
    assert {"bits", "dense", "fused_network", "trainer"} <= changed
    assert not changed & {"live", "push", "degrees", "operator_rows"}


def test_the_decorators_are_part_of_every_kernel(sources: Path):
    assert changed_by(sources / "_jit.py") >= {"live", "push", "sparse", "fused_readout", "team"}


def test_a_constant_from_outside_the_backend_counts_where_it_is_compiled_into_a_kernel(
    sources: Path, monkeypatch: pytest.MonkeyPatch
):
    before = stamps()
    monkeypatch.setattr(contract, "SLOPE", 0.3)
    after = stamps()
    assert {name for name in NAMES if before[name] != after[name]} == {"attention", "backend"}


@pytest.mark.parametrize("name", NAMES)
def test_every_import_of_a_kernel_is_seen(name: str):
    modules, constants = {name}, set[str]()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not [one.name for one in node.names if one.name.startswith("pprop.kernels")]
        elif isinstance(node, ast.ImportFrom) and node.module == "pprop.kernels.numba_cpu":
            modules.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pprop.kernels."):
            if node.module and node.module.startswith("pprop.kernels.numba_cpu."):
                modules.add(node.module.rpartition(".")[2])
            else:
                source = importlib.import_module(node.module or "")
                constants.update(f"{one.name} = {vars(source)[one.name]!r}" for one in node.names if one.name.isupper())
        else:
            assert not isinstance(node, ast.ImportFrom) or node.level == 0
    importlib.import_module(f"pprop.kernels.numba_cpu.{name}")
    assert _jit.made_of(name) == (modules, constants)


def test_an_index_that_names_what_is_gone_is_as_if_there_was_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An earlier version may have had modules whose functions were arguments of a kernel."""
    kernel: Any = bits.plane_words
    cache_file = kernel._cache._cache_file
    gone: Any = types.ModuleType("pprop_gone")
    gone.Kind = type("Kind", (), {"__module__": "pprop_gone"})
    monkeypatch.setitem(sys.modules, "pprop_gone", gone)
    index = tmp_path / "kernel.nbi"
    stored = {gone.Kind: "data"}
    index.write_bytes(pickle.dumps(cache_file._version) + pickle.dumps((cache_file._source_stamp, stored)))
    monkeypatch.setattr(cache_file, "_index_path", str(index))
    assert cache_file._load_index() == stored
    monkeypatch.delitem(sys.modules, "pprop_gone")
    assert cache_file._load_index() == {}
