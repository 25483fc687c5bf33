"""One's own experiment files: a section of their own, so that they never stand in for what the paper published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pprop.study.cell import Cell
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import load_experiments
from pprop.study.report.runs import settings_text
from pprop.study.stats.estimate import estimate
from pprop.study.tables import Column, Group, Sample, Samples, Table
from pprop.study.tables.entries import command
from pprop.study.tables.grid import Code, Measure, Number, Value
from pprop.study.tables.titles import dataset_title, model_title

__all__ = ["own_experiments_table", "published_and_own"]


def published_and_own(
    experiments: Mapping[str, Experiment],
) -> tuple[dict[str, Experiment], dict[str, Experiment]]:
    """Return the experiments that come with pprop, and the others.

    A file kept with a study may have the name of one that comes with this version of pprop. It is one of the others only
    if it says something else; a title or groups of its own change nothing.

    Examples
    --------
    >>> quick = load_experiments()["quick"]
    >>> [list(part) for part in published_and_own({"quick": quick, "mine": replace(quick, name="mine")})]
    [['quick'], ['mine']]
    """
    bundled = load_experiments()
    published = {name: bundled[name] for name in experiments if name in bundled}
    own = {name: one for name, one in experiments.items() if name not in published or not _same(one, published[name])}
    return published, own


def own_experiments_table(experiments: Mapping[str, Experiment], samples: Samples) -> Table:
    """Return the accuracy of each cell of one's own experiments that has rows, under the experiment's title.

    Examples
    --------
    >>> own_experiments_table({}, Samples([])).n_rows
    0
    """
    groups: list[Group] = []
    for experiment in experiments.values():
        of_experiment = samples.named([experiment])  # the runs that it names, and no others
        rows = [
            _row(experiment, point, sample)
            for point in experiment.points
            if (sample := of_experiment.of(point.cell)) is not None
        ]
        if rows:
            groups.append(Group(f"{experiment.title} ({experiment.name})", tuple(rows)))
    texts = (Column(title, "text") for title in ("Model", "Dataset", "Splits", "Settings"))
    columns = (*texts, Column("Runs"), Column("Accuracy", "measure"), Column("Command", "code"))
    return Table("Other experiments: accuracy in percent", columns, tuple(groups))


def _same(first: Experiment, second: Experiment) -> bool:
    return replace(first, title=second.title, groups=second.groups) == second


def _row(experiment: Experiment, point: Point, sample: Sample) -> tuple[Value, ...]:
    cell = point.cell
    summary = estimate([100 * value for value in sample.values("accuracy").values()])
    wanted = len(experiment.seeds(cell=cell))
    return (
        model_title(cell),
        dataset_title(cell.dataset),
        cell.splits,
        _told(cell, point.at),
        Number(summary.runs, 0) if summary.runs == wanted else f"{summary.runs} of {wanted}",
        Measure(summary.mean, summary.half if summary.runs > 1 else None),
        Code(command(experiment, cell, sample)),
    )


def _told(cell: Cell, at: Mapping[str, Any]) -> str:
    """Return where a cell stands in its experiment, and what else is unlike the model's defaults."""
    text = settings_text(cell)
    place = [f"{name} = {value}" for name, value in at.items() if name in cell.settings]
    return ", ".join(dict.fromkeys([part for part in place if part not in text] + ([text] if text else [])))
