"""What was run, what it cost, what was run again and what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from pprop.study.cell import Cell
from pprop.study.experiment import Experiment
from pprop.study.stats.estimate import estimate
from pprop.study.store.row import Row
from pprop.study.tables import Column, Group, Sample, Samples, Table
from pprop.study.tables.grid import Measure, Number, Strong, Value
from pprop.study.tables.titles import dataset_order, dataset_title, model_order, model_title
from pprop.study.zoo import MODELS

__all__ = ["cost_table", "incomplete", "origin_table", "other_cells_table", "rerun_table", "run_again", "settings_text"]


def origin_table(samples: Samples) -> Table:
    """Return where the rows come from: sources, libraries, devices and hosts, of all pools.

    Examples
    --------
    >>> origin_table(Samples([])).n_rows
    0
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in (row for sample in samples.values() for row in sample.all_rows):
        made = row.provenance
        source = "before revisions" if row.stored_as else " at ".join(filter(None, (made.source, made.commit)))
        libraries = ", ".join(f"{name} {number}" for name, number in made.libraries.items()) or f"torch {row.torch}"
        place = (made.pprop, source, libraries, row.backend, row.device, made.cpu, row.host)
        groups.setdefault(place, []).append(row)
    rows: list[tuple[Value, ...]] = []
    for place in sorted(groups):
        made = groups[place]
        rows.append(
            (
                *place,
                Number(len({row.key.config for row in made}), 0),
                Number(len(made), 0),
                Number(sum(row.seconds for row in made), 0),
                min(row.created for row in made)[:10],
                max(row.created for row in made)[:10],
            )
        )
    texts = (Column(title, "text") for title in ("pprop", "Source", "Libraries", "Backend", "Device", "CPU", "Host"))
    numbers = (Column(title) for title in ("Cells", "Rows", "Seconds"))
    columns = (*texts, *numbers, Column("First", "text"), Column("Last", "text"))
    return Table("Where the rows come from", columns, (Group(None, tuple(rows)),) if rows else ())


def cost_table(samples: Samples) -> Table:
    """Return what the rows took, by dataset, model and device; all pools count.

    Examples
    --------
    >>> cost_table(Samples([])).n_rows
    0
    """
    groups: dict[str, dict[tuple[tuple[int, str], str, str], list[Row]]] = {}
    for sample in samples.values():
        cell = sample.cell
        order = (model_order(cell)[0], model_title(cell))
        for row in sample.all_rows:
            groups.setdefault(cell.dataset, {}).setdefault((order, model_title(cell), row.device), []).append(row)
    made: list[Group] = []
    for name in sorted(groups, key=dataset_order):
        rows = tuple(
            (
                title,
                device,
                Number(len({row.key.config for row in each}), 0),
                Number(len(each), 0),
                Number(float(np.mean([row.epochs for row in each])), 0),
                Number(float(np.mean([row.seconds for row in each])), 2),
                Number(sum(row.seconds for row in each), 0),
            )
            for (_, title, device), each in sorted(groups[name].items())
        )
        made.append(Group(dataset_title(name), rows))
    columns = (
        Column("Model", "text"),
        Column("Device", "text"),
        *(Column(title) for title in ("Cells", "Rows", "Epochs a run", "Seconds a run", "Seconds in all")),
    )
    return Table("What the rows took", columns, tuple(made))


