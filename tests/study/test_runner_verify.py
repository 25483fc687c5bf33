"""Rows computed once more: the same, or what differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pprop import TEST_SEEDS, DatasetError, InputError
from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.experiment import Experiment, Point
from pprop.study.revisions import current_revision
from pprop.study.run.progress import show_study, study_status
from pprop.study.run.recipe import Datasets, Prepared
from pprop.study.run.runner import Job, run_study
from pprop.study.stats.variance import UNKNOWN_SPREAD, row_bound
from pprop.study.store.row import Row
from pprop.study.store.store import Store
from pprop.study.verify.plan import plan_verification
from pprop.study.verify.verify import Verification, verify_study

pytestmark = pytest.mark.slow

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
        return verify_study(store, plan_verification(store, **options), watch)


def test_rows_of_this_revision_are_the_same_bit_for_bit(tmp_path: Path, sound: list[Row]):
    found = verify(tmp_path, sound, sample=100)
    assert found.sound
    assert [(checked.kind, checked.apart, checked.same, checked.differences) for checked in found.checked] == [
        ("exact", 0.0, 1.0, ())
    ] * 4
    assert (found.plan.rows, found.plan.stale, found.means) == (4, 0, ())


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


def from_gpu(row: Row, off: float, revision: str | None = None) -> Row:
    """Return a row as a GPU, or another revision, might have made it."""
    key = replace(row.key, revision=revision or current_revision(CELL, "triton"))
    return replace(row, key=key, accuracy=row.accuracy + off, epochs=7, backend="triton", device="cuda (a GPU)")


def beside(row: Row, sigma: float, revision: str | None = None) -> list[Row]:
    """Return forty more runs of two splits, of this spread between initialisations."""
    made: list[Row] = []
    for split in (1, 2):
        for init in range(20):
            off = sigma * np.sqrt(19 / 20) * (-1) ** init + 0.1 * split
            seeds = replace(row.key, seeds=Seeds(split, init))
            made.append(from_gpu(replace(row, key=seeds, accuracy=0.5), off, revision))
    return made


@pytest.mark.parametrize(("off", "agrees"), [(0.055, True), (0.058, False), (-0.058, False)])
def test_a_row_from_a_gpu_may_differ_as_two_initialisations_do(
    tmp_path: Path, sound: list[Row], off: float, agrees: bool
):
    """Spread 0.01: the bound is 4 sqrt(2) 0.01 = 0.0566."""
    made_up = beside(sound[0], 0.01)
    far = from_gpu(sound[0], off)
    with Store.open(tmp_path, create=True) as store:
        store.add_all([*made_up, far])
        plan = plan_verification(store, sample=100)
        only = replace(plan, chosen=tuple(one for one in plan.chosen if one.key == far.key))
        with show_study(lambda text: None, cells=1, runs=1, show=False) as watch:
            found = verify_study(store, only, watch)
    (checked,) = found.checked
    assert (checked.kind, checked.same) == ("gpu", 1.0)
    assert checked.sigma == pytest.approx(0.01)
    assert checked.apart == pytest.approx(off)
    assert found.sound == agrees
    assert len(found.differences) == (0 if agrees else 2)  # the row, and the mean of one row
    if not agrees:
        assert "on cuda (a GPU)" in found.differences[0]
        assert "more than 0.05657 apart" in found.differences[0]


def test_a_row_that_is_far_off_does_not_widen_its_own_bound(tmp_path: Path, sound: list[Row]):
    found = verify(tmp_path, [from_gpu(row, 0.5 * (row is sound[0])) for row in sound], sample=1, seed=0)
    assert found.checked[0].sigma == UNKNOWN_SPREAD


def test_a_small_systematic_difference_shows_in_the_mean_alone(tmp_path: Path, sound: list[Row]):
    shifted = verify(tmp_path / "shifted", [from_gpu(row, 0.03) for row in sound], sample=4)
    assert [checked.differences for checked in shifted.checked] == [()] * 4
    (mean,) = shifted.means
    assert (mean.kind, mean.rows, mean.same) == ("gpu", 4, 4)
    assert mean.mean == pytest.approx(0.03)
    assert mean.bound == pytest.approx(row_bound(UNKNOWN_SPREAD) / 4)
    assert not shifted.sound
    assert "The mean difference of 4 rows from a GPU is +0.03000" in shifted.differences[0]
    offs = (0.03, -0.03, 0.03, -0.03)
    balanced = verify(tmp_path / "balanced", [from_gpu(row, off) for row, off in zip(sound, offs, strict=True)])
    assert balanced.sound
    assert balanced.means[0].mean == pytest.approx(0)


def test_rows_of_another_source_library_or_machine_are_of_this_revision(tmp_path: Path, sound: list[Row]):
    """What computed a row decides how it is compared, never whether."""
    here = sound[0].provenance
    others = (
        replace(here, source="0" * 12, commit="f" * 12, pprop="9.9", libraries={"numpy": "9.9"}),
        replace(here, cpu="m68k 68000"),
    )
    rows = [sound[0], *(replace(row, version=made.text) for row, made in zip(sound[1:], others, strict=False))]
    found = verify(tmp_path, rows, sample=100)
    assert [checked.kind for checked in found.checked] == ["exact", "exact", "cpu"]
    assert (found.sound, found.plan.stale, [mean.kind for mean in found.means]) == (True, 0, ["cpu"])
    assert "numpy 9.9, not " in " ".join(found.checked[1].made)
    assert found.checked[2].made == (f"CPU m68k 68000, not {here.cpu}",)


def test_rows_of_another_revision_are_counted_and_not_compared(tmp_path: Path, sound: list[Row]):
    old = [replace(row, key=replace(row.key, revision="0" * 12), epochs=99) for row in sound]
    found = verify(tmp_path / "both", [*sound, *old], sample=100)
    assert (found.sound, len(found.checked), found.plan.stale) == (True, 4, 4)
    with pytest.raises(InputError, match=r"None of the 4 rows is of the present revision.* --stale computes those"):
        verify(tmp_path / "old", old)


def test_rows_of_another_revision_are_compared_by_accuracy_and_apart_when_asked_for(tmp_path: Path, sound: list[Row]):
    old = [replace(row, key=replace(row.key, revision="0" * 12), epochs=99) for row in sound]
    found = verify(tmp_path / "both", [*sound[:2], *old], sample=100, stale=True)
    assert sorted(checked.kind for checked in found.checked) == ["exact"] * 2 + ["stale"] * 4
    assert (found.sound, found.plan.stale) == (True, 0)
    assert [(mean.kind, mean.rows, mean.mean) for mean in found.means] == [("stale", 4, 0.0)]
    far = [replace(row, accuracy=row.accuracy - 0.2) for row in old]
    wrong = verify(tmp_path / "far", far, sample=100, stale=True)
    assert [len(checked.differences) for checked in wrong.checked] == [1] * 4
    assert "rows of other revisions is -0.20000" in wrong.differences[-1]


def test_a_cell_that_cannot_be_computed_now_is_named(tmp_path: Path, sound: list[Row]):
    cell = Cell("mlp", {**CELL.settings, "hidden": [-1]}, "citeseer")
    key = replace(sound[0].key, config=cell.config, revision="0" * 12)
    found = verify(tmp_path, [sound[1], replace(sound[0], key=key, cell=cell.text)], stale=True)
    assert len(found.checked) == 1
    assert found.failed[0].startswith("MLP on citeseer: it cannot be computed now: ")


def test_rows_of_other_data_are_never_computed(tmp_path: Path, sound: list[Row]):
    other = [replace(row, key=replace(row.key, data="0" * 32)) for row in sound]
    found = verify(tmp_path / "both", [*sound, *other], sample=100, stale=True)
    assert (len(found.checked), found.plan.stale) == (4, 4)
    with pytest.raises(InputError, match=r"None of the 4 rows is of the present revision and data\.$"):
        verify(tmp_path / "other", other, stale=True)


def elsewhere(row: Row, model: str = "mlp", dataset: str = "cora_ml") -> Row:
    """Return a row as a machine with another dataset or model would have made it."""
    cell = Cell(model, CELL.settings, dataset)
    revision = current_revision(cell, "numba") if model == "mlp" else row.key.revision
    return replace(row, key=replace(row.key, config=cell.config, revision=revision), cell=cell.text)


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
    assert (found.plan.rows, len(found.checked), found.plan.stale, found.sound) == (4, 2, 0, True)
    assert found.plan.absent[0] == "The dataset 'cora_ml' was not found here (1 row): It is not here."
    assert found.plan.absent[1].startswith("The model 'no_such_module:build' was not found here (1 row): ")


def done(folder: Path, rows: list[Row]) -> tuple[int, int]:
    with Store.open(folder, create=True) as store:
        store.add_all(rows)
        (progress,) = study_status(store, [Experiment("mine", "Mine", "accuracy", (Point(CELL, {}),))]).experiments
    return progress.done, progress.other_versions


def test_status_counts_rows_of_other_data_apart(tmp_path: Path, sound: list[Row]):
    other = [replace(row, key=replace(row.key, data="0" * 32)) for row in sound]
    assert done(tmp_path / "both", [*sound, *other]) == (4, 4)
    assert done(tmp_path / "other", other) == (0, 4)


def test_status_goes_by_the_revision_where_the_dataset_is_not_here(
    tmp_path: Path, sound: list[Row], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PPROP_DATA", str(tmp_path / "nowhere"))
    assert done(tmp_path / "study", sound) == (4, 0)
