"""The tables of variance components: how much of the spread of runs, and of the gap between models, is the split's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pprop.study.cell import Seeds
from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import Column, Group, Number, Table, Value
from pprop.study.tables.titles import TESTED, dataset_title
from pprop.study.variance import Components, variance_components

__all__ = ["difference_spread_table", "spread_table"]

_COLUMNS = (
    Column("Between splits"),
    Column("95 % interval"),
    Column("Between initialisations"),
    Column("95 % interval"),
    Column("Splits' share of the variance, %"),
    Column("95 % interval"),
)


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
        parts = ((entry.title, variance_components(_points(entry))) for entry in entries)
        rows = tuple((title, *_values(found)) for title, found in parts if found is not None)
        if rows:
            groups.append(Group(dataset_title(name), rows))
    columns = (Column("Model", "text"), *_COLUMNS)
    return Table("Where accuracy varies: standard deviations in points", columns, tuple(groups))


def difference_spread_table(by_dataset: Mapping[str, Sequence[Entry]]) -> Table:
    """Return the same for the accuracy of APPNP minus that of each baseline in the run with the same seeds.

    Splits that are hard for both models cancel; the initialisations of both add up.

    Examples
    --------
    >>> difference_spread_table({}).n_rows
    0
    """
    groups: list[Group] = []
    for name, entries in by_dataset.items():
        appnp = [entry for entry in entries if entry.cell.model == "appnp"]
        baselines = [entry for entry in entries if entry.cell.model not in TESTED]
        rows = tuple(row for entry in appnp for row in _differences(_points(entry), baselines))
        if rows:
            groups.append(Group(f"APPNP minus another model on {dataset_title(name)}", rows))
    columns = (Column("Model", "text"), Column("Mean difference"), *_COLUMNS)
    return Table("Where the lead of APPNP varies: standard deviations in points", columns, tuple(groups))


def _differences(appnp: Mapping[Seeds, float], entries: Iterable[Entry]) -> Iterable[tuple[Value, ...]]:
    for entry in entries:
        other = _points(entry)
        gap = {seeds: value - other[seeds] for seeds, value in appnp.items() if seeds in other}
        parts = variance_components(gap)
        if parts is not None:
            yield entry.title, Number(sum(gap.values()) / len(gap), signed=True), *_values(parts)


def _points(entry: Entry) -> dict[Seeds, float]:
    values = {} if entry.sample is None else entry.sample.values("accuracy")
    return {seeds: 100 * value for seeds, value in values.items()}


def _values(parts: Components) -> tuple[Value, ...]:
    low, high = (Number(100 * end, 0) for end in parts.share_interval)
    return (
        Number(parts.split),
        _span(parts.split_interval),
        Number(parts.init),
        _span(parts.init_interval),
        Number(100 * parts.share, 0),
        f"{low} to {high}",
    )


def _span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"
