"""Rows of files: what a mapping has, by direct reads, by ordinary ones, and where a file system takes no direct ones."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop import FormatError
from pprop.propagation.stored.file_rows import Buffer, StoredRows


def mapped(tmp_path: Path, array: Any) -> Any:
    np.save(tmp_path / "x.npy", array)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def check(array: Any) -> StoredRows:
    stored, buffer = StoredRows(array, "the numbers"), Buffer(array.nbytes)
    assert stored.in_file
    for first, last in ((0, len(array)), (5, 5), (1, 2), (3000, 4500), (len(array) - 1, len(array))):
        assert np.array_equal(stored.read(first, last, buffer), array[first:last])
    return stored


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("shape", [(5000,), (5000, 3)])
def test_rows_are_those_of_the_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct: bool, shape: tuple[int, ...]
):
    if not direct:
        monkeypatch.setattr("pprop.propagation.stored.file_rows._DIRECT", 0)
    array = mapped(tmp_path, np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    stored = check(array)
    assert (stored.speed() or 0) > 0
    stored.close()


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="this system has no direct reads to refuse")
def test_a_file_system_that_takes_no_direct_reads_is_read_in_the_ordinary_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real, refused = os.preadv, list[int]()

    def preadv(file: int, *rest: Any) -> int:
        if not refused:
            refused.append(file)
            raise OSError(errno.EINVAL, "no direct reads")
        return real(file, *rest)

    array = mapped(tmp_path, np.arange(9000))
    monkeypatch.setattr(os, "preadv", preadv)
    check(array).close()
    assert refused


def test_a_read_that_ends_early_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.preadv
    array = mapped(tmp_path, np.arange(9000))
    monkeypatch.setattr(os, "preadv", lambda file, views, at: real(file, [views[0][:8192]], at))
    check(array).close()


def test_a_file_cut_short_while_it_is_read_is_refused(tmp_path: Path):
    stored = StoredRows(mapped(tmp_path, np.arange(9000)), "the numbers")
    os.truncate(tmp_path / "x.npy", 20_000)
    with pytest.raises(FormatError, match=r"of the numbers has changed since it was opened: it ends after"):
        stored.read(0, 9000, Buffer(72_000))


@pytest.mark.parametrize("how", ["memory", "columns", "copy on write", "strided", "other bytes"])
def test_other_arrays_are_read_through_numpy(tmp_path: Path, how: str):
    array = mapped(tmp_path, np.arange(900).reshape(300, 3))
    given = {
        "memory": np.array(array),
        "columns": mapped(tmp_path, np.asfortranarray(array)),
        "copy on write": np.load(tmp_path / "x.npy", mmap_mode="c"),
        "strided": array[::2],
        "other bytes": mapped(tmp_path, np.arange(900).reshape(300, 3).astype(">i8")),
    }[how]
    stored = StoredRows(given, "the numbers")
    assert not stored.in_file
    assert stored.speed() is None
    assert np.array_equal(stored.read(2, 5, Buffer(0)), given[2:5])
    stored.close()
