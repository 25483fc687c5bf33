"""Tables of numbers per node on their way in and out: CSV, Parquet, and npy for numbers alone."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, final

import typer

from pprop._errors import FormatError, InputError
from pprop._optional import require
from pprop.cli.output import Session, counted, listed, new_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph
    from pprop.propagation import LiveGraph

Column: TypeAlias = "list[Any] | NDArray[Any]"
FORMATS = (".csv", ".parquet")
NUMBERS = (*FORMATS, ".npy")


def write_table(path: Path, table: Mapping[str, Column], session: Session, *, force: bool) -> None:
    """Write named columns of equal length to a CSV or Parquet file."""
    with new_file(path, session, force=force) as stream:
        if path.suffix.lower() == ".parquet":
            arrow: Any = require("pyarrow", extra="parquet", purpose="Writing Parquet files")
            parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="Writing Parquet files")
            parquet.write_table(arrow.table(dict(table)), stream)
        else:
            write_csv(table, stream)


def write_csv(table: Mapping[str, Column], stream: IO[bytes]) -> None:
    """Write named columns as CSV in UTF-8; a float is written so that reading it gives the same float."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    print_table(table, text)
    text.flush()
    text.detach()


def print_table(table: Mapping[str, Column], stream: IO[str] | None = None) -> None:
    """Write named columns as CSV to a stream of text, by default to standard output."""
    writer = csv.writer(stream or sys.stdout, lineterminator="\n")
    writer.writerow(table)
    # numpy writes the shortest text that gives the same number in its own width: 0.1 for a float32, not 0.10000000149
    cells = [column if isinstance(column, list) else column.astype(str).tolist() for column in table.values()]
    writer.writerows(zip(*cells, strict=True))


def read_npy(path: Path) -> NDArray[np.generic]:
    """Read an npy file without unpickling, its size checked against its header before memory is taken."""
    import numpy as np

    try:
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError) as error:  # a header that lies, objects that would be unpickled, an empty file
        raise FormatError(f"The file {str(path)!r} is not a sound .npy file of numbers, as its suffix says.") from error


def prediction_table(model: NodeClassifier) -> dict[str, Column]:
    """Return named columns: ``id`` (``node``, the position, where the graph has no ids), ``class``, ``p_...``."""
    import numpy as np

    return columns_of(model, model.graph_, np.arange(model.graph_.n_nodes), model.classes_)


def columns_of(
    model: NodeClassifier | LiveGraph, graph: Graph, nodes: NDArray[np.int64], classes: NDArray[Any]
) -> dict[str, Column]:
    """Return the same of a model or live graph, for `nodes`, the positions of all nodes of `graph` in its order."""
    first: dict[str, Column] = {"node": nodes.tolist()} if graph.ids is None else {"id": graph.ids.tolist()}
    probabilities = model.predict_proba(nodes)
    named = {f"p_{name}": probabilities[:, k] for k, name in enumerate(classes.tolist())}
    return {**first, "class": model.predict(nodes).tolist(), **named}


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
        return replace(self, values=values)

    def table(self) -> dict[str, Column]:
        """Return named columns: ids where there are any, then the numbers."""
        matrix = self.values.reshape(len(self.values), -1)
        ids: dict[str, Column] = {} if self.ids is None else {self.id_name: self.ids}
        return ids | {name: matrix[:, k] for k, name in enumerate(self.names)}


def read_rows(path: Path, graph: Graph, id_column: str, columns: str | None, session: Session) -> Rows:
    """Read a .csv, .parquet or .npy file with one row for each node of the graph."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if path.suffix.lower() not in NUMBERS:
        raise FormatError(f"PREDICTIONS must be a .csv, .parquet or .npy file. Got {str(path)!r} instead.")
    if path.suffix.lower() != ".npy":
        return _read_table(path, graph, id_column, columns, session)
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
    keys = table.texts(id_column, "id_column") if id_column in table.columns else None
    if keys is not None and graph.ids is not None:
        node_of_row = _match(path, keys, graph.ids)
        return Rows(tuple(names), values, node_of_row, graph.ids[node_of_row].tolist(), id_column)
    if len(values) != graph.n_nodes:
        why = "has no ids" if graph.ids is None else f"has ids, but the table has no column {id_column!r}"
        raise InputError(
            f"The table {str(path)!r} has {counted(len(values), 'row')} for {counted(graph.n_nodes, 'node')}. "
            f"The graph {why}, so row k belongs to node k."
        )
    if graph.ids is not None:
        session.say(f"No column {id_column!r} in {path.name}: row k is taken for node k.")
    return Rows(tuple(names), values, None, keys, id_column)


def _match(path: Path, keys: list[str], ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the node of each row; every node must have exactly one."""
    import numpy as np

    position = {str(key): index for index, key in enumerate(ids.tolist())}
    unknown = [key for key in keys if key not in position]
    given = set(keys)
    twice = len(keys) - len(given)
    missing = [key for key in position if key not in given]
    faults: list[str] = []
    if unknown:
        faults.append(f"{counted(len(unknown), 'row')} with ids that are not in the graph ({listed(unknown, 3)})")
    if missing:
        faults.append(f"{counted(len(missing), 'node')} of the graph without a row ({listed(missing, 3)})")
    if twice:
        faults.append(f"{counted(twice, 'row')} with an id that came before")
    if faults:
        raise InputError(
            f"The table {str(path)!r} must have one row for each of the graph's {counted(len(position), 'node')}. "
            f"Got {'; '.join(faults)}."
        )
    return np.array([position[key] for key in keys], dtype=np.int64)
