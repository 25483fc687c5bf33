"""Edits of a live graph: each made whole or, with an error, not at all; many together; and the last ones taken back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from pprop._errors import InputError
from pprop.propagation.live_record import LiveRecord, LiveUpdate
from pprop.propagation.operator import Nodes

if TYPE_CHECKING:  # compiled, which is loaded with a live graph only
    from pprop.propagation.live_system import LiveSystem

_Edit = tuple[str, Nodes, Nodes, Callable[[], object]]  # its name, the nodes it names and touches, what takes it back
BATCH = "apply"


@final
class LiveHistory:
    """The edits that were made, and what each cost.

    Parameters
    ----------
    system, record
        What edits change.
    most
        Number of edits that can be undone.

    Attributes
    ----------
    changes
        How often the graph has become another.
    """

    def __init__(self, system: LiveSystem, record: LiveRecord, most: int) -> None:
        self._system, self._record = system, record
        self._edits: deque[_Edit] = deque(maxlen=most)
        self._batch: list[_Edit] | None = None  # edits that are made together and not settled yet
        self.changes = 0

    def commit(self, edit: str, nodes: Nodes, touched: Nodes, reverse: Callable[[], object]) -> LiveUpdate:
        """Push after an edit, or take it back where float64 can no longer guarantee the tolerance; in a batch, wait."""
        if self._batch is not None:
            self._batch.append((edit, nodes, touched, reverse))
            return LiveUpdate(edit, nodes, 0, 0)
        reach = self._system.reach(touched)
        least = self._system.least_tolerance(reach)
        if not least <= self._system.tol:
            reverse()
            self._system.refresh()  # such numbers have taken digits along
            raise InputError(
                f"{edit} would make numbers so large, or degrees so small, that float64 guarantees a tolerance of no less "
                f"than {least:.2g}, and this graph is live with tol={self._system.tol:g}. The graph is as it was before."
            )
        self._edits.append((edit, nodes, touched, reverse))  # made, even if what follows is interrupted
        self.changes += 1
        return LiveUpdate(edit, nodes, *self._system.settle(touched, reach, together=edit == BATCH))

    @contextmanager
    def together(self, updates: list[LiveUpdate]) -> Generator[None]:
        """Commit all edits inside as one, which is appended to `updates`; an error takes back those made before it."""
        batch = self._batch = list[_Edit]()
        try:
            yield
        except BaseException:
            self._take_back(batch)
            raise
        finally:
            self._batch = None
        nodes = _joined([edit[1] for edit in batch])
        updates.append(self.commit(BATCH, nodes, _joined([edit[2] for edit in batch]), partial(_reverse, batch)))

    def undo(self) -> LiveUpdate:
        """Take back the last edit."""
        if not self._edits:
            raise InputError(f"There is no edit to undo: none was made, or more than {self._edits.maxlen} ago.")
        edit, nodes, touched, reverse = self._edits[-1]
        self.changes += 1
        reverse()
        self._edits.pop()  # only now: one that fails can be tried again
        left = touched[touched < self._record.n]  # without nodes that are gone again
        cost = self._system.settle(left, self._system.reach(left), together=edit == BATCH)
        return LiveUpdate(f"undo {edit}", nodes, *cost)

    def _take_back(self, batch: list[_Edit]) -> None:
        """Take back edits that were not settled: no prediction has followed them."""
        touched = _joined([edit[2] for edit in batch])
        reach = self._system.reach(touched)
        _reverse(batch)
        if not self._system.least_tolerance(reach) <= self._system.tol:
            self._system.refresh()
        elif len(touched):
            self._system.count_rounding(np.repeat(touched, 2), reach)


def _joined(parts: list[Nodes]) -> Nodes:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _reverse(batch: list[_Edit]) -> None:
    """Take back edits, the last first; one is forgotten when that is done, so that a failure can be tried again."""
    while batch:
        batch[-1][3]()
        batch.pop()
