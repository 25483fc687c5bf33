"""What a verification will do and has found, in words and as a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pprop.study.stats.agreement import row_bound
from pprop.study.verify import Checked, MeanDifference, Verification
from pprop.study.verify_plan import KINDS, Plan
from pprop.study.watch import title_of

__all__ = ["found_lines", "found_record", "other_cpu_line", "plan_line", "within_rounding"]


def plan_line(plan: Plan) -> str:
    """Return what will be computed, and how long it may take.

    >>> plan_line(Plan((), rows=3, stale=1))
    'Computing 0 of 3 rows once more, from 0 cells: about 0.0 min on two cores. Left out: 1 of other revisions.'
    """
    kinds = Counter(planned.kind for planned in plan.chosen)
    what = ", ".join(f"{kinds[kind]} {name}" for kind, name in KINDS.items() if kinds[kind])
    begin = f"Computing {len(plan.chosen)} of {plan.rows:,} rows once more, from {_counted(plan.cells, 'cell')}"
    out = [f"{plan.stale:,} of other revisions"] if plan.stale else []
    if plan.long:
        out.append(f"{_counted(len(plan.long), 'cell')} whose runs are longer than --minutes allows")
    left = f" Left out: {'; '.join(out)}." if out else ""
    return f"{begin}{f' ({what})' if what else ''}: about {plan.seconds / 60:.1f} min on two cores.{left}"


def found_record(found: Verification) -> dict[str, Any]:
    """Return what a verification found, for JSON."""
    return {
        "rows": found.plan.rows,
        "checked": len(found.checked),
        "exact": sum(checked.exact for checked in found.checked),
        "stale": found.plan.stale,
        "long": [title_of(cell) for cell in found.plan.long],
        "absent": list(found.plan.absent),
        "failed": list(found.failed),
        "means": [vars(mean) for mean in found.means],
        "compared": [
            {
                "cell": checked.cell.text,
                "split": checked.key.seeds.split,
                "init": checked.key.seeds.init,
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
    exact = sum(checked.exact for checked in found.checked)
    how = f"{exact} bit for bit, {len(found.checked) - exact} by their accuracy"
    lines = [f"{_counted(len(found.checked), 'row')} of {found.plan.rows:,} computed once more: {how}."]
    lines += [_mean_line(mean) for mean in found.means]
    if found.plan.stale:
        lines.append(
            f"{_counted(found.plan.stale, 'row')} of other revisions or other data left out; --stale computes those of "
            "other revisions, too."
        )
    if found.plan.long:
        by_dataset = Counter(cell.dataset for cell in found.plan.long)
        where = ", ".join(f"{count} on {dataset}" for dataset, count in by_dataset.items())
        lines.append(
            f"{_counted(len(found.plan.long), 'cell')} left out, whose runs are longer than --minutes allows: {where}."
        )
    near = other_cpu_line(found.checked)
    return [*lines, *found.plan.absent, *found.failed, *(found.differences or ("No difference.",)), *near]


def other_cpu_line(checked: Sequence[Checked]) -> list[str]:
    """Return what rows from the CPU that are not the same in bits, but as near as rows from a GPU may be, speak for.

    >>> other_cpu_line([])
    []
    """
    differ = [one for one in checked if one.exact and one.differences]
    near = [one for one in differ if within_rounding(one)]
    if not near:
        return []
    equal = sum(one.same == 1.0 for one in near)
    largest, bound = max(abs(one.apart) for one in near), min(row_bound(one.sigma) for one in near)
    fewest = min(one.same for one in near)
    rest = "" if len(near) == len(differ) else f" The other {len(differ) - len(near)} cannot be explained like that."
    return [
        f"{len(near)} of the {_counted(len(differ), 'row')} from the CPU with differences would pass for rows from a GPU: "
        f"the same class for every node in {equal}, for {fewest:.2%} of the nodes at least, and accuracies at most "
        f"{largest:.5f} apart, where {bound:.5f} or more may be. Other builds of numpy, numba or torch give such "
        f"differences; so may an error. {_made(near)} They count as differences.{rest}"
    ]


def _made(checked: Sequence[Checked]) -> str:
    """Return how what made some rows differs from what is here."""
    found = Counter(one for each in checked for one in each.made)
    if not found:
        return "What made the rows is recorded, and is the same here."
    return f"What made the rows, as far as it was recorded, is not what is here: {'; '.join(found)}."


def within_rounding(checked: Checked) -> bool:
    """Whether a row is as near to the one computed anew as one from a GPU may be.

    The epochs may be others: where rounding decides which one is kept, they are.
    """
    return checked.same == checked.same and abs(checked.apart) <= row_bound(checked.sigma)


def _mean_line(mean: MeanDifference) -> str:
    kept = "" if mean.told == mean.rows else f" of the {mean.told} whose predictions were kept"
    return (
        f"{_counted(mean.rows, 'row')} {KINDS[mean.kind]}: the same class for every node in {mean.same}{kept}; mean difference in accuracy "
        f"{mean.mean:+.5f} (at most {mean.bound:.5f})."
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
