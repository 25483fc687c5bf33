"""The table of PPNP and APPNP against the others over more splits than the accuracy table has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pprop.study.stats.estimate import student_half
from pprop.study.stats.paired import paired_test, split_gaps
from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import Column, Group, Measure, Number, PValue, Table, Value
from pprop.study.tables.p_values import comparisons
from pprop.study.tables.titles import dataset_title

__all__ = ["more_leads_table"]


def more_leads_table(many: Mapping[str, Sequence[Entry]], few: Mapping[str, Sequence[Entry]]) -> Table:
    """Return every comparison of the p-values over all splits there are, beside the same over the accuracy table's.

    Parameters
    ----------
    many, few
        Entries by dataset: what `more_runs_entries` returns, and those of the accuracy table. Corrections after Holm are
        over the baselines of the former in both.

    Examples
    --------
    >>> more_leads_table({}, {}).n_rows
    0
    """
    groups: list[Group] = []
    for name, entries in many.items():
        configs = {entry.cell.config for entry in entries}
        before = [entry for entry in few.get(name, ()) if entry.cell.config in configs]
        rows = (*_tests(entries, before), *_each_other(entries, before))
        if rows:
            groups.append(Group(dataset_title(name), rows))
    columns = (
        Column("Model", "text"),
        Column("Against", "text"),
        Column("Splits"),
        Column("Difference, points", "measure"),
        Column("p, Holm"),
        Column("Splits of the accuracy table"),
        Column("Their difference", "measure"),
        Column("Their p, Holm"),
    )
    return Table("Leads over more splits", columns, tuple(groups))


def _tests(many: Sequence[Entry], few: Sequence[Entry]) -> Iterable[tuple[Value, ...]]:
    before = {(one.entry.cell.config, one.opponent.cell.config): one for one in comparisons(few, "accuracy")}
    for one in comparisons(many, "accuracy"):
        then = before[one.entry.cell.config, one.opponent.cell.config]
        yield (
            one.entry.title,
            one.opponent.title,
            *_values(one.entry, one.opponent, one.splits_holm),
            *_values(then.entry, then.opponent, then.splits_holm),
        )


def _each_other(many: Sequence[Entry], few: Sequence[Entry]) -> Iterable[tuple[Value, ...]]:
    """Yield PPNP against APPNP: one test, which needs no correction."""
    pairs = [{entry.cell.model: entry for entry in entries} for entries in (many, few)]
    if all({"ppnp", "appnp"} <= pair.keys() for pair in pairs):
        sides = [(pair["ppnp"], pair["appnp"]) for pair in pairs]
        tests = [paired_test(first.accuracies, second.accuracies, "splits") for first, second in sides]
        values = (_values(*side, test.p) for side, test in zip(sides, tests, strict=True))
        yield "PPNP", "APPNP", *(value for each in values for value in each)


def _values(first: Entry, second: Entry, p: float) -> tuple[Value, ...]:
    gaps = [*split_gaps(first.accuracies, second.accuracies).values()]
    return Number(len(gaps), 0), Measure(sum(gaps) / len(gaps), student_half(gaps)), PValue(p)
