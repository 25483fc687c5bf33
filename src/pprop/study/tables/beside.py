"""The main table as it is published: models down, and for each dataset ours and the paper's side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import NOT_RUN, Column, Group, Measure, Strong, Table, Value
from pprop.study.tables.samples import Metric
from pprop.study.tables.scores import TITLES, Score, score
from pprop.study.tables.titles import dataset_title

__all__ = ["beside_table"]


def beside_table(by_dataset: Mapping[str, Sequence[Entry]], metric: Metric) -> Table:
    """Return a metric of every model on every dataset beside the paper's, the best of each column set off.

    Cells with fewer runs than the protocol asks for are named below.

    Examples
    --------
    >>> beside_table({}, "accuracy").columns
    (Column(title='Model', kind='text'),)
    """
    titles = list(dict.fromkeys(entry.title for group in by_dataset.values() for entry in group))
    scores = {name: {entry.title: score(entry, metric) for entry in group} for name, group in by_dataset.items()}
    rows: list[tuple[Value, ...]] = []
    for title in titles:
        values: list[Value] = [title]
        for group in scores.values():
            values += _pair(group.get(title), list(group.values()))
        rows.append(tuple(values))
    columns = [Column("Model", "text")]
    for name in by_dataset:
        columns += [Column(dataset_title(name), "measure"), Column("paper", "measure")]
    notes = tuple(note for group in scores.values() for one in group.values() for note in _lacking(one))
    made = (Group(None, tuple(rows)),) if rows else ()
    return Table(f"{TITLES[metric]}, mean and 95 % interval, beside the paper's", tuple(columns), made, notes)


def _pair(one: Score | None, group: Sequence[Score]) -> tuple[Value, Value]:
    if one is None:
        return None, None
    paper = None if one.paper is None else _best(one.paper, one.paper_half, one, [each.paper for each in group])
    if one.ours is None:
        return NOT_RUN, paper
    ours = [None if each.ours is None else each.ours.mean for each in group]
    return _best(one.ours.mean, one.our_half, one, ours), paper


def _best(mean: float, half: float | None, one: Score, means: Sequence[float | None]) -> Value:
    measure = Measure(mean, half, one.decimals)
    return Strong(measure) if mean == max(value for value in means if value is not None) else measure


def _lacking(one: Score) -> Iterator[str]:
    wanted = one.entry.wanted
    if one.ours is not None and wanted is not None and one.ours.runs < wanted:
        where = f"{one.entry.title} on {dataset_title(one.entry.cell.dataset)}"
        yield f"{where}: {one.ours.runs} of {wanted} runs."
