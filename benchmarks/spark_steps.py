"""Power steps in Spark against the plain join and group-by in the same session, against one machine, and over sizes.

    python benchmarks/spark_steps.py FOLDER --entries 16e6 --columns 16 --join-steps 2 --tasks 1 2 4 8 16 --json results/spark_16m.json
    python benchmarks/spark_steps.py FOLDER --entries 100e6 --columns 8 --json results/spark_100m.json
    python benchmarks/spark_steps.py FOLDER --star 1e6 --json results/spark_star.json

FOLDER is a folder for generated data, which is removed. Edges are drawn by R-MAT, 16 entries a node, ids are integers.
The join is the usual program of a Spark user: ``edges.join(state, "source").groupBy("target").agg(sum(...))``, with edges
and state cached and partitioned by their keys, which is timed apart; its time is for `--join-steps` steps. Bytes are those of Spark's own
counters (shuffle read and written), plus, of our steps, the files of states: written once, read once by this machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from pprop.spark.foreign import arrow, sql_functions

SKEW = (0.57, 0.19, 0.19)


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entries", type=float, default=16e6)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--join-steps", type=int, default=0)
    parser.add_argument("--tasks", type=int, nargs="*", default=[], help="also measure steps of so many tasks")
    parser.add_argument("--star", type=float, default=0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--heap", default="4g")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    spark = session(given.cores, given.heap, given.folder)
    watch = Watch(os.getpid())
    found = star(spark, given) if given.star else compare(spark, given, watch)
    found |= {"cores": given.cores, "machine": platform.processor() or platform.machine(), "peak_own_gib": watch.peak()}
    shutil.rmtree(given.folder, ignore_errors=True)
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if given.json:
        given.json.write_text(text + "\n")


def session(cores: int, heap: str, folder: Path) -> Any:
    """Start Spark on this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", heap)
    for name, value in {
        "spark.ui.port": "4555",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(8 * cores),
        "spark.local.dir": str(folder / "spark"),
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Watch:
    """The largest sum of the own memory (RssAnon) of this process and all that it started, looked at twice a second."""

    def __init__(self, pid: int) -> None:
        import threading

        self._pid, self._peak = pid, 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        import psutil

        while True:
            total = 0
            for process in [psutil.Process(self._pid), *psutil.Process(self._pid).children(recursive=True)]:
                try:
                    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                    total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
                except (OSError, psutil.Error):
                    continue
            self._peak = max(self._peak, total)
            time.sleep(0.5)

    def peak(self) -> float:
        """Return the peak so far, in GiB."""
        return round(self._peak / 2**30, 2)


def shuffled(spark: Any) -> int:
    """Return the bytes that Spark has shuffled so far, written and read, by its own counters."""
    return sum(stage["shuffleReadBytes"] + stage["shuffleWriteBytes"] for stage in stages(spark))


def stages(spark: Any) -> list[dict[str, Any]]:
    """Return what Spark's own page says of all stages."""
    context = spark.sparkContext
    time.sleep(1)  # the counters follow the jobs
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages") as answer:
        return json.loads(answer.read())


def rmat(n: int, edges: int, seed: int) -> tuple[Any, Any]:
    """Draw the ends of edges by R-MAT, in blocks."""
    rng, levels = np.random.default_rng(seed), int(np.ceil(np.log2(n)))
    source, target = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for first in range(0, edges, 2**22):
        part = slice(first, min(first + 2**22, edges))
        for _ in range(levels):
            draw = rng.random(part.stop - part.start)
            right = ((draw > SKEW[0]) & (draw <= SKEW[0] + SKEW[1])) | (draw > sum(SKEW))
            down = draw > SKEW[0] + SKEW[1]
            source[part] = 2 * source[part] + down
            target[part] = 2 * target[part] + right
    return source % n, target % n


def write_input(given: argparse.Namespace) -> tuple[int, Path, Path]:
    """Write edges and predictions as Parquet."""
    pa, pq = arrow(), importlib.import_module("pyarrow.parquet")

    n = int(given.entries / 16)
    edges, predictions = given.folder / "edges.parquet", given.folder / "predictions.parquet"
    source, target = rmat(n, int(given.entries / 2), 0)
    pq.write_table(pa.table({"source": source, "target": target}), edges, row_group_size=2**20)
    values = np.random.default_rng(1).standard_normal((n, given.columns)).astype(np.float32)
    columns = {"id": np.arange(n)} | {f"c{k}": values[:, k] for k in range(given.columns)}
    pq.write_table(pa.table(columns), predictions, row_group_size=2**20)
    return n, edges, predictions


def compare(spark: Any, given: argparse.Namespace, watch: Watch) -> dict[str, Any]:
    """Pack, propagate, and compare with one machine and with joins."""
    import pprop
    from pprop import spark as ours

    n, edges, predictions = write_input(given)
    said: list[str] = []
    before, began = shuffled(spark), time.perf_counter()
    folder = ours.pack_graph(str(edges), given.folder / "graph", nodes=n, say=said.append)
    packing, packed = time.perf_counter() - began, shuffled(spark) - before
    ours.propagate(folder, str(predictions), steps=1, work=given.folder / "first")  # compiles
    before, began = shuffled(spark), time.perf_counter()
    work = given.folder / "work"
    spread = ours.propagate(folder, str(predictions), 0.1, given.steps, work=work, say=said.append)
    whole = time.perf_counter() - began
    moved = shuffled(spark) - before
    steps = step_seconds(work)
    state = 4 * n * given.columns
    files = given.steps * 2 * state  # written, and read as the old state; every step also reads H, as large again
    by_tasks: dict[int, float] = {}
    for tasks in given.tasks:
        other = given.folder / f"work-{tasks}"
        ours.propagate(folder, str(predictions), 0.1, 5, work=other, tasks=tasks)
        by_tasks[tasks] = statistics.median(step_seconds(other))
        shutil.rmtree(other)
    values, entries = np.load(work / "values.npy", mmap_mode="r"), folder.n_entries
    began = time.perf_counter()
    H = np.stack([pprop_column(predictions, f"c{k}") for k in range(given.columns)], axis=1)
    graph = folder.graph()
    loading = time.perf_counter() - began
    pprop.propagate(graph, H, 0.1, pprop.PowerIteration(1))
    began = time.perf_counter()
    alone = pprop.propagate(graph, H, 0.1, pprop.PowerIteration(given.steps))
    single = time.perf_counter() - began
    found = {
        "nodes": n,
        "entries": entries,
        "columns": given.columns,
        "steps": given.steps,
        "said": said,
        "pack_seconds": packing,
        "pack_shuffle_bytes": packed,
        "propagate_seconds": whole,
        "step_seconds": steps,
        "step_median": statistics.median(steps),
        "ns_an_entry_step": 1e9 * statistics.median(steps) / entries,
        "shuffle_bytes_of_steps": moved,
        "state_file_bytes": files,
        "one_machine_seconds": single,
        "one_machine_loading_seconds": loading,
        "overhead": sum(steps) / single,
        "rows": spread.count(),
        "difference": float(np.abs(values - alone).max() / np.abs(alone).max()),
        "step_median_by_tasks": by_tasks,
        "given_bytes_read": given.steps * state,
    }
    if given.join_steps:
        found |= joins(spark, given, n, edges, predictions)
        found["times_faster_steps"] = found["join_seconds_a_step"] / (sum(steps) / given.steps)
        joined = found["join_prepare_seconds"] + found["join_seconds_a_step"] * given.steps
        found["times_faster_with_preparation"] = joined / (packing + whole)
        of_joins = found["join_bytes_a_step"] * given.steps
        found["times_fewer_bytes"] = of_joins / (moved + files)
        found["times_fewer_bytes_with_given"] = of_joins / (moved + files + found["given_bytes_read"])
    return found


def step_seconds(work: Path) -> list[float]:
    """Return how long every step of a propagation took."""
    return json.loads((work / "progress.json").read_text())["report"]["seconds"]


def pprop_column(file: Path, name: str) -> Any:
    """Read one column of a Parquet file."""
    pq: Any = importlib.import_module("pyarrow.parquet")
    return pq.read_table(file, columns=[name]).column(name).to_numpy()


def joins(spark: Any, given: argparse.Namespace, n: int, edges: Path, predictions: Path) -> dict[str, Any]:
    """Make the same steps by joins; scaled as ours are."""
    sql = sql_functions()

    names, began = [f"c{k}" for k in range(given.columns)], time.perf_counter()
    listed = spark.read.parquet(str(edges))
    both = listed.unionAll(listed.selectExpr("target AS source", "source AS target")).distinct()
    loops = spark.range(n).selectExpr("id AS source", "id AS target")
    both = both.unionAll(loops).distinct().repartition("source").cache()
    degrees = both.groupBy("source").count().selectExpr("source AS id", "1 / sqrt(count) AS scale").cache()
    degrees.count()
    own = spark.read.parquet(str(predictions)).join(degrees, "id").cache()
    state = own.select("id", *(sql.col(name) * sql.col("scale") for name in names)).toDF("id", *names).cache()
    state.count()
    own.count()
    prepared = time.perf_counter() - began
    times: list[float] = []
    bytes_moved: list[int] = []
    for _ in range(given.join_steps):
        before, began = shuffled(spark), time.perf_counter()
        sums = (
            both.join(state, both["source"] == state["id"])
            .groupBy("target")
            .agg(*(sql.sum(name).alias(name) for name in names))
        )
        joined = sums.join(
            own.select("id", "scale", *(sql.col(name).alias(f"h{name}") for name in names)),
            sums["target"] == sql.col("id"),
        )
        new = [
            (
                0.9 * sql.col("scale") * sql.col("scale") * sql.col(name) + 0.1 * sql.col("scale") * sql.col(f"h{name}")
            ).alias(name)
            for name in names
        ]
        state = joined.select("id", *new).cache()
        state.count()
        times.append(time.perf_counter() - began)
        bytes_moved.append(shuffled(spark) - before)
    return {
        "join_prepare_seconds": prepared,
        "join_seconds": times,
        "join_seconds_a_step": statistics.median(times),
        "join_bytes_a_step": statistics.median(bytes_moved),
    }


def star(spark: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Pack and propagate a star, and compare the times of the tasks of every stage.

    A small star comes first: Java compiles a stage in its first tasks, which would be called slow.
    """
    leaves = int(given.star)
    spread_star(spark, given.folder / "warm", max(leaves // 10, 1000))
    last = max(stage["stageId"] for stage in stages(spark))
    spread_star(spark, given.folder / "star", leaves)
    worst: list[dict[str, Any]] = []
    context = spark.sparkContext
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    for stage in stages(spark):
        if stage["status"] != "COMPLETE" or stage["numTasks"] < 4 or stage["stageId"] <= last:
            continue
        with urllib.request.urlopen(f"{base}/{stage['stageId']}/{stage['attemptId']}/taskList?length=1000") as answer:
            tasks = sorted(json.loads(answer.read()), key=lambda task: task["taskId"])
        times = [task["taskMetrics"]["executorRunTime"] for task in tasks]
        worst.append({"stage": stage["name"].split(" at ")[0], "median_ms": statistics.median(times), "ms": times})
    worst.sort(key=lambda one: -max(one["ms"]) / max(one["median_ms"], 1))
    return {"leaves": leaves, "stages": len(worst), "worst": worst[:5]}


def spread_star(spark: Any, folder: Path, leaves: int) -> None:
    """Pack and propagate a star."""
    sql = sql_functions()

    from pprop import spark as ours

    folder.mkdir()
    edges = spark.range(leaves).select(sql.lit(0).cast("bigint").alias("source"), (sql.col("id") + 1).alias("target"))
    ids = spark.range(leaves + 1)
    graph = ours.pack_graph(edges, folder / "graph", nodes=ids, partitions=8)
    predictions = ids.select("id", *(sql.sin(sql.col("id") + k).alias(f"c{k}") for k in range(8)))
    predictions.write.parquet(str(folder / "predictions"))
    ours.propagate(graph, str(folder / "predictions"), steps=4, tasks=8, work=folder / "work").count()


if __name__ == "__main__":
    main()
