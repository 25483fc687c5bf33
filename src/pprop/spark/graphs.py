"""The folder of a piece of work, and the graph in it: packed once, found again afterwards."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast, final

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph.files import path_of
from pprop.graph.folder import GraphFolder
from pprop.spark.foreign import DataFrame, Say, SparkSession, sql_functions
from pprop.spark.pack import pack_graph
from pprop.spark.tables import Edges


@final
@dataclass(frozen=True)
class EdgeColumns:
    """Which columns of an edge list are what; as in `pack_graph`."""

    source: str = "source"
    target: str = "target"
    weight: str | None = None
    directed: bool = False


def work_folder(spark: SparkSession, work: object, function: str) -> Path:
    """Return a folder for files that all tasks see; a temporary one where there is one machine, unless one is given."""
    if work is not None:
        return path_of(work, "work", function).absolute()
    if not str(spark.sparkContext.master).startswith("local"):
        reject("work", function, "a folder that all machines see under the same path", "None")
    folder = Path(tempfile.mkdtemp(prefix="pprop-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def is_packed(edges: Any) -> bool:
    """Whether `edges` are a graph folder already."""
    return isinstance(edges, GraphFolder) or (
        isinstance(edges, str | PathLike) and Path(cast("str", edges), "manifest.json").exists()
    )


def packed_graph(
    spark: SparkSession,
    edges: Any,
    nodes: DataFrame | None,
    folder: Path,
    columns: EdgeColumns,
    function: str,
    say: Say,
) -> GraphFolder:
    """Return a graph folder: the one given, or that of edges, packed into `folder` where it is not there yet.

    Parameters
    ----------
    nodes
        A column ``id``, or None: the nodes are the ends of the edges.
    """
    if is_packed(edges):
        if columns != EdgeColumns():
            name, value = next(
                (name, value) for name, value in asdict(columns).items() if value != getattr(EdgeColumns(), name)
            )
            reject(name, function, "left out for a graph that is packed", describe(value))
        return edges if isinstance(edges, GraphFolder) else GraphFolder.open(edges)
    sql = sql_functions()

    packed, record = folder / "graph", folder / "graph.of"
    if packed.exists():
        known = Edges.read(spark, edges, columns.source, columns.target, columns.weight, function)
        count = None if nodes is None else nodes.agg(sql.sum(sql.xxhash64("id").cast("decimal(38,0)"))).collect()[0][0]
        text = f"{known.digest} {columns.directed} {count}"
        if (
            not record.exists()
        ):  # killed between the two: the folder is whole, and the digests of the packing were equal
            record.write_text(text)
        if record.read_text() != text:
            raise InputError(
                f"The folder {str(folder)!r} has the packed graph of other edges or nodes. Give another one."
            )
        return GraphFolder.open(packed)
    pack_graph(edges, packed, nodes=nodes, say=say, **asdict(columns))
    return packed_graph(spark, edges, nodes, folder, columns, function, say)  # writes down of what it is
