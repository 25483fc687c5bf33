"""The position of every node: ids of node tables and edge lists to numbers from 0 on, within bounded memory.

Nodes are numbered as `pprop.read_edges` does: by the rows of the node table, else (or after them, where unknown nodes are
added) by first appearance, a source before its target. Integers in a range that fits into memory are looked up in a table
of that range; all other ids in a sorted table on the disk, in which the sorted ids of a part of the edges are found by one
walk along it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import CapacityError, FormatError
from pprop._validate import describe, reject
from pprop.graph.building.ahead import worked_ahead
from pprop.graph.building.id_keys import Distinct, TextBlock, id_columns, text_ids_are_integers
from pprop.graph.building.id_runs import IdRuns, Part, SortedWriter
from pprop.graph.building.sorting import stable_order
from pprop.graph.folder_arrays import ArrayWriter, blocks, map_array, write_array
from pprop.graph.tables.streams import ReadPosition, TableStream
from pprop.graph.tables.table import DataTable

MOST_NODES = 2**31 - 1


class Lookup(ABC):
    """Positions of nodes by id."""

    n_nodes: int
    seed: int | None = None  # of the hash of texts; None: ids are integers

    @abstractmethod
    def positions(self, columns: list[Any]) -> list[NDArray[Any]]:
        """Return the positions of columns of ids that `id_columns` read; -1 for an unknown one."""


@final
class ByPosition(Lookup):
    """Ids that are positions themselves."""

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes

    def positions(self, columns: list[Any]) -> list[NDArray[Any]]:
        return [
            np.where(column.view(np.uint64) < self.n_nodes, column, -1) if _outside(column, self.n_nodes) else column
            for column in columns
        ]


def _outside(column: NDArray[np.int64], n: int) -> bool:
    return bool(len(column)) and (int(column.min()) < 0 or int(column.max()) >= n)


@final
class ByTable(Lookup):
    """Integers in a range: a table of the positions of all of them, -1 where there is no node."""

    def __init__(self, low: int, table: NDArray[np.int32], n_nodes: int) -> None:
        self._low, self._table, self.n_nodes = low, table, n_nodes

    def positions(self, columns: list[Any]) -> list[NDArray[Any]]:
        found: list[NDArray[Any]] = []
        for column in columns:
            offsets: NDArray[np.int64] = column - self._low
            if _outside(offsets, len(self._table)):
                inside = offsets.view(np.uint64) < len(self._table)
                found.append(np.where(inside, self._table.take(np.where(inside, offsets, 0)), -1))
            else:
                found.append(self._table.take(offsets))
        return found


@final
class BySearch(Lookup):
    """Any ids: a sorted table of their keys on the disk; `texts` are compared where an id may be unknown."""

    def __init__(
        self, keys: NDArray[np.int64], places: NDArray[np.int32], seed: int | None, texts: TextBlock | None
    ) -> None:
        self._keys, self._places, self.seed, self._texts = keys, places, seed, texts
        self.n_nodes = len(keys)

    def positions(self, columns: list[Any]) -> list[NDArray[Any]]:
        given = Distinct.of(columns, self.seed)
        order = stable_order(given.keys)
        wanted = given.keys[order]  # sorted, so that the search walks along the table
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        known = self._keys[at] == wanted
        if self._texts is not None and given.texts is not None:
            same = self._texts.taken(at[known]).same(given.texts.taken(order[known]))
            known[np.flatnonzero(known)[~same]] = False
        places = np.empty(len(wanted), dtype=np.int64)
        places[order] = np.where(known, self._places[at], -1)
        return [places[codes] for codes in given.codes]


@final
@dataclass(frozen=True)
class Numbering:
    """What numbers the nodes of a build, and where it writes.

    Attributes
    ----------
    nodes, id_column
        The node table and its ids; None where there is none.
    edges, ends
        The edge lists, and the columns of both ends by the arguments that name them.
    add
        Whether nodes of the edge lists that the node table does not have are added.
    workplace, result
        Folders for what is needed until the end, and for the arrays of the graph.
    memory
        Bytes for all of this.
    rows
        Rows of a table that are read at a time.
    tick
        Called with the number of rows read.
    """

    nodes: TableStream | None
    id_column: str
    edges: TableStream
    ends: Mapping[str, object]
    add: bool
    workplace: Path
    result: Path
    memory: int
    rows: int
    tick: Callable[[int], None]

    @property
    def _scans_edges(self) -> bool:
        return self.nodes is None or self.add

    def integers(self) -> dict[str, Any] | None:
        """Number integers by a table of their range; None where that is too large, else the record of what was made.

        Raises
        ------
        TextIds
            An id is no integer.
        """
        table = _Growing(self.memory // 16)
        known = 0
        with ArrayWriter(self.result / "ids.npy", np.int64) as writer:
            if self.nodes is not None:
                for part, _ in self.nodes.tables(self.rows):
                    (ids,) = id_columns(part, {"id_column": self.id_column}, text=False)
                    new = table.number(ids)
                    if new is None:
                        return None
                    if len(new) < len(ids):
                        self._refuse_repeated(part, ids, known, table)
                    writer.write(new)
                    known = table.count
                    self.tick(part.n_rows)
            for (part, _), both in worked_ahead(self._edge_tables(), lambda one: self._both_ends(one[0])):
                new = table.number(both)
                if new is None:
                    return None
                writer.write(new)
                self.tick(part.n_rows)
            about = writer.close()
        _check_count(table.count, self.edges if self.nodes is None else self.nodes)
        made = write_array(self.workplace / "table.npy", table.table)
        return {
            "kind": "table",
            "n": table.count,
            "known": known,
            "low": table.low,
            "table": made,
            "arrays": {"ids": about},
        }

    def _edge_tables(self) -> Iterator[tuple[DataTable, ReadPosition | None]]:
        """Give the edges, where nodes may be among them that no node table has."""
        return self.edges.tables(self.rows) if self._scans_edges else iter(())

    def _both_ends(self, part: DataTable) -> NDArray[np.int64]:
        """Return the ids of both ends, a source before its target, shape (2 rows,)."""
        source, target = id_columns(part, self.ends, text=False)
        both = np.empty(2 * len(source), dtype=np.int64)
        both[::2], both[1::2] = source, target
        return both

    def _refuse_repeated(self, part: DataTable, ids: NDArray[np.int64], known: int, table: _Growing) -> NoReturn:
        codes = table.table[ids - table.low]
        row = int(np.argmax(codes != known + np.arange(len(ids))))
        part.complain("a node table of distinct ids", f"the id {describe(str(ids[row]))} a second time", row)

    def searched(self, seed: int | None) -> dict[str, Any]:
        """Number any ids by a sorted table on the disk; `seed` is that of the hash of texts, None for integers.

        Raises
        ------
        TextIds, Collision
            Begin anew with a seed, or with another one.
        """
        known, runs = self._collected(seed)
        with SortedWriter(self.workplace, text=seed is not None) as writer:
            for part in runs.merged():
                writer.write(part)
            runs.remove()
            arrays = writer.close()
        n = arrays["keys"]["shape"][0]
        _check_count(n, self.edges if self.nodes is None else self.nodes)
        if 20 * n > self.memory:
            raise CapacityError(
                f"Numbering {n:,} nodes takes {20 * n / 2**30:.1f} GiB, and memory is {self.memory / 2**30:.1f} GiB."
            )
        order = stable_order(np.asarray(self._mapped("slots", arrays["slots"])))
        places = np.empty(n, dtype=np.int32)
        places[order] = np.arange(n, dtype=np.int32)
        arrays["places"] = write_array(self.workplace / "sorted.places.npy", places)
        del places
        (self.workplace / "sorted.slots.npy").unlink()
        del arrays["slots"]
        texts = (
            None
            if seed is None
            else TextBlock(self._mapped("offsets", arrays["offsets"]), self._mapped("bytes", arrays["bytes"]))
        )
        ids = self._write_ids(order, self._mapped("keys", arrays["keys"]), texts)
        return {"kind": "search", "n": n, "known": known, "seed": seed, "sorted": arrays, "arrays": ids}

    def _collected(self, seed: int | None) -> tuple[int, IdRuns]:
        known, row = 0, 0
        files = list[tuple[int, DataTable]]()

        def repeated(slot: int, part: Part, at: int) -> None:
            key = (
                str(part.keys[at])
                if part.texts is None
                else bytes(part.texts.taken(np.array([at])).data).decode("utf-8")
            )
            first, table = max((one for one in files if one[0] <= slot), key=lambda one: one[0])
            table.complain(
                "a node table of distinct ids", f"the id {describe(key)} a second time", slot - first - table.first
            )

        runs = IdRuns(self.workplace, self.memory // 4, 0, repeated)
        if self.nodes is not None:
            known = MOST_NODES
            runs = IdRuns(self.workplace, self.memory // 4, known, repeated)
            for part, _ in self.nodes.tables(self.rows):
                if not files or part.first == 0:
                    files.append((row, part))
                ids = id_columns(part, {"id_column": self.id_column}, text=seed is not None)
                keys = ids[0] if seed is None else TextBlock.of(ids[0]).keys(seed)
                texts = None if seed is None else TextBlock.of(ids[0])
                runs.add(Part(keys, row + np.arange(part.n_rows), texts))
                row += part.n_rows
                self.tick(part.n_rows)
        start = known
        for (part, _), given in worked_ahead(self._edge_tables(), lambda one: self._distinct(one[0], seed)):
            first = np.full(len(given.keys), np.iinfo(np.int64).max)
            for side in (1, 0):
                codes = given.codes[side]
                slots = np.full(len(given.keys), np.iinfo(np.int64).max)
                slots[codes[::-1]] = start + 2 * np.arange(part.n_rows)[::-1] + side  # what is written last stays
                first = np.minimum(first, slots)
            runs.add(Part(given.keys, first, given.texts))
            start += 2 * part.n_rows
            self.tick(part.n_rows)
        return row, runs

    def _distinct(self, part: DataTable, seed: int | None) -> Distinct:
        return Distinct.of(id_columns(part, self.ends, text=seed is not None), seed)

    def _mapped(self, name: str, about: dict[str, Any]) -> NDArray[Any]:
        return map_array(self.workplace / f"sorted.{name}.npy", about["dtype"], about["shape"])

    def _write_ids(self, order: NDArray[np.int64], keys: NDArray[np.int64], texts: TextBlock | None) -> dict[str, Any]:
        """Write the ids in the order of the nodes: as integers where all are, else as text."""
        integers = keys if texts is None else text_ids_are_integers(texts)
        if integers is not None:
            with ArrayWriter(self.result / "ids.npy", np.int64) as writer:
                for rows in blocks(len(order), 8):
                    writer.write(integers[order[rows]])
                return {"ids": writer.close()}
        assert texts is not None
        (self.result / "ids.npy").unlink(missing_ok=True)
        offsets, data = (
            ArrayWriter(self.result / f"ids.{name}.npy", kind)
            for name, kind in (("offsets", np.int64), ("bytes", np.uint8))
        )
        with offsets, data:
            offsets.write(np.zeros(1, dtype=np.int64))
            end = 0
            for rows in blocks(len(order), 8, 2**23):
                part = texts.taken(order[rows])
                offsets.write(part.offsets[1:] + end)
                data.write(part.data)
                end += len(part.data)
            return {"ids.offsets": offsets.close(), "ids.bytes": data.close()}


def open_lookup(record: dict[str, Any], workplace: Path, *, may_miss: bool) -> Lookup:
    """Return the lookup that `Numbering` wrote; `may_miss` says whether unknown ids may be asked for."""
    if record["kind"] == "position":
        return ByPosition(record["n"])
    if record["kind"] == "table":
        about = record["table"]
        table = map_array(workplace / "table.npy", about["dtype"], about["shape"])
        return ByTable(record["low"], np.array(table), record["n"])
    arrays = {
        name: map_array(workplace / f"sorted.{name}.npy", one["dtype"], one["shape"])
        for name, one in record["sorted"].items()
    }
    texts = TextBlock(arrays["offsets"], arrays["bytes"]) if "offsets" in arrays and may_miss else None
    return BySearch(arrays["keys"], arrays["places"], record["seed"], texts)


def _check_count(n: int, table: TableStream) -> None:
    if n > MOST_NODES:
        got = f"{n:,} in {table.title}"
        reject(table.parameter, table.function, f"a graph with at most {MOST_NODES:,} nodes", got, error=FormatError)


class _Growing:
    """A table of a range of integers that grows to `most` of them: the number of each, by first appearance."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.low, self.count = 0, 0
        self.table = np.empty(0, dtype=np.int32)

    def number(self, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Number the ids that are new, and return these in their order; None where the range is too large."""
        if not len(ids):
            return ids
        low, high = int(ids.min()), int(ids.max()) + 1
        if len(self.table):
            low, high = min(low, self.low), max(high, self.low + len(self.table))
        if high - low > len(self.table):
            if high - low > self._most:
                return None
            room = min(self._most, high - low + len(self.table) // 2)  # a little more than is needed
            grown = np.full(room, -1, dtype=np.int32)
            start = self.low - low
            grown[start : start + len(self.table)] = self.table
            self.low, self.table = low, grown
        offsets = ids - self.low
        new = offsets[self.table.take(offsets) < 0]
        if not len(new):
            return new
        marks = np.arange(len(new), dtype=np.int32)
        self.table[new[::-1]] = marks[::-1]  # what is written last stays: where each is first
        first = new[self.table.take(new) == marks]
        self.table[first] = np.arange(self.count, self.count + len(first), dtype=np.int64).astype(np.int32)
        self.count += len(first)
        return first + self.low
