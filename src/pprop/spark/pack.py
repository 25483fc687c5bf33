"""`pack_graph`: the edges of a data frame as a graph folder, so that no later step moves an edge.

1. Ids are numbered (`pprop.spark.numbering`), and edges become entries by two joins.
2. One shuffle brings the entries of a block of rows together; each task sorts its own and writes them to files. A row of
   many entries has parts of its own, so that no hub makes one task longer than others.
3. Where every part goes is known by then: tasks copy them into the arrays of the folder.
"""

from __future__ import annotations

import json
import shutil
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pprop._errors import InputError, Remedy
from pprop._validate import check_bool, check_int, counted, reject
from pprop.graph.files import check_disk, place_folder
from pprop.graph.folder import GraphFolder
from pprop.graph.folder_arrays import HEADER, Digest, map_array
from pprop.graph.folder_manifest import FILES, check_target, write_manifest
from pprop.spark.arrays import new_array
from pprop.spark.foreign import DataFrame, Say, SparkSession, silent, sql_functions
from pprop.spark.numbering import MOST_NODES, SparkNumbering
from pprop.spark.pack_tasks import SORTED, Layout, PlaceEntries, SortEntries, SumBytes
from pprop.spark.session import check_executors, run_tasks, session_of
from pprop.spark.tables import Edges, check_columns, column, digest_of, id_type, read_frame, same_type

FUNCTION = "pprop.spark.pack_graph"
PART = 2**23  # entries of a part, about: sorted in memory, they take some 300 MB with weights
LEAST_HUB = 1024
_HUB = 4  # a row of more than 1 / _HUB of a part is a hub


