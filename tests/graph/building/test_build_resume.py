"""A build that ends in the middle: it goes on, or says in one sentence why not; what was there before stays."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pprop
from pprop.graph.building import matrix, plan
from pprop.graph.building.entry_buckets import Buckets
from pprop.graph.building.workplace import Workplace

TINY = 2e-4


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An edge list and a node table, in many parts, each of which is recorded."""
    monkeypatch.setattr(plan, "BUCKET_BYTES", 2**13)
    monkeypatch.setattr(matrix, "SCATTERED", 2**14)
    monkeypatch.setattr(matrix, "SORTED", 2**14)
    rng = np.random.default_rng(0)
    edges = pa.table(
        {"source": rng.integers(0, 300, 4000), "target": rng.integers(0, 300, 4000), "weight": rng.random(4000)}
    )
    pq.write_table(edges, tmp_path / "edges.parquet", row_group_size=200)
    pq.write_table(
        pa.table({"id": range(320), "topic": ["a", "b"] * 160, "x": rng.random(320)}), tmp_path / "nodes.parquet"
    )
    return tmp_path / "edges.parquet", tmp_path / "nodes.parquet"


class Stopped(Exception):  # noqa: N818
    """The build was ended by the test."""


def stop_at(monkeypatch: pytest.MonkeyPatch, save: int, *, after: bool) -> None:
    """End the build at the so-manieth record of what is done, before or after it is written."""
    true: Callable[..., None] = Workplace.save
    count = 0

    def stopping(self: Workplace, **done: Any) -> None:
        nonlocal count
        count += 1
        if count == save and not after:
            raise Stopped
        true(self, **done)
        if count == save:
            raise Stopped

    monkeypatch.setattr(Workplace, "save", stopping)


