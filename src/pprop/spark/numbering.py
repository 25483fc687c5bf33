"""Ids of any kind become the positions 0 to n - 1, without any list of them on the driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from pprop._errors import CapacityError, InputError
from pprop._validate import counted
from pprop.graph.folder import GraphFolder
from pprop.spark.arrays import new_array, write_rows
from pprop.spark.foreign import DataFrame, RecordBatch, SparkSession, arrow, sql_functions
from pprop.spark.session import run_tasks
from pprop.spark.tables import Edges

MOST_NODES = 2**31 - 2  # columns take four bytes
_PART = 33  # bits of `monotonically_increasing_id` below the number of a partition
CHUNK = 2**20  # ids that one task reads of a graph folder


@final
@dataclass(frozen=True)
class SparkNumbering:
    """The positions of all ids.

    Attributes
    ----------
    n
        Nodes.
    hubs
        Id, position and ends of edges of the nodes that have many.
    starts
        The first position of every partition of the ids, and of their bytes as text.
    """

    folder: Path | None
    n: int
    hubs: list[tuple[Any, int, int]]  # with their ends
    starts: list[tuple[int, int, int]]  # partition, first position, first byte
    sizes: tuple[int, int]  # nodes and bytes in all
    kind: str

    @classmethod
    def of_positions(cls, edges: Edges, n: int, heavy: int) -> SparkNumbering:
        """Return the numbering of ids that are positions already."""
        sql = sql_functions()

        if edges.kind != "bigint":
            raise InputError(
                "Ids that are text are no positions: give a table of nodes, or none, and not their number."
            )
        counts = _ends(edges).groupBy("id").count()
        many = sql.collect_list(sql.when(sql.col("count") > heavy, sql.struct("id", "count")))  # without its nulls
        low, high, hubs = counts.agg(sql.min("id"), sql.max("id"), many).collect()[0]
        if low is not None and (low < 0 or high >= n):
            raise InputError(f"Ids must be positions from 0 to {n - 1:,}. Got {low if low < 0 else high:,} instead.")
        return cls(None, n, [(row["id"], row["id"], row["count"]) for row in hubs], [], (n, 0), edges.kind)

    @classmethod
    def of_ids(
        cls, spark: SparkSession, edges: Edges, nodes: DataFrame | None, heavy: int, folder: Path, parts: int
    ) -> SparkNumbering:
        """Number the ids of a table of nodes, or those at the ends of edges; in the order of their hashes.

        Parameters
        ----------
        nodes
            A column ``id``.
        heavy
            Ends of edges beyond which a node is a hub.
        folder
            Where the numbers are written; those that are there are used.
        """
        sql = sql_functions()

        report = folder.with_suffix(".json")
        if not report.exists():
            ends = _ends(edges).select("id", sql.lit(0).alias("given"), sql.lit(1).alias("ends"))
            if nodes is not None:
                ends = ends.unionAll(nodes.select("id", sql.lit(1).alias("given"), sql.lit(0).alias("ends")))
            known = ends.groupBy("id").agg(sql.sum("given").alias("given"), sql.sum("ends").alias("ends"))
            # in an order of their own within a partition, so that a second time gives the same numbers
            placed = known.repartition(parts, "id").sortWithinPartitions("id")
            placed = placed.withColumn("at", sql.monotonically_increasing_id())
            placed.write.mode("overwrite").parquet(str(folder))
            report.write_text(json.dumps(cls._count(spark.read.parquet(str(folder)), nodes is not None, heavy)))
        found = json.loads(report.read_text())
        if found["unknown"]:
            count, example = found["unknown"]
            raise InputError(
                f"Edges name {counted(count, 'id')} that no node has, for example {example!r}. Add these nodes, or drop "
                "the edges."
            )
        if found["repeated"]:
            count, example = found["repeated"]
            raise InputError(f"{counted(count, 'id')} of the nodes occur more than once, for example {example!r}.")
        starts: list[tuple[int, int, int]] = []
        first = byte = 0
        for part, rows, size in found["parts"]:
            starts.append((part, first, byte))
            first, byte = first + rows, byte + size
        if first > MOST_NODES:
            raise CapacityError(f"A graph can have {MOST_NODES:,} nodes, and this one has {first:,}.")
        at = {part: start for part, start, _ in starts}
        hubs = [(one, at[where >> _PART] + (where & (2**_PART - 1)), ends) for one, where, ends in found["hubs"]]
        return cls(folder, first, hubs, starts, (first, byte), edges.kind)

    @staticmethod
    def _count(placed: DataFrame, given: bool, heavy: int) -> dict[str, Any]:
        """Return how many nodes and bytes each partition has, what is wrong with ids, and the hubs."""
        sql = sql_functions()

        part = sql.shiftright("at", _PART).alias("part")
        size = sql.sum(sql.octet_length(sql.col("id").cast("string")))
        parts = sorted(tuple(row) for row in placed.groupBy(part).agg(sql.count(sql.lit(1)), size).collect())
        unknown = (
            placed.filter("given = 0").agg(sql.count(sql.lit(1)), sql.min("id")).collect()[0] if given else (0, None)
        )
        repeated = placed.filter("given > 1").agg(sql.count(sql.lit(1)), sql.min("id")).collect()[0]
        hubs = placed.filter(sql.col("ends") > heavy).select("id", "at", "ends").collect()
        return {
            "parts": parts,
            "unknown": tuple(unknown) if unknown[0] else None,
            "repeated": tuple(repeated) if repeated[0] else None,
            "hubs": [tuple(row) for row in hubs],
        }

    def positions(self, spark: SparkSession) -> DataFrame:
        """Return a table of ``id`` and ``position``, of ids that are no positions."""
        sql = sql_functions()

        placed = spark.read.parquet(str(self.folder))
        starts = spark.createDataFrame([one[:2] for one in self.starts], "part bigint, first bigint")
        at = placed.select(
            "id", sql.shiftright("at", _PART).alias("part"), sql.col("at").bitwiseAND(2**_PART - 1).alias("k")
        )
        joined = at.join(sql.broadcast(starts), "part")
        return joined.select("id", (sql.col("first") + sql.col("k")).alias("position"))

    def write_ids(self, spark: SparkSession, folder: Path) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Write the ids as arrays of a graph folder; return their types and shapes."""
        sql = sql_functions()

        if self.folder is None:
            return {}
        nodes, size = self.sizes
        texts = self.kind == "string"
        arrays: dict[str, tuple[Any, tuple[int, ...]]] = (
            {"ids.offsets": (np.int64, (nodes + 1,)), "ids.bytes": (np.uint8, (size,))}
            if texts
            else {"ids": (np.int64, (nodes,))}
        )
        for name, (dtype, shape) in arrays.items():
            new_array(folder / f"{name}.npy", dtype, shape)
        starts = {part: (first, byte) for part, first, byte in self.starts}

        def write(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
            pa = arrow()

            place: tuple[int, int] | None = None
            for batch in batches:
                if place is None:
                    place = starts[batch.column(1)[0].as_py() >> _PART]
                first, byte = place
                ids = batch.column(0)
                if texts:
                    cells = [text.encode("utf-8", "surrogatepass") for text in ids.to_pylist()]
                    ends = byte + np.cumsum([len(cell) for cell in cells], dtype=np.int64)
                    write_rows(folder / "ids.offsets.npy", first + 1, ends)
                    write_rows(folder / "ids.bytes.npy", byte, np.frombuffer(b"".join(cells), np.uint8))
                    place = first + len(cells), int(ends[-1])
                else:
                    write_rows(folder / "ids.npy", first, ids.to_numpy())
                    place = first + len(ids), byte
                yield pa.RecordBatch.from_pydict({"rows": [len(ids)]})

        parts = max(starts, default=0) + 1
        placed = spark.read.parquet(str(self.folder)).select("id", "at")
        placed = placed.repartitionById(parts, sql.shiftright("at", _PART).cast("int")).sortWithinPartitions("at")
        placed.mapInArrow(write, "rows bigint").agg(sql.sum("rows")).collect()
        return arrays


def _ends(edges: Edges) -> DataFrame:
    """Return the ids at both ends of all edges."""
    source, target = (edges.frame.selectExpr(f"{one} AS id") for one in ("source", "target"))
    return source.unionAll(target)


def folder_positions(spark: SparkSession, graph: GraphFolder) -> DataFrame | None:
    """Return a table of ``id`` and ``position`` of a graph folder; None where its nodes have no ids."""
    if graph.ids is None:
        return None
    path, n = graph.path, graph.n_nodes
    kind = "string" if "ids.offsets" in graph.arrays else "bigint"

    def read(index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        rows = np.arange(index * CHUNK, min((index + 1) * CHUNK, n))
        ids: Any = GraphFolder.open(path).ids
        yield pa.RecordBatch.from_pydict({"id": pa.array(ids[rows].tolist()), "position": rows})

    return run_tasks(spark, -(-n // CHUNK), read, f"id {kind}, position bigint")
