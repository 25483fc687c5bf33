"""Columns of a node table that divide the nodes by time or by group: read, put into words, and recognised beside a random split."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pprop._errors import FormatError, InputError
from pprop._validate import counted, describe
from pprop.cli.graphs import GraphInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.graph.features.columns import Column

TIME, GROUP = "split_time", "split_group"  # the parameters of the options
PARTS = {"train": "training", "stopping": "validation", "evaluation": "test"}  # nodes, by the names of a split

# Names of columns of which each value is one group of nodes that belong together; ``group`` has to stand alone, since an
# age group, say, has little to do with it.
GROUP_NAMES = re.compile(
    r"((house ?hold|family|ring|patient|subject|customer|client|person|tenant|company|hospital|school|batch|session|cluster|plot) ?"
    r"(id|number|no|nr|code)?|group ?(id|number|no|nr)?)"
)
LEAST_GROUPS = 10  # fewer are kinds of nodes, and no groups that belong together
# Dates of a life and not of an event at a node.
BIRTH = frozenset(("birth", "birthday", "birthdate", "born", "dob", "death", "founded"))


@final
@dataclass(frozen=True)
class Times:
    """When each node of a table was there, as days since 1970 or as numbers, NaN where missing, shape (n,)."""

    column: str
    values: NDArray[np.float64]
    dates: bool

    def split(self, graph: Graph, test: float, stopping: float) -> Split:
        """Divide the labelled nodes of a graph: train on the past, test on the future."""
        import numpy as np

        from pprop.datasets import time_split

        values = np.full(graph.n_nodes, np.nan)
        values[: len(self.values)] = self.values
        _refuse_missing(graph, np.isnan(values), self.column)
        return time_split(graph, values, test=test, stopping=stopping)

    def sentence(self, split: Split) -> str:
        """Return what was done, for people."""
        made = {
            "training": "trained on nodes up to",
            "validation": "validated on nodes from",
            "test": "tested on nodes from",
        }
        parts = [
            f"{made[name]} {self._until(nodes) if name == 'training' else self._range(nodes)}"
            for name, nodes in _parts(split)
        ]
        return f"Split by {self.column!r}: the model is {', '.join(parts[:-1])} and {parts[-1]}."

    def record(self, split: Split) -> dict[str, Any]:
        """Return the same for --json."""
        ranges = {f"{name}_times": [self._text(each) for each in self._ends(nodes)] for name, nodes in _parts(split)}
        return {"kind": "time", "column": self.column, **ranges}

    def _ends(self, nodes: NDArray[Any]) -> tuple[float, float]:
        found = self.values[nodes]
        return float(found.min()), float(found.max())

    def _until(self, nodes: NDArray[Any]) -> str:
        return self._text(self._ends(nodes)[1])

    def _range(self, nodes: NDArray[Any]) -> str:
        first, last = map(self._text, self._ends(nodes))
        return f"{first} to {last}"

    def _text(self, value: float) -> str:
        import numpy as np

        if not self.dates:
            return f"{value:.15g}"
        moment = np.datetime64(round(value * 86400), "s")
        return str(moment.astype("datetime64[D]") if value == int(value) else moment)


@final
@dataclass(frozen=True)
class Groups:
    """The group of each node of a table, "" where missing."""

    column: str
    values: list[str]

    def split(self, graph: Graph, test: float, stopping: float, seed: int) -> Split:
        """Divide the labelled nodes of a graph; each group is in one of the sets."""
        from pprop.datasets import group_split

        groups = [self._named(node) for node in range(graph.n_nodes)]
        return group_split(graph, groups, test=test, stopping=stopping, seed=seed)

    def sentence(self, split: Split) -> str:
        """Return what was done, for people."""
        parts = ", ".join(f"{name} nodes have {self._count(nodes):,}" for name, nodes in _parts(split))
        alone = sum(not self._named(node) for _, nodes in _parts(split) for node in nodes.tolist())
        rest = (
            f" {counted(alone, 'labelled node')} without a group {'was' if alone == 1 else 'were'} divided one by one."
        )
        return f"Split by {self.column!r}: each group is in one set. Of the groups, {parts}.{rest if alone else ''}"

    def record(self, split: Split) -> dict[str, Any]:
        """Return the same for --json."""
        return {
            "kind": "group",
            "column": self.column,
            **{f"{name}_groups": self._count(nodes) for name, nodes in _parts(split)},
        }

    def _named(self, node: int) -> str:
        return self.values[node] if node < len(self.values) else ""  # a node that the table does not have

    def _count(self, nodes: NDArray[Any]) -> int:
        return len({self._named(node) for node in nodes.tolist()} - {""})


def _parts(split: Split) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the names of the sets that have nodes, and those nodes."""
    for attribute, name in PARTS.items():
        nodes = getattr(split, attribute)
        if len(nodes):
            yield name, nodes