def saves(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> int:
    count = 0
    true: Callable[..., None] = Workplace.save

    def counting(self: Workplace, **done: Any) -> None:
        nonlocal count
        count += 1
        true(self, **done)

    with monkeypatch.context() as patch:
        patch.setattr(Workplace, "save", counting)
        call()
    return count


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("after", [False, True])
def test_a_build_goes_on_after_any_record(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, weight: str | None, after: bool
):
    edges, nodes = files
    options: dict[str, Any] = {
        "nodes": nodes,
        "label_column": "topic",
        "feature_columns": "numbers",
        "memory": TINY,
        "weight": weight,
    }
    with _warned(weight):
        expected = pprop.read_edges(edges, nodes, weight=weight, label_column="topic", feature_columns="numbers")
    with _warned(weight):
        total = saves(monkeypatch, lambda: pprop.build_graph(edges, tmp_path / "whole", **options))
    whole = pprop.GraphFolder.open(tmp_path / "whole")
    assert whole.graph() == expected
    assert total >= 5
    for save in {1, 2, total // 2, total - 1, total}:
        with monkeypatch.context() as patch:
            stop_at(patch, save, after=after)
            with pytest.raises(Stopped):
                pprop.build_graph(edges, tmp_path / "g", **options)
        assert not (tmp_path / "g").exists()
        said: list[str] = []
        with _warned(weight):
            folder = pprop.build_graph(edges, tmp_path / "g", say=said.append, **options)
        assert said[0].startswith("Building" if save == 1 and not after else "Going on")
        assert folder.fingerprint == whole.fingerprint
        assert folder.graph() == expected
        shutil.rmtree(folder.path)
        assert not list(tmp_path.glob(".*"))


def _warned(weight: str | None) -> Any:
    """Expect a warning of weights that nobody asked for; their column is named as weights are."""
    return pytest.warns(UserWarning, match="'weight' of .* is left out") if weight is None else nullcontext()


KILLED = """
import os, signal, sys
import pprop
from pprop.graph.building import matrix, plan
from pprop.graph.building.entry_buckets import Buckets

plan.BUCKET_BYTES = 2**13
matrix.SCATTERED = matrix.SORTED = 2**14
method, calls = sys.argv[3], int(sys.argv[4])
true = getattr(Buckets, method)

def deadly(self, *arguments):
    global calls
    calls -= 1
    if calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return true(self, *arguments)

setattr(Buckets, method, deadly)
pprop.build_graph(sys.argv[1], sys.argv[2], memory=2e-4, weight="weight")
"""


@pytest.mark.parametrize(("method", "calls"), [("write", 12), ("length", 9)])
def test_a_killed_process_leaves_what_the_next_one_goes_on_with(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, method: str, calls: int
):
    edges, _ = files
    before = pprop.write_folder(pprop.Graph.from_edges([0], [1]), tmp_path / "g")
    arguments = [sys.executable, "-c", KILLED, str(edges), str(tmp_path / "h"), method, str(calls)]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "h").exists()
    written: list[int] = []
    true = Buckets.write

    def counting(self: Buckets, *some: Any) -> None:
        written.append(1)
        true(self, *some)

    monkeypatch.setattr(Buckets, "write", counting)
    folder = pprop.build_graph(edges, tmp_path / "h", memory=TINY, weight="weight")
    assert folder.graph() == pprop.read_edges(edges, weight="weight")
    assert len(written) < 20  # of as many parts
    assert pprop.GraphFolder.open(before.path).graph() == before.graph()


def test_other_arguments_or_files_do_not_go_on(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files
    with monkeypatch.context() as patch:
        stop_at(patch, 4, after=True)
        with pytest.raises(Stopped):
            pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight")
    with pytest.raises(pprop.InputError, match="half-built graph of other arguments, or of files that have changed"):
        pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight", directed=True)
    os.utime(edges, (1, 1))
    with pytest.raises(pprop.InputError, match="begin anew"):
        pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight")
    folder = pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight", restart=True)
    assert folder.graph() == pprop.read_edges(edges, weight="weight")


def test_two_processes_do_not_build_one_folder(tmp_path: Path, files: tuple[Path, Path]):
    edges, _ = files
    with (
        Workplace(tmp_path / "g", {}, restart=False),
        pytest.raises(pprop.InputError, match="Another process is building"),
    ):
        pprop.build_graph(edges, tmp_path / "g", weight="weight")


def test_what_was_there_is_replaced_only_by_a_whole_folder(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files
    old = pprop.write_folder(pprop.Graph.from_edges([0], [1]), tmp_path / "g")
    with pytest.raises(pprop.InputError, match="which is already there"):
        pprop.build_graph(edges, tmp_path / "g", weight="weight")
    with monkeypatch.context() as patch:
        stop_at(patch, 4, after=True)
        with pytest.raises(Stopped):
            pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight", replace=True)
    graph = pprop.GraphFolder.open(old.path).graph()
    assert graph.n_nodes == 2
    new = pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight", replace=True)
    assert new.graph() == pprop.read_edges(edges, weight="weight")
    assert old.graph() == graph  # which is open


def test_a_full_disk_is_one_sentence_and_the_build_goes_on_later(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files
    true = Buckets.write
    calls = 0

    def full(self: Buckets, *some: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        true(self, *some)

    with monkeypatch.context() as patch:
        patch.setattr(Buckets, "write", full)
        with pytest.raises(
            pprop.CapacityError, match=r"The disk of .* is full: .* GB are free.* goes on where it ended"
        ):
            pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight")
    assert pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight").graph() == pprop.read_edges(
        edges, weight="weight"
    )


def test_a_folder_that_may_not_be_written_is_one_sentence(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files

    def forbidden(self: Buckets, *some: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Buckets, "open", forbidden)
    with pytest.raises(
        pprop.InputError, match=r"'out' parameter of build_graph must be a path that can be written.*Permission denied"
    ):
        pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight")


def test_too_little_disk_is_refused_before_the_work(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(pprop.CapacityError, match=r"this build take 0\.0 GB of disk, and 0\.0 GB are free"):
        pprop.build_graph(edges, tmp_path / "g", weight="weight")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["edges.parquet", "nodes.parquet"]


def test_a_graph_that_appears_during_the_build_stays_and_the_built_one_is_kept_beside_it(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    edges, _ = files
    true, other = Workplace.move, pprop.Graph.from_edges([0], [1])

    def raced(self: Workplace, *, replace: bool) -> None:
        pprop.write_folder(other, self.target)
        true(self, replace=replace)

    monkeypatch.setattr(Workplace, "move", raced)
    with pytest.raises(pprop.InputError, match=r"g' was not replaced: it appeared .* This result is in '.*g-2'"):
        pprop.build_graph(edges, tmp_path / "g", memory=TINY, weight="weight")
    assert pprop.GraphFolder.open(tmp_path / "g").graph() == other
    assert pprop.GraphFolder.open(tmp_path / "g-2").graph() == pprop.read_edges(edges, weight="weight")
    assert not (tmp_path / ".g.build").exists()
