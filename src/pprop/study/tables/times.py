"""The tables of time and cost: time per epoch by device, and what the main table cost beside the authors' code.

Our milliseconds and the paper's cannot be compared, but their ratios to GCN can.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import final

import numpy as np

from pprop.study.experiment import Experiment
from pprop.study.graphs import of_own
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row, RowKey
from pprop.study.tables.entries import ByDataset, TableEntry, dataset_title
from pprop.study.tables.table import NOT_RUN, Cells, Code, Measure, Number, Table, Value, listed, number

YARDSTICK = "gcn"
# Seconds a run of APPNP on Cora-ML in the authors' own re-run, published with their code (TensorFlow, a GPU of 2019).
AUTHORS_SECONDS = 45.7
UNFIT = "Of these not for planning, s"  # of runs that shared the device


@final
@dataclass(frozen=True, eq=False)
class EpochTime:
    """Time per epoch of one model on one dataset and device, in milliseconds, one run at a time.

    Attributes
    ----------
    entry
        Whose it is, with the rows of that device alone.
    device
        Which one; empty where nothing was timed.
    ours
        None where no run was made alone.
    places
        Devices, hosts and backends of those runs.
    ratio
        To GCN's on the same dataset and device; NaN where that is missing or from another place.
    paper_ratio
        To GCN's in the paper; None where that printed nothing.
    """

    entry: TableEntry
    device: str
    ours: Estimate | None
    places: tuple[str, ...]
    ratio: float
    paper_ratio: float | None

    @property
    def in_company(self) -> int:
        """Rows left out because other runs were trained at the same time."""
        return sum(row.together > 1 for row in self.entry.rows)


def epoch_times(group: Sequence[TableEntry]) -> list[EpochTime]:
    """Return the times of the entries of one dataset, device by device.

    Examples
    --------
    >>> epoch_times([])
    []
    """
    rows = (row for entry in group if entry.sample is not None for row in entry.sample.all_rows)
    devices = sorted({row.device for row in rows if _is_alone(row)})
    found: list[EpochTime] = []
    for device in devices or [""]:
        here = [replace(entry, sample=entry.sample and entry.sample.on(device)) for entry in group]
        yardstick = next((entry for entry in here if entry.cell.model == YARDSTICK), None)
        base, base_places = (None, ()) if yardstick is None else _alone(yardstick)
        base_paper = None if yardstick is None else yardstick.published.ms_per_epoch
        for entry in here:
            ours, places = _alone(entry)
            paper = entry.published.ms_per_epoch
            ratio = ours.mean / base.mean if ours and base and places == base_places else float("nan")
            paper_ratio = paper / base_paper if paper is not None and base_paper is not None else None
            found.append(EpochTime(entry, device, ours, places, ratio, paper_ratio))
    return found


def _is_alone(row: Row) -> bool:
    return row.together == 1 and row.epochs > 0


def _alone(entry: TableEntry) -> tuple[Estimate | None, tuple[str, ...]]:
    alone = [row for row in entry.rows if _is_alone(row)]
    places = tuple(sorted({f"{row.device} of {row.host} ({row.backend})" for row in alone}))
    return (estimate([row.ms_per_epoch for row in alone]) if alone else None), places


def time_table(by_dataset: ByDataset) -> Table:
    """Return the table: milliseconds and ratios to GCN, ours beside the paper's.

    Parameters
    ----------
    by_dataset
        Entries of the experiments that show time.

    Examples
    --------
    >>> time_table({}).n_rows
    0
    """

    def row(one: EpochTime) -> Cells:
        ours = one.ours and (Number(one.ours.runs, 0), Measure(one.ours.mean, one.ours.half), Number(one.ratio))
        paper = (number(one.entry.published.ms_per_epoch, 1), number(one.paper_ratio))
        return (one.entry.title, *(ours or (Number(0, 0), NOT_RUN, None)), *paper, Code(one.entry.command))

    groups: dict[str | None, list[Cells]] = {}
    notes: list[str] = []
    for name, group in by_dataset.items():
        for device, times in groupby(epoch_times(group), key=lambda each: each.device):
            here, title = list(times), f"{dataset_title(name)} on {device}" if device else dataset_title(name)
            groups[title] = [row(each) for each in here]
            places = sorted({place for each in here for place in each.places})
            notes += [f"Timed on {place}." for place in places if f"Timed on {place}." not in notes]
            for each in here:
                where = f"{each.entry.title} on {title}"
                if each.in_company:
                    notes.append(f"{where}: {each.in_company} rows of runs that were not alone are left out.")
                if each.ours is not None and each.ratio != each.ratio:
                    place = ", ".join(each.places)
                    notes.append(f"{where} has no ratio: GCN was not timed in the same place ({place}).")
    heads = "Model:text | Runs | Ours, ms:measure | Ratio to GCN | Paper, ms | Paper's ratio | Command:code"
    made = Table.of("Time per epoch, one run at a time", heads, groups, notes)
    return made.without("Paper, ms", "Paper's ratio") if of_own(by_dataset) else made


def ratio_table(by_dataset: ByDataset) -> Table:
    """Return the ratios to GCN's time per epoch alone: models down, datasets across, beside the paper's.

    On a GPU where there is one; the table of times has all devices.

    Examples
    --------
    >>> ratio_table({}).n_rows
    0
    """
    columns: dict[str, dict[str, Value]] = {}
    devices: dict[str, None] = {}
    for name, group in by_dataset.items():
        found = epoch_times(group)
        device = max((one.device for one in found), default="")  # "cuda ..." comes after "cpu"
        here = [one for one in found if one.device == device]
        devices |= {device: None} if here else {}
        columns[dataset_title(name)] = {one.entry.title: Number(one.ratio) for one in here}
        columns[f"{dataset_title(name)}, paper"] = {one.entry.title: number(one.paper_ratio) for one in here}
    titles = dict.fromkeys(title for column in columns.values() for title in column)
    rows = [(title, *(column.get(title) for column in columns.values())) for title in titles]
    caption = f"Time per epoch on {', '.join(devices)}, as a multiple of GCN's"
    return Table.of(caption, " | ".join(["Model:text", *columns]), {None: rows})


@final
@dataclass(frozen=True, eq=False)
class Cost:
    """What one cell of the main table cost.

    Attributes
    ----------
    entry
        Which one.
    runs, epochs
        How many runs, and their mean number of epochs; NaN for a model without epochs.
    gpu, cpu
        Seconds on each in all; 0 where nothing ran there.
    on_cpu
        Seconds that the runs would need on the CPU, one after another; None where no run alone was timed there.
    paper
        Milliseconds per epoch in the paper's table; None where it has none.
    authors
        Seconds that the authors' code would need: the paper's time per epoch times the epochs of our runs.
    unfit
        Seconds, on both devices, of runs that shared the device with other processes: they are not for planning.
    """

    entry: TableEntry
    runs: int
    epochs: float
    gpu: float
    cpu: float
    on_cpu: float | None
    paper: float | None
    authors: float | None
    unfit: float


def costs(
    entries: Sequence[TableEntry],
    experiments: Iterable[Experiment],
    times: Sequence[TableEntry] = (),
    shared: Collection[RowKey] = (),
) -> list[Cost]:
    """Return the costs of the entries of one dataset that were run.

    Parameters
    ----------
    entries
        Of the accuracy table.
    experiments
        Among them those that show time, which have the published milliseconds.
    times
        Entries of the table of time per epoch on the same dataset.
    shared
        Rows of processes that shared their device (`keys_of_shared`).

    Examples
    --------
    >>> costs([], [])
    []
    """
    of_time = ((one.published, point.cell) for one in experiments if one.shows == "time" for point in one.points)
    printed = {(cell.model, cell.dataset): given.ms_per_epoch for given, cell in of_time if given is not None}
    on_cpu_alone = [each for each in epoch_times(times) if each.device == "cpu"]
    timed = {each.entry.cell.model: each.ours.mean for each in on_cpu_alone if each.ours is not None}
    found: list[Cost] = []
    for entry in (entry for entry in entries if entry.rows):
        rows = entry.rows
        gpu = sum(row.seconds for row in rows if row.device.startswith("cuda"))
        epochs = float(np.mean([row.epochs for row in rows])) or float("nan")
        cpu = sum(row.seconds for row in rows) - gpu
        alone, paper = timed.get(entry.cell.model), printed.get((entry.cell.model, entry.cell.dataset))
        on_cpu, authors = (None if ms is None else ms / 1000 * epochs * len(rows) for ms in (alone, paper))
        unfit = sum(row.seconds for row in rows if row.key in shared)
        found.append(Cost(entry, len(rows), epochs, gpu, cpu, on_cpu, paper, authors, unfit))
    return found


def main_cost_table(
    by_dataset: ByDataset,
    experiments: Iterable[Experiment],
    times: ByDataset | None = None,
    shared: Collection[RowKey] = (),
) -> Table:
    """Return the table of costs: every cell of the main table, the sum of each dataset, and that of all.

    Parameters
    ----------
    by_dataset, experiments, times
        As for `costs`, by dataset.
    shared
        Rows of processes that shared their device (`keys_of_shared`): their seconds have a column of their own.

    Examples
    --------
    >>> main_cost_table({}, []).n_rows
    0
    """

    def row(cost: Cost) -> Cells:
        counts = Number(cost.runs, 0), None if np.isnan(cost.epochs) else Number(cost.epochs, 0)
        spent = map(_seconds, (cost.gpu, cost.cpu, cost.unfit, cost.on_cpu))
        return cost.entry.title, *counts, *spent, number(cost.paper, 1), _seconds(cost.authors)

    def total(found: Sequence[Cost]) -> Cells:
        names = ("gpu", "cpu", "unfit", "on_cpu", "authors")
        *spent, authors = (_seconds(sum(getattr(cost, name) or 0 for cost in found)) for name in names)
        return "All", Number(sum(cost.runs for cost in found), 0), None, *spent, None, authors

    known = tuple(experiments)
    groups: dict[str | None, list[Cells]] = {}
    everything: list[Cost] = []
    for name, entries in by_dataset.items():
        found = costs(entries, known, (times or {}).get(name, ()), shared)
        everything += found
        groups[dataset_title(name)] = [*map(row, found), total(found)]
    if len(groups) > 1:
        groups["All datasets"] = [total(everything)]
    heads = f"Model:text | Runs | Epochs per run | GPU, s | CPU, s | {UNFIT} | CPU alone, s | Paper, ms per epoch | Authors' code, s"
    made = Table.of("What the main table cost", heads, groups, _notes(everything))
    made = made if any(cost.unfit for cost in everything) else made.without(UNFIT)
    return made.without("Paper, ms per epoch", "Authors' code, s") if of_own(by_dataset) else made


def cost_sentences(
    by_dataset: ByDataset, experiments: Iterable[Experiment], shared: Collection[RowKey] = ()
) -> list[str]:
    """Return what the runs of the main table took, and what the authors' code would; nothing where there are none.

    Parameters
    ----------
    by_dataset, experiments
        As for `main_cost_table`.
    shared
        Rows of processes that shared their device (`keys_of_shared`).

    Examples
    --------
    >>> cost_sentences({}, [])
    []
    """
    known = tuple(experiments)
    found = [cost for group in by_dataset.values() for cost in costs(group, known, shared=shared)]
    both = [cost for cost in found if cost.authors is not None and cost.gpu and not cost.cpu]
    if not found:
        return []
    told = [
        f"The {sum(cost.runs for cost in found):,} runs of the main table took {sum(cost.gpu for cost in found):,.0f} seconds "
        f"of a GPU and {sum(cost.cpu for cost in found):,.0f} of a CPU."
    ]
    at_once = {cost.entry.where: [row for row in cost.entry.rows if row.key in shared] for cost in found}
    if in_company := {where: rows for where, rows in at_once.items() if rows}:
        counted = listed([f"{len(rows)} of {where}" for where, rows in in_company.items()])
        seconds = sum(cost.unfit for cost in found)
        told[0] += (
            f" {seconds:,.0f} of these are of runs that shared the device with other processes ({counted}). They are not for planning."
        )
    if both:
        ours, authors = sum(cost.gpu for cost in both), sum(cost.authors or 0.0 for cost in both)
        told.append(
            f"For the {len(both)} cells that ran on the GPU and that the paper timed, the authors' code would need "
            f"{authors / 3600:.1f} hours on the paper's GPU of 2018, {authors / ours:,.0f} times our {ours:,.0f} seconds on "
            "one of today: a ratio of machines as well as of programs."
        )
        if unfit := sum(cost.unfit for cost in both):
            told[-1] += (
                f" {unfit:,.0f} of our seconds are of runs that shared the device, and not for planning. Such runs take less time "
                "alone, so the ratio is at least this."
            )
    return told


def _seconds(value: float | None) -> Value:
    return Number(value, 1 if value < 100 else 0) if value else None


def _notes(found: Sequence[Cost]) -> Iterable[str]:
    if not found:
        return
    devices = sorted({row.device for cost in found for row in cost.entry.rows})
    yield (
        f"Seconds of a whole device ({', '.join(devices)}; a CPU with all its cores) for the runs of the main table. "
        "Runs trained together share them; the first cell of a process includes the compilation of kernels."
    )
    if any(cost.unfit for cost in found):
        yield (
            "Not for planning: seconds of runs that shared the device with other processes. Such runs take less time alone."
        )
    if any(cost.on_cpu is not None for cost in found):
        yield (
            "CPU alone: our milliseconds per epoch on the CPU, one run at a time (see the table of times), times the "
            "epochs and the runs. Not measured as a whole; runs trained together take less."
        )
    if not of_own(cost.entry.cell.dataset for cost in found):
        yield (
            "Authors' code: the paper's milliseconds per epoch (a GPU of 2018) times our mean number of epochs times our "
            "runs; the paper timed neither MLP nor Bt. FP, nor PPNP on the larger graphs. Sums are over the cells that "
            "have the number."
        )
    for cost in found:
        if (cost.entry.cell.model, cost.entry.cell.dataset) == ("appnp", "cora_ml") and cost.authors is not None:
            yield (
                f"When the authors ran APPNP on Cora-ML again, on a GPU of 2019, a run took {AUTHORS_SECONDS} s: "
                f"{AUTHORS_SECONDS * cost.runs:,.0f} s for {cost.runs} runs, where the estimate above is {cost.authors:,.0f} s."
            )
