"""Whether rows are what is computed now: a sample of them, computed once more on the CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, final

import numpy as np

from pprop._errors import PpropError
from pprop._validate import counted
from pprop.study.cell import Cell, Seeds, title_of
from pprop.study.graphs import load_graph
from pprop.study.run.progress import Watch
from pprop.study.run.recipe import ComputePlace, Datasets
from pprop.study.run.runner import recipe_of
from pprop.study.stats.variance import mean_bound, row_bound, spread
from pprop.study.store.row import Row, RowKey
from pprop.study.store.store import Store
from pprop.study.verify.plan import KINDS, Kind, Planned, VerificationPlan

# Where rows are computed once more.
CPU = ComputePlace("cpu", "numba")
_EXACT = ("accuracy", "f1", "f1_macro", "stopping_loss", "stopping_accuracy", "epochs", "best_epoch")


@final
@dataclass(frozen=True)
class Checked(Planned):
    """A row that was computed once more. Those of kind "exact" were compared bit for bit, the others by their accuracy.

    Attributes
    ----------
    apart
        The accuracy in the store minus that computed anew.
    same
        Share of the nodes with the same predicted class; NaN where the numbers of nodes differ.
    sigma
        Spread of the other runs of the cell (`pprop.study.stats.variance.spread`).
    made
        How what made it differs from what is here, in words: `Provenance.apart`.
    differences
        What differs, in words; empty if nothing does.
    """

    apart: float
    same: float
    sigma: float
    made: tuple[str, ...]
    differences: tuple[str, ...]


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

    plan: VerificationPlan
    checked: tuple[Checked, ...]
    means: tuple[MeanDifference, ...]
    failed: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """All that is not as it should be, in words."""
        found = [one for checked in self.checked for one in checked.differences]
        found += [
            f"The mean difference of {mean.rows} rows {KINDS[mean.kind]} is {mean.mean:+.5f}, beyond {mean.bound:.5f}: an "
            "error that is systematic, not rounding."
            for mean in self.means
            if not mean.sound
        ]
        return tuple(found)

    @property
    def sound(self) -> bool:
        """Whether every row that was computed once more is the same, or as near as it should be, also on average."""
        return not self.differences


def verify_study(store: Store, plan: VerificationPlan, watch: Watch, place: ComputePlace = CPU) -> Verification:
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
        Where progress is reported.
    place
        Where they are computed; those that a plan takes for exact are so on the CPU alone.
    """
    datasets, checked, failed = Datasets(partial(load_graph, study=store.path.parent)), list[Checked](), list[str]()
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
    of_kind = [[one for one in checked if one.kind == kind] for kind in KINDS if kind != "exact"]
    means = tuple(_mean(some) for some in of_kind if some)
    return Verification(plan, tuple(checked), means, tuple(failed))


def _compute(cell: Cell, datasets: Datasets, some: Sequence[Planned], place: ComputePlace) -> dict[Seeds, Row]:
    computed: list[Row] = []
    seeds = list(dict.fromkeys(planned.key.seeds for planned in some))
    recipe = recipe_of(cell, datasets.of(cell), place)
    for begin in range(0, len(seeds), recipe.at_once or len(seeds)):
        recipe.compute(seeds[begin : begin + (recipe.at_once or len(seeds))], computed.append)
    return {row.key.seeds: row for row in computed}


def _compare(planned: Planned, rows: dict[RowKey, Row], again: Row, some: Sequence[Planned]) -> Checked:
    kept, seeds = rows[planned.key], planned.key.seeds
    chosen, version = {one.key for one in some}, (planned.key.revision, planned.key.data)
    # without the rows in question: one that is far off must not widen its own bound
    others = [row for key, row in rows.items() if (key.revision, key.data) == version and key not in chosen]
    sigma = spread({row.key.seeds: row.accuracy for row in others})
    what = f"{title_of(planned.cell)}, split {seeds.split}, initialisation {seeds.init}: "
    differences: list[str] = []
    same_size = kept.predictions.shape == again.predictions.shape
    alike = int(np.count_nonzero(kept.predictions == again.predictions)) if same_size else None
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
    return Checked(**vars(planned), apart=apart, same=same, sigma=sigma, made=made, differences=tuple(differences))


def _mean(checked: Sequence[Checked]) -> MeanDifference:
    apart = [one.apart for one in checked]
    bound = mean_bound(apart, [one.sigma for one in checked])
    told, same = sum(one.same == one.same for one in checked), sum(one.same == 1.0 for one in checked)
    return MeanDifference(checked[0].kind, len(checked), told, same, float(np.mean(apart)), bound)


