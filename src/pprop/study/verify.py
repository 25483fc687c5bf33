"""Whether rows are what is computed now: a sample of them, computed once more on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

import numpy as np

from pprop._errors import PpropError
from pprop.study.cell import Cell, Seeds
from pprop.study.prepared import Datasets
from pprop.study.recipe import Place, recipe_of
from pprop.study.row import Row, RowKey
from pprop.study.stats.agreement import mean_bound, row_bound, spread
from pprop.study.store import Store
from pprop.study.verify_plan import KINDS, Kind, Plan, Planned
from pprop.study.watch import Watch, title_of

__all__ = ["CPU", "Checked", "MeanDifference", "Verification", "verify_study"]

CPU = Place("cpu", "numba")
"""Where rows are computed once more."""
_EXACT = ("accuracy", "f1", "f1_macro", "stopping_loss", "stopping_accuracy", "epochs", "best_epoch")


@final
@dataclass(frozen=True)
class Checked:
    """A row that was computed once more.

    Attributes
    ----------
    key, cell, kind
        Which one. Those of kind "exact" were compared bit for bit, the others by their accuracy.
    apart
        The accuracy in the store minus that computed anew.
    same
        Share of the nodes with the same predicted class; NaN where the numbers of nodes differ.
    sigma
        Spread of the other runs of the cell (`pprop.study.stats.agreement.spread`).
    made
        How what made it differs from what is here, in words: `Provenance.apart`.
    differences
        What differs, in words; empty if nothing does.
    """

    key: RowKey
    cell: Cell
    kind: Kind
    apart: float
    same: float
    sigma: float
    made: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether it was compared bit for bit."""
        return self.kind == "exact"


@final
@dataclass(frozen=True)
class MeanDifference:
    """The mean difference of all rows of one kind, and how far from 0 it may be.

    `told` rows have predictions to compare, which a packed study may lack; `same` of them are equal for every node.

    Examples
    --------
    >>> MeanDifference("gpu", 20, told=16, same=15, mean=0.001, bound=0.003).sound
    True
    """

    kind: Kind
    rows: int
    told: int
    same: int
    mean: float
    bound: float

    @property
    def sound(self) -> bool:
        """Whether rounding explains it."""
        return abs(self.mean) <= self.bound


@final
@dataclass(frozen=True)
class Verification:
    """What a verification found.

    Attributes
    ----------
    plan
        What was chosen and left out.
    checked
        The rows computed once more.
    means
        Of those from a GPU, of another kind of CPU, and of other revisions, where there are some.
    failed
        Sentences on rows of other revisions that the present one refuses to compute.
    """

    plan: Plan
    checked: tuple[Checked, ...]
    means: tuple[MeanDifference, ...]
    failed: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """All that is not as it should be, in words."""
        means = (
            f"The mean difference of {mean.rows} rows {KINDS[mean.kind]} is {mean.mean:+.5f}, beyond {mean.bound:.5f}: an "
            "error that is systematic, not rounding."
            for mean in self.means
            if not mean.sound
        )
        return (*(one for checked in self.checked for one in checked.differences), *means)

    @property
    def sound(self) -> bool:
        """Whether every row that was computed once more is the same, or as near as it should be, also on average."""
        return not self.differences


