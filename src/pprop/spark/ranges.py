"""How the rows of a graph are shared out to tasks: by entries, so that a row of many entries is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray


@final
class Cut(NamedTuple):
    """A place between two entries: before entry `entry` of row `row`."""

    row: int
    entry: int


@final
class Span(NamedTuple):
    """Entries `begin` to `end` of the rows `first` to `last`; whole rows, or a part of one."""

    first: int
    last: int
    begin: int
    end: int
    whole: bool


def cut_at(indptr: NDArray[np.int64], work: int) -> Cut:
    """Return the cut before which so much work is done: one unit for each entry, and one for each row.

    >>> [tuple(cut_at(np.array([0, 3, 3, 4]), work)) for work in (0, 1, 3, 4, 5, 7)]
    [(0, 0), (0, 1), (1, 3), (1, 3), (2, 3), (3, 4)]
    """
    low, high = 0, len(indptr) - 1
    while low < high:  # the last row that begins by then; `indptr` is read where it lies
        middle = (low + high + 1) // 2
        if int(indptr[middle]) + middle <= work:
            low = middle
        else:
            high = middle - 1
    if low == len(indptr) - 1:
        return Cut(low, int(indptr[low]))
    begin, end = int(indptr[low]), int(indptr[low + 1])
    entry = min(begin + work - begin - low, end)
    return Cut(low + 1, end) if entry == end > begin else Cut(low, entry)


def spans(indptr: NDArray[np.int64], task: int, tasks: int, most_rows: int) -> Iterator[Span]:
    """Give what one of `tasks` equal shares of all work consists of: parts of rows, and whole rows, some at a time.

    >>> indptr = np.array([0, 3, 3, 4])
    >>> [tuple(one) for task in range(3) for one in spans(indptr, task, 3, 10)]
    [(0, 1, 0, 2, False), (0, 1, 2, 3, False), (1, 3, 3, 4, True)]
    """
    n = len(indptr) - 1
    work = int(indptr[-1]) + n
    start, stop = cut_at(indptr, work * task // tasks), cut_at(indptr, work * (task + 1) // tasks)
    row = start.row
    if row < n and start.entry > int(indptr[row]):
        end = min(int(indptr[row + 1]), stop.entry)
        if end > start.entry:
            yield Span(row, row + 1, start.entry, end, whole=False)
        row += 1
    while row < stop.row:
        last = min(row + most_rows, stop.row)
        yield Span(row, last, int(indptr[row]), int(indptr[last]), whole=True)
        row = last
    if row == stop.row < n and stop.entry > int(indptr[row]):
        yield Span(row, row + 1, int(indptr[row]), stop.entry, whole=False)
