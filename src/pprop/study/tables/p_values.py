"""The tables of p-values: the paper's models, and one's own, against each baseline and against the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from pprop.study.cell import Seeds
from pprop.study.stats.paired import Paired, describe_seeds, holm, paired_test
from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import Column, Group, Number, PValue, Strong, Table, Value
from pprop.study.tables.samples import Metric
from pprop.study.tables.titles import TESTED, dataset_title
from pprop.study.zoo import MODELS

__all__ = ["Comparison", "comparisons", "p_value_table"]

OWN_OPPONENTS = ("gcn", "appnp")


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """A model against one opponent on one dataset.

    Attributes
    ----------
    entry, opponent
        The two.
    best
        Whether the opponent is the best of the family, by our mean.
    runs, splits
        The paired tests over runs and over split means. Against a model with one run per split both are the latter.
    runs_holm, splits_holm
        Their p-values, corrected over all opponents of the model on the dataset.
    published
        The paper's p-value, which names no opponent: given for the best baseline of the paper's own table.
    """

    entry: Entry
    opponent: Entry
    best: bool
    runs: Paired
    splits: Paired
    runs_holm: float
    splits_holm: float
    published: float | None


def comparisons(group: Sequence[Entry], metric: Metric) -> list[Comparison]:
    """Return all comparisons on one dataset: PPNP, APPNP against the baselines; one's own model against GCN and APPNP.

    Examples
    --------
    >>> comparisons([], "accuracy")
    []
    """
    run = [entry for entry in group if entry.sample is not None]
    paper = [entry for entry in run if entry.experiment is not None]  # the corrections are over these alone
    found: list[Comparison] = []
    for entry in run:
        if entry.cell.model in TESTED:
            family = [other for other in paper if other.cell.model in MODELS and other.cell.model not in TESTED]
        elif entry.cell.model not in MODELS:
            family = [other for other in paper if other.cell.model in OWN_OPPONENTS]
        else:
            continue
        found.extend(_against(entry, family, metric, _best_in_the_paper(group, metric)))
    return found


def _against(entry: Entry, family: Sequence[Entry], metric: Metric, papers_best: str | None) -> list[Comparison]:
    ours = _values(entry, metric)
    means = [sum(_values(other, metric).values()) / len(_values(other, metric)) for other in family]
    splits = [paired_test(ours, _values(other, metric), "splits") for other in family]
    runs = [
        by_split if _one_run_per_split(other) else paired_test(ours, _values(other, metric), "runs")
        for other, by_split in zip(family, splits, strict=True)
    ]
    runs_holm, splits_holm = holm([test.p for test in runs]), holm([test.p for test in splits])
    printed = entry.experiment.published if entry.experiment else None
    paper = None if printed is None else {"accuracy": printed.p_accuracy, "f1": printed.p_f1}.get(metric)
    return [
        Comparison(
            entry,
            other,
            means[index] == max(means),
            runs[index],
            splits[index],
            float(runs_holm[index]),
            float(splits_holm[index]),
            paper if other.cell.model == papers_best else None,
        )
        for index, other in enumerate(family)
    ]


def p_value_table(by_dataset: Mapping[str, Sequence[Entry]], metric: Metric) -> Table:
    """Return the table of all comparisons, dataset by dataset and model by model, with runs that have no partner named.

    Examples
    --------
    >>> p_value_table({}, "accuracy").n_rows
    0
    """
    unit, digits = (100.0, 2) if metric == "accuracy" else (1.0, 4)
    groups: list[Group] = []
    notes: list[str] = []
    for name, entries in by_dataset.items():
        found = comparisons(entries, metric)
        for entry in dict.fromkeys(each.entry for each in found):
            rows = tuple(_row(each, unit, digits) for each in found if each.entry is entry)
            groups.append(Group(f"{entry.title} on {dataset_title(name)}", rows))
        notes.extend(note for each in found if (note := _unpaired(each)))
    columns = (
        Column("Against", "text"),
        Column("Difference"),
        Column("Pairs of runs"),
        Column("p over runs"),
        Column("Holm"),
        Column("Pairs of split means"),
        Column("p over splits"),
        Column("Holm"),
        Column("Paper's p"),
    )
    what = {"accuracy": "accuracy", "f1": "macro F1 (the paper's)", "f1_macro": "macro F1 (the usual)"}[metric]
    return Table(f"Paired t-tests of {what}; the best opponent is set off", columns, tuple(groups), tuple(notes))


def _row(one: Comparison, unit: float, digits: int) -> tuple[Value, ...]:
    title = one.opponent.title
    return (
        Strong(title) if one.best else title,
        Number(unit * one.splits.difference, digits, signed=True),
        None if one.runs.over == "splits" else Number(one.runs.pairs, 0),
        PValue(one.runs.p),
        PValue(one.runs_holm),
        Number(one.splits.pairs, 0),
        PValue(one.splits.p),
        PValue(one.splits_holm),
        None if one.published is None else PValue(one.published),
    )


def _unpaired(one: Comparison) -> str | None:
    parts = [
        f"{describe_seeds(seeds)} of {entry.title}"
        for entry, seeds in ((one.entry, one.runs.only_first), (one.opponent, one.runs.only_second))
        if seeds
    ]
    if not parts:
        return None
    where = f"{one.entry.title} against {one.opponent.title} on {dataset_title(one.entry.cell.dataset)}"
    return f"{where}: without a partner, and so not in the test over runs: {'; '.join(parts)}."


def _best_in_the_paper(group: Sequence[Entry], metric: Metric) -> str | None:
    """Return the baseline that has the highest published mean, whether it was run or not."""
    printed = {
        entry.cell.model: entry.experiment.published.accuracy if metric == "accuracy" else entry.experiment.published.f1
        for entry in group
        if entry.experiment is not None and entry.experiment.published is not None and entry.cell.model not in TESTED
    }
    known = {model: value for model, value in printed.items() if value is not None}
    return max(known, key=lambda model: known[model]) if known else None


def _values(entry: Entry, metric: Metric) -> dict[Seeds, float]:
    assert entry.sample is not None
    return entry.sample.values(metric)


def _one_run_per_split(entry: Entry) -> bool:
    return entry.cell.model in MODELS and not MODELS[entry.cell.model].seeded
