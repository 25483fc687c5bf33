"""Numbers per node in a file, matched with the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

from pprop._errors import FormatError, InputError
from pprop.cli.output import Session
from pprop.cli.tables import Column, read_npy
from pprop.cli.text import counted, listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.graph import Graph

__all__ = ["SUFFIXES", "Rows", "read_rows"]

SUFFIXES = (".csv", ".parquet", ".npy")


@final
@dataclass(frozen=True)
class Rows:
    """Numbers of all nodes in the order of a file: values (n,) or (n, c), and the node of each row."""

    names: tuple[str, ...]
    values: NDArray[Any]
    node_of_row: NDArray[np.int64] | None  # None: row k is node k
    ids: list[Any] | None
    id_name: str

    def by_node(self) -> NDArray[Any]:
        """Return the values in the order of the graph's nodes."""
        if self.node_of_row is None:
            return self.values
        ordered = self.values.copy()
        ordered[self.node_of_row] = self.values
        return ordered

    def with_values(self, by_node: NDArray[Any]) -> Rows:
        """Return the same rows with the values of their nodes."""
        values = by_node if self.node_of_row is None else by_node[self.node_of_row]
        return Rows(self.names, values, self.node_of_row, self.ids, self.id_name)

    def table(self) -> dict[str, Column]:
        """Return named columns: ids where there are any, then the numbers."""
        matrix = self.values.reshape(len(self.values), -1)
        ids: dict[str, Column] = {} if self.ids is None else {self.id_name: self.ids}
        return ids | {name: matrix[:, k] for k, name in enumerate(self.names)}


def read_rows(path: Path, graph: Graph, id_column: str, columns: str | None, session: Session) -> Rows:
    """Read a .csv, .parquet or .npy file with one row for each node of the graph."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"PREDICTIONS must be a .csv, .parquet or .npy file. Got {str(path)!r} instead.")
    if path.suffix.lower() == ".npy":
        return _read_array(path, graph, columns)
    return _read_table(path, graph, id_column, columns, session)


def _read_array(path: Path, graph: Graph, columns: str | None) -> Rows:
    if columns is not None:
        raise typer.BadParameter("--columns names columns, and an .npy file has no names.")
    values = read_npy(path)
    if values.ndim not in (1, 2) or len(values) != graph.n_nodes:
        raise FormatError(
            f"An .npy file of predictions must have one row for each of the {graph.n_nodes} nodes. "
            f"Got an array of shape {values.shape} in {str(path)!r} instead."
        )
    width = 1 if values.ndim == 1 else values.shape[1]
    ids = None if graph.ids is None else graph.ids.tolist()
    return Rows(tuple(f"column_{k}" for k in range(width)), values, None, ids, "id")


def _read_table(path: Path, graph: Graph, id_column: str, columns: str | None, session: Session) -> Rows:
    import numpy as np

    from pprop.graph.tables import read_table

    table = read_table(path, "predictions", "propagate")
    by_id = graph.ids is not None and id_column in table.columns
    if columns is None:
        others = {id_column, "class"}  # the class that 'pprop predict' writes is a name even where it is a number
        names = [name for name in table.columns if name not in others and table.is_numeric(name)]
        left = [name for name in table.columns if name not in names and name != id_column]
        if left:
            session.say(f"Left out, since they are not numbers to be spread: {listed(left)}.")
    else:
        names = [name.strip() for name in columns.split(",")]
    if not names:
        raise FormatError(f"The table {str(path)!r} has no column of numbers besides {id_column!r}.")
    values = np.stack([table.numbers(name, "columns") for name in names], axis=1)
    node_of_row = _match(path, table.texts(id_column, "id_column"), graph) if by_id else None
    if not by_id and len(values) != graph.n_nodes:
        why = "has no ids" if graph.ids is None else f"has ids, but the table has no column {id_column!r}"
        raise InputError(
            f"The table {str(path)!r} has {counted(len(values), 'row')} for {counted(graph.n_nodes, 'node')}. "
            f"The graph {why}, so row k belongs to node k."
        )
    if not by_id and graph.ids is not None:
        session.say(f"No column {id_column!r} in {path.name}: row k is taken for node k.")
    ids = graph.ids[node_of_row].tolist() if node_of_row is not None and graph.ids is not None else None
    if ids is None and id_column in table.columns:
        ids = table.texts(id_column, "id_column")
    return Rows(tuple(names), values, node_of_row, ids, id_column)


def _match(path: Path, keys: list[str], graph: Graph) -> NDArray[np.int64]:
    """Return the node of each row; every node must have exactly one."""
    import numpy as np

    assert graph.ids is not None
    position = {str(key): index for index, key in enumerate(graph.ids.tolist())}
    unknown = [key for key in keys if key not in position]
    twice = len(keys) - len(set(keys))
    given = set(keys)
    missing = [key for key in position if key not in given]
    faults = [
        *(
            [f"{counted(len(unknown), 'row')} with ids that are not in the graph ({listed(unknown, 3)})"]
            * bool(unknown)
        ),
        *([f"{counted(len(missing), 'node')} of the graph without a row ({listed(missing, 3)})"] * bool(missing)),
        *([f"{counted(twice, 'row')} with an id that came before"] * bool(twice)),
    ]
    if faults:
        raise InputError(
            f"The table {str(path)!r} must have one row for each of the graph's {counted(len(position), 'node')}. "
            f"Got {'; '.join(faults)}."
        )
    return np.array([position[key] for key in keys], dtype=np.int64)
