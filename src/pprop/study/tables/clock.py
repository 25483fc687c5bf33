"""Recorded seconds beside the clock: which runs shared their device with other processes, so that their times plan nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import final

from pprop.study.store.row import Row, RowKey
from pprop.study.tables.entries import Samples
from pprop.study.tables.table import Cells, Number, Strong, Table

PAUSE = timedelta(seconds=120)  # without a row, and without a training that ends in one, a stretch of work is over
AT_ONCE = 1.2  # processes on one device, from which on they shared it: alone none has recorded more seconds than passed


@final
@dataclass(frozen=True, eq=False)
class Stretch:
    """Rows that one device made without a pause.

    Attributes
    ----------
    rows
        In the order in which they were stored, at least one.
    """

    rows: tuple[Row, ...]

    @property
    def device(self) -> str:
        """Where they were computed; machines with the same device are not told apart."""
        return self.rows[0].device

    @property
    def begin(self) -> datetime:
        """When the training began that ended in the first row."""
        return _begin(self.rows[0])

    @property
    def clock(self) -> float:
        """Seconds that passed from then to the last row."""
        return (_created(self.rows[-1]) - self.begin).total_seconds()

    @property
    def recorded(self) -> float:
        """The sum of the rows' seconds: what passed, if one process had the device, and more if there were several."""
        return sum(row.seconds for row in self.rows)

    @property
    def shared(self) -> bool:
        """Whether more than one process was at work."""
        return self.recorded > AT_ONCE * self.clock


def _created(row: Row) -> datetime:
    return datetime.fromisoformat(row.created)


def _begin(row: Row) -> datetime:
    """Return when the training of a row began, if the row was the first that it ended in."""
    return _created(row) - timedelta(seconds=row.seconds * row.together)


def stretches(rows: Iterable[Row]) -> Iterator[Stretch]:
    """Yield the stretches of work that made some rows, device by device, in the order of time.

    Examples
    --------
    >>> list(stretches([]))
    []
    """
    ordered = sorted(rows, key=lambda row: (row.device, row.host, row.created))
    for _, group in groupby(ordered, key=lambda row: (row.device, row.host)):
        here: list[Row] = []
        for row in group:
            if here and _begin(row) - _created(here[-1]) > PAUSE:
                yield Stretch(tuple(here))
                here = []
            here.append(row)
        yield Stretch(tuple(here))


def all_stretches(samples: Samples) -> list[Stretch]:
    """Return the stretches of all rows, also of those that are not shown.

    >>> all_stretches(Samples([]))
    []
    """
    return list(stretches(row for sample in samples.values() for row in sample.all_rows))


def keys_of_shared(found: Iterable[Stretch]) -> frozenset[RowKey]:
    """Return which rows come from stretches in which several processes shared a device.

    >>> keys_of_shared([])
    frozenset()
    """
    return frozenset(row.key for one in found if one.shared for row in one.rows)


def clock_table(found: Iterable[Stretch]) -> Table:
    """Return the stretches with the seconds that were recorded and those that passed.

    >>> clock_table([]).n_rows
    0
    """
    groups: dict[str | None, list[Cells]] = {}
    for one in found:
        at_once = Number(one.recorded / one.clock if one.clock else float("nan"), 1)
        numbers = Number(len(one.rows), 0), Number(one.recorded, 0), Number(one.clock, 0), at_once
        begin = one.begin.isoformat(" ", "minutes")[:16]
        groups.setdefault(one.device, []).append((begin, *numbers, Strong("no") if one.shared else "yes"))
    heads = "Begin, UTC:text | Rows | Seconds recorded | Seconds by the clock | Recorded per second | For planning:text"
    return Table.of("Seconds that were recorded, and seconds that passed", heads, groups)


def clock_sentence(found: Iterable[Stretch]) -> str:
    """Return what recorded seconds add up to, and how many rows shared a device; empty without rows.

    >>> clock_sentence([])
    ''
    """
    known = list(found)
    if not known:
        return ""
    text = (
        "Seconds are a run's share of the training that it was part of. They add up to the time spent where one "
        "process had the device for itself."
    )
    shared = [one for one in known if one.shared]
    if shared:
        rows, total = (sum(len(one.rows) for one in some) for some in (shared, known))
        recorded, passed = sum(one.recorded for one in shared), sum(one.clock for one in shared)
        text += (
            f" {rows:,} of {total:,} rows come from several processes that shared one device: they have "
            f"{recorded:,.0f} seconds, while {passed:,.0f} passed. Their seconds are too long for a run alone and are "
            "not for planning."
        )
    return text
