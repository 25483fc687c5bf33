"""The tables of what was run: where rows come from, what they took, runs of other versions, searches, users' experiments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pprop.datasets import DATASETS
from pprop.study.cell import MODELS, Cell, fill_settings
from pprop.study.experiment import Experiment, Point
from pprop.study.experiment_folder import TEMPLATE, load_experiments
from pprop.study.graphs import of_own
from pprop.study.store.row import Row, RowKey
from pprop.study.store.store import Pool
from pprop.study.tables.entries import Sample, Samples, command, dataset_order, dataset_title, model_order, model_title
from pprop.study.tables.table import NOT_RUN, Cells, Code, Measure, Number, Strong, Table


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
    rows: list[Cells] = []
    for place, made in sorted(groups.items(), key=lambda item: item[0]):
        days = sorted(row.created[:10] for row in made)
        rows.append((*place, *_cells_and_rows(made), Number(sum(row.seconds for row in made), 0), days[0], days[-1]))
    heads = (
        "pprop:text | Source:text | Libraries:text | Backend:text | Device:text | CPU:text | Host:text | Cells | Rows | "
        "Seconds | First:text | Last:text"
    )
    return Table.of("Where the rows come from", heads, {None: rows})


def _cells_and_rows(rows: Sequence[Row]) -> tuple[Number, Number]:
    return Number(len({row.key.config for row in rows}), 0), Number(len(rows), 0)


def cost_table(samples: Samples, shared: Collection[RowKey] = ()) -> Table:
    """Return what the rows took, by dataset, model and device; all pools count.

    Parameters
    ----------
    samples
        Their rows.
    shared
        Rows of processes that shared their device (`keys_of_shared`): their seconds have a column of their own.

    Examples
    --------
    >>> cost_table(Samples([])).n_rows
    0
    """
    found: dict[tuple[tuple[int, str], int, str, str], list[Row]] = {}
    for cell, row in ((sample.cell, row) for sample in samples.values() for row in sample.all_rows):
        key = (dataset_order(cell.dataset), model_order(cell)[0], model_title(cell), row.device)
        found.setdefault(key, []).append(row)
    groups: dict[str | None, list[Cells]] = {}
    for ((_, dataset), _, title, device), rows in sorted(found.items(), key=lambda item: item[0]):
        epochs, seconds = [row.epochs for row in rows], [row.seconds for row in rows]
        means = Number(float(np.mean(epochs)), 0), Number(float(np.mean(seconds)))
        unfit = sum(row.seconds for row in rows if row.key in shared)
        values = (
            title,
            device,
            *_cells_and_rows(rows),
            *means,
            Number(sum(seconds), 0),
            Number(unfit, 0) if unfit else None,
        )
        groups.setdefault(dataset_title(dataset), []).append(values)
    heads = (
        "Model:text | Device:text | Cells | Rows | Epochs a run | Seconds a run | Seconds in all | "
        "Of these not for planning"
    )
    made = Table.of("What the rows took", heads, groups)
    return made if shared else made.without("Of these not for planning")


def rerun_table(samples: Samples, among_others: Collection[str] = ()) -> Table:
    """Return the cells that have rows of more than one version: each pool, with the one that is shown in bold.

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

    def row(sample: Sample, pool: Pool) -> Cells:
        cell, newest = sample.cell, pool.newest[:19].replace("T", " ")
        name = ", ".join(filter(None, (sample.where, settings_text(cell))))
        place = Strong("shown among other cells" if cell.config in among_others else "shown")
        shown = place if pool is sample.pool else "not shown"
        runs = _runs_and_accuracy(Sample(cell, pool))
        return name, cell.splits, pool.revision, pool.data[:12], *runs, newest, shown

    again = sorted(run_again(samples), key=lambda each: _order(each.cell))
    rows = (row(sample, pool) for sample in again for pool in sample.pools)
    heads = "Cell:text | Splits:text | Revision:text | Data:text | Runs | Accuracy:measure | Newest row:text | :text"
    return Table.of("Cells that were run again with other versions", heads, {None: rows})


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
    ordered = sorted(cells, key=_order)
    rows = ((*_names(cell), settings_text(cell), *_runs_and_accuracy(samples[cell.config])) for cell in ordered)
    heads = "Model:text | Dataset:text | Splits:text | Settings:text | Runs | Accuracy:measure"
    return Table.of("Other cells: accuracy in percent", heads, {None: rows})


