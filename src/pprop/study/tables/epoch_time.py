"""The table of time per epoch, device by device: ours and the paper's cannot be compared, but their ratios to GCN can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row
from pprop.study.tables.entries import Entry
from pprop.study.tables.grid import NOT_RUN, Code, Column, Group, Measure, Number, Table, Value
from pprop.study.tables.titles import dataset_title

__all__ = ["EpochTime", "epoch_times", "time_table"]

YARDSTICK = "gcn"


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
    paper, paper_ratio
        What the paper printed; None where it printed nothing.
    in_company
        Rows left out because other runs were trained at the same time.
    """

    entry: Entry
    device: str
    ours: Estimate | None
    places: tuple[str, ...]
    ratio: float
    paper: float | None
    paper_ratio: float | None
    in_company: int


def epoch_times(group: Sequence[Entry]) -> list[EpochTime]:
    """Return the times of the entries of one dataset, device by device.

    Examples
    --------
    >>> epoch_times([])
    []
    """
    rows = (row for entry in group if entry.sample is not None for row in entry.sample.all_rows)
    devices = sorted({row.device for row in rows if _is_alone(row)})
    return [time for device in devices or [""] for time in _times([_on(device, entry) for entry in group], device)]


def _times(group: Sequence[Entry], device: str) -> list[EpochTime]:
    yardstick = next((entry for entry in group if entry.cell.model == YARDSTICK), None)
    base, base_places = _alone(yardstick)
    base_paper = _published(yardstick)
    found: list[EpochTime] = []
    for entry in group:
        ours, places = _alone(entry)
        same = ours is not None and base is not None and places == base_places
        paper = _published(entry)
        found.append(
            EpochTime(
                entry,
                device,
                ours,
                places,
                ours.mean / base.mean if same and ours is not None and base is not None else float("nan"),
                paper,
                paper / base_paper if paper is not None and base_paper is not None else None,
                0 if entry.sample is None else sum(row.together > 1 for row in entry.sample.rows),
            )
        )
    return found


def time_table(by_dataset: Mapping[str, Sequence[Entry]]) -> Table:
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
    groups: list[Group] = []
    notes: list[str] = []
    for name, group in by_dataset.items():
        times = epoch_times(group)
        for device in dict.fromkeys(each.device for each in times):
            here = [each for each in times if each.device == device]
            title = f"{dataset_title(name)} on {device}" if device else dataset_title(name)
            groups.append(Group(title, tuple(_row(each) for each in here)))
            places = sorted({place for each in here for place in each.places})
            notes += [f"Timed on {place}." for place in places if f"Timed on {place}." not in notes]
            for each in here:
                where = f"{each.entry.title} on {title}"
                if each.in_company:
                    notes.append(f"{where}: {each.in_company} rows of runs that were not alone are left out.")
                if each.ours is not None and each.ratio != each.ratio:
                    place = ", ".join(each.places)
                    notes.append(f"{where} has no ratio: GCN was not timed in the same place ({place}).")
    columns = (
        Column("Model", "text"),
        Column("Runs"),
        Column("Ours, ms", "measure"),
        Column("Ratio to GCN"),
        Column("Paper, ms"),
        Column("Paper's ratio"),
        Column("Command", "code"),
    )
    return Table("Time per epoch, one run at a time", columns, tuple(groups), tuple(notes))


def _row(one: EpochTime) -> tuple[Value, ...]:
    return (
        one.entry.title,
        Number(one.ours.runs, 0) if one.ours else Number(0, 0),
        Measure(one.ours.mean, one.ours.half) if one.ours else NOT_RUN,
        None if one.ours is None else Number(one.ratio),
        None if one.paper is None else Number(one.paper, 1),
        None if one.paper_ratio is None else Number(one.paper_ratio),
        Code(one.entry.command),
    )


def _alone(entry: Entry | None) -> tuple[Estimate | None, tuple[str, ...]]:
    rows = () if entry is None or entry.sample is None else entry.sample.rows
    alone = [row for row in rows if _is_alone(row)]
    if not alone:
        return None, ()
    places = tuple(sorted({f"{row.device} of {row.host} ({row.backend})" for row in alone}))
    return estimate([row.ms_per_epoch for row in alone]), places


def _is_alone(row: Row) -> bool:
    return row.together == 1 and row.epochs > 0


def _on(device: str, entry: Entry) -> Entry:
    """Return an entry with its rows of a device alone."""
    return replace(entry, sample=None if entry.sample is None else entry.sample.on(device))


def _published(entry: Entry | None) -> float | None:
    printed = entry.experiment.published if entry is not None and entry.experiment is not None else None
    return None if printed is None else printed.ms_per_epoch
