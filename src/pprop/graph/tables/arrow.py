"""pyarrow, which tells a type checker nothing: its modules as Any, in one place. A module that needs no table does without."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

Column: TypeAlias = Any  # a pyarrow.ChunkedArray

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")
arrow_csv: Any = import_module("pyarrow.csv")
interchange: Any = import_module("pyarrow.interchange")
parquet: Any = import_module("pyarrow.parquet")
