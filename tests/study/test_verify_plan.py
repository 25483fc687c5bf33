"""Which rows are chosen to be computed once more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pprop import InputError
from pprop.study.cell import Seeds, make_cell
from pprop.study.revisions import current_revision, provenance_here
from pprop.study.run.recipe import Datasets
from pprop.study.store.row import Row, example_row
from pprop.study.store.store import Store
from pprop.study.verify.plan import VerificationPlan, plan_verification
from pprop.study.verify.verify import plan_line

pytestmark = pytest.mark.slow


def rows_of(hidden: int, runs: int, device: str = "cuda (a GPU)", epochs: int = 100, seconds: float = 1.0) -> list[Row]:
    """Return rows of the MLP with so many hidden units, as the present code might have made them."""
    cell = make_cell("mlp", {"hidden": [hidden]}, "citeseer")
    backend = "numba" if device == "cpu" else "triton"
    row = replace(example_row(), version=provenance_here().text)
    key = replace(row.key, config=cell.config, revision=current_revision(cell, backend), data=Datasets().of(cell).data)
    return [
        replace(
            row,
            key=replace(key, seeds=Seeds(split, 0)),
            cell=cell.text,
            device=device,
            backend=backend,
            epochs=epochs,
            seconds=seconds,
        )
        for split in range(runs)
    ]


def planned(folder: Path, rows: list[Row], **options) -> VerificationPlan:
    with Store.open(folder, create=True) as store:
        store.add_all(rows)
        return plan_verification(store, **options)


def test_every_cell_has_a_row_before_any_has_two(tmp_path: Path):
    rows = [*rows_of(1, 50), *rows_of(2, 1), *rows_of(3, 5), *rows_of(4, 5)]
    for sample, shares in ((4, [1, 1, 1, 1]), (7, [1, 2, 2, 2]), (100, [1, 5, 5, 50])):
        plan = planned(tmp_path, rows, sample=sample)
        counts = Counter(one.cell.text for one in plan.chosen)
        assert sorted(counts.values()) == shares
        assert (plan.rows, plan.stale, plan.cells) == (61, 0, 4)


def test_the_few_rows_from_the_cpu_are_among_the_first(tmp_path: Path):
    rows = [row for hidden in range(1, 21) for row in rows_of(hidden, 3)] + rows_of(50, 2, "cpu")
    for seed in range(5):
        kinds = Counter(one.kind for one in planned(tmp_path, rows, sample=2, seed=seed).chosen)
        assert kinds == {"exact": 1, "gpu": 1}


@pytest.mark.parametrize(("device", "backend", "kind"), [("cpu", "numpy", "exact"), ("cuda (a GPU)", "torch", "gpu")])
def test_a_model_that_is_fitted_must_be_the_same_on_the_cpu(tmp_path: Path, device: str, backend: str, kind: str):
    cell = make_cell("bootstrapped_fp", {}, "citeseer")
    row = replace(example_row(), version=provenance_here().text)
    key = replace(row.key, config=cell.config, revision=current_revision(cell, backend), data=Datasets().of(cell).data)
    rows = [replace(row, key=key, cell=cell.text, device=device, backend=backend, epochs=0)]
    assert [one.kind for one in planned(tmp_path, rows).chosen] == [kind]


def test_the_time_bounds_the_choice_and_names_the_cells_that_never_fit(tmp_path: Path):
    short, long = rows_of(1, 20, "cpu", seconds=10.0), rows_of(2, 5, "cpu", seconds=1000.0)
    plan = planned(tmp_path, [*short, *long], sample=100, minutes=1.0)
    assert (len(plan.chosen), plan.seconds) == (6, 60.0)
    assert [cell.text for cell in plan.long] == [long[0].cell]
    assert plan_line(plan) == (
        "Computing 6 of 25 rows once more, from 1 cell (6 from this kind of CPU): about 1.0 min on two cores. "
        "Left out: 1 cell whose runs are longer than --minutes allows."
    )
    assert planned(tmp_path, [], sample=100, minutes=1000.0).long == ()


def test_one_row_is_chosen_however_long_it_takes(tmp_path: Path):
    rows = [*rows_of(1, 2, "cpu", seconds=100.0), *rows_of(2, 2, "cpu", seconds=90.0)]
    (one,) = planned(tmp_path, rows, minutes=0.01).chosen
    assert one.seconds == 90.0


def test_rows_from_a_gpu_take_as_long_as_their_epochs(tmp_path: Path):
    plan = planned(tmp_path, [*rows_of(1, 1, epochs=100), *rows_of(2, 1, epochs=300)])
    first, second = sorted(one.seconds for one in plan.chosen)
    assert second == pytest.approx(3 * first)


@pytest.mark.parametrize("wrong", [{"sample": 0}, {"seed": -1}, {"minutes": 0}, {"minutes": float("nan")}])
def test_bad_options_are_refused(tmp_path: Path, wrong: dict[str, float]):
    with pytest.raises(InputError, match=f"The '{next(iter(wrong))}' parameter of plan_verification must be"):
        planned(tmp_path, rows_of(1, 1), **wrong)
