"""Ids as 64-bit numbers that can be sorted: integers as they are, texts by a hash that is checked.

Two texts of one hash are never taken for one: where a table of ids is made, the texts of equal hashes are compared, and
`Collision` begins the work anew with another seed. For n nodes that happens about once in 2^65 / n^2 times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.building.sorting import distinct_codes
from pprop.graph.folder_arrays import blocks
from pprop.graph.tables.arrow import Column, pa
from pprop.graph.tables.keys import encode
from pprop.graph.tables.table import DataTable

_STEP = 2**22  # bytes of text that are hashed or gathered together


class TextIds(Exception):  # noqa: N818  no error: the work begins anew
    """An id is not an integer as Python prints it: all ids are text."""


class Collision(Exception):  # noqa: N818  no error: the work begins anew
    """Two texts have the same hash."""


@final
@dataclass(frozen=True, eq=False)
class TextBlock:
    """Texts in UTF-8, one after another: text i is the bytes from offset i to offset i + 1.

    Examples
    --------
    >>> block = TextBlock.of(pa.chunked_array([["a", "bc", "a"]]))
    >>> block.offsets, bytes(block.taken(np.array([1, 0])).data)
    (array([0, 1, 3, 4]), b'bca')
    >>> keys = block.keys(seed=1)
    >>> keys[0] == keys[2], keys[0] == keys[1]
    (np.True_, np.False_)
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Column) -> TextBlock:
        """Return the texts of an Arrow column."""
        whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.large_string())
        whole = whole.cast(pa.large_string())
        _, ends, data = whole.buffers()
        if not len(whole):
            return cls(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))
        offsets = np.frombuffer(ends, dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
        content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
        return cls(offsets - offsets[0], content[offsets[0] : offsets[-1]])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def taken(self, rows: NDArray[np.int64]) -> TextBlock:
        """Return some of the texts."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        for part in _parts(offsets):
            first, last = int(offsets[part.start]), int(offsets[part.stop])
            shift = np.repeat(starts[part] - offsets[part], lengths[part])
            data[first:last] = self.data[shift + np.arange(first, last)]
        return TextBlock(offsets, data)

    def keys(self, seed: int) -> NDArray[np.int64]:
        r"""Return the hash of each text, shape (n,), made of its bytes b_j.

        .. math:: \sum_j (b_j + 1) m_j \bmod 2^{64}

        The m_j are random and depend on the seed; the bits of the sum are mixed.
        """
        lengths = np.diff(self.offsets)
        found = np.zeros(len(self), dtype=np.uint64)
        factors = mixed(np.arange(1, int(lengths.max(initial=0)) + 1, dtype=np.uint64) + np.uint64(seed << 32))
        for part in _parts(self.offsets):
            first, last = int(self.offsets[part.start]), int(self.offsets[part.stop])
            places = np.arange(first, last) - np.repeat(self.offsets[part], lengths[part])
            terms = (self.data[first:last].astype(np.uint64) + np.uint64(1)) * factors[places]
            some = lengths[part] > 0
            starts = (self.offsets[part] - first)[some]
            if len(starts):
                found[part][some] = np.add.reduceat(terms, starts)
        return mixed(found).view(np.int64)

    def same(self, other: TextBlock) -> NDArray[np.bool_]:
        """Return which texts are those of another block, one by one, shape (n,)."""
        lengths = np.diff(self.offsets)
        equal = lengths == np.diff(other.offsets)
        mine, others = (self, other) if equal.all() else (self.taken(at := np.flatnonzero(equal)), other.taken(at))
        differ = np.flatnonzero(mine.data != others.data)
        if len(differ):
            wrong = np.searchsorted(mine.offsets, differ, side="right") - 1
            equal[np.flatnonzero(equal)[wrong]] = False
        return equal


def _parts(offsets: NDArray[np.int64]) -> list[slice[int, int]]:
    """Return slices of texts of a few megabytes each."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        most = int(offsets[cuts[-1]]) + _STEP
        end = int(np.searchsorted(offsets, most, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return [slice(first, last) for first, last in pairwise(cuts)]


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of numbers: every bit of each depends on all bits of the one that was given."""
    with np.errstate(over="ignore"):
        state = numbers + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


@final
@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct ids of a part of a table, and which of them each cell has.

    Attributes
    ----------
    codes : list of arrays
        For each column, the number of each cell's id.
    keys : array of shape (m,)
        Of the distinct ids.
    texts : TextBlock or None
        Of the distinct ids; None where they are integers.
    """

    codes: list[NDArray[Any]]
    keys: NDArray[np.int64]
    texts: TextBlock | None

    @classmethod
    def of(cls, columns: list[Any], seed: int | None) -> Distinct:
        """Return the distinct ids of columns that `id_columns` read; `seed` is None for integers."""
        if seed is None:
            keys, codes = distinct_codes(np.concatenate(columns))
            texts = None
        else:
            codes, distinct = encode(*columns)
            texts = TextBlock.of(distinct)
            keys = texts.keys(seed)
        ends = np.cumsum([len(column) for column in columns])[:-1]
        return cls(np.split(codes, ends), keys, texts)


def id_columns(table: DataTable, names: Mapping[str, object], *, text: bool) -> list[Any]:
    """Return columns of ids, given by the arguments that name them: int64 arrays, or Arrow columns of text.

    Raises
    ------
    TextIds
        An id is not an integer, and `text` is false.
    """
    found: list[Any] = []
    for parameter, name in names.items():
        column = table.keys(name, parameter)
        if text:
            found.append(column.cast(pa.large_string()))
        elif pa.types.is_int64(column.type):
            found.append(
                column.chunk(0).to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()
            )
        else:
            raise TextIds
    return found


def text_ids_are_integers(texts: TextBlock) -> NDArray[np.int64] | None:
    """Return the integers that all the texts are as Python prints them, or None."""
    from pprop.graph.tables.table import as_integers

    found: list[NDArray[np.int64]] = []
    for rows in blocks(len(texts), 64):
        part = texts.taken(np.arange(int(rows.start), int(rows.stop)))
        column = pa.LargeStringArray.from_buffers(len(part), pa.py_buffer(part.offsets), pa.py_buffer(part.data))
        integers = as_integers(pa.chunked_array([column]))
        if integers is None:
            return None
        found.append(integers)
    return np.concatenate(found) if found else None
