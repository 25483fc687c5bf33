"""Tables of numbers per node on their way in and out: CSV, Parquet, and npy for numbers alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

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
            stream.write(csv_text(table).encode())


def csv_text(table: Mapping[str, Column]) -> str:
    r"""Return named columns as CSV; a float is written so that reading it gives the same float.

    >>> csv_text({"id": ["a", "b"], "share": [0.1, 0.9]})
    'id,share\na,0.1\nb,0.9\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    # numpy writes the shortest text that gives the same number in its own width: 0.1 for a float32, not 0.10000000149
    cells = [column if isinstance(column, list) else column.astype(str).tolist() for column in table.values()]
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue()


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
    """Numbers of all nodes in the order of a file.

    Attributes
    ----------
    ids
        The column of ids by its name, empty where there is none.
    names, values
        Names of the columns of numbers, and the numbers, shape (n,) or (n, c).
    nodes
        The node of each row, shape (n,).
    """

    ids: dict[str, Column]
    names: list[str]
    values: NDArray[Any]
    nodes: NDArray[np.int64]


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
    import numpy as np

    try:  # nothing is unpickled, and the size is checked against the header before memory is taken
        values = np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError) as error:  # a header that lies, objects that would be unpickled, an empty file
        raise FormatError(f"The file {str(path)!r} is not a sound .npy file of numbers, as its suffix says.") from error
    if values.ndim not in (1, 2) or len(values) != graph.n_nodes:
        raise FormatError(
            f"An .npy file of predictions must have one row for each of the {graph.n_nodes} nodes. "
            f"Got an array of shape {values.shape} in {str(path)!r} instead."
        )
    names = [f"column_{k}" for k in range(1 if values.ndim == 1 else values.shape[1])]
    return Rows({} if graph.ids is None else {"id": graph.ids.tolist()}, names, values, np.arange(len(values)))


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
        nodes = _match(path, keys, graph.ids)
        return Rows({id_column: graph.ids[nodes].tolist()}, names, values, nodes)
    if len(values) != graph.n_nodes:
        why = "has no ids" if graph.ids is None else f"has ids, but the table has no column {id_column!r}"
        raise InputError(
            f"The table {str(path)!r} has {counted(len(values), 'row')} for {counted(graph.n_nodes, 'node')}. "
            f"The graph {why}, so row k belongs to node k."
        )
    if graph.ids is not None:
        session.say(f"No column {id_column!r} in {path.name}: row k is taken for node k.")
    return Rows({} if keys is None else {id_column: keys}, names, values, np.arange(len(values)))


def _match(path: Path, keys: list[str], ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the node of each row; every node must have exactly one."""
    import numpy as np

    position = {str(key): index for index, key in enumerate(ids.tolist())}
    given = set(keys)
    unknown, missing = [key for key in keys if key not in position], [key for key in position if key not in given]
    faults: list[str] = []
    if unknown:
        faults.append(f"{counted(len(unknown), 'row')} with ids that are not in the graph ({listed(unknown, 3)})")
    if missing:
        faults.append(f"{counted(len(missing), 'node')} of the graph without a row ({listed(missing, 3)})")
    if len(given) < len(keys):
        faults.append(f"{counted(len(keys) - len(given), 'row')} with an id that came before")
    if faults:
        raise InputError(
            f"The table {str(path)!r} must have one row for each of the graph's {counted(len(position), 'node')}. "
            f"Got {'; '.join(faults)}."
        )
    return np.array([position[key] for key in keys], dtype=np.int64)
