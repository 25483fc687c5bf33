"""A study is read alike from its folder, from a packed file and from a folder of packed files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pprop._errors import FormatError
from pprop.study.cell import Cell
from pprop.study.store.merge import packs_of, study_folder
from pprop.study.store.pack import pack_study
from pprop.study.store.row import Row, encode, example_row
from pprop.study.store.store import FILE, Store


def packed(folder: Path, name: str, *rows: Row) -> Path:
    with Store.open(folder / f"of {name}", create=True) as store:
        for row in rows:
            store.add(row)
        pack_study(store, folder / f"{name}.pack")
    return folder / f"{name}.pack"


def rows_in(at: Path) -> list[tuple[object, ...]]:
    with study_folder(at) as folder, Store.open(folder) as store:
        return [encode(row) for row in store.rows()]


def test_packed_files_give_the_rows_of_the_stores_they_were_made_of(tmp_path: Path) -> None:
    one = packed(tmp_path, "one", example_row(5), example_row(6))
    assert rows_in(one) == rows_in(tmp_path / "of one")
    packed(tmp_path, "two", example_row(7))
    assert rows_in(tmp_path) == rows_in(tmp_path / "of one") + rows_in(tmp_path / "of two")


def test_the_store_of_a_folder_is_used_in_place_even_beside_packed_files(tmp_path: Path) -> None:
    packed(tmp_path, "one", example_row(5))
    with Store.open(tmp_path, create=True) as store:
        store.add(example_row(6))
    assert packs_of(tmp_path) == []
    with study_folder(tmp_path) as folder:
        assert folder == tmp_path


def test_what_was_unpacked_is_removed(tmp_path: Path) -> None:
    with study_folder(packed(tmp_path, "one", example_row(5))) as folder:
        assert (folder / FILE).exists()
    assert not folder.exists()


def test_packed_files_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    row = replace(example_row(5), cell=Cell("mlp", {}, "citeseer").text)
    packed(tmp_path, "one", row)
    packed(tmp_path, "two", replace(row, accuracy=0.125))
    with pytest.raises(FormatError, match=r"two\.pack has another result .* for .*split 5"), study_folder(tmp_path):
        pass


def test_a_folder_without_a_study_is_still_told_as_such(tmp_path: Path) -> None:
    with study_folder(tmp_path) as folder, pytest.raises(FileNotFoundError, match="no study"):
        Store.open(folder)