def search_table(experiments: Mapping[str, Experiment], samples: Samples) -> Table:
    """Return, for each search that has rows and each dataset, the default setting beside the best one, and the values that were tried.

    Examples
    --------
    >>> search_table({}, Samples([])).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    for experiment in experiments.values():
        cells = [point.cell for point in experiment.points]
        if experiment.shows != "search" or not any(samples.of(cell) for cell in cells):
            continue
        datasets = sorted({cell.dataset for cell in cells}, key=dataset_order)
        named = samples.named([experiment])  # a cell that a figure has, too, counts with the splits of the search
        rows = (_search_row(experiment, [cell for cell in cells if cell.dataset == name], named) for name in datasets)
        groups.setdefault(f"{experiment.title}: {_axes(experiment)}", []).extend(row for row in rows if row is not None)
    heads = "Dataset:text | Settings run | Default setting:measure | Rank | Best:measure | Best differs in:text | Command:code"
    return Table.of("Hyperparameters: validation accuracy in percent", heads, groups)


def search_sentence(experiments: Mapping[str, Experiment], samples: Samples) -> str:
    """Say how the default settings rank in the searches that are complete; nothing where none is.

    Examples
    --------
    >>> search_sentence({}, Samples([]))
    ''
    """
    found: list[str] = []
    places: dict[str, None] = {}
    behind = 0.0
    for experiment in experiments.values():
        if experiment.shows != "search":
            continue
        named, cells = samples.named([experiment]), [point.cell for point in experiment.points]
        datasets = sorted({cell.dataset for cell in cells}, key=dataset_order)
        searches = [[cell for cell in cells if cell.dataset == name] for name in datasets]
        ranks: list[str] = []
        for search in searches:
            ranked, place = _ranked(search, named)
            if place is not None and len(ranked) == len(search):
                ranks.append(str(place + 1))
                behind = max(behind, ranked[0].percent().mean - ranked[place].percent().mean)
        if len(ranks) == len(searches):
            found.append(f"{model_title(cells[0])} {', '.join(ranks)}")
            places |= dict.fromkeys(map(dataset_title, datasets))
    if not found:
        return ""
    return f"Ranks of the default settings ({', '.join(places)}): {'; '.join(found)}; at most {behind:.1f} points below the best."


def _ranked(cells: list[Cell], samples: Samples) -> tuple[list[Sample], int | None]:
    """Return the settings that were run, the best first, and the place of the default one among them."""
    run = [sample for cell in cells if (sample := samples.of(cell)) is not None]
    ranked = sorted(run, key=lambda sample: (-sample.percent().mean, sample.cell.text))
    defaults = _defaults(cells[0])
    return ranked, next((at for at, sample in enumerate(ranked) if dict(sample.cell.settings) == defaults), None)


def _defaults(cell: Cell) -> dict[str, Any]:
    """Return the published settings of the model of a cell; on a user's graph, those of the graph that stands for it."""
    return fill_settings(cell.model, {}, cell.dataset if cell.dataset in DATASETS else TEMPLATE)


def _axes(experiment: Experiment) -> str:
    """Return the values of each setting that a search varies."""
    names = [name for name in experiment.points[0].at if name != "dataset"]
    values = {name: dict.fromkeys(str(point.at[name]) for point in experiment.points) for name in names}
    return "; ".join(f"{name} {', '.join(each)}" for name, each in values.items())


