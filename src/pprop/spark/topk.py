"""`ppr_topk`: the largest entries of rows of the PPR matrix, by local push in the tasks of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop._errors import InputError
from pprop._validate import check_choice, check_float, check_int, counted
from pprop.graph.folder import GraphFolder
from pprop.propagation.push import LocalPush
from pprop.settings import NORMALIZATION, NORMALIZATIONS, POSITIVE_ALPHA, SELF_LOOPS
from pprop.spark.foreign import DataFrame, RecordBatch, Say, SparkSession, arrow, silent, sql_functions
from pprop.spark.graphs import EdgeColumns, is_packed, packed_graph, work_folder
from pprop.spark.numbering import folder_positions
from pprop.spark.session import check_executors, one_thread, session_of
from pprop.spark.tables import check_columns, column, id_type, read_frame, same_type
from pprop.training.minibatch.neighbourhoods import EPS, NEIGHBOURS

FUNCTION = "pprop.spark.ppr_topk"


def ppr_topk(
    edges: Any,
    nodes: Any,
    alpha: float = POSITIVE_ALPHA.default,
    eps: float = EPS,
    k: int = NEIGHBOURS,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    work: str | PathLike[str] | None = None,
    id_column: str = "id",
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    say: Say | None = None,
) -> DataFrame:
    """Return the k largest entries of the rows of some nodes in the personalized PageRank matrix, by local push.

    Parameters
    ----------
    edges
        As in `propagate`. The nodes of edges that are packed first are their ends, and those of `nodes`.
    nodes
        A DataFrame or Parquet path with the ids whose rows are wanted.
    alpha, eps, normalization, self_loops
        As in `pprop.ppr`.
    k
        Entries of a row, at most.
    work, id_column, source, target, weight, directed, say
        As in `propagate`.

    Returns
    -------
    DataFrame
        ``id``, ``neighbour``, ``value`` and ``error``: a row for each entry, and the bound of the error of the whole row of
        the matrix, as in `pprop.ppr`. It is computed when it is asked for.
    """
    alpha = POSITIVE_ALPHA.check(alpha, FUNCTION)
    eps, most = check_float(eps, "eps", FUNCTION, "(0, 1)"), check_int(k, "k", FUNCTION, low=1)
    check_choice(normalization, "normalization", FUNCTION, NORMALIZATIONS)
    self_loops = SELF_LOOPS.check(self_loops, FUNCTION)
    spark = session_of(nodes, edges)
    folder = work_folder(spark, work, FUNCTION)
    check_executors(spark, folder)
    frame = read_frame(spark, nodes, "nodes", FUNCTION)
    check_columns(frame, {"id_column": id_column}, "nodes", FUNCTION)
    kind = id_type(frame, id_column, "nodes", FUNCTION)
    wanted = frame.select(column(id_column).cast(kind).alias("id")).distinct()
    which = EdgeColumns(source, target, weight, directed)
    known = None if is_packed(edges) else _all_nodes(spark, edges, wanted, which)
    graph = packed_graph(spark, edges, known, folder, which, FUNCTION, say or silent)
    found = positions_of(spark, graph, wanted, kind, FUNCTION)
    push = PushRows(graph.path.absolute(), alpha, eps, most, normalization, self_loops, id_column)
    fields = f"`{id_column}` {kind}, neighbour {kind}, value double, error double"
    return found.mapInArrow(push, fields)


def _all_nodes(spark: SparkSession, edges: Any, wanted: DataFrame, which: EdgeColumns) -> DataFrame:
    """Return the ids at the ends of edges and those that are asked for."""
    frame = read_frame(spark, edges, "edges", FUNCTION)
    check_columns(frame, {"source": which.source, "target": which.target}, "edges", FUNCTION)
    kinds = {f"edges.{one}": id_type(frame, one, "edges", FUNCTION) for one in (which.source, which.target)}
    kind = same_type(kinds | {"nodes": dict(wanted.dtypes)["id"]}, FUNCTION)
    ends = [frame.select(column(one).cast(kind).alias("id")) for one in (which.source, which.target)]
    return ends[0].unionAll(ends[1]).unionAll(wanted).distinct()


def positions_of(spark: SparkSession, graph: GraphFolder, ids: DataFrame, kind: str, function: str) -> DataFrame:
    """Return the positions of some distinct ids of a graph; refuse unknown ones."""
    sql = sql_functions()

    positions = folder_positions(spark, graph)
    if positions is None:
        found = ids.withColumn("position", sql.when(sql.col("id").between(0, graph.n_nodes - 1), sql.col("id")))
    else:
        same_type({"graph": dict(positions.dtypes)["id"], "nodes.id": kind}, function)
        found = ids.join(positions, "id", "left")
    count, example = found.filter("position IS NULL").agg(sql.count(sql.lit(1)), sql.min("id")).collect()[0]
    if count:
        raise InputError(f"{counted(count, 'id')} of the nodes are not in the graph, for example {example!r}.")
    return found.select("position")


@final
@dataclass(frozen=True)
class PushRows:
    """Push the rows of the positions that a task is given."""

    graph: Path
    alpha: float
    eps: float
    most: int
    normalization: str
    self_loops: bool
    id_column: str

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()

        one_thread()
        for batch in batches:
            if not len(batch):
                continue
            push = _push(self.graph, self.alpha, self.normalization, self.self_loops)
            rows = push.rows(batch.column(0).to_numpy().copy(), self.eps, self.most, to_eps=True, function=FUNCTION)
            ids: Any = GraphFolder.open(self.graph).ids
            counts = np.diff(rows.matrix.indptr)
            own, other = np.repeat(rows.nodes, counts), rows.matrix.indices.astype(np.int64)
            names = [pa.array(at if ids is None else ids[at].tolist()) for at in (own, other)]
            yield pa.RecordBatch.from_arrays(
                [*names, pa.array(rows.matrix.data), pa.array(np.repeat(rows.error, counts))],
                names=[self.id_column, "neighbour", "value", "error"],
            )


@lru_cache(1)  # a worker of Spark has many tasks of one kind, one after the other
def _push(graph: Path, alpha: float, normalization: str, self_loops: bool) -> LocalPush:
    return LocalPush(GraphFolder.open(graph).graph(), alpha, normalization, self_loops, function=FUNCTION)
