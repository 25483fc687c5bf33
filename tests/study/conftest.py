"""Shared by the tests of tables and reports: rows made up from numbers, never trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop.datasets import TEST_SEEDS
from pprop.study.cell import Cell, Seeds
from pprop.study.store.pack import Packed
from pprop.study.store.row import Row, RowKey

MakeRows = Callable[..., list[Row]]


@pytest.fixture(scope="session")
def published() -> tuple[Row, ...]:
    """The rows of the packed study, read once: that takes seconds."""
    return tuple(Packed(Path(__file__).parents[2] / "results" / "study.pack"))


@pytest.fixture(scope="session")
def make_rows() -> MakeRows:
    """Make the rows of a cell: accuracies around `mean`, drawn from the cell's name and the seeds."""

    def make(cell: Cell, mean: float = 0.75, seeds: Sequence[Seeds] | None = None, **fields: Any) -> list[Row]:
        chosen = seeds if seeds is not None else [Seeds(split, init) for init in range(5) for split in TEST_SEEDS]
        given: dict[str, Any] = {
            "revision": "c1",
            "data": "d1",
            "epochs": 400,
            "seconds": 2.0,
            "together": 20,
            "device": "cpu",
            "backend": "numba",
            "host": "here",
            "created": "2026-01-01T00:00:00+00:00",
            "predictions": np.zeros(2110, dtype=np.uint8),
            **fields,
        }
        revision, data = given.pop("revision"), given.pop("data")
        rows: list[Row] = []
        for one in chosen:
            draw = np.random.default_rng([one.split, one.init, len(cell.model)]).standard_normal(2)
            accuracy = mean + 0.01 * float(draw[0])
            rows.append(
                Row(
                    key=RowKey(cell.config, revision, data, one),
                    cell=cell.text,
                    accuracy=accuracy,
                    f1=accuracy - 0.04 + 0.002 * float(draw[1]),
                    f1_macro=accuracy - 0.05,
                    stopping_loss=0.5,
                    stopping_accuracy=0.8,
                    best_epoch=10,
                    torch="2.0",
                    version="0.1",
                    **given,
                )
            )
        return rows

    return make