def _search_row(experiment: Experiment, cells: list[Cell], samples: Samples) -> Cells | None:
    ranked, place = _ranked(cells, samples)
    if len(ranked) < 2:  # one setting, which another figure has too, is no search
        return None
    best, first = ranked[0], cells[0]
    defaults = _defaults(first)
    settings = sorted(best.cell.settings.items())
    changed = ", ".join(f"{name} = {value}" for name, value in settings if defaults.get(name) != value)
    count = f"{len(ranked)} of {len(cells)}" if len(ranked) < len(cells) else str(len(ranked))
    ours = (NOT_RUN, None) if place is None else (_runs_and_accuracy(ranked[place])[1], Number(1 + place, 0))
    found = _runs_and_accuracy(best)[1], changed or "nothing: it is the default"
    return dataset_title(first.dataset), count, *ours, *found, Code(command(experiment, first, None))


def published_and_own(experiments: Mapping[str, Experiment]) -> tuple[dict[str, Experiment], dict[str, Experiment]]:
    """Return the experiments that come with pprop, also on a user's graphs, and the others.

    A file kept with a study may have the name of one that comes with this version of pprop. It is one of the others only
    if it says something else; a title or groups of its own change nothing.

    Examples
    --------
    >>> quick = load_experiments()["quick"]
    >>> [list(part) for part in published_and_own({"quick": quick, "mine": replace(quick, name="mine")})]
    [['quick'], ['mine']]
    """
    bundled = load_experiments()

    on_own_graph = {name: one for name, one in experiments.items() if of_own(p.cell.dataset for p in one.points)}

    def is_own(one: Experiment, there: Experiment | None) -> bool:
        return there is None or replace(one, title=there.title, groups=there.groups) != there

    own = {name: one for name, one in experiments.items() if is_own(one, bundled.get(name))}
    published = {name: bundled[name] for name in experiments if name in bundled} | on_own_graph
    return published, {name: one for name, one in own.items() if name not in on_own_graph}


def own_experiments_table(experiments: Mapping[str, Experiment], samples: Samples) -> Table:
    """Return the accuracy of each cell of a user's experiments that has rows, under the experiment's title.

    Examples
    --------
    >>> own_experiments_table({}, Samples([])).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    for experiment in experiments.values():
        of_experiment = samples.named([experiment])  # the runs that it names, and no others
        found = ((point, of_experiment.of(point.cell)) for point in experiment.points)
        rows = [_own_row(experiment, point, sample) for point, sample in found if sample is not None]
        groups[f"{experiment.title} ({experiment.name})"] = rows
    heads = "Model:text | Dataset:text | Splits:text | Settings:text | Runs | Accuracy:measure | Command:code"
    return Table.of("Other experiments: accuracy in percent", heads, groups)


def _own_row(experiment: Experiment, point: Point, sample: Sample) -> Cells:
    cell, wanted, text = point.cell, len(experiment.seeds(cell=point.cell)), settings_text(point.cell)
    # the cell's place in its experiment, and its other settings that are not the model's defaults
    place = [f"{name} = {value}" for name, value in point.at.items() if name in cell.settings]
    settings = dict.fromkeys([part for part in place if part not in text] + ([text] if text else []))
    runs, accuracy = _runs_and_accuracy(sample)
    of_wanted = runs if len(sample.rows) == wanted else f"{runs} of {wanted}"
    return *_names(cell), ", ".join(settings), of_wanted, accuracy, Code(command(experiment, cell, sample))


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
    defaults = MODELS[cell.model].defaults() if cell.model in MODELS else {}
    usual = {f"{name} = {value}" for name, value in defaults.items()}
    parts = [part for name, value in sorted(cell.settings.items()) if (part := f"{name} = {value}") not in usual]
    return ", ".join(parts + ([f"{cell.per_class} training nodes per class"] if cell.per_class != 20 else []))


def _names(cell: Cell) -> tuple[str, str, str]:
    return model_title(cell), dataset_title(cell.dataset), cell.splits


def _order(cell: Cell) -> tuple[tuple[int, str], tuple[int, str]]:
    return dataset_order(cell.dataset), model_order(cell)


def _runs_and_accuracy(sample: Sample) -> tuple[Number, Measure]:
    """Return the number of runs and their accuracy in percent; a single run has no interval."""
    found = sample.percent()
    return Number(found.runs, 0), Measure(found.mean, found.half if found.runs > 1 else None)