def verify_study(store: Store, plan: Plan, watch: Watch, place: Place = CPU) -> Verification:
    """Compute the rows of a plan once more, and compare.

    Rows from this kind of CPU must be the same bit for bit: predictions, metrics, stopping, epochs. Those from another kind,
    from a GPU or of another revision may differ in accuracy by `row_bound` each and by `mean_bound` on average.

    Parameters
    ----------
    store
        The rows.
    plan
        Which of them, by `plan_verification`.
    watch
        Told how it goes.
    place
        Where they are computed; those that a plan takes for exact are so on the CPU alone.
    """
    datasets, checked, failed = Datasets(), list[Checked](), list[str]()
    left = plan.seconds
    for number, (config, group) in enumerate(groupby(plan.chosen, key=lambda planned: planned.key.config), start=1):
        some = list(group)
        watch.cell(some[0].cell, number)
        kept = {row.key: row for row in store.rows(config)}
        try:
            again = _compute(some[0].cell, datasets, some, place)
        except PpropError as error:
            if any(planned.kind != "stale" for planned in some):
                raise
            failed.append(f"{title_of(some[0].cell)}: it cannot be computed now: {error}")
            continue
        checked += [_compare(planned, kept, again[planned.key.seeds], some) for planned in some]
        left -= sum(planned.seconds for planned in some)
        watch.runs(len(checked), left)
    means = tuple(
        _mean(kind, checked) for kind in KINDS if kind != "exact" and any(one.kind == kind for one in checked)
    )
    return Verification(plan, tuple(checked), means, tuple(failed))


def _compute(cell: Cell, datasets: Datasets, some: Sequence[Planned], place: Place) -> dict[Seeds, Row]:
    computed: dict[Seeds, Row] = {}

    def take(row: Row) -> None:
        computed[row.key.seeds] = row

    seeds = list(dict.fromkeys(planned.key.seeds for planned in some))
    recipe = recipe_of(cell, datasets.of(cell), place)
    for begin in range(0, len(seeds), recipe.at_once or len(seeds)):
        recipe.compute(seeds[begin : begin + (recipe.at_once or len(seeds))], take)
    return computed


def _compare(planned: Planned, rows: dict[RowKey, Row], again: Row, some: Sequence[Planned]) -> Checked:
    kept, seeds = rows[planned.key], planned.key.seeds
    of_group = {key: row for key, row in rows.items() if _version(key) == _version(planned.key)}
    # without the rows in question: one that is far off must not widen its own bound
    sigma = spread({key.seeds: row.accuracy for key, row in of_group.items() if key not in {one.key for one in some}})
    what = f"{title_of(planned.cell)}, split {seeds.split}, initialisation {seeds.init}: "
    differences: list[str] = []
    alike = int(np.count_nonzero(kept.predictions == again.predictions)) if _same_size(kept, again) else None
    same = float("nan") if alike is None else alike / len(kept.predictions)
    if planned.kind == "exact":
        for name in _EXACT:
            ours, theirs = getattr(again, name), getattr(kept, name)
            if ours != theirs and not (ours != ours and theirs != theirs):  # NaN is the same as NaN
                differences.append(f"{what}{name} is {theirs!r} in the store, and {ours!r} computed anew.")
        if same != 1.0 and len(kept.predictions):  # they may have been left out of a packed study
            wrong = "all" if alike is None else len(kept.predictions) - alike
            differences.append(f"{what}the predictions of {wrong} nodes differ.")
    elif not abs(kept.accuracy - again.accuracy) <= row_bound(sigma):
        there = kept.device if planned.kind == "gpu" else kept.provenance.cpu or kept.device
        differences.append(
            f"{what}the accuracy on {there} is {kept.accuracy:.5f}, on the {again.device} here {again.accuracy:.5f}, more than "
            f"{row_bound(sigma):.5f} apart."
        )
    apart, made = kept.accuracy - again.accuracy, kept.provenance.apart(again.provenance)
    return Checked(planned.key, planned.cell, planned.kind, apart, same, sigma, made, tuple(differences))


def _mean(kind: Kind, checked: Sequence[Checked]) -> MeanDifference:
    of_kind = [one for one in checked if one.kind == kind]
    apart = [one.apart for one in of_kind]
    bound = mean_bound(apart, [one.sigma for one in of_kind])
    told, same = sum(one.same == one.same for one in of_kind), sum(one.same == 1.0 for one in of_kind)
    return MeanDifference(kind, len(of_kind), told, same, float(np.mean(apart)), bound)


def _version(key: RowKey) -> tuple[str, str]:
    return key.revision, key.data


def _same_size(kept: Row, again: Row) -> bool:
    return kept.predictions.shape == again.predictions.shape