def _refuse_missing(graph: Graph, missing: NDArray[np.bool_], column: str) -> None:
    import numpy as np

    assert graph.labels is not None
    rows = np.flatnonzero(missing & (graph.labels >= 0))
    if len(rows):
        has = "has" if len(rows) == 1 else "have"
        raise InputError(
            f"--split-time needs a time of every labelled node, and {counted(len(rows), 'labelled node')} {has} none under "
            f"{column!r} (first: row {rows[0] + 1}). Fill in the cell, or leave the label of the node empty."
        )


def read_times(column: Column) -> Times:
    """Read a column of dates, of times or of numbers such as years.

    >>> import pyarrow as pa
    >>> from pprop.graph.features.columns import read_column
    >>> read_times(read_column("seen", pa.array(["2023-05-01", "", "2023-06-01"]), typed=False)).values.tolist()
    [19478.0, nan, 19509.0]
    >>> read_times(read_column("seen", pa.array(["2023-05-01", "soon"]), typed=False))
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: --split-time takes a column of dates such as 2023-05-01, or of numbers. 'seen' has 'soon' in row 2.
    """
    import numpy as np

    from pprop.graph.features.columns import DAY_PATTERNS
    from pprop.graph.features.kinds import decide_date

    if not column.n_present:
        raise FormatError(
            f"--split-time takes a column of dates or numbers, and every cell of {column.name!r} is empty."
        )
    readings = [(column.days(order), True) for order in DAY_PATTERNS] + [(column.numbers(), False)]
    (values, wrong), dates = min(readings, key=lambda reading: int(reading[0][1].sum()))
    if column.form not in ("date", "number", "text"):
        wrong = ~column.missing
    wrong = wrong | np.isinf(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise FormatError(
            "--split-time takes a column of dates such as 2023-05-01, or of numbers. "
            f"{column.name!r} has {describe(column.cells[row].as_py())} in row {row + 1}."
        )
    decided = decide_date(column) if dates else None
    if decided is not None and decided.kind == "unused":
        raise FormatError(f"--split-time: {column.name!r} has {decided.reason}. Write them as 2023-05-01.")
    return Times(column.name, values, dates)


def suspects(origin: GraphInput) -> Iterator[str]:
    """Yield a caution for each column that speaks against dividing the nodes at random."""
    from pprop.graph.features.columns import FIRST, name_words, read_column
    from pprop.graph.features.kinds import decide_date
    from pprop.graph.tables.arrow import Unreadable

    table = origin.node_table() if origin.is_table else None
    if table is None:
        return
    for name, cells in table.columns.items():
        if name in (origin.tables.id_column, origin.tables.label_column) or isinstance(cells.type, Unreadable):
            continue
        named = GROUP_NAMES.fullmatch(" ".join(name_words(name))) is not None
        begin = read_column(name, cells.slice(0, FIRST), typed=table.typed)
        if not named and (BIRTH & {*name_words(name)} or not begin.n_present or decide_date(begin) is None):
            continue
        column = read_column(name, cells, typed=table.typed)
        if not column.n_present or column.form in ("vector", "other"):
            continue
        shown, decided = shlex.quote(name), decide_date(column)
        if decided is not None and decided.kind == "date" and column.n_distinct > 1:
            yield (
                f"The split is random, and {name!r} has dates. For predictions of later nodes these figures may be too good: "
                f"--split-time {shown} tests on the latest nodes."
            )
        elif named and LEAST_GROUPS <= column.n_distinct < column.n_present:
            yield (
                f"The split is random, and {name!r} seems to name groups. For predictions of new groups these figures may be "
                f"too good: --split-group {shown} keeps each group in one set."
            )
