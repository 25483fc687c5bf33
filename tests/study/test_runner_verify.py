"""Rows computed once more: the same, or what differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pprop import TEST_SEEDS, DatasetError, InputError
from pprop.study.cell import Cell, Seeds
from pprop.study.experiment import Experiment, Point
from pprop.study.prepared import Datasets, Prepared
from pprop.study.row import Row
from pprop.study.runner import Job, run_study
from pprop.study.status import study_status
from pprop.study.store import Store
from pprop.study.verify import Verification, verify_study
from pprop.study.versions import current_code
from pprop.study.watch import show_study
from pprop.study.zoo import make_cell

CELL = make_cell("mlp", {"max_epochs": 5}, "citeseer")
RUNS = tuple(Seeds(split, 0) for split in TEST_SEEDS[:4])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Four rows as they are computed here."""
    with (
        Store.open(tmp_path_factory.mktemp("sound"), create=True) as store,
        show_study(lambda text: None, cells=1, runs=4, show=False) as watch,
    ):
        run_study(store, [Job(CELL, RUNS)], watch)
        return store.rows()


def verify(folder: Path, rows: list[Row], **options) -> Verification:
    with (
        Store.open(folder, create=True) as store,
        show_study(lambda text: None, cells=1, runs=1, show=False) as watch,
    ):
        store.add_all(rows)
        return verify_study(store, watch, **options)


def test_rows_of_this_code_are_the_same_bit_for_bit(tmp_path: Path, sound: list[Row]):
    found = verify(tmp_path, sound, sample=100)
    assert found.sound
    assert [(checked.exact, checked.differences) for checked in found.checked] == [(True, ())] * 4
    assert (found.rows, found.stale) == (4, 0)


def test_the_sample_depends_on_the_seed_alone(tmp_path: Path, sound: list[Row]):
    def sample(seed: int) -> list[int]:
        found = verify(tmp_path, sound, sample=2, seed=seed)
        return [checked.key.seeds.split for checked in found.checked]

    assert sample(3) == sample(3)
    assert len({tuple(sample(seed)) for seed in range(3)}) > 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda row: {"epochs": row.epochs + 1}, "epochs is 6 in the store, and 5 computed anew"),
        (lambda row: {"accuracy": float(np.nextafter(row.accuracy, 1))}, "accuracy is "),
        (lambda row: {"predictions": (row.predictions + 1) % 6}, "the predictions of 2110 nodes differ"),
        (lambda row: {"predictions": row.predictions[:-1]}, "the predictions of all nodes differ"),
    ],
)
def test_a_row_that_differs_is_named(tmp_path: Path, sound: list[Row], change, sentence: str):
    first, *others = sound
    found = verify(tmp_path, [replace(first, **change(first)), *others], sample=4)
    assert not found.sound
    (wrong,) = (checked for checked in found.checked if checked.differences)
    assert wrong.key == first.key
    assert len(wrong.differences) == 1
    assert f"MLP on citeseer, split {first.key.seeds.split}, initialisation 0: {sentence}" in wrong.differences[0]


def test_a_row_from_a_gpu_is_compared_by_its_accuracy(tmp_path: Path, sound: list[Row]):
    def from_gpu(row: Row, off: float) -> Row:
        key = replace(row.key, code=current_code(CELL, "triton"))
        return replace(row, key=key, accuracy=row.accuracy + off, epochs=7, backend="triton", device="cuda (a GPU)")

    assert verify(tmp_path / "near", [from_gpu(sound[0], 0.02)]).sound
    far = verify(tmp_path / "far", [from_gpu(sound[0], 0.04)])
    assert not far.sound
    assert "on cuda (a GPU)" in far.checked[0].differences[0]
    assert not far.checked[0].exact


def test_rows_of_another_code_are_counted_and_not_compared(tmp_path: Path, sound: list[Row]):
    old = [replace(row, key=replace(row.key, code="0" * 12), epochs=99) for row in sound]
    found = verify(tmp_path / "both", [*sound, *old], sample=100)
    assert (found.sound, len(found.checked), found.stale) == (True, 4, 4)
    with pytest.raises(InputError, match="None of the 4 rows is of the present version"):
        verify(tmp_path / "old", old)


def elsewhere(row: Row, model: str = "mlp", dataset: str = "cora_ml") -> Row:
    """Return a row as a machine with another dataset or model would have made it."""
    cell = Cell(model, CELL.settings, dataset)
    code = current_code(cell, "numba") if model == "mlp" else row.key.code
    return replace(row, key=replace(row.key, config=cell.config, code=code), cell=cell.text)


def test_a_dataset_that_is_not_here_is_not_called_another_version(
    tmp_path: Path, sound: list[Row], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PPROP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError) as caught:
        verify(tmp_path / "all", [elsewhere(row) for row in sound])
    assert str(caught.value).startswith(
        "None of the 4 rows can be computed once more. The dataset 'cora_ml' was not found"
    )
    assert "PPROP_DATA must name an existing folder" in str(caught.value)
    assert "version" not in str(caught.value)


def test_rows_without_their_dataset_or_model_are_named_and_the_others_compared(
    tmp_path: Path, sound: list[Row], monkeypatch: pytest.MonkeyPatch
):
    def absent(self: Datasets, cell: Cell) -> Prepared:
        if cell.dataset == "cora_ml":
            raise DatasetError("It is not here.")
        return self.prepare(cell.dataset, cell.splits)

    monkeypatch.setattr(Datasets, "of", absent)
    rows = [*sound[:2], elsewhere(sound[2]), elsewhere(sound[3], "no_such_module:build", "citeseer")]
    found = verify(tmp_path, rows, sample=9)
    assert (found.rows, len(found.checked), found.stale, found.sound) == (4, 2, 0, True)
    assert found.absent[0] == "The dataset 'cora_ml' was not found here (1 row): It is not here."
    assert found.absent[1].startswith("The model 'no_such_module:build' was not found here (1 row): ")


def done(folder: Path, rows: list[Row]) -> tuple[int, int]:
    with Store.open(folder, create=True) as store:
        store.add_all(rows)
        (progress,) = study_status(store, [Experiment("mine", "Mine", "accuracy", (Point(CELL, {}),))]).experiments
    return progress.done, progress.other_versions


def test_status_counts_rows_of_other_data_apart(tmp_path: Path, sound: list[Row]):
    other = [replace(row, key=replace(row.key, data="0" * 32)) for row in sound]
    assert done(tmp_path / "both", [*sound, *other]) == (4, 4)
    assert done(tmp_path / "other", other) == (0, 4)


def test_status_goes_by_the_code_where_the_dataset_is_not_here(
    tmp_path: Path, sound: list[Row], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PPROP_DATA", str(tmp_path / "nowhere"))
    assert done(tmp_path / "study", sound) == (4, 0)