def pack_graph(
    edges: Any,
    out: str | PathLike[str],
    *,
    nodes: Any = None,
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    id_column: str = "id",
    partitions: int | None = None,
    replace: bool = False,
    restart: bool = False,
    say: Say | None = None,
) -> GraphFolder:
    """Pack edges into a graph folder, in Spark; it is what `pprop.build_graph` makes of the same edges, nodes in another order.

    Parameters
    ----------
    edges
        A DataFrame, or the path of a Parquet file or folder: one edge per row.
    out
        The folder to be made, on a disk that all executors see under this path.
    nodes
        A DataFrame or Parquet path with a column `id_column`, one row per node, some of which may have no edges; or the
        number of nodes, if ids are the positions 0 to n - 1; or None: the nodes are the ends of the edges.
    source, target, weight, directed, id_column
        As in `pprop.build_graph`: an edge that is listed twice counts once, or with the sum of its weights; of an
        undirected edge listed in both directions the larger counts.
    partitions
        Parts of the entries, each sorted by a task in memory; None: of 8 million entries, at least two for a core.
    replace, restart
        As in `pprop.build_graph`. A packing that was killed goes on after the last finished stage.
    say
        Called with sentences about what is done.

    Returns
    -------
    GraphFolder

    Raises
    ------
    InputError
        Columns, ids or weights are wrong, or the folder cannot be written; before the work where it can be known.
    MissingDependencyError
        There is no Spark or no Java, or executors lack pprop.
    """
    tell = say or silent
    directed = check_bool(directed, "directed", FUNCTION)
    target_folder = check_target(out, "out", FUNCTION, replace=check_bool(replace, "replace", FUNCTION)).absolute()
    spark = session_of(edges, nodes)
    work = target_folder.with_name(target_folder.name + ".packing")
    executors = check_executors(spark, target_folder.parent)
    given = Edges.read(spark, edges, source, target, weight, FUNCTION)
    if given.dropped:
        tell(f"{counted(given.dropped, 'edge')} of weight 0 {'is' if given.dropped == 1 else 'are'} left out.")
    table = None
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        check_int(nodes, "nodes", FUNCTION, low=1, high=MOST_NODES)
    elif nodes is not None:
        table = _node_ids(spark, nodes, id_column, given.kind)
    entries = given.count * (1 if directed else 2)
    if partitions is not None:
        partitions = check_int(partitions, "partitions", FUNCTION, low=1)
    parts = partitions or max(-(-entries // PART), 2 * executors.tasks)
    facts = {"edges": given.digest, "directed": directed, "parts": parts, "nodes": None if table is not None else nodes}
    if table is not None:
        facts["nodes"] = table.agg(digest_of(["id"])).collect()[0][0]
    _take_up(work, facts, restart=check_bool(restart, "restart", FUNCTION))
    check_disk(work, 2 * entries * (12 if given.weighted else 4))
    heavy = max(entries // parts // _HUB, LEAST_HUB)
    if isinstance(nodes, int):
        numbering = SparkNumbering.of_positions(given, nodes, heavy)
    else:
        numbering = SparkNumbering.of_ids(spark, given, table, heavy, work / "nodes", parts)
    if numbering.n == 0:
        reject("edges", FUNCTION, "at least one edge or node", "none")
    tell(
        f"{counted(numbering.n, 'node')}, {counted(given.count, 'edge')}; {counted(parts, 'part')}, {counted(len(numbering.hubs), 'hub')}."
    )
    layout = _layout(numbering, parts, heavy)
    tell("Numbering is done. Next: joins and a shuffle bring entries to their parts, which tasks sort.")
    reports = _sorted_parts(spark, given, numbering, layout, work, directed=directed)
    tell("Sorting is done. Next: tasks write the folder.")
    folder = _placed(spark, layout, reports, numbering, work, directed=directed, weighted=given.weighted)
    repeated = sum(one["repeated"] for one in reports)
    tell(f"{sum(one['entries'] for one in reports):,} entries; {repeated:,} that were listed before are merged.")
    try:
        place_folder(folder, target_folder, replace=FILES if replace else None)
    finally:
        if not folder.exists():
            shutil.rmtree(work)
    return GraphFolder.open(target_folder)


def _node_ids(spark: SparkSession, nodes: object, id_column: str, kind: str) -> DataFrame:
    frame = read_frame(spark, nodes, "nodes", FUNCTION)
    check_columns(frame, {"id_column": id_column}, "nodes", FUNCTION)
    same_type({"edges": kind, f"nodes.{id_column}": id_type(frame, id_column, "nodes", FUNCTION)}, FUNCTION)
    ids = frame.select(column(id_column).cast(kind).alias("id"))
    lacking = ids.filter("id IS NULL").count()
    if lacking:
        raise InputError(f"{counted(lacking, 'row')} of the nodes lack an id.")
    return ids


def _take_up(work: Path, facts: dict[str, Any], *, restart: bool) -> None:
    """Make the folder of a packing, or keep one that was left behind by the same."""
    file = work / "packing.json"
    facts = json.loads(json.dumps(facts))
    if file.exists() and not restart:
        if json.loads(file.read_text()) == facts:
            return
        raise InputError(
            f"{str(work)!r} was left behind by a packing of other edges or with other arguments.",
            remedies=[Remedy("Take another folder, or begin anew.", settings={"restart": True})],
        )
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    file.write_text(json.dumps(facts))


def _layout(numbering: SparkNumbering, parts: int, heavy: int) -> Layout:
    blocks = min(parts, numbering.n)
    hubs = sorted((position, -(-ends // (heavy * _HUB))) for _, position, ends in numbering.hubs)
    return Layout(
        numbering.n, -(-numbering.n // blocks), tuple(hub for hub, _ in hubs), tuple(pieces for _, pieces in hubs)
    )


def _sorted_parts(
    spark: SparkSession, edges: Edges, numbering: SparkNumbering, layout: Layout, work: Path, *, directed: bool
) -> list[dict[str, Any]]:
    """Write the sorted entries of every part; return what the tasks say of them."""
    sql = sql_functions()

    file, folder = work / "sorted.json", work / "sorted"
    if file.exists():
        return _reports(file)
    folder.mkdir(exist_ok=True)
    frame = _numbered(spark, edges, numbering)
    source, target = sql.col("source"), sql.col("target")
    there = sql.shiftleft(target, 32).bitwiseOR(sql.shiftleft(source, 1))
    if directed:
        frame = frame.withColumn("key", there)
    else:
        back = sql.shiftleft(source, 32).bitwiseOR(sql.shiftleft(target, 1)).bitwiseOR(sql.lit(1))
        both = sql.when(source == target, sql.array(there)).otherwise(sql.array(there, back))
        frame = frame.withColumn("key", sql.explode(both))
    part = sql.expr(f"CAST(shiftright(key, 32) DIV {layout.rows} AS INT)")
    if layout.hubs:
        rows = [(hub, layout.first_part(k), layout.pieces[k]) for k, hub in enumerate(layout.hubs)]
        hubs = spark.createDataFrame(rows, "hub bigint, first int, pieces int")
        frame = frame.join(sql.broadcast(hubs), sql.shiftright("key", 32) == sql.col("hub"), "left")
        piece = sql.expr(f"CAST(first + (shiftright(key, 1) & {2**31 - 1}) * pieces DIV {layout.n} AS INT)")
        part = sql.when(sql.col("hub").isNull(), part).otherwise(piece)
    columns = ["key", "weight"] if edges.weighted else ["key"]
    spread = frame.select(*columns, part.alias("part")).repartitionById(layout.parts, "part").select(*columns)
    rows = spread.mapInArrow(SortEntries(layout, folder, edges.weighted), SORTED).collect()
    found = sorted((row.asDict() for row in rows), key=lambda row: row["part"])
    for row in found:
        row["before"] = np.frombuffer(row["before"], np.int64).tolist()
    file.write_text(json.dumps(found))
    return _reports(file)


def _reports(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text())


def _numbered(spark: SparkSession, edges: Edges, numbering: SparkNumbering) -> DataFrame:
    """Return the edges with positions instead of ids.

    The rows of a hub are joined in several partitions: by a salt, which the table of positions has for hubs alone.
    """
    sql = sql_functions()

    frame = edges.frame
    if numbering.folder is None:
        return frame
    positions = numbering.positions(spark).withColumn("salt", sql.lit(0))
    hubs = [one for one, _, _ in numbering.hubs]
    salts = min(64, max(8, len(numbering.starts)))
    if hubs:
        rows = [(one, position, salt) for one, position, _ in numbering.hubs for salt in range(1, salts)]
        positions = positions.unionAll(spark.createDataFrame(rows, f"id {edges.kind}, position bigint, salt int"))
    for end, other in (("source", "target"), ("target", "source")):
        salt = sql.lit(0)
        if hubs:
            spread = sql.pmod(sql.xxhash64(other), sql.lit(salts)).cast("int")
            salt = sql.when(sql.col(end).isin(hubs), spread).otherwise(0)
        named = positions.select(sql.col("id").alias(end), sql.col("position").alias("at"), "salt")
        frame = frame.withColumn("salt", salt).join(named, [end, "salt"]).drop(end, "salt")
        frame = frame.withColumnRenamed("at", end)
    return frame


def _placed(
    spark: SparkSession,
    layout: Layout,
    reports: list[dict[str, Any]],
    numbering: SparkNumbering,
    work: Path,
    *,
    directed: bool,
    weighted: bool,
) -> Path:
    """Make the graph folder of sorted parts."""
    folder = work / "graph"
    folder.mkdir(exist_ok=True)
    entries, loops = sum(one["entries"] for one in reports), sum(one["loops"] for one in reports)
    narrow, ones = (all(one[name] for one in reports) for name in ("narrow", "ones"))
    weights = None if not weighted or ones else "<f4" if narrow else "<f8"
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "indptr": (np.int64, (layout.n + 1,)),
        "indices": (np.int32, (entries,)),
    }
    if weights is not None:
        shapes["weights"] = (weights, (entries,))
    for name, (dtype, shape) in shapes.items():
        new_array(folder / f"{name}.npy", dtype, shape)
    before = tuple(tuple(one["before"]) for one in reports[: layout.blocks])
    place = PlaceEntries(layout, work / "sorted", folder, weights, tuple(one["entries"] for one in reports), before)
    run_tasks(spark, layout.parts, place, "part int").collect()
    shapes |= numbering.write_ids(spark, folder)
    arrays = _described(spark, folder, shapes)
    edges = entries if directed else (entries + loops) // 2
    write_manifest(folder, arrays, directed=directed, edges=edges)
    return folder


def _described(spark: SparkSession, folder: Path, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, Any]:
    """Return what the manifest says of every array; their bytes are summed up by tasks."""
    sizes = {name: (folder / f"{name}.npy").stat().st_size - HEADER for name in shapes}
    summing = SumBytes.of(folder, sizes)
    rows: list[Any] = (
        run_tasks(spark, len(summing.ranges), summing, "index int, sums binary").collect() if summing.ranges else []
    )
    sums = {row["index"]: bytes(row["sums"]) for row in rows}
    arrays: dict[str, Any] = {}
    for name, (dtype, shape) in shapes.items():
        digest, kind = Digest(), np.dtype(dtype).newbyteorder("<")
        for index, (of, _, _) in enumerate(summing.ranges):
            if of == name:
                digest.take_sums(sums[index])
        data = map_array(folder / f"{name}.npy", "|u1", (sizes[name],))
        digest.update(data[sizes[name] - sizes[name] % 2**20 :])
        arrays[name] = {"dtype": kind.str, "shape": list(shape), "digest": digest.hexdigest()}
    return arrays
