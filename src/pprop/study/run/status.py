"""How far the experiments of a study are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import final

from pprop._errors import PpropError
from pprop.study.cell import Cell, Seeds
from pprop.study.experiment import Experiment
from pprop.study.revisions import current_data, current_revision
from pprop.study.run.attempts import count_claims
from pprop.study.store.store import RowGroup, Store


@final
@dataclass(frozen=True)
class ExperimentProgress:
    """How far one experiment is.

    Attributes
    ----------
    name
        Of the experiment.
    done, wanted
        Runs of the present revision and data, and of the whole experiment. Where a dataset is not on this machine, the
        revision alone decides.
    seconds
        What they took.
    last
        When the last row of its cells was made; empty without rows.
    other_versions
        Rows of its cells of another revision or other data: not counted.
    """

    name: str
    done: int
    wanted: int
    seconds: float
    last: str
    other_versions: int


@final
@dataclass(frozen=True)
class StudyStatus:
    """What is in a store.

    Attributes
    ----------
    rows
        All of them.
    experiments
        Those with at least one row.
    other_cells
        Cells with rows that belong to no experiment given, and how many rows.
    computing
        Runs that are being computed now.
    """

    rows: int
    experiments: tuple[ExperimentProgress, ...]
    other_cells: tuple[tuple[Cell, int], ...]
    computing: int


def study_status(store: Store, experiments: Iterable[Experiment]) -> StudyStatus:
    """Return how far some experiments are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     study_status(store, [])
    StudyStatus(rows=0, experiments=(), other_cells=(), computing=0)
    """
    groups: dict[str, list[RowGroup]] = {}
    data = cache(current_data)  # each dataset is read once, and only if there is a row of it
    for group in store.groups():
        groups.setdefault(group.config, []).append(group)
    seen: set[str] = set()
    found: list[ExperimentProgress] = []
    for experiment in experiments:
        configs = [point.cell.config for point in experiment.points]
        seen.update(configs)
        if any(config in groups for config in configs):
            found.append(_progress(store, experiment, groups, data))
    others = tuple(
        (group[0].cell, sum(part.runs for part in group)) for config, group in groups.items() if config not in seen
    )
    rows = sum(part.runs for group in groups.values() for part in group)
    return StudyStatus(rows, tuple(found), others, count_claims(store))


def _progress(
    store: Store, experiment: Experiment, groups: dict[str, list[RowGroup]], data: Callable[[str], str | None]
) -> ExperimentProgress:
    done = wanted = others = 0
    seconds, last = 0.0, ""
    for point in experiment.points:
        seeds = set(experiment.seeds(cell=point.cell))
        wanted += len(seeds)
        of_cell = groups.get(point.cell.config, [])
        current = max(
            (group for group in of_cell if _is_current(group, data)), key=lambda group: group.newest, default=None
        )
        for group in of_cell:
            last = max(last, group.newest)
            if group is not current:
                others += group.runs
        if current is not None:
            # a cell may have more runs than an experiment names
            runs = "SELECT seconds, split, init FROM rows WHERE config = ? AND data = ? AND revision(code) = ?"
            found = store.execute(runs, (current.config, current.data, current.revision))
            here = [took for took, *run in found if Seeds(*run) in seeds]
            done += len(here)
            seconds += math.fsum(here)
    return ExperimentProgress(experiment.name, done, wanted, seconds, last, others)


def _is_current(group: RowGroup, data: Callable[[str], str | None]) -> bool:
    """Say whether rows are of the present revision and, where the dataset is here, of its data."""
    try:
        current = current_revision(group.cell, group.backend) == group.revision
    except PpropError:  # a user's model that is not here
        return False
    return current and data(group.cell.dataset) in (None, group.data)
