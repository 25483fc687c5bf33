"""A row as the store keeps it: columns, the predictions packed, and a digest of everything."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError
from pprop.study.cell import Seeds
from pprop.study.revisions import Provenance, recorded_provenance, recorded_revision


@final
@dataclass(frozen=True, order=True)
class RowKey:
    """What makes a row: rows that differ in any of these are never pooled.

    Attributes
    ----------
    config
        Hash of the cell.
    revision
        Of the model on its backend (`pprop.study.revisions`).
    data
        Fingerprint of the graph.
    seeds
        Of the split and of the initialisation.

    Examples
    --------
    >>> RowKey("a1", "c1", "d1", Seeds(5, 0)) == RowKey("a1", "c1", "d1", Seeds(5, 0))
    True
    """

    config: str
    revision: str
    data: str
    seeds: Seeds


@final
@dataclass(frozen=True, eq=False)
class Row:
    """One finished run.

    Attributes
    ----------
    key
        Its identity.
    cell
        The cell as text (`Cell.text`).
    accuracy, f1, f1_macro
        On the evaluation nodes of the split, in [0, 1]; `f1` is the paper's definition, `f1_macro` the usual one.
    stopping_loss, stopping_accuracy
        At the kept epoch; NaN for a model without early stopping.
    epochs, best_epoch
        Epochs made, and the one kept, from 0; 0 for a model without epochs.
    seconds
        The run's share of the time of the training it was part of.
    together
        Runs that were in that training.
    predictions
        Predicted class of every node, shape (n,), uint8.
    backend, device, torch, host, version, created
        What computed it, where, and when (ISO 8601, UTC); `version` is the text of `provenance`.
    stored_as
        The hash of sources that a row from before there were revisions is stored under; empty for any other.
    """

    key: RowKey
    cell: str
    accuracy: float
    f1: float
    f1_macro: float
    stopping_loss: float
    stopping_accuracy: float
    epochs: int
    best_epoch: int
    seconds: float
    together: int
    predictions: NDArray[np.uint8]
    backend: str
    device: str
    torch: str
    host: str
    version: str
    created: str
    stored_as: str = ""

    @cached_property
    def provenance(self) -> Provenance:
        """What computed it, where that was recorded."""
        return recorded_provenance(self.version, self.stored_as, self.host)

    @property
    def ms_per_epoch(self) -> float:
        """Milliseconds an epoch: as fast as one run alone only where `together` is 1; NaN without epochs."""
        return 1000 * self.seconds / self.epochs if self.epochs else float("nan")


# Columns that identify a row; `code` holds its revision, or an older row's hash of sources.
KEY = ("config", "code", "data", "split", "init")
SAME_KEY = " AND ".join(f"{name} = ?" for name in KEY)

_SQL = {"float": "REAL", "int": "INTEGER", "str": "TEXT"}
_PLAIN = {field.name: _SQL[field.type] for field in fields(Row) if field.type in _SQL and field.name != "stored_as"}
_RESULT = tuple(_PLAIN)[: 1 + tuple(_PLAIN).index("best_epoch")]  # the others are times and places
# SQL type of every column.
_OF_KEY = dict(zip(KEY, ("TEXT", "TEXT", "TEXT", "INTEGER", "INTEGER"), strict=True))
COLUMN_TYPES = _OF_KEY | _PLAIN | {"predictions": "BLOB", "digest": "TEXT"}
COLUMNS = tuple(COLUMN_TYPES)


def key_values(key: RowKey) -> tuple[str, str, str, int, int]:
    """Return a key as the values of its columns.

    >>> key_values(RowKey("a1", "c1", "d1", Seeds(5, 0)))
    ('a1', 'c1', 'd1', 5, 0)
    """
    return key.config, key.revision, key.data, key.seeds.split, key.seeds.init


def encode(row: Row) -> tuple[Any, ...]:
    """Return the values of `COLUMNS`. SQL knows no NaN: it becomes NULL.

    >>> encode(example_row())[5:7]
    ('{}', 0.5)
    """
    plain = [_stored(getattr(row, name)) for name in _PLAIN]
    packed = zlib.compress(row.predictions.astype(np.uint8).tobytes(), level=1)  # 7 % larger, in a quarter of the time
    return (*_stored_key(row), *plain, packed, _digest(row, _PLAIN))


def decode(values: Sequence[Any]) -> Row:
    """Return the row of the values of `COLUMNS`, or raise FormatError if they are not as they were written.

    >>> decode(encode(example_row())).predictions
    array([0, 1, 1], dtype=uint8)
    """
    named = dict(zip(COLUMNS, values, strict=True))
    missing = {name: float("nan") for name, kind in _PLAIN.items() if kind == "REAL" and named[name] is None}
    plain: dict[str, Any] = {name: named[name] for name in _PLAIN} | missing
    try:
        revision = recorded_revision(named["code"])
        key = RowKey(named["config"], revision, named["data"], Seeds(named["split"], named["init"]))
        predictions = np.frombuffer(zlib.decompress(named["predictions"]), dtype=np.uint8)
        stored_as = "" if revision == named["code"] else named["code"]
        row = Row(key=key, predictions=predictions, **plain, stored_as=stored_as)
        if _digest(row, _PLAIN) == named["digest"]:
            return row
    except (TypeError, ValueError, AttributeError, zlib.error):
        pass
    where = f"split {named['split']}, initialisation {named['init']} of the cell {named['config']}"
    raise FormatError(f"the row of {where} does not match its checksum")


def without_predictions(row: Row) -> Row:
    """Return the row as it is kept where every byte counts: an empty array stands for its predictions.

    >>> without_predictions(example_row()).predictions.shape
    (0,)
    """
    return replace(row, predictions=np.empty(0, dtype=np.uint8))


def same_result(one: Row, other: Row) -> bool:
    """Say whether two rows have the same result, times and places apart; one may be without its predictions.

    Examples
    --------
    >>> row = example_row()
    >>> same_result(row, without_predictions(row)), same_result(row, replace(row, epochs=9))
    (True, False)
    >>> same_result(row, replace(row, seconds=9.0, host="elsewhere"))
    True
    """
    if not (len(one.predictions) and len(other.predictions)):
        one, other = without_predictions(one), without_predictions(other)
    return _digest(replace(one, stored_as=""), _RESULT) == _digest(replace(other, stored_as=""), _RESULT)


def example_row(split: int = 5, init: int = 0) -> Row:
    """Return a row for examples."""
    key, classes = RowKey("a1", "c1", "d1", Seeds(split, init)), np.array([0, 1, 1], dtype=np.uint8)
    scores = (0.5, 0.5, 0.4, float("nan"), 0.5)
    places = ("numba", "cpu", "2.0", "here", "0.1", "2026-01-01T00:00:00+00:00")
    return Row(key, "{}", *scores, 3, 2, 1.5, 1, classes, *places)


def _stored_key(row: Row) -> tuple[str, str, str, int, int]:
    """Return the values of `KEY`: a row from before there were revisions stays under the hash it was stored under."""
    config, revision, data, split, init = key_values(row.key)
    return config, row.stored_as or revision, data, split, init


def _stored(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if value != value else value + 0.0  # SQL also forgets the sign of a zero; + 0.0 takes it away before


def _digest(row: Row, names: Iterable[str]) -> str:
    parts = [_stored(getattr(row, name)) for name in names]
    text = repr([*_stored_key(row), *(part.hex() if isinstance(part, float) else part for part in parts)])
    return hashlib.sha256(text.encode() + row.predictions.tobytes()).hexdigest()[:32]
