"""A packed study is small and loses nothing, and damage to it is seen."""

from __future__ import annotations

import lzma
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pprop import FormatError, InputError
from pprop.study.cell import Seeds
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import load_experiments
from pprop.study.store import pack
from pprop.study.store.merge import merge_studies
from pprop.study.store.pack import Packed, pack_study, predictions_needed
from pprop.study.store.row import Row, RowKey, encode, example_row, without_predictions
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells of 40 runs that agree on nine of ten nodes, and a value that is not a number. Tests only read it."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("study")
    rows: list[Row] = []
    for cell in ("{}", '{"a":1}'):
        usual = rng.integers(0, 7, 2000)
        for run in range(40):
            predictions = np.where(rng.random(2000) < 0.1, rng.integers(0, 7, 2000), usual).astype(np.uint8)
            row = example_row()
            key = replace(row.key, config=f"c{len(cell)}", seeds=Seeds(run, 1))
            loss = float("nan") if run == 3 else 0.1 + run / 3
            rows.append(replace(row, key=key, cell=cell, predictions=predictions, stopping_loss=loss))
    with Store.open(folder, create=True) as store:
        store.add_all(rows)
    return folder


@pytest.fixture(scope="module")
def whole(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same packed."""
    file = tmp_path_factory.mktemp("packed") / "study.pack"
    with Store.open(study) as store:
        assert pack_study(store, file) == 80
    return file


@pytest.fixture
def file(whole: Path, tmp_path: Path) -> Path:
    """A copy of the packed file, to be damaged; some characters of its name mean something else in an address."""
    return shutil.copyfile(whole, tmp_path / "50% of #1?.pack")


def test_packing_and_merging_give_the_same_rows_back(study: Path, whole: Path, tmp_path: Path):
    merged = merge_studies([whole], tmp_path / "again")
    assert (merged.rows, merged.sound) == (80, True)
    with Store.open(study) as before, Store.open(tmp_path / "again") as after:
        mine, theirs = ({row.key: encode(row) for row in store.rows()} for store in (before, after))
    assert mine == theirs
    assert whole.stat().st_size < 0.5 * (study / "rows.sqlite").stat().st_size


def test_predictions_may_be_left_out_and_come_back_from_where_they_are(study: Path, whole: Path, tmp_path: Path):
    small = tmp_path / "small.pack"
    with Store.open(study) as store:
        assert pack_study(store, small, keep=lambda row: row.cell == "{}" and row.key.seeds.split < 10) == 80
        mine = {row.key: row for row in store.rows()}
    assert small.stat().st_size < 0.5 * whole.stat().st_size
    for row in Packed(small):
        there = mine[row.key]
        if row.cell == "{}" and row.key.seeds.split < 10:
            assert encode(row) == encode(there)
        else:
            assert len(row.predictions) == 0
            assert encode(row)[:-2] == encode(there)[:-2]  # all but predictions and checksum
    for order in ([small, whole], [whole, small]):
        out = tmp_path / f"{order[0].stem}_first"
        assert merge_studies(order, out).sound
        with Store.open(out) as store:
            assert {row.key: encode(row) for row in store.rows()} == {key: encode(row) for key, row in mine.items()}


def test_another_result_without_predictions_is_a_conflict(study: Path):
    with Store.open(study) as store:
        row = store.rows()[0]
        with pytest.raises(InputError, match="has another result"):
            store.add(without_predictions(replace(row, accuracy=row.accuracy + 0.01)))


def test_the_predictions_that_are_needed_are_those_of_the_table_and_of_the_cpu():
    known = load_experiments()
    needed = predictions_needed(known.values())
    table, sweep = known["gasteiger_2019_appnp_citeseer"], known["gasteiger_2019_alpha_citeseer"]
    thousand = known["pprop_2026_runs_citeseer"]

    def row(experiment: Experiment, at: int, device: str) -> Row:
        cell = experiment.points[0].cell
        key = RowKey(cell.config, "c", "d", experiment.seeds(None, cell)[at])
        return replace(example_row(), key=key, device=device)

    assert needed(row(table, 99, "cuda"))
    assert not needed(row(sweep, 0, "cuda"))
    assert needed(row(sweep, 0, "cpu"))
    assert needed(row(thousand, 0, "cuda"))  # the paper's runs are among the thousand
    assert not needed(row(thousand, 500, "cuda"))


def test_a_file_is_never_replaced(study: Path, tmp_path: Path):
    file = tmp_path / "study.pack"
    file.write_text("mine")
    with Store.open(study) as store, pytest.raises(InputError, match="is there already"):
        pack_study(store, file)
    assert file.read_text() == "mine"


def test_damage_is_reported_and_the_sound_rows_are_kept(file: Path):
    with sqlite3.connect(file) as source:
        source.execute("UPDATE packs SET predictions = x'00' WHERE cell = '{}'")
    source.close()
    packed = Packed(file)
    assert len(list(packed)) == 40
    assert packed.lost == 40
    assert packed.problem is not None
    with sqlite3.connect(file) as source:
        source.execute("UPDATE packs SET rows = x'00' WHERE cell <> '{}'")
    source.close()
    packed = Packed(file)
    assert (list(packed), packed.lost, packed.certain) == ([], 41, False)
    file.write_bytes(b"no database")
    with pytest.raises(FormatError, match="is no packed study, or is damaged"):
        Packed(file)


BOMB = lzma.compress(bytes(2**24), preset=0)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("rows", "3"),
        ("rows", "[3]"),
        ("rows", "[[3]]"),
        ("rows", "[" * 100_000),
        ("rows", 7),
        ("rows", BOMB),
        ("predictions", 7),
        ("predictions", BOMB),
    ],
)
def test_rows_that_are_none_are_lost_and_the_others_kept(
    file: Path, monkeypatch: pytest.MonkeyPatch, change: str, value: object
):
    with sqlite3.connect(file) as source:
        source.execute(f"UPDATE packs SET {change} = ? WHERE cell = '{{}}'", (value,))
    source.close()
    monkeypatch.setattr(pack, "usable_memory", lambda: 2**25)
    packed = Packed(file)
    assert len(list(packed)) == 40
    assert packed.lost == (1 if change == "rows" else 40)
    assert packed.problem is not None


@pytest.mark.parametrize("columns", ["[", "3", "null", None, "[" * 100_000])
def test_columns_that_are_none_are_those_of_another_version(file: Path, columns: str | None):
    with sqlite3.connect(file) as source:
        source.execute("UPDATE packs SET columns = ?", (columns,))
    source.close()
    with pytest.raises(FormatError, match="was packed by another version of pprop"):
        list(Packed(file))


@pytest.mark.parametrize("name", ["..", "", "/etc/passwd", "a\0.toml", "x" * 300 + ".toml", "notes.txt"])
def test_an_experiment_file_with_a_strange_name_is_refused(file: Path, name: str):
    with sqlite3.connect(file) as source:
        source.execute("INSERT INTO experiments VALUES (?, x'00')", (name,))
    source.close()
    with pytest.raises(FormatError, match="is no name of an experiment file"):
        Packed(file)


def test_a_study_that_may_only_be_read_is_read_and_packed(
    study: Path, open_folder: Path, ordinary_user: Callable[[Callable[[], object]], str]
):
    home = open_folder / "study"
    shutil.copytree(study, home)
    (home / "rows.sqlite").chmod(0o444)
    home.chmod(0o555)
    out = open_folder / "out"
    out.mkdir()
    out.chmod(0o777)

    def read() -> list[int]:
        with Store.open(home) as store:
            packed = pack_study(store, out / "study.pack")
            merged = merge_studies([home], out / "merged")
            return [len(store.rows()), packed, merged.rows, int(merged.sound)]

    def add() -> bool:
        with Store.open(home) as store:
            return store.add(example_row(99))

    assert ordinary_user(read) == "[80, 80, 80, 1]"
    assert ordinary_user(add).startswith("PermissionError: [Errno 13] attempt to write a readonly database")
    assert [file.name for file in home.iterdir()] == ["rows.sqlite"]
