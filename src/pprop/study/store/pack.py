"""A whole study in one small file, to be published: the predictions of a cell's runs are packed together.

The runs of a cell agree on most nodes. What is packed is, for every run, the difference from the class that most runs
predict (modulo 256), which is mostly zero; nothing is lost, unless predictions are left out on purpose.
`pprop study merge` turns such a file into a study again.
"""

from __future__ import annotations

import json
import lzma
import re
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop._errors import FormatError, InputError
from pprop._process import usable_memory
from pprop._validate import describe
from pprop.graph.files import place_file
from pprop.study.experiment import Experiment
from pprop.study.experiment_folder import files_of
from pprop.study.store.row import COLUMNS, Row, decode, encode, without_predictions
from pprop.study.store.store import Store

_SCHEMA = (
    "CREATE TABLE packs (cell TEXT, columns TEXT, rows BLOB, predictions BLOB)",
    "CREATE TABLE experiments (file TEXT, content BLOB)",
)
_FILES = "SELECT file, CAST(content AS BLOB) FROM experiments"
_PLAIN_NAME = re.compile(r"[^/\\\0]{1,200}\.toml")
_PREDICTIONS = COLUMNS.index("predictions")
_LEFT_OUT = ""
_COLUMN_TEXT = json.dumps(COLUMNS)
# Bytes: what the decoder of LZMA may take for itself, which a file can ask for. Ours need 65 MiB.
_DECODER_MEMORY = 2**28


def pack_study(store: Store, file: Path, keep: Callable[[Row], bool] | None = None) -> int:
    """Write all rows of a store, and the experiment files of its folder, into a new file; return how many rows it has.

    Parameters
    ----------
    store, file
        From where, and whereto.
    keep
        Says of a row whether its predictions are written, too; by default they all are. See `predictions_needed`.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.store.row import example_row
    >>> with tempfile.TemporaryDirectory() as name, Store.open(Path(name), create=True) as store:
    ...     added = store.add(example_row(5)), store.add(example_row(6))
    ...     packed = pack_study(store, Path(name) / "study.pack")
    ...     packed, [row.key.seeds.split for row in Packed(Path(name) / "study.pack")]
    (2, [5, 6])
    """
    if file.exists():
        raise InputError(f"{file} is there already. Choose another name.")
    rows = sorted(store.rows(), key=lambda row: (row.cell, row.key))
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        _write(rows, store, part, keep)
        place_file(part, file, replace=False)
    finally:
        part.unlink(missing_ok=True)
    return len(rows)


def _write(rows: list[Row], store: Store, part: Path, keep: Callable[[Row], bool] | None) -> None:
    with closing(sqlite3.connect(part)) as target, target:
        for table in _SCHEMA:
            target.execute(table)
        target.executemany("INSERT INTO experiments VALUES (?, ?)", files_of(store.path.parent).items())
        for cell, runs in groupby(rows, key=lambda row: row.cell):
            some = [row if keep is None or keep(row) else without_predictions(row) for row in runs]
            target.execute("INSERT INTO packs VALUES (?, ?, ?, ?)", (cell, _COLUMN_TEXT, *_packed(some)))


def predictions_needed(experiments: Iterable[Experiment]) -> Callable[[Row], bool]:
    """Return what says of a row whether anything is made of its predictions.

    Those of the tables' runs are: distances are counted from them. So are those of runs on a CPU, which a verification
    compares node by node. All other runs are drawn and compared by their accuracy.

    Examples
    --------
    >>> from pprop.study.experiment_folder import load_experiments
    >>> from pprop.study.store.row import example_row
    >>> predictions_needed(load_experiments().values())(example_row())  # from a CPU
    True
    """
    shown = ((one, point.cell) for one in experiments if one.shows == "accuracy" for point in one.points)
    tables = {(cell.config, seeds) for one, cell in shown for seeds in one.seeds(cell=cell)}
    return lambda row: row.device == "cpu" or (row.key.config, row.key.seeds) in tables


