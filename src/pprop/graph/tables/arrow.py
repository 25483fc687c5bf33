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


class Unreadable(pa.ExtensionType):
    """The type of a column without one: of n nulls, with what was found in it, and in which row (from 0) if in one."""

    def __init__(self, got: str, row: int | None) -> None:
        self.got, self.row = got, row
        super().__init__(pa.null(), "pprop.unreadable")

    @property
    def reason(self) -> str:
        """Why the column is left out, for people."""
        return f"cannot be read as one type ({self.got}" + (")" if self.row is None else f" in row {self.row + 1})")

    def __arrow_ext_serialize__(self) -> bytes:
        return f"{'' if self.row is None else self.row} {self.got}".encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: object, serialized: bytes) -> Unreadable:
        row, _, got = serialized.decode().partition(" ")
        return cls(got, int(row) if row else None)
