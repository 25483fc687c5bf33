"""The Spark session: Java found, executors checked, and functions run as tasks."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast, final
from zipimport import zipimporter

from pprop._errors import InputError, MissingDependencyError
from pprop._optional import require
from pprop._version import __version__
from pprop.spark.foreign import DataFrame, RecordBatch, SparkSession

LEAST_JAVA = 17  # what Spark 4 runs on
JAVA = "Install one, on Debian and Ubuntu with: apt install openjdk-17-jre-headless; or set JAVA_HOME to one."
_MISSING = re.compile(r"No module named '([\w.]+)'")
_VERSIONS = re.compile(r"worker has different version[^\d]*([\d.]+)[^\d]*([\d.]+)|PYTHON_VERSION_MISMATCH")


def find_java() -> str:
    """Return the path of the Java that Spark would start, or say in one sentence why it could not.

    Raises
    ------
    MissingDependencyError
        There is none, or it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME, {home!r}, has no bin/java" if home else "there is no 'java' on the PATH"
        raise MissingDependencyError(f"Spark needs Java {LEAST_JAVA} or newer, and {where}. {JAVA}")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if version is None:
        raise MissingDependencyError(f"{found!r} does not run, and Spark needs Java {LEAST_JAVA} or newer. {JAVA}")
    if int(version[1]) < LEAST_JAVA:
        raise MissingDependencyError(
            f"Spark needs Java {LEAST_JAVA} or newer, and {found!r} is Java {version[1]}. {JAVA}"
        )
    return found


def session_of(*tables: object, master: str | None = None) -> SparkSession:
    """Return the session of the first data frame among `tables`, else the active one, else a new one.

    Parameters
    ----------
    *tables
        Data frames of Spark, or anything else.
    master
        Of a new session; None: what Spark's own settings say, ``local[*]`` without any.
    """
    sql: Any = require("pyspark.sql", extra="spark", purpose="Work on a cluster")
    for table in cast("tuple[Any, ...]", tables):
        if isinstance(table, sql.DataFrame):
            return table.sparkSession
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    find_java()
    if (master or "local").startswith("local"):  # workers on this machine are this Python, not the first on the PATH
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("pprop")
    if master is not None:
        builder = builder.master(master)
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_HOME" not in os.environ:
        # Spark of pip: bars and warnings of its own would stand between the lines of the program
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    return builder.getOrCreate()


@final
class Executors(NamedTuple):
    """What a look at the executors found: how many machines, tasks at once, and the least memory of a machine."""

    machines: int
    tasks: int
    memory: int


def check_executors(spark: SparkSession, work: Path) -> Executors:
    """Make sure that the executors have this version of pprop and see the folder `work`, by a few small tasks.

    Raises
    ------
    MissingDependencyError
        An executor lacks pprop or something that it needs, or has another version.
    InputError
        The folder is not the same for all.
    """
    parallel = max(spark.sparkContext.defaultParallelism, 1)
    token, mark = work / f".seen-{uuid.uuid4().hex}", uuid.uuid4().hex

    def look(index: int) -> Iterator[RecordBatch]:  # carried to the executors by value: they may lack this module
        import importlib
        import socket

        import pyarrow as pa

        from pprop._process import usable_memory
        from pprop._version import __version__ as version

        importlib.import_module("pprop.kernels.numba_cpu.large_steps")  # with numba and torch, which tasks need

        try:
            seen = token.read_text() == mark
        except OSError:
            seen = False
        row = {"host": [socket.gethostname()], "version": [version], "seen": [seen]}
        yield pa.RecordBatch.from_pydict({**row, "memory": pa.array([usable_memory() or 2**62], pa.int64())})

    _write(token, mark)
    try:
        rows = run_tasks(
            spark, 2 * parallel, look, "host string, version string, seen boolean, memory bigint"
        ).collect()
    except Exception as error:
        text = str(error)
        missing, other = _MISSING.search(text), _VERSIONS.search(text)
        if missing is not None:
            raise MissingDependencyError(
                f"The Python of an executor, {spark.sparkContext.pythonExec!r}, has no {missing[1]!r}. Set PYSPARK_PYTHON to one "
                f"with pprop {__version__} on all machines, or ship a packed environment as docs/spark.md shows."
            ) from error
        if other is not None:
            raise MissingDependencyError(
                "The executors have another version of Python than the driver. Set PYSPARK_PYTHON to the same one."
            ) from error
        raise
    finally:
        token.unlink(missing_ok=True)
    for row in rows:
        if row.version != __version__:
            raise MissingDependencyError(
                f"The executor {row.host!r} has pprop {row.version}, and the driver {__version__}. Install the same on all."
            )
        if not row.seen:
            raise InputError(
                f"The executor {row.host!r} does not see the folder {str(work)!r}. Give a folder that all machines share "
                "under one path, such as one on NFS."
            )
    return Executors(len({row.host for row in rows}), parallel, min(row.memory for row in rows))


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise InputError(
            f"The folder {str(file.parent)!r} cannot be written ({error.strerror or error}). Give another one."
        ) from error


def run_tasks(
    spark: SparkSession, count: int, function: Callable[[int], Iterator[RecordBatch]], schema: str
) -> DataFrame:
    """Return a frame that runs ``function(k)`` in a task of its own for every k below `count`, when it is asked for.

    Parameters
    ----------
    function
        Gives record batches with the columns of `schema`.
    schema
        Names and types, as Spark writes them.
    """

    def work(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from function(index)
        ready_worker()

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(work, schema)


def ready_worker() -> None:
    """Spare the next task of this worker two things that Spark does around every task, 0.2 s each.

    It forgets what importers know, and importers of zip files, such as its own, read these again at once: they are dropped, and
    made again by an import that needs them. And it collects garbage: what is loaded, with numba and torch, is left out of it.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    _leave_out_what_is_loaded()


@cache
def _leave_out_what_is_loaded() -> None:
    gc.freeze()


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Generator[None]:
    """Change settings of a session while a block runs."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def one_thread() -> None:
    """Let kernels take one thread: Spark runs as many tasks as a machine has cores."""
    from pprop.kernels.numba_cpu.large_steps import use_threads

    use_threads(1)


def picked(rows: Sequence[Any], column: str) -> list[Any]:
    """Return one column of collected rows."""
    return [row[column] for row in rows]