def rerun_table(samples: Samples, among_others: Collection[str] = ()) -> Table:
    """Return the cells that have rows of more than one version: each pool, the one that is shown set off.

    Parameters
    ----------
    samples
        What there is.
    among_others
        Configurations of cells that only `other_cells_table` shows: they are marked so.

    Examples
    --------
    >>> rerun_table(Samples([])).n_rows
    0
    """
    rows: list[tuple[Value, ...]] = []
    again = sorted(run_again(samples), key=lambda each: (dataset_order(each.cell.dataset), model_order(each.cell)))
    for sample in again:
        cell = sample.cell
        place = "shown among other cells" if cell.config in among_others else "shown"
        for pool in (sample.pool, *sample.others):
            summary = estimate([100 * row.accuracy for row in pool.rows])
            rows.append(
                (
                    ", ".join(
                        filter(None, (f"{model_title(cell)} on {dataset_title(cell.dataset)}", settings_text(cell)))
                    ),
                    cell.splits,
                    pool.revision,
                    pool.data[:12],
                    Number(len(pool.rows), 0),
                    Measure(summary.mean, summary.half if summary.runs > 1 else None),
                    pool.newest[:19].replace("T", " "),
                    Strong(place) if pool is sample.pool else "not shown",
                )
            )
    titles = ("Cell", "Splits", "Revision", "Data")
    columns = (
        *(Column(title, "text") for title in titles),
        Column("Runs"),
        Column("Accuracy", "measure"),
        Column("Newest row", "text"),
        Column("", "text"),
    )
    return Table("Cells that were run again with other versions", columns, (Group(None, tuple(rows)),) if rows else ())


def run_again(samples: Samples) -> list[Sample]:
    """Return the samples of cells that were run with more than one version.

    Trainings that are run alone are timed on several devices on purpose: only versions of one backend make such a cell
    one that was run again. A model without epochs is fitted alone, and is not timed.

    Examples
    --------
    >>> run_again(Samples([]))
    []
    """
    found: list[Sample] = []
    for sample in samples.values():
        others = sample.others
        if all(row.together == 1 and row.epochs > 0 for row in sample.rows):
            backends = {row.backend for row in sample.rows}
            others = tuple(pool for pool in others if backends & {row.backend for row in pool.rows})
        if others:
            found.append(replace(sample, others=others))
    return found


def other_cells_table(cells: Iterable[Cell], samples: Samples) -> Table:
    """Return the accuracy of cells that no table or figure shows.

    Examples
    --------
    >>> other_cells_table([], Samples([])).n_rows
    0
    """
    rows: list[tuple[Value, ...]] = []
    for cell in sorted(cells, key=lambda cell: (dataset_order(cell.dataset), model_order(cell))):
        sample = samples[cell.config]
        summary = estimate([100 * value for value in sample.values("accuracy").values()])
        rows.append(
            (
                model_title(cell),
                dataset_title(cell.dataset),
                cell.splits,
                settings_text(cell),
                Number(summary.runs, 0),
                Measure(summary.mean, summary.half if summary.runs > 1 else None),
            )
        )
    texts = (Column(title, "text") for title in ("Model", "Dataset", "Splits", "Settings"))
    columns = (*texts, Column("Runs"), Column("Accuracy", "measure"))
    return Table("Other cells: accuracy in percent", columns, (Group(None, tuple(rows)),) if rows else ())


def incomplete(experiments: Mapping[str, Experiment], samples: Samples) -> tuple[str, ...]:
    """Return a sentence for each experiment that was begun and lacks runs.

    Examples
    --------
    >>> incomplete({}, Samples([]))
    ()
    """
    sentences: list[str] = []
    for name, experiment in experiments.items():
        wanted = done = empty = 0
        for point in experiment.points:
            seeds, sample = set(experiment.seeds(cell=point.cell)), samples.of(point.cell)
            there = () if sample is None else sample.rows
            done += sum(row.key.seeds in seeds for row in there)
            wanted, empty = wanted + len(seeds), empty + (sample is None)
        if 0 < done < wanted:
            cells = f"; {empty} of {len(experiment.points)} cells have none" if empty else ""
            sentences.append(f"`{name}` has {done} of {wanted} runs{cells}.")
    return tuple(sentences)


def settings_text(cell: Cell) -> str:
    """Return the settings of a cell that are not its model's defaults.

    >>> settings_text(Cell("mlp", {"hidden": [8]}, "citeseer", per_class=5))
    'hidden = [8], 5 training nodes per class'
    """
    parts = [f"{name} = {value}" for name, value in sorted(cell.settings.items())]
    if cell.per_class != 20:
        parts.append(f"{cell.per_class} training nodes per class")
    if cell.model in MODELS:
        defaults = {setting.name: setting.default for setting in MODELS[cell.model].settings}
        parts = [part for part in parts if part not in {f"{name} = {value}" for name, value in defaults.items()}]
    return ", ".join(parts)
