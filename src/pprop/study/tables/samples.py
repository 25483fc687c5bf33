"""The rows that tables and figures show: one pool of each cell, with the other pools beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from pprop.study.cell import Cell, Seeds
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import load_experiments
from pprop.study.stats.estimate import Estimate, estimate
from pprop.study.store.row import Row
from pprop.study.store.store import Pool, Store, newest_first, pools

Metric = Literal["accuracy", "f1", "f1_macro"]


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a cell that are shown, and those that are not.

    Attributes
    ----------
    cell
        What was run.
    pool
        The rows that are shown: one version of the code and of the data. Their predictions are left out.
    others
        Rows of the same cell with other versions, newest first: the cell was run again.
    """

    cell: Cell
    pool: Pool
    others: tuple[Pool, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are shown, in the order of their seeds."""
        return self.pool.rows

    def values(self, metric: Metric) -> dict[Seeds, float]:
        """Return a metric of each run, in [0, 1]."""
        return {row.key.seeds: float(getattr(row, metric)) for row in self.rows}

    def percent(self, metric: Metric = "accuracy") -> Estimate:
        """Return the mean of a metric over the runs with its interval, in percent."""
        return estimate([100 * value for value in self.values(metric).values()])

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """The rows of all versions, pool by pool: not to be averaged."""
        return tuple(row for pool in (self.pool, *self.others) for row in pool.rows)

    def on(self, device: str) -> Sample | None:
        """Return the newest of the pools that have rows of a device, with those rows alone; None if there are none.

        The versions of CPU and GPU code differ, so that rows of the two are never in one pool: where a cell was timed
        on both, the pool that is shown has one of them.
        """
        for pool in (self.pool, *self.others):
            rows = tuple(row for row in pool.rows if row.device == device)
            if rows:
                return Sample(self.cell, replace(pool, rows=rows))
        return None

    def only(self, seeds: Collection[Seeds]) -> Sample | None:
        """Return what the sample would be if no other runs than these had been made; None if none of them was.

        The pool that is shown may be another one: the newest row of all need not be one of these.
        """
        wanted = frozenset(seeds)
        kept = [
            replace(pool, rows=tuple(row for row in pool.rows if row.key.seeds in wanted))
            for pool in (self.pool, *self.others)
        ]
        found = newest_first(pool for pool in kept if pool.rows)
        return Sample(self.cell, found[0], tuple(found[1:])) if found else None


@final
class Samples(dict[str, Sample]):
    """The samples of a study by the configuration of their cells, in the order of the cells' texts.

    Examples
    --------
    >>> cell = Cell("mlp", {}, "citeseer")
    >>> samples = Samples([Sample(cell, Pool(cell, "c1", "d1", ()))])
    >>> samples.of(cell).cell.model, samples.of(Cell("gcn", {}, "citeseer"))
    ('mlp', None)
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        super().__init__((each.cell.config, each) for each in sorted(samples, key=lambda each: each.cell.text))

    def of(self, cell: Cell) -> Sample | None:
        """Return the sample of a cell, or None where nothing was run."""
        return self.get(cell.config)

    def published(self, experiments: Mapping[str, Experiment]) -> Samples:
        """Return what tables and figures show of the samples.

        Here, and nowhere else, the runs that experiments of kind ``"runs"`` add are kept away from all that the other
        experiments show.

        Examples
        --------
        >>> Samples([]).published(load_experiments()).of(Cell("mlp", {}, "citeseer")) is None
        True
        """
        return self.named(one for one in experiments.values() if one.shows != "runs")

    def named(self, experiments: Iterable[Experiment]) -> Samples:
        """Return what the samples would be if cells of `experiments` had no more runs than these name.

        Cells that are in none of them keep all their runs.

        Examples
        --------
        >>> from pprop.study.store.row import example_row
        >>> experiment = load_experiments()["gasteiger_2019_mlp_citeseer"]
        >>> cell = experiment.points[0].cell
        >>> rows = (example_row(split=2144199730), example_row(split=17))
        >>> everything = Samples([Sample(cell, Pool(cell, "c1", "d1", rows))])
        >>> [row.key.seeds.split for row in everything.named([experiment]).of(cell).rows]
        [2144199730]
        """
        named: dict[str, set[Seeds]] = {}
        for experiment in experiments:
            for cell in (point.cell for point in experiment.points):
                named.setdefault(cell.config, set()).update(experiment.seeds(cell=cell))
        found = (each.only(named[config]) if config in named else each for config, each in self.items())
        return Samples(each for each in found if each is not None)


def read_samples(store: Store) -> Samples:
    """Return the rows that tables show, cell by cell, the newest pool of each first.

    Of a cell of the experiments that come with pprop, the runs that these name; see `Samples.published`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     len(read_samples(store))
    0
    """
    return read_all_samples(store).published(load_experiments())


def read_all_samples(store: Store) -> Samples:
    """Return all that a store holds, also the runs beyond those of the tables.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     len(read_all_samples(store))
    0
    """
    none = np.empty(0, dtype=np.uint8)  # no table needs the predictions of every node, which fill the memory
    samples: list[Sample] = []
    for cell in store.cells():
        shown, *others = (
            replace(pool, rows=tuple(replace(row, predictions=none) for row in pool.rows))
            for pool in pools(store, cell)
        )
        samples.append(Sample(cell, shown, tuple(others)))
    return Samples(samples)