def plan_line(plan: VerificationPlan) -> str:
    """Return what will be computed, and how long it may take.

    >>> plan_line(VerificationPlan((), rows=3, stale=1))
    'Computing 0 of 3 rows once more, from 0 cells: about 0.0 min on two cores. Left out: 1 of other revisions.'
    """
    kinds = Counter(planned.kind for planned in plan.chosen)
    what = ", ".join(f"{kinds[kind]} {name}" for kind, name in KINDS.items() if kinds[kind])
    begin = f"Computing {len(plan.chosen)} of {plan.rows:,} rows once more, from {counted(plan.cells, 'cell')}"
    out = [f"{plan.stale:,} of other revisions"] if plan.stale else []
    if plan.long:
        out.append(f"{counted(len(plan.long), 'cell')} whose runs are longer than --minutes allows")
    left = f" Left out: {'; '.join(out)}." if out else ""
    return f"{begin}{f' ({what})' if what else ''}: about {plan.seconds / 60:.1f} min on two cores.{left}"


def found_record(found: Verification) -> dict[str, Any]:
    """Return what a verification found, for JSON."""
    return {
        "rows": found.plan.rows,
        "checked": len(found.checked),
        "exact": sum(checked.kind == "exact" for checked in found.checked),
        "stale": found.plan.stale,
        "long": [title_of(cell) for cell in found.plan.long],
        "absent": list(found.plan.absent),
        "failed": list(found.failed),
        "means": [vars(mean) for mean in found.means],
        "compared": [
            {
                "cell": checked.cell.text,
                **vars(checked.key.seeds),
                "kind": checked.kind,
                "apart": checked.apart,
                "same": None if checked.same != checked.same else checked.same,
                "sigma": checked.sigma,
                "within_rounding": within_rounding(checked),
            }
            for checked in found.checked
        ],
        "sound": found.sound,
        "differences": list(found.differences),
    }


def found_lines(found: Verification) -> list[str]:
    """Return what a verification found, for people."""
    exact = sum(checked.kind == "exact" for checked in found.checked)
    how = f"{exact} bit for bit, {len(found.checked) - exact} by their accuracy"
    lines = [f"{counted(len(found.checked), 'row')} of {found.plan.rows:,} computed once more: {how}."]
    lines += [_mean_line(mean) for mean in found.means]
    if found.plan.stale:
        lines.append(
            f"{counted(found.plan.stale, 'row')} of other revisions or other data left out; --stale computes those of "
            "other revisions, too."
        )
    if found.plan.long:
        by_dataset = Counter(cell.dataset for cell in found.plan.long)
        where = ", ".join(f"{count} on {dataset}" for dataset, count in by_dataset.items())
        cells = counted(len(found.plan.long), "cell")
        lines.append(f"{cells} left out, whose runs are longer than --minutes allows: {where}.")
    near = other_cpu_line(found.checked)
    return [*lines, *found.plan.absent, *found.failed, *(found.differences or ("No difference.",)), *near]


def other_cpu_line(checked: Sequence[Checked]) -> list[str]:
    """Return what rows from the CPU that are not the same in bits, but as near as rows from a GPU may be, speak for.

    >>> other_cpu_line([])
    []
    """
    differ = [one for one in checked if one.kind == "exact" and one.differences]
    near = [one for one in differ if within_rounding(one)]
    if not near:
        return []
    equal = sum(one.same == 1.0 for one in near)
    largest, bound = max(abs(one.apart) for one in near), min(row_bound(one.sigma) for one in near)
    fewest = min(one.same for one in near)
    rest = "" if len(near) == len(differ) else f" The other {len(differ) - len(near)} cannot be explained like that."
    made = "; ".join(dict.fromkeys(one for each in near for one in each.made))
    others = f"are not all the same here: {made}" if made else "are the same here"
    return [
        f"{len(near)} of the {counted(len(differ), 'row')} from the CPU with differences would pass for rows from a GPU: "
        f"the same class for every node in {equal}, for {fewest:.2%} of the nodes at least, and accuracies at most "
        f"{largest:.5f} apart, where {bound:.5f} or more may be. Other builds of numpy, numba or torch give such "
        f"differences; so may an error. The CPU and the libraries that made the rows {others}. They count as differences.{rest}"
    ]


def within_rounding(checked: Checked) -> bool:
    """Whether a row is as near to the one computed anew as one from a GPU may be.

    The epochs may be others: where rounding decides which one is kept, they are.
    """
    return checked.same == checked.same and abs(checked.apart) <= row_bound(checked.sigma)


def _mean_line(mean: MeanDifference) -> str:
    kept = "" if mean.told == mean.rows else f" of the {mean.told} whose predictions were kept"
    return (
        f"{counted(mean.rows, 'row')} {KINDS[mean.kind]}: the same class for every node in {mean.same}{kept}; mean difference in accuracy "
        f"{mean.mean:+.5f} (at most {mean.bound:.5f})."
    )
