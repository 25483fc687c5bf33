"""Ids of nodes as Arrow columns, int64 or text, and their positions; no loop over rows."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pprop._errors import CapacityError
from pprop._process import usable_memory
from pprop.graph.tables.arrow import Column, pa, pc
from pprop.graph.tables.table import as_integers

NORMALIZE = "write all ids in one, for instance by unicodedata.normalize('NFC', id)."
Positions: TypeAlias = NDArray[np.int32]


def number_nodes(source: Column, target: Column) -> tuple[Positions, Positions, Column]:
    """Return the position of both ends of each edge, and the ids by first appearance, a source before its target.

    >>> source, target, ids = number_nodes(pa.chunked_array([[30, 10]]), pa.chunked_array([[10, 20]]))
    >>> source, target, ids.to_pylist()
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32), [30, 10, 20])
    """
    codes, ids = encode(*alike(source, target))
    edges = len(source)
    ends = codes[:edges], codes[edges:]
    order = np.argsort(np.minimum(2 * _first(ends[0], len(ids)), 2 * _first(ends[1], len(ids)) + 1))
    places = np.empty(len(ids), dtype=np.int32)
    places[order] = np.arange(len(ids), dtype=np.int32)
    return places[ends[0]], places[ends[1]], pa.chunked_array([ids.take(pa.array(order))])


def _first(codes: Positions, n: int) -> NDArray[np.int64]:
    """Return where each number below n is first, shape (n,); the length where it is not.

    >>> _first(np.array([1, 0, 1], dtype=np.int32), 3)
    array([1, 0, 3])
    """
    found = np.full(n, len(codes))
    found[codes[::-1]] = np.arange(len(codes))[::-1]  # what is written last stays
    return found


def encode(*columns: Column) -> tuple[Positions, Column]:
    """Return the number of each cell of columns below each other, and the distinct cells by first appearance.

    Each column is read by a thread of its own.

    >>> codes, distinct = encode(pa.chunked_array([["b", "a"]]), pa.chunked_array([["a", "c"]]))
    >>> codes, distinct.to_pylist()
    (array([0, 1, 1, 2], dtype=int32), ['b', 'a', 'c'])
    """
    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(_encode_one, columns))
    whole = join(*(pa.chunked_array([distinct]) for _, distinct in parts)).dictionary_encode().combine_chunks()
    sizes = [len(distinct) for _, distinct in parts]
    new: list[NDArray[np.int32]] = np.split(whole.indices.to_numpy(), np.cumsum(sizes)[:-1])
    codes = np.concatenate([names[part] for names, (part, _) in zip(new, parts, strict=True)])
    return codes, whole.dictionary


def _encode_one(column: Column) -> tuple[Positions, Any]:
    encoded = join(column).dictionary_encode().combine_chunks()
    return encoded.indices.to_numpy(), encoded.dictionary


def look_up_nodes(source: Column, target: Column, ids: Column) -> tuple[Positions, Positions]:
    """Return the position of both ends of each edge among distinct ids, -1 where they do not have it.

    >>> look_up_nodes(pa.chunked_array([[30, 20]]), pa.chunked_array([["20", "x"]]), pa.chunked_array([["x", "20"]]))
    (array([-1,  1], dtype=int32), array([1, 0], dtype=int32))
    """
    source, target, ids = alike(source, target, ids)
    values = ids.combine_chunks()
    found = (pc.fill_null(pc.index_in(end, value_set=values), -1).to_numpy() for end in (source, target))
    first, second = found
    return first, second


def new_nodes(source: Column, target: Column, ids: Column) -> Column:
    """Return the ids of ends that are not among `ids`, by first appearance, a source before its target.

    >>> new_nodes(pa.chunked_array([[30, 20]]), pa.chunked_array([[40, 30]]), pa.chunked_array([[20]])).to_pylist()
    [30, 40]
    """
    source, target, ids = alike(source, target, ids)
    values = ids.combine_chunks()
    rows = pc.invert(pc.and_(pc.is_in(source, value_set=values), pc.is_in(target, value_set=values)))
    both = number_nodes(source.filter(rows), target.filter(rows))[2]
    return both.filter(pc.invert(pc.is_in(both, value_set=values)))


def repeated_row(ids: Column) -> int | None:
    """Return the first row with an id that came before; None where there is none.

    >>> repeated_row(pa.chunked_array([["a", "b", "a"]])), repeated_row(pa.chunked_array([[1, 2]]))
    (2, None)
    """
    codes = ids.dictionary_encode().combine_chunks()
    if len(codes.dictionary) == len(ids):
        return None
    return int(np.argmax(codes.indices.to_numpy() < np.arange(len(ids))))  # the first without a number of its own


def spelled_alike(key: str, ids: Column) -> str:
    """Return a sentence about the id that is `key` but for zeros, blanks, case or Unicode form; empty if there is none.

    >>> spelled_alike("2.0", pa.chunked_array([[1, 2]])), spelled_alike("7", pa.chunked_array([["07", "9"]]))
    ("The node table has '2': ids must be written alike. ", "The node table has '07': ids must be written alike. ")
    """

    def normal(texts: Column) -> Column:
        bare = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        return pc.replace_substring_regex(bare, r"^([+-]?)0*(\d+?)(?:\.0*)?$", r"\1\2")

    texts = ids.cast(pa.large_string())
    if not key.isascii():
        same = pc.index(pc.utf8_normalize(texts, form="NFC"), unicodedata.normalize("NFC", key)).as_py()
        if same >= 0:
            return f"The node table has {texts[same].as_py()!r}, the same letters in another Unicode form: {NORMALIZE} "
    found = pc.index(normal(texts), normal(pa.array([key], pa.large_string()))[0]).as_py()
    return "" if found < 0 else f"The node table has {texts[found].as_py()!r}: ids must be written alike. "


def same_letters(ids: Column) -> tuple[int, str]:
    """Return how many of distinct ids are others in another Unicode form, and one of these; 0 and "" if there is none.

    >>> same_letters(pa.chunked_array([["e\N{COMBINING ACUTE ACCENT}", "a", "\N{LATIN SMALL LETTER E WITH ACUTE}"]]))
    (1, 'é')
    """
    if pa.types.is_integer(ids.type) or pc.all(pc.string_is_ascii(ids)).as_py() is not False:
        return 0, ""
    letters = pc.utf8_normalize(ids.filter(pc.invert(pc.string_is_ascii(ids))), form="NFC")
    row = repeated_row(letters)
    return (0, "") if row is None else (len(letters) - len(pc.unique(letters)), letters[row].as_py())


def code_texts(*columns: Column) -> tuple[Column, list[Positions]]:
    """Return the distinct texts of all columns, an Arrow array that begins with "", and for each column their numbers.

    >>> texts, codes = code_texts(pa.chunked_array([["b", ""]]), pa.chunked_array([["a", "b"]]))
    >>> texts.to_pylist(), codes
    (['', 'b', 'a'], [array([1, 0], dtype=int32), array([2, 1], dtype=int32)])
    """
    encoded = join(*alike(pa.chunked_array([[""]]), *columns)).dictionary_encode().combine_chunks()
    ends = np.cumsum([len(column) for column in columns])
    return encoded.dictionary, np.split(encoded.indices.to_numpy()[1:], ends[:-1])


def alike(*columns: Column) -> tuple[Column, ...]:
    """Return columns of ids in one type: int64 where all are, else text, numbers as Python prints them.

    >>> [column.to_pylist() for column in alike(pa.chunked_array([[7]]), pa.chunked_array([["007"]]))]
    [['7'], ['007']]
    """
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return columns
    return tuple(column.cast(pa.large_string()) for column in columns)


def join(*columns: Column) -> Column:
    """Return columns of one type below each other.

    >>> join(pa.chunked_array([[1]]), pa.chunked_array([[2, 3]])).to_pylist()
    [1, 2, 3]
    """
    chunks = [chunk for column in columns for chunk in column.chunks]
    whole = pa.chunked_array(chunks, type=columns[0].type)
    wide = pa.types.is_string(whole.type) and whole.nbytes > np.iinfo(np.int32).max
    return whole.cast(pa.large_string()) if wide else whole


def id_array(ids: Column, title: str) -> NDArray[Any]:
    """Return distinct ids as an array of integers where all are integers as Python prints them, else of text.

    >>> id_array(pa.chunked_array([["7", "x"]]), "'e.csv'"), id_array(pa.chunked_array([["7", "-8"]]), "'e.csv'")
    (array(['7', 'x'], dtype='<U1'), array([ 7, -8]))
    """
    if pa.types.is_int64(ids.type):
        return np.array(ids.to_numpy())
    integers = as_integers(ids)
    if integers is not None:
        return integers
    longest = pc.max(pc.utf8_length(ids)).as_py()
    memory = usable_memory()
    if memory is not None and 4 * longest * len(ids) > memory:  # numpy gives each text the room of the longest
        raise CapacityError(
            f"The ids of {title} take {4 * longest * len(ids) / 1e9:.1f} GB, as one has {longest} characters, "
            f"and this process may use {memory / 1e9:.1f} GB."
        )
    return np.asarray(ids.to_pylist(), dtype=np.str_)
