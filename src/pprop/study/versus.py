"""One model beside others on the same runs: its row, its interval, and whether the difference could be chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from pprop.study.cell import Cell, Seeds
from pprop.study.holm import holm
from pprop.study.pools import pools
from pprop.study.row import Row
from pprop.study.statistics import Paired, Summary, paired_test, summarise
from pprop.study.store import Store
from pprop.study.versions import current_data, current_revision

__all__ = ["Versus", "compare_models", "current_rows"]


@final
@dataclass(frozen=True)
class Versus:
    """A model in numbers.

    Attributes
    ----------
    cell
        Which one.
    accuracy, f1
        Mean and interval of both, in [0, 1]; the paper's F1.
    seconds
        Mean of a run.
    over_runs, over_splits
        Paired t-tests of the first model's accuracy against this one's; None for the first itself.
    holm_runs, holm_splits
        Their p-values after Holm's correction over the models compared with; NaN where there is no test.
    """

    cell: Cell
    accuracy: Summary
    f1: Summary
    seconds: float
    over_runs: Paired | None
    over_splits: Paired | None
    holm_runs: float = float("nan")
    holm_splits: float = float("nan")


def current_rows(store: Store, cell: Cell) -> tuple[Row, ...]:
    """Return the rows of a cell of the present revision on the present data; no others are pooled with them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     current_rows(store, Cell("mlp", {}, "citeseer"))
    ()
    """
    data = current_data(cell.dataset)
    for pool in pools(store, cell):
        if pool.data == data and pool.revision == current_revision(cell, pool.rows[0].backend):
            return pool.rows
    return ()


def compare_models(store: Store, first: Cell, others: Sequence[Cell], runs: Sequence[Seeds]) -> list[Versus]:
    """Return the first model and those it is compared with, on the wanted runs; a model without any is left out.

    Parameters
    ----------
    store
        Where the rows are.
    first
        The cell of the model in question.
    others
        Cells of the models to compare it with.
    runs
        The runs that count.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> mine, theirs = Cell("mlp", {}, "citeseer"), Cell("gcn", {}, "citeseer")
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     compare_models(store, mine, [theirs], [Seeds(1, 0)])
    []
    """
    wanted = set(runs)
    found = {
        cell.config: [row for row in current_rows(store, cell) if row.key.seeds in wanted] for cell in (first, *others)
    }
    compared = [
        _versus(cell, found[cell.config], None if cell is first else _accuracies(found[first.config]))
        for cell in (first, *others)
        if found[cell.config]
    ]
    runs_p, splits_p = (
        holm([float("nan") if test is None else test.p for test in tests])
        for tests in ([each.over_runs for each in compared], [each.over_splits for each in compared])
    )
    return [
        replace(each, holm_runs=float(over_runs), holm_splits=float(over_splits))
        for each, over_runs, over_splits in zip(compared, runs_p, splits_p, strict=True)
    ]


def _accuracies(rows: Sequence[Row]) -> Mapping[Seeds, float]:
    return {row.key.seeds: row.accuracy for row in rows}


def _versus(cell: Cell, rows: Sequence[Row], first: Mapping[Seeds, float] | None) -> Versus:
    mine = _accuracies(rows)
    return Versus(
        cell=cell,
        accuracy=summarise([row.accuracy for row in rows]),
        f1=summarise([row.f1 for row in rows]),
        seconds=sum(row.seconds for row in rows) / len(rows),
        over_runs=None if not first else paired_test(first, mine, "runs"),
        over_splits=None if not first else paired_test(first, mine, "splits"),
    )
