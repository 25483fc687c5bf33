"""What a verification found, in words: above all, rows from the CPU that only another kind of CPU explains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pprop.study.cell import Seeds, make_cell
from pprop.study.stats.variance import row_bound
from pprop.study.store.row import RowKey
from pprop.study.verify.plan import Kind, VerificationPlan
from pprop.study.verify.verify import Checked, MeanDifference, Verification, found_lines, found_record, within_rounding

CELL = make_cell("bootstrapped_fp", {}, "pubmed")
SIGMA = 0.01


OTHERWISE = ("numpy 2.3, not 2.4",)


def row(number: int, apart: float, same: float, differences: tuple[str, ...] = (), kind: Kind = "exact") -> Checked:
    key = RowKey(CELL.config, "numpy-3", "0" * 32, Seeds(number, 0))
    return Checked(key, CELL, kind, 1.0, apart, same, SIGMA, OTHERWISE, differences)


def found(*rows: Checked) -> Verification:
    return Verification(VerificationPlan((), rows=len(rows), stale=0), rows, ())


LOSSES = "the stopping loss is 0.7 in the store, and 0.7000000001 computed anew."
AS_ON_X86 = (*(row(k, 0.0, 1.0, (LOSSES,)) for k in range(5)), row(5, 0.0001, 1 - 22 / 19717, ("22 nodes", "accuracy")))


def test_rows_that_another_kind_of_cpu_explains_are_differences_and_said_to_be_near():
    verification = found(*AS_ON_X86, row(6, 0.0, 1.0))
    assert not verification.sound  # so that the exit code is that of a difference
    lines = found_lines(verification)
    assert lines[1:-1] == [LOSSES] * 5 + ["22 nodes", "accuracy"]
    assert lines[-1] == (
        "6 of the 6 rows from the CPU with differences would pass for rows from a GPU: the same class for every node in 5, "
        "for 99.89% of the nodes at least, and accuracies at most 0.00010 apart, where 0.05657 or more may be. Other builds "
        "of numpy, numba or torch give such differences; so may an error. The CPU and the libraries that made the rows are not "
        "all the same here: numpy 2.3, not 2.4. They count as differences."
    )
    record = found_record(verification)
    assert (record["sound"], record["differences"]) == (False, list(verification.differences))
    assert [one["within_rounding"] for one in record["compared"]] == [True] * 7


@pytest.mark.parametrize(("apart", "same"), [(1.01 * row_bound(SIGMA), 0.9), (float("nan"), 0.9), (0.0, float("nan"))])
def test_a_row_beyond_the_bound_or_of_another_size_is_not_excused(apart: float, same: float):
    far = row(9, apart, same, ("far off",))
    assert not within_rounding(far)
    assert found_lines(found(far))[1:] == ["far off"]
    last = found_lines(found(*AS_ON_X86, far))[-1]
    assert last.startswith("6 of the 7 rows from the CPU with differences would pass for rows from a GPU")
    assert last.endswith("They count as differences. The other 1 cannot be explained like that.")


def test_rows_made_by_the_same_libraries_on_the_same_cpu_have_no_excuse_in_words():
    alike = replace(AS_ON_X86[0], made=())
    assert "The CPU and the libraries that made the rows are the same here." in found_lines(found(alike))[-1]


def test_nothing_is_said_without_a_difference_or_about_rows_that_may_differ():
    assert found_lines(found(row(0, 0.0, 1.0)))[1:] == ["No difference."]
    gpu = row(1, 0.5, 0.5, ("too far apart",), kind="gpu")
    assert found_lines(found(gpu))[1:] == ["too far apart"]


def test_rows_without_predictions_are_not_counted_as_others_and_long_cells_are_named():
    mean = MeanDifference("gpu", 9, told=1, same=1, mean=0.0002, bound=0.045)
    cells = tuple(make_cell(model, {}, "ms_academic") for model in ("gat", "jk"))
    plan = VerificationPlan((), rows=9, stale=0, long=(*cells, CELL))
    lines = found_lines(Verification(plan, (), (mean,)))
    assert lines[1:3] == [
        "9 rows from a GPU: the same class for every node in 1 of the 1 whose predictions were kept; mean difference in "
        "accuracy +0.00020 (at most 0.04500).",
        "3 cells left out, whose runs are longer than --minutes allows: 2 on ms_academic, 1 on pubmed.",
    ]
    every = MeanDifference("gpu", 9, told=9, same=8, mean=0.0002, bound=0.045)
    assert "in 8; mean" in found_lines(Verification(plan, (), (every,)))[1]
