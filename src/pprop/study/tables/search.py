"""The table of hyperparameter searches: whether the published setting stands out among its neighbours."""

from __future__ import annotations

from collections.abc import Mapping

from pprop.study.cell import Cell, fill_settings
from pprop.study.experiment import Experiment
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.tables.entries import command
from pprop.study.tables.grid import NOT_RUN, Code, Column, Group, Measure, Number, Table, Value
from pprop.study.tables.samples import Sample, Samples
from pprop.study.tables.titles import dataset_order, dataset_title

__all__ = ["search_table"]


def search_table(experiments: Mapping[str, Experiment], samples: Samples) -> Table:
    """Return, for each search that has rows and each dataset, the published setting beside the best one.

    Examples
    --------
    >>> search_table({}, Samples([])).n_rows
    0
    """
    groups: list[Group] = []
    for experiment in experiments.values():
        cells = [point.cell for point in experiment.points]
        if experiment.shows != "search" or not any(samples.of(cell) for cell in cells):
            continue
        datasets = sorted({cell.dataset for cell in cells}, key=dataset_order)
        rows = (_row(experiment, [cell for cell in cells if cell.dataset == name], samples) for name in datasets)
        searched = tuple(row for row in rows if row is not None)
        groups += [Group(experiment.title, searched)] if searched else []
    columns = (
        Column("Dataset", "text"),
        Column("Settings run"),
        Column("Published setting", "measure"),
        Column("Rank"),
        Column("Best", "measure"),
        Column("Best differs in", "text"),
        Column("Command", "code"),
    )
    return Table("Hyperparameters: validation accuracy in percent", columns, tuple(groups))


def _row(experiment: Experiment, cells: list[Cell], samples: Samples) -> tuple[Value, ...] | None:
    run = [sample for cell in cells if (sample := samples.of(cell)) is not None]
    if len(run) < 2:  # one setting, which another figure has too, is no search
        return None
    means = {sample.cell.config: _accuracies(sample) for sample in run}
    ranked = sorted(run, key=lambda sample: (-means[sample.cell.config].mean, sample.cell.text))
    best, first = ranked[0], cells[0]
    defaults = fill_settings(first.model, {}, first.dataset)
    published = next((sample for sample in run if dict(sample.cell.settings) == defaults), None)
    changed = ", ".join(
        f"{name} = {value}" for name, value in sorted(best.cell.settings.items()) if defaults.get(name) != value
    )
    return (
        dataset_title(first.dataset),
        f"{len(run)} of {len(cells)}" if len(run) < len(cells) else str(len(run)),
        NOT_RUN if published is None else _measure(published),
        None if published is None else Number(1 + ranked.index(published), 0),
        _measure(best),
        changed or "nothing: it is the published one",
        Code(command(experiment, first, None)),
    )


def _accuracies(sample: Sample) -> Estimate:
    return estimate([100 * value for value in sample.values("accuracy").values()])


def _measure(sample: Sample) -> Measure:
    summary = _accuracies(sample)
    return Measure(summary.mean, summary.half)
