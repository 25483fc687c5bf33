"""Whether tables have the columns that options name: all that is missing at once, and the options that would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, final

from pprop._errors import ColumnError, InputError, PpropError, Remedy, columns_text, together
from pprop.graph.features.kinds import KINDS
from pprop.graph.tables.likely import likely_columns, likely_ends
from pprop.graph.tables.streams import TableStream
from pprop.graph.tables.table import DataTable

ROWS = 2**20  # of each table that are compared to find likely columns
DEFAULTS = {"source": "source", "target": "target", "id_column": "id"}


@final
@dataclass(frozen=True)
class NamedColumns:
    """The columns of edge lists and a node table that options name.

    Attributes
    ----------
    edges, nodes
        The files; None without a node table.
    of_edges, of_nodes
        Names by the parameters that give them, None where one is not given.
    kinds
        The kinds of columns of the node table, as --column gives them.
    labels
        Whether the classes of nodes are needed.
    header
        Returns the columns of a file, which a parameter gives, without its rows.
    """

    edges: Sequence[str]
    nodes: str | None
    of_edges: Mapping[str, str | None]
    of_nodes: Mapping[str, str | None]
    kinds: Mapping[str, str]
    labels: bool
    header: Callable[[str, str], DataTable]

    def check(self) -> None:
        """Refuse columns that the tables do not have, before any row is read."""
        errors: list[PpropError] = []
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                fields: dict[str, Any] = {
                    "expected": f"NAME=KIND, where KIND is one of {', '.join(KINDS)}",
                    "found": repr(f"{name}={kind}"),
                }
                errors.append(InputError(parameter="column", function="read_edges", **fields))
        headers: dict[str, DataTable] = {}
        of_files = [(file, "path", self.of_edges) for file in self.edges]
        for file, parameter, names in (*of_files, (self.nodes, "nodes", self.of_nodes)):
            if file is not None and Path(file).exists():
                try:
                    headers[parameter] = self.header(file, parameter)
                    headers[parameter].check_columns(_given(names))
                except PpropError as error:
                    errors.append(error)
        if self._lacks_labels:
            what = "Training needs the classes of some nodes: name the column that holds them."
            errors.append(InputError(what + _columns(headers.get("nodes"))))
        if errors:
            turned = self._turned(headers)
            options = self._proposed(errors) if turned is None else turned
            first = f"the edge list, {self.nodes}, comes first, and the node table, {self.edges[0]}, after --nodes"
            words = "" if turned is None else f"The two files seem to be the other way round: {first}."
            raise together(errors, *([Remedy(words, settings=options)] if options else []))

    def _turned(self, headers: Mapping[str, DataTable]) -> dict[str, object] | None:
        """Return the options for the two tables the other way round, where only the node table looks like edges."""
        if {*headers} != {"path", "nodes"} or len(self.edges) != 1:
            return None
        given = {*_given({**self.of_edges, **self.of_nodes}).values()} - {*DEFAULTS.values()}
        if (
            likely_ends(headers["path"].names)
            or not likely_ends(headers["nodes"].names)
            or given & {*headers["nodes"].names}
        ):
            return None
        label = self.of_nodes["label_column"]
        known = {} if label is None or label not in headers["path"].names else {"label_column": label}
        try:
            found = likely_columns(_begin(str(self.nodes)), _begin(str(self._first)), known)
        except InputError:
            return None
        wanted = {**DEFAULTS, "label_column": label}
        missing = {name: column for name, column in found.items() if column != wanted[name]}
        if not self.labels:
            missing.pop("label_column", None)
        return {**missing}

    @property
    def _first(self) -> Path:
        """The first edge list."""
        return Path(self.edges[0])

    @property
    def _lacks_labels(self) -> bool:
        return self.labels and self.of_nodes["label_column"] is None

    def _proposed(self, errors: list[Any]) -> dict[str, object]:
        """Return the options that name columns in place of the missing ones: those that are spelled alike, or likely ones."""
        missing: dict[str, str] = {}
        alike: dict[str, str] = {}
        for error in errors:
            if isinstance(error, ColumnError):
                missing |= error.missing
                typed = {
                    parameter: name for parameter, name in error.missing.items() if name != DEFAULTS.get(parameter)
                }
                close = {parameter: get_close_matches(name, error.columns, 1) for parameter, name in typed.items()}
                alike |= {parameter: names[0] for parameter, names in close.items() if names and "[" not in parameter}
        try:
            likely = self._likely(missing) if self._first.exists() else {}
        except InputError:  # a table that cannot be read is refused when its columns are known
            likely = {}
        wanted = {*missing, *({"label_column"} if self._lacks_labels else ())}
        found: dict[str, object] = {name: column for name, column in {**likely, **alike}.items() if name in wanted}
        if self._lacks_labels and self.nodes is None:
            return found | {"nodes": ..., "label_column": ...}
        unknown = self._lacks_labels and not Path(str(self.nodes)).exists()
        return found | ({"label_column": ...} if unknown else {})

    def _likely(self, missing: Mapping[str, str]) -> dict[str, str]:
        known = {
            name: value for name, value in _given({**self.of_edges, **self.of_nodes}).items() if name not in missing
        }
        there = self.nodes is not None and Path(self.nodes).exists()
        return likely_columns(_begin(str(self._first)), _begin(str(self.nodes)) if there else None, known)


def _given(names: Mapping[str, str | None]) -> dict[str, str]:
    return {parameter: name for parameter, name in names.items() if name is not None}


def _columns(nodes: DataTable | None) -> str:
    """Return the columns of the node table, as a sentence."""
    return "" if nodes is None else f" The columns of {nodes.path}: {columns_text(nodes.names)}."


def _begin(file: str) -> DataTable:
    """Return the first rows of a table."""
    return beginning(file, "path")[0]


def beginning(file: str, parameter: str) -> tuple[DataTable, bool]:
    """Return the first rows of a table, which a parameter gives, and whether these are all."""
    found = next(TableStream.of([file], parameter, "read_edges").tables(ROWS))[0]
    return found, found.n_rows < ROWS
