"""What the main table cost, cell by cell, beside what the authors' code would need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from pprop.study.experiment import Experiment
from pprop.study.tables import Column, Entry, Group, Table, epoch_times
from pprop.study.tables.grid import Number, Value
from pprop.study.tables.titles import dataset_title

__all__ = ["Cost", "costs", "main_cost_table"]

AUTHORS_SECONDS = 45.7
"""Seconds a run of APPNP on Cora-ML in the authors' own re-run, published with their code (TensorFlow, a GPU of 2019)."""


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
    paper
        Milliseconds an epoch in the paper's table; None where it has none.
    timed
        Milliseconds an epoch of one run alone on the CPU; None where that was not timed.
    """

    entry: Entry
    runs: int
    epochs: float
    gpu: float
    cpu: float
    paper: float | None
    timed: float | None

    @property
    def authors(self) -> float | None:
        """Seconds that the authors' code would need: the paper's time per epoch times the epochs of our runs."""
        return None if self.paper is None else self.paper / 1000 * self.epochs * self.runs

    @property
    def on_cpu(self) -> float | None:
        """Seconds that the runs would need on the CPU, one after another."""
        return None if self.timed is None else self.timed / 1000 * self.epochs * self.runs


def costs(entries: Sequence[Entry], experiments: Iterable[Experiment], times: Sequence[Entry] = ()) -> list[Cost]:
    """Return the costs of the entries of one dataset that were run.

    Parameters
    ----------
    entries
        Of the accuracy table.
    experiments
        Among them those that show time, which have the published milliseconds.
    times
        Entries of the table of time per epoch on the same dataset.

    Examples
    --------
    >>> costs([], [])
    []
    """
    printed = {
        (point.cell.model, point.cell.dataset): one.published.ms_per_epoch
        for one in experiments
        if one.shows == "time" and one.published is not None
        for point in one.points
    }
    timed = {
        each.entry.cell.model: each.ours.mean
        for each in epoch_times(times)
        if each.device == "cpu" and each.ours is not None
    }
    found: list[Cost] = []
    for entry in entries:
        if entry.sample is None:
            continue
        rows = entry.sample.rows
        gpu = sum(row.seconds for row in rows if row.device.startswith("cuda"))
        epochs = float(np.mean([row.epochs for row in rows])) or float("nan")
        cpu = sum(row.seconds for row in rows) - gpu
        published = printed.get((entry.cell.model, entry.cell.dataset))
        found.append(Cost(entry, len(rows), epochs, gpu, cpu, published, timed.get(entry.cell.model)))
    return found


def main_cost_table(
    by_dataset: Mapping[str, Sequence[Entry]],
    experiments: Iterable[Experiment],
    times: Mapping[str, Sequence[Entry]] | None = None,
) -> Table:
    """Return the table of costs: every cell of the main table, the sum of each dataset, and that of all.

    Examples
    --------
    >>> main_cost_table({}, []).n_rows
    0
    """
    known = tuple(experiments)
    groups: list[Group] = []
    everything: list[Cost] = []
    for name, entries in by_dataset.items():
        found = costs(entries, known, (times or {}).get(name, ()))
        everything += found
        groups.append(Group(dataset_title(name), (*map(_row, found), _sum("All", found))))
    if len(groups) > 1:
        groups.append(Group("All datasets", (_sum("All", everything),)))
    columns = (
        Column("Model", "text"),
        *(Column(title) for title in ("Runs", "Epochs a run", "GPU, s", "CPU, s", "CPU alone, s")),
        *(Column(title) for title in ("Paper, ms an epoch", "Authors' code, s")),
    )
    return Table("What the main table cost", columns, tuple(groups), tuple(_notes(everything)))


def _notes(found: Sequence[Cost]) -> Iterable[str]:
    if not found:
        return
    samples = [cost.entry.sample for cost in found if cost.entry.sample is not None]
    devices = sorted({row.device for sample in samples for row in sample.rows})
    yield (
        f"Seconds of a whole device ({', '.join(devices)}; a CPU with all its cores), of the runs that the main table shows. "
        "Runs trained together share them; the first cell of a process includes the compilation of kernels."
    )
    if any(cost.timed is not None for cost in found):
        yield (
            "CPU alone: our milliseconds an epoch on the CPU, one run at a time (the table of times has them), times the epochs "
            "and the runs. Not measured as a whole; runs that are trained together take less."
        )
    yield (
        "Authors' code: the milliseconds an epoch that the paper printed (a GPU of 2018) times our mean number of epochs "
        "times our runs; the paper timed neither MLP nor Bt. FP, nor PPNP on the larger graphs. Sums are over the cells "
        "that have the number."
    )
    for cost in found:
        if (cost.entry.cell.model, cost.entry.cell.dataset) == ("appnp", "cora_ml") and cost.authors is not None:
            yield (
                f"When the authors ran APPNP on Cora-ML again, on a GPU of 2019, a run took {AUTHORS_SECONDS} s: "
                f"{AUTHORS_SECONDS * cost.runs:,.0f} s for {cost.runs} runs, where the estimate above is "
                f"{cost.authors:,.0f} s."
            )


def _row(cost: Cost) -> tuple[Value, ...]:
    return (
        cost.entry.title,
        Number(cost.runs, 0),
        None if np.isnan(cost.epochs) else Number(cost.epochs, 0),
        _seconds(cost.gpu),
        _seconds(cost.cpu),
        None if cost.on_cpu is None else _seconds(cost.on_cpu),
        None if cost.paper is None else Number(cost.paper, 1),
        None if cost.authors is None else _seconds(cost.authors),
    )


def _sum(title: str, found: Sequence[Cost]) -> tuple[Value, ...]:
    authors = [cost.authors for cost in found if cost.authors is not None]
    on_cpu = [cost.on_cpu for cost in found if cost.on_cpu is not None]
    return (
        title,
        Number(sum(cost.runs for cost in found), 0),
        None,
        _seconds(sum(cost.gpu for cost in found)),
        _seconds(sum(cost.cpu for cost in found)),
        _seconds(sum(on_cpu)),
        None,
        _seconds(sum(authors)),
    )


def _seconds(value: float) -> Value:
    return Number(value, 1 if value < 100 else 0) if value else None
