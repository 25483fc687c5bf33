"""`propagate`: predictions in a data frame, spread over a graph by Spark."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from pprop._errors import FormatError, ToleranceError
from pprop._process import check_interrupt
from pprop._validate import check_choice, check_float, check_int, counted, describe, reject
from pprop.graph.building.progress import show_stage
from pprop.graph.files import check_disk
from pprop.graph.folder import GraphFolder
from pprop.kernels.solves import Solved
from pprop.propagation.certificate import with_rounding, worst_error
from pprop.settings import ALPHA, NORMALIZATION, NORMALIZATIONS, POSITIVE_ALPHA, SELF_LOOPS, STEPS
from pprop.spark.arrays import new_array
from pprop.spark.foreign import DataFrame, RecordBatch, Say, SparkSession, arrow, silent, sql_functions
from pprop.spark.graphs import EdgeColumns, packed_graph, work_folder
from pprop.spark.numbering import folder_positions
from pprop.spark.prepare import StartState, write_given, write_sums
from pprop.spark.session import Executors, check_executors, run_tasks, session_of, settings
from pprop.spark.step_tasks import PIECES, Combine, Step, StepTask, merge
from pprop.spark.tables import Numbers
from pprop.spark.work import CHUNK_BYTES, Progress, Work

FUNCTION = "pprop.spark.propagate"
TASK = 2**23  # entries of a task
_SHARE = 0.5  # of the memory of a machine that a state may take
_PANELS = 8  # rows of a batch that have a panel each: 256 MB


def propagate(
    edges: Any,
    predictions: Any,
    alpha: float = ALPHA.default,
    steps: int | None = None,
    tol: float | None = None,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    work: str | PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    id_column: str = "id",
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    memory: int | None = None,
    tasks: int | None = None,
    progress: bool | None = None,
    say: Say | None = None,
) -> DataFrame:
    """Spread predictions over a graph by personalized PageRank, in Spark.

    Solves Z = (1 - alpha) T Z + alpha H as `pprop.propagate` does, by K power steps, or to a certified tolerance.

    Parameters
    ----------
    edges
        A `GraphFolder` or its path, as `pack_graph` or `pprop.build_graph` made it; or a DataFrame or Parquet path with one
        edge per row, which is packed first: its nodes are those of `predictions`.
    predictions
        H: a DataFrame or Parquet path with one row for each node: its id, and columns of finite numbers.
    alpha, normalization, self_loops
        As in `pprop.propagate`.
    steps
        Power steps K, in float32; None without `tol`: 10.
    tol
        Instead of `steps`: the relative error of every column, in the norm in which T is at most 1 ("sym": 2-norm, "row":
        largest, "col": sum), that is proven when the steps end. They are in float64.
    work
        Folder for the packed graph and the states, which all machines see under the same path. After a kill, the same call
        goes on after the last step that was finished; called again after the end, it returns what is there. None, on one
        machine only: a temporary one.
    columns
        Columns of `predictions`; None: all columns of numbers.
    id_column, source, target, weight, directed
        As in `pack_graph`.
    memory
        Bytes of a machine that a state may take; None: half of what the smallest machine has. Where a state takes more, it
        is read in stripes.
    tasks
        Tasks of a step; None: of 8 million entries, at least one for a core.
    progress
        Whether to draw progress on standard error; None: if it is a terminal.
    say
        Called with sentences about what was chosen, and why.

    Returns
    -------
    DataFrame
        The ids and the columns of Z, read from `work` when they are asked for.

    Raises
    ------
    InputError
        An argument or a table is wrong, or `work` belongs to another propagation.
    ToleranceError
        The steps do not reach the tolerance.
    """
    tell = say or silent
    alpha = (ALPHA if tol is None else POSITIVE_ALPHA).check(alpha, FUNCTION)
    if tol is not None:
        if steps is not None:
            reject("tol", FUNCTION, "None where steps are given", describe(tol))
        tol = check_float(tol, "tol", FUNCTION, "(0, 1)")
    count = STEPS.default if steps is None else STEPS.check(steps, FUNCTION)
    check_choice(normalization, "normalization", FUNCTION, NORMALIZATIONS)
    self_loops = SELF_LOOPS.check(self_loops, FUNCTION)
    spark = session_of(predictions, edges)
    folder = work_folder(spark, work, FUNCTION)
    executors = check_executors(spark, folder)
    given = Numbers.read(spark, predictions, id_column, columns, FUNCTION)
    dtype = "float32" if tol is None else "float64"
    if len(given.names) * np.dtype(dtype).itemsize > CHUNK_BYTES:
        reject(
            "columns", FUNCTION, f"at most {CHUNK_BYTES // np.dtype(dtype).itemsize:,} columns", f"{len(given.names):,}"
        )
    which = EdgeColumns(source, target, weight, directed)
    graph = packed_graph(spark, edges, given.frame.select("id"), folder, which, FUNCTION, tell)
    tasks = check_int(tasks, "tasks", FUNCTION, low=1) if tasks is not None else None
    room = check_int(memory, "memory", FUNCTION, low=1) if memory is not None else int(_SHARE * executors.memory)
    facts = {
        "graph": graph.fingerprint,
        "predictions": given.digest,
        "columns": list(given.names),
        "alpha": alpha,
        "normalization": normalization,
        "self_loops": self_loops,
        "tol": tol,
        "steps": None if tol else count,
    }
    known = Progress(folder, facts)
    plan = known.report.get("plan") or _plan(graph, len(given.names), dtype, room, tasks, executors)
    job = Work(
        folder,
        graph.path.absolute(),
        graph.n_nodes,
        len(given.names),
        dtype,
        alpha,
        normalization,
        self_loops,
        graph.directed,
        *plan,
    )
    if not known.has("values"):
        _say_plan(job, graph, room, executors, tell)
        check_disk(folder, 4 * job.state_bytes)
        known.reached(plan=plan)
        _prepare(spark, job, graph, given, known)
        _steps(spark, job, known, count, tol, progress)
        _clean(job)
    if tol is not None:
        tell(f"{counted(known.report['steps'], 'step')}, relative error at most {known.report['error']:.2g}.")
    return _result(spark, job, graph, given.names, id_column)


def _plan(
    graph: GraphFolder, columns: int, dtype: str, room: int, tasks: int | None, executors: Executors
) -> tuple[int, int]:
    """Return the tasks of a step and the stripes of a state."""
    state = graph.n_nodes * columns * np.dtype(dtype).itemsize
    work = graph.n_entries + graph.n_nodes
    chosen = tasks or max(-(-work // TASK), executors.tasks)
    return min(chosen, work), min(-(-state // room), graph.n_nodes)


def _say_plan(job: Work, graph: GraphFolder, room: int, executors: Executors, tell: Say) -> None:
    size = np.dtype(job.dtype).itemsize
    join = graph.n_entries * (8 + size * job.c)
    way = (
        f"fits into {room / 1e9:.2f} GB: it is one file, which every machine reads"
        if job.stripes == 1
        else f"does not fit into {room / 1e9:.2f} GB: it is read in {job.stripes} stripes, whose sums are shuffled"
    )
    moved = job.state_bytes * (1 + executors.machines if job.stripes == 1 else 1 + executors.machines + 2 * job.stripes)
    tell(
        f"A state of {job.n:,} x {job.c} {job.dtype} takes {job.state_bytes / 1e9:.3f} GB and {way}. A step of {job.tasks} "
        f"tasks moves {moved / 1e9:.3f} GB; a join would shuffle {join / 1e9:.3f} GB."
    )


def _prepare(spark: SparkSession, job: Work, graph: GraphFolder, given: Numbers, known: Progress) -> None:
    if not known.has("given"):
        write_given(spark, job, graph, given, FUNCTION)
        known.reached(stage="given")
    if not known.has("sums"):
        known.reached(stage="sums", longest=write_sums(spark, job))
    if not known.has("start"):
        new_array(job.path("state-0"), job.dtype, (job.n, job.c))
        run_tasks(spark, job.chunks, StartState(job), "written bigint").collect()
        known.reached(stage="start")


def _steps(
    spark: SparkSession, job: Work, known: Progress, steps: int, tol: float | None, progress: bool | None
) -> None:
    """Make all steps that are not made yet; the last writes Z."""
    if tol is None and steps == 0:
        shutil.copyfile(job.path("given"), job.path("values"))
        known.reached(stage="values", steps=0)
        return
    most = steps
    if tol is not None:
        # the change shrinks by 1 - alpha a step in exact arithmetic, and is at most twice Z / alpha at the beginning
        most = 8 if job.alpha == 1 else math.ceil(math.log(tol * job.alpha / 8) / math.log1p(-job.alpha)) + 8
    certified: float | None = known.report.get("error")
    with show_stage(progress, "Power steps", most) as tick:
        tick(known.step)
        while True:
            check_interrupt()
            number = known.step
            last = number == steps - 1 if tol is None else certified is not None
            if tol is not None and number >= most and not last:
                raise ToleranceError(
                    f"{counted(number, 'step')} reached a relative error of {known.report['reached']:.2g}, not {tol:g}."
                )
            began = time.perf_counter()
            changed, size = _one_step(spark, job, Step(number, last, tol is not None and not last))
            facts: dict[str, Any] = {"seconds": [*known.report.get("seconds", []), time.perf_counter() - began]}
            if last:
                known.reached(stage="values", step=number + 1, steps=number + 1, **facts)
                return
            if tol is not None:
                reached = _error(job, known.report["longest"], changed, size)
                certified = reached if reached <= tol else None
                facts |= {"reached": reached} | ({"error": reached} if certified is not None else {})
            known.reached(step=number + 1, **facts)
            job.path(f"state-{number}").unlink(missing_ok=True)
            tick(1)


def _one_step(spark: SparkSession, job: Work, step: Step) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Make a step; return the norms of the change and of the state, of every column."""
    new_array(job.path(step.target), job.dtype, (job.n, job.c))
    reports: list[Any] = []
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": str(_PANELS)}):
        made = run_tasks(spark, job.tasks * job.stripes, StepTask(job, step), PIECES)
        if job.stripes > 1:
            reports = _combined(job, step, made).collect()
        else:  # pieces are those of cut rows, two of a task at most: the driver adds them up, and there is no second stage
            pieces = sorted(made.collect(), key=lambda row: (row["chunk"], row["place"] or 0))
            norms = Combine(job, step).add(pieces, reports)[0]
            reports.append({"changed": norms.changed.tobytes(), "size": norms.size.tobytes()})
    totals = np.zeros(job.c), np.zeros(job.c)
    for row in reports:
        for total, name in zip(totals, ("changed", "size"), strict=True):
            merge(job.normalization, total, np.frombuffer(row[name], np.float64))
    if job.normalization == "sym":
        return np.sqrt(totals[0]), np.sqrt(totals[1])
    return totals


