"""The table of variance components: how much of the spread of a model's runs is the split's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import Column, Group, Number, Table, Value
from pprop.study.tables.titles import dataset_title
from pprop.study.variance import variance_components

__all__ = ["spread_table"]


def spread_table(by_dataset: Mapping[str, Sequence[Entry]]) -> Table:
    """Return the standard deviations of the accuracy between splits and between initialisations, in points.

    Only models that have several initialisations of each split are there.

    Examples
    --------
    >>> spread_table({}).n_rows
    0
    """
    groups: list[Group] = []
    for name, entries in by_dataset.items():
        rows = [row for entry in entries if (row := _row(entry)) is not None]
        if rows:
            groups.append(Group(dataset_title(name), tuple(rows)))
    columns = (
        Column("Model", "text"),
        Column("Between splits"),
        Column("95 % interval"),
        Column("Between initialisations"),
        Column("95 % interval"),
        Column("Splits' share of the variance, %"),
    )
    return Table("Where accuracy varies: standard deviations in points", columns, tuple(groups))


def _row(entry: Entry) -> tuple[Value, ...] | None:
    values = {} if entry.sample is None else entry.sample.values("accuracy")
    parts = variance_components({seeds: 100 * value for seeds, value in values.items()})
    if parts is None:
        return None
    return (
        entry.title,
        Number(parts.split),
        _span(parts.split_interval),
        Number(parts.init),
        _span(parts.init_interval),
        Number(100 * parts.share, 0),
    )


def _span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"
