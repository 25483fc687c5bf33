"""A user's model beside others on the same runs: means, intervals and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from pprop.study.cell import Cell, Seeds
from pprop.study.revisions import current_data, current_revision
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.stats.paired import Over, Paired, paired_test, with_holm
from pprop.study.store.row import Row
from pprop.study.store.store import Store, pools


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
        Paired t-tests of the first model's accuracy against this one's, with Holm's correction over the models compared
        with; None for the first itself.
    """

    cell: Cell
    accuracy: Estimate
    f1: Estimate
    seconds: float
    over_runs: Paired | None
    over_splits: Paired | None


def current_rows(store: Store, cell: Cell) -> tuple[Row, ...]:
    """Return the rows of a cell of the present revision on the present data.

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
        cell: rows
        for cell in (first, *others)
        if (rows := [row for row in current_rows(store, cell) if row.key.seeds in wanted])
    }

    def tests(over: Over) -> Mapping[Cell, Paired]:
        values = {cell: {row.key.seeds: row.accuracy for row in rows} for cell, rows in found.items()}
        rivals = [cell for cell in found if cell is not first and first in found]
        made = with_holm([paired_test(values[first], values[cell], over) for cell in rivals])
        return dict(zip(rivals, made, strict=True))

    over_runs, over_splits = tests("runs"), tests("splits")
    return [
        Versus(
            cell=cell,
            accuracy=estimate([row.accuracy for row in rows]),
            f1=estimate([row.f1 for row in rows]),
            seconds=sum(row.seconds for row in rows) / len(rows),
            over_runs=over_runs.get(cell),
            over_splits=over_splits.get(cell),
        )
        for cell, rows in found.items()
    ]
