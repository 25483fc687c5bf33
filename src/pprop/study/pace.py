"""How long runs of a study take, as far as rows tell: to say what is left, and what fits into a time limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import final

from pprop.study.cell import Cell
from pprop.study.store import Group

__all__ = ["StudyPace"]


@final
class StudyPace:
    """Mean seconds of a run: of the same cell, else of the same model on the same dataset, else unknown.

    Rows of other devices do not count: a GPU says nothing of a CPU.

    Parameters
    ----------
    groups
        What the store has.
    device
        ``"cpu"`` or ``"cuda"``, where the study goes on.

    Examples
    --------
    >>> pace = StudyPace([], "cpu")
    >>> first, other = Cell("mlp", {}, "citeseer"), Cell("mlp", {"hidden": [8]}, "citeseer")
    >>> pace.note(first, 3.0)
    >>> pace.seconds(first), pace.seconds(other), pace.seconds(Cell("mlp", {}, "pubmed"))
    (3.0, 3.0, None)
    """

    def __init__(self, groups: Iterable[Group], device: str) -> None:
        self._sums: dict[object, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for group in groups:
            if all(name.startswith(device) for name in group.devices):
                self.note(group.cell, group.seconds, group.runs)

    def note(self, cell: Cell, seconds: float, runs: int = 1) -> None:
        """Take note of runs that took so many seconds together."""
        for name in (cell.config, (cell.model, cell.dataset)):
            known = self._sums[name]
            self._sums[name] = known[0] + runs, known[1] + seconds

    def seconds(self, cell: Cell) -> float | None:
        """Return what a run of a cell is expected to take; None: nothing is known."""
        for name in (cell.config, (cell.model, cell.dataset)):
            runs, seconds = self._sums[name]
            if runs:
                return seconds / runs
        return None

    def together(self, work: Iterable[tuple[Cell, int]]) -> float | None:
        """Return what so many runs of some cells are expected to take; None while there are unknown ones among them."""
        total = 0.0
        for cell, runs in work:
            each = self.seconds(cell)
            if each is None and runs:
                return None
            total += (each or 0.0) * runs
        return total
