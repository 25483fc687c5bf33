"""Whether rows are what the present code computes: a random sample of them, computed once more."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import DatasetError, InputError, PpropError
from pprop._validate import check_int
from pprop.study.cell import Cell
from pprop.study.prepared import Datasets
from pprop.study.recipe import Place, recipe_of
from pprop.study.row import Row, RowKey
from pprop.study.store import Group, Store
from pprop.study.versions import current_code
from pprop.study.watch import Watch, title_of

__all__ = ["GPU_DIFFERENCE", "Checked", "Verification", "verify_study"]

GPU_DIFFERENCE = 0.03
"""How far the accuracy of a run from a GPU may be from that of the same run on the CPU. They have the same masks, but
rounding makes them part after some epochs; then they differ like two initialisations of one split, 0.01 in general."""

_CPU = Place("cpu", "numba")
_EXACT = ("accuracy", "f1", "f1_macro", "stopping_loss", "stopping_accuracy", "epochs", "best_epoch")


@final
@dataclass(frozen=True)
class Checked:
    """A row that was computed once more.

    Attributes
    ----------
    key, cell
        Which one.
    exact
        Whether it was compared bit for bit; otherwise by its accuracy.
    differences
        What differs, in words; empty if nothing does.
    """

    key: RowKey
    cell: Cell
    exact: bool
    differences: tuple[str, ...]


@final
@dataclass(frozen=True)
class Verification:
    """What a verification found.

    Attributes
    ----------
    rows
        Rows in the store.
    checked
        Those computed once more.
    stale
        Rows of another version of the code or the data, which this code cannot compute again.
    absent
        For each dataset or model of one's own that is not here, a sentence that says so and how many rows need it.
    """

    rows: int
    checked: tuple[Checked, ...]
    stale: int
    absent: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether every row that was computed once more is the same."""
        return not any(checked.differences for checked in self.checked)


def verify_study(store: Store, watch: Watch, sample: int = 10, seed: int = 0) -> Verification:
    """Compute a random sample of rows once more, on the CPU, and compare.

    Rows from the CPU must be the same bit for bit: predictions, metrics, stopping, epochs. Those from a GPU may differ in
    accuracy by up to `GPU_DIFFERENCE`.

    Parameters
    ----------
    store
        The rows.
    watch
        Told how it goes.
    sample
        How many rows; at most all.
    seed
        Of the choice.

    Raises
    ------
    InputError
        No row is of the present version of the code and the data.
    DatasetError
        None can be computed once more, since a dataset is not here.
    """
    check_int(sample, "sample", "verify_study", low=1)
    check_int(seed, "seed", "verify_study", low=0)
    datasets, groups, here = Datasets(), store.groups(), _Here()
    current = {(group.config, group.code, group.data) for group in groups if here.has(group, datasets)}
    there = store.keys()
    keys = sorted(key for key in there if (key.config, key.code, key.data) in current)
    rows = sum(group.runs for group in groups)
    if not keys:
        here.refuse(rows)
    chosen: NDArray[np.int64] = np.random.default_rng(seed).choice(
        len(keys), size=min(sample, len(keys)), replace=False
    )
    by_cell: dict[str, list[RowKey]] = defaultdict(list)
    for index in sorted(int(one) for one in chosen):
        by_cell[keys[index].config].append(keys[index])
    checked: list[Checked] = []
    for number, (config, some) in enumerate(by_cell.items(), start=1):
        kept = {row.key: row for row in store.rows(config)}
        cell = Cell.parse(kept[some[0]].cell)
        watch.cell(cell, number)
        again = _compute(cell, datasets, some)
        checked += [_compare(kept[key], again[key], cell) for key in some]
        watch.runs(len(checked), None)
    return Verification(rows, tuple(checked), rows - len(keys) - here.n_absent, here.absent)


@final
class _Here:
    """Which rows this machine can compute once more, and what it lacks for the others."""

    def __init__(self) -> None:
        self._datasets: dict[str, tuple[PpropError, int]] = {}
        self._models: dict[str, tuple[PpropError, int]] = {}

    def has(self, group: Group, datasets: Datasets) -> bool:
        """Whether a group is of the present code and data; what is not here is noted."""
        cell = group.cell
        try:
            if current_code(cell, group.backend) != group.code:
                return False
        except PpropError as error:
            self._models[cell.model] = error, self._models.get(cell.model, (error, 0))[1] + group.runs
            return False
        try:
            return datasets.of(cell).data == group.data
        except PpropError as error:
            self._datasets[cell.dataset] = error, self._datasets.get(cell.dataset, (error, 0))[1] + group.runs
            return False

    @property
    def n_absent(self) -> int:
        return sum(runs for lack in (self._datasets, self._models) for _, runs in lack.values())

    @property
    def absent(self) -> tuple[str, ...]:
        return tuple(
            f"The {what} {name!r} was not found here ({runs} row{'s' * (runs != 1)}): {error}"
            for what, lack in (("dataset", self._datasets), ("model", self._models))
            for name, (error, runs) in lack.items()
        )

    def refuse(self, rows: int) -> NoReturn:
        """Say why none of the rows can be computed once more."""
        if not self.absent:
            raise InputError(f"None of the {rows} rows is of the present version of the code and the data.")
        old = rows - self.n_absent
        others = (f"{old} of them are of another version of the code or the data.",) if old else ()
        sentence = " ".join((f"None of the {rows} rows can be computed once more.", *self.absent, *others))
        raise (DatasetError if self._datasets else InputError)(sentence)


def _compute(cell: Cell, datasets: Datasets, keys: list[RowKey]) -> dict[RowKey, Row]:
    computed: dict[Any, Row] = {}

    def take(row: Row) -> None:
        computed[row.key.seeds] = row

    seeds = list(dict.fromkeys(key.seeds for key in keys))
    recipe = recipe_of(cell, datasets.of(cell), _CPU)
    for begin in range(0, len(seeds), recipe.at_once or len(seeds)):
        recipe.compute(seeds[begin : begin + (recipe.at_once or len(seeds))], take)
    return {key: computed[key.seeds] for key in keys}


def _compare(kept: Row, again: Row, cell: Cell) -> Checked:
    exact = kept.backend == again.backend and kept.device == "cpu"
    what = f"{title_of(cell)}, split {kept.key.seeds.split}, initialisation {kept.key.seeds.init}: "
    differences: list[str] = []
    if exact:
        for name in _EXACT:
            ours, theirs = getattr(again, name), getattr(kept, name)
            if ours != theirs and not (ours != ours and theirs != theirs):  # NaN is the same as NaN
                differences.append(f"{what}{name} is {theirs!r} in the store, and {ours!r} computed anew.")
        wrong = int(np.count_nonzero(kept.predictions != again.predictions)) if _same_size(kept, again) else -1
        if wrong:
            differences.append(f"{what}the predictions of {'all' if wrong < 0 else wrong} nodes differ.")
    elif abs(kept.accuracy - again.accuracy) > GPU_DIFFERENCE:
        by = f"more than {GPU_DIFFERENCE} apart"
        differences.append(
            f"{what}the accuracy on {kept.device} is {kept.accuracy}, on the CPU {again.accuracy}, {by}."
        )
    return Checked(kept.key, cell, exact, tuple(differences))


def _same_size(kept: Row, again: Row) -> bool:
    return kept.predictions.shape == again.predictions.shape
