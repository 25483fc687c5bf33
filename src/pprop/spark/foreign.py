"""PySpark and pyarrow, which type checkers know in part: names for their types, and their modules, imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

Say: TypeAlias = Callable[[str], object]
DataFrame: TypeAlias = Any
Column: TypeAlias = Any
SparkSession: TypeAlias = Any
RecordBatch: TypeAlias = Any


def silent(text: str) -> None:
    """Say nothing."""


def arrow() -> Any:
    """Return pyarrow."""
    return importlib.import_module("pyarrow")


def sql_functions() -> Any:
    """Return the functions of Spark's SQL."""
    return importlib.import_module("pyspark.sql.functions")


def partition() -> int:
    """Return the number of the partition that this task works on."""
    context: Any = importlib.import_module("pyspark").TaskContext
    return context.get().partitionId()