def _packed(rows: list[Row]) -> tuple[bytes, bytes]:
    values = [list(encode(row)) for row in rows]
    for one, row in zip(values, rows, strict=True):
        one[_PREDICTIONS] = None if len(row.predictions) else _LEFT_OUT
    # the runs of a cell have most of their text in common
    text = lzma.compress(json.dumps(values).encode(), preset=9)
    known = [row.predictions for row in rows if len(row.predictions)]
    if not known:
        return text, lzma.compress(b"", preset=9)
    predictions = np.stack(known)  # shape: (R, n)
    counts = np.stack([(predictions == code).sum(axis=0) for code in range(int(predictions.max(initial=0)) + 1)])
    usual = counts.argmax(axis=0).astype(np.uint8)  # the lowest class where they tie
    return text, lzma.compress(usual.tobytes() + (predictions - usual).tobytes(), preset=9)  # uint8: wraps around


def _unpacked(content: bytes, most: int) -> bytes:
    """Return what LZMA packed, if it is `most` bytes or fewer: a few bytes can stand for any number of them."""
    decoder = lzma.LZMADecompressor(memlimit=_DECODER_MEMORY)
    found = decoder.decompress(content, max_length=most)
    if not decoder.eof:
        raise lzma.LZMAError("cut short, or larger than memory")
    return found


def _rows(text: bytes) -> list[list[Any]]:
    values: Any = json.loads(text)
    if not isinstance(values, list) or any(not isinstance(one, list) or len(one) != len(COLUMNS) for one in values):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        raise ValueError("no list of rows")
    return values  # pyright: ignore[reportUnknownVariableType]


@final
class Packed:
    """The rows of a packed study, one after another, each checked against its digest.

    It has the attributes of `Salvage`: `problem` says what is wrong with the file, or None; `lost` how many rows could not
    be read, after iteration. `files` has the experiment files packed with the rows.
    """

    def __init__(self, file: Path) -> None:
        self.folder = Path(file)
        self.problem: str | None = None
        self.lost, self.certain = 0, True
        try:
            next(self._packs(), None)
            self.files = self._files()
        except sqlite3.Error as error:
            raise FormatError(f"{file} is no packed study, or is damaged: {error}.") from None

    def __iter__(self) -> Iterator[Row]:
        self.lost, memory = 0, (usable_memory() or 2**34) // 8
        for columns, rows, predictions in self._packs():
            if columns != _COLUMN_TEXT:
                raise FormatError(f"{self.folder} was packed by another version of pprop.")
            try:
                values = _rows(_unpacked(rows, memory))
            except (lzma.LZMAError, TypeError, ValueError, RecursionError):
                self._lose(1)
                self.certain = False  # their number is unknown
                continue
            known = sum(one[_PREDICTIONS] != _LEFT_OUT for one in values)
            try:
                classes = np.frombuffer(_unpacked(predictions, memory), np.uint8).reshape(known + 1, -1)
            except (lzma.LZMAError, TypeError, ValueError):
                self._lose(len(values))
                continue
            differences = iter(classes[1:])
            for one in values:
                left_out = one[_PREDICTIONS] == _LEFT_OUT
                content = b"" if left_out else (next(differences) + classes[0]).tobytes()
                one[_PREDICTIONS] = zlib.compress(content, level=0)  # `decode` undoes it at once
                try:
                    yield decode(one)
                except FormatError:
                    self._lose(1)

    def _lose(self, rows: int) -> None:
        self.lost += rows
        self.problem = f"{self.folder} is damaged."

    def _open(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(f"{self.folder.resolve().as_uri()}?mode=ro", uri=True))

    def _packs(self) -> Iterator[tuple[str, bytes, bytes]]:
        with self._open() as source:
            yield from source.execute("SELECT columns, rows, predictions FROM packs ORDER BY cell")

    def _files(self) -> dict[str, bytes]:
        with self._open() as source:
            files = {str(file): bytes(content or b"") for file, content in source.execute(_FILES)}
        for name in files:
            if not _PLAIN_NAME.fullmatch(Path(name).name):  # folders before it are left out
                raise FormatError(f"{self.folder} is damaged: {describe(name)} is no name of an experiment file.")
        return files
