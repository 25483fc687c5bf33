"""The rows that tables and figures show: of each cell one pool, the others named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from pprop.study.cell import Cell, Seeds
from pprop.study.pools import Pool, pools
from pprop.study.row import Row
from pprop.study.store import Store

__all__ = ["Metric", "Sample", "Samples", "read_samples"]

Metric = Literal["accuracy", "f1", "f1_macro"]

_NO_PREDICTIONS = np.empty(0, dtype=np.uint8)


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


@final
class Samples(Mapping[str, Sample]):
    """The samples of a study by the configuration of their cells, in the order of the cells' texts.

    Examples
    --------
    >>> cell = Cell("mlp", {}, "citeseer")
    >>> samples = Samples([Sample(cell, Pool(cell, "c1", "d1", ()))])
    >>> samples.of(cell).cell.model, samples.of(Cell("gcn", {}, "citeseer"))
    ('mlp', None)
    """

    def __init__(self, samples: list[Sample]) -> None:
        self._samples = {each.cell.config: each for each in sorted(samples, key=lambda each: each.cell.text)}

    def __getitem__(self, key: str) -> Sample:
        return self._samples[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def of(self, cell: Cell) -> Sample | None:
        """Return the sample of a cell, or None where nothing was run."""
        return self._samples.get(cell.config)


def read_samples(store: Store) -> Samples:
    """Return what a store holds, cell by cell, the newest pool of each to be shown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     len(read_samples(store))
    0
    """
    samples: list[Sample] = []
    for cell in store.cells():
        shown, *others = [_light(pool) for pool in pools(store, cell)]
        samples.append(Sample(cell, shown, tuple(others)))
    return Samples(samples)


def _light(pool: Pool) -> Pool:
    """Return a pool without the predictions of every node, which no table needs and which fill the memory."""
    return replace(pool, rows=tuple(replace(row, predictions=_NO_PREDICTIONS) for row in pool.rows))