def _combined(job: Work, step: Step, pieces: DataFrame) -> DataFrame:
    """Return the reports of tasks that add up the pieces of all stripes, chunk by chunk."""
    sql = sql_functions()
    at = sql.pmod(sql.col("chunk"), sql.lit(job.chunks)).cast("int")
    spread = pieces.withColumn("at", at).repartitionById(job.chunks, "at").drop("at")
    ordered = spread.sortWithinPartitions("chunk", "place", "first")
    return ordered.mapInArrow(Combine(job, step), PIECES).select("changed", "size")


def _error(job: Work, longest: int, changed: np.ndarray[Any, Any], size: np.ndarray[Any, Any]) -> float:
    """Return the proven relative error of a state, by its residual; see `pprop.propagation.certificate`."""
    ended = Solved(np.zeros((job.n, 0)), 1, changed, size)
    return worst_error(job.alpha, with_rounding(ended, longest, weighted=True, compensated=False))


def _clean(job: Work) -> None:
    """Remove what is not needed to read Z."""
    names = ["given", "row_sums", "column_sums", "loops"]
    for file in [job.path(name) for name in names] + list(job.folder.glob("state-*.npy")):
        file.unlink(missing_ok=True)


def _result(spark: SparkSession, job: Work, graph: GraphFolder, names: Sequence[str], id_column: str) -> DataFrame:
    """Return Z as a frame that reads its file."""
    if not job.path("values").exists():
        raise FormatError(f"The values are not in {str(job.folder)!r} any more. Remove the folder, and call again.")
    positions = folder_positions(spark, graph)
    kind = "bigint" if positions is None else dict(positions.dtypes)["id"]
    path, number = graph.path.absolute(), "float" if job.dtype == "float32" else "double"

    def read(index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        rows, values = job.rows_of(index), job.panel("values")
        ids: Any = GraphFolder.open(path).ids
        for first in range(rows[0], rows[1], 2**16):
            at = np.arange(first, min(first + 2**16, rows[1]))
            key = pa.array(at if ids is None else ids[at].tolist())
            panel = values[at[0] : at[-1] + 1]
            yield pa.RecordBatch.from_arrays(
                [key, *(pa.array(np.ascontiguousarray(panel[:, k])) for k in range(job.c))], names=[id_column, *names]
            )

    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    fields = ", ".join([f"{quoted(id_column)} {kind}", *(f"{quoted(name)} {number}" for name in names)])
    return run_tasks(spark, job.chunks, read, fields)
