"""What is wrong or noteworthy about an edge list and its node table, before they become a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pprop.cli.check import Finding
from pprop.cli.graphs import GraphInput
from pprop.cli.text import counted, listed
from pprop.graph.tables import DataTable, read_table

__all__ = ["inspect_tables"]


def inspect_tables(source: GraphInput) -> Iterator[Finding]:
    """Yield what the rows of both tables show and the graph made of them hides: repeated, unknown, empty."""
    assert source.path is not None
    edges = read_table(source.path, "path", "read_edges")
    ends = tuple(edges.texts(getattr(source, end), end) for end in ("source", "target"))
    known: set[str] | None = None
    if source.nodes is not None:
        nodes = read_table(source.nodes, "nodes", "read_edges")
        yield from _node_rows(nodes, source.id_column)
        known = set(nodes.texts(source.id_column, "id_column"))
    yield from _edge_rows(edges, ends, known, source)


def _node_rows(nodes: DataTable, id_column: str) -> Iterator[Finding]:
    ids = nodes.texts(id_column, "id_column")
    name = Path(nodes.path).name
    empty = [row for row, key in enumerate(ids) if not key]
    if empty:
        yield Finding("problem", f"{_rows(name, empty)} without an id under {id_column!r}.", len(empty))
    repeated = [key for key, times in Counter(filter(None, ids)).items() if times > 1]
    if repeated:
        yield Finding(
            "problem",
            f"{counted(len(repeated), 'id')} of {name} in more than one row ({listed(repeated, 3)}).",
            len(repeated),
        )


def _edge_rows(
    edges: DataTable, ends: tuple[list[str], ...], known: set[str] | None, source: GraphInput
) -> Iterator[Finding]:
    name = Path(edges.path).name
    empty = [row for row, pair in enumerate(zip(*ends, strict=True)) if "" in pair]
    if empty:
        yield Finding("problem", f"{_rows(name, empty)} without an id at an end.", len(empty))
    if known is not None:
        strange = [row for row, (s, t) in enumerate(zip(*ends, strict=True)) if s not in known or t not in known]
        ids = list(dict.fromkeys(key for end in ends for key in end if key and key not in known))
        if ids:
            yield Finding(
                "problem",
                f"{_rows(name, strange)} with {counted(len(ids), 'id')} that the node table does not have "
                f"({listed(ids, 3)}).",
                len(strange),
            )
        lonely = len(known - set(ends[0]) - set(ends[1]))
        if lonely == len(known) and edges.n_rows:
            yield Finding("problem", f"No id of {name} is in the node table: are these the right columns?", lonely)
    yield from _repeats(ends, name, source)


def _repeats(ends: tuple[list[str], ...], name: str, source: GraphInput) -> Iterator[Finding]:
    number = {key: index for index, key in enumerate(dict.fromkeys(key for end in ends for key in end))}
    codes = np.array([[number[key] for key in end] for end in ends], dtype=np.int64).reshape(2, -1)
    distinct = np.unique(codes[0] * len(number) + codes[1])
    repeated = codes.shape[1] - len(distinct)
    if repeated:
        merged = "their weights are added" if source.weight is not None else "each edge counts once"
        repeats = "repeats" if repeated == 1 else "repeat"
        yield Finding(
            "note", f"{counted(repeated, 'row')} of {name} {repeats} an earlier one; {merged}.", int(repeated)
        )
    if source.directed:
        return  # the graph itself tells
    forth, back = distinct // max(len(number), 1), distinct % max(len(number), 1)
    proper = distinct[forth != back]
    loops = forth == back
    both = int(np.isin((back * len(number) + forth)[~loops], proper).sum()) // 2
    single = len(proper) - 2 * both
    if both and single:
        yield Finding(
            "note",
            f"{counted(single, 'edge')} listed in one direction and {both:,} in both; all are read as undirected.",
            int(single),
        )


def _rows(name: str, rows: list[int]) -> str:
    """Return how many rows, and the first of them, numbered from 1 below the header."""
    return f"{counted(len(rows), 'row')} of {name} (first: row {rows[0] + 1})"
