"""Sparse features in three npy files, mapped: checked and copied to a graph folder some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError
from pprop._validate import reject
from pprop.graph.folder_arrays import ArrayWriter

FUNCTION = "build_graph"
ENDING = ".data.npy"
PARTS = ("indptr", "indices", "data")
_ENTRIES = 2**22  # that are looked at together


@final
@dataclass(frozen=True, eq=False)
class SparseFiles:
    """The files ``X.data.npy`` (e,), ``X.indices.npy`` (e,) and ``X.indptr.npy`` (n + 1,) of a CSR matrix.

    How many columns it has is in ``X.shape.npy`` (2,), if that is there; else they are those up to the last that is used.
    """

    path: Path
    columns: int | None
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def open(cls, path: Path, n: int) -> SparseFiles:
        """Map the files beside ``X.data.npy``, of a matrix with n rows."""
        base = path.name.removesuffix(ENDING)
        found: dict[str, NDArray[Any]] = {}
        for part, kinds in zip(PARTS, ("iu", "iu", "buif"), strict=True):
            file = path.with_name(f"{base}.{part}.npy")
            try:
                found[part] = np.load(file, mmap_mode=None if file.stat().st_size < 2**12 else "r", allow_pickle=False)
            except (OSError, ValueError, EOFError):
                reject(
                    "features",
                    FUNCTION,
                    "three sound npy files of a CSR matrix",
                    f"none in {str(file)!r}",
                    error=FormatError,
                )
            if found[part].ndim != 1 or found[part].dtype.kind not in kinds:
                reject("features", FUNCTION, "three vectors of a CSR matrix", found[part], error=FormatError)
        shape = path.with_name(f"{base}.shape.npy")
        columns = int(np.load(shape, allow_pickle=False).reshape(-1)[-1]) if shape.is_file() else None
        made = cls(path, columns, **found)
        if len(made.indptr) != n + 1 or len(made.indices) != len(made.data):
            got = f"{len(made.indptr) - 1:,} rows, {len(made.indices):,} indices and {len(made.data):,} numbers"
            made._refuse(f"{n:,} rows, and as many indices as numbers", got)
        if made.indptr[0] != 0 or made.indptr[-1] != len(made.data):
            made._refuse("row pointers from 0 to the number of entries", f"others than 0 to {len(made.data):,}")
        return made

    def _refuse(self, expected: str, got: str) -> NoReturn:
        place = f"{got} in {str(self.path)!r}"
        reject("features", FUNCTION, f"a CSR matrix with {expected}", place, error=FormatError)

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]]:
        """Give whole rows: their pointers, indices and numbers."""
        row, n = 0, len(self.indptr) - 1
        while row < n:
            start = int(self.indptr[row])
            end = min(max(int(np.searchsorted(self.indptr, start + _ENTRIES, side="right")) - 1, row + 1), n)
            pointers = self.indptr[row : end + 1].astype(np.int64)
            if (np.diff(pointers) < 0).any():
                self._refuse("row pointers that do not fall", "others")
            yield pointers, self.indices[start : int(pointers[-1])], self.data[start : int(pointers[-1])]
            row = end

    def write(self, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """Copy the matrix to a graph folder; return what the manifest says of the arrays, and of the rest."""
        wide = self.data.dtype.kind == "f" and self.data.dtype.itemsize >= 8
        kinds = {"indptr": np.int64, "indices": np.int32, "data": np.float64 if wide else np.float32}
        writers = {part: ArrayWriter(folder / f"features.{part}.npy", kind) for part, kind in kinds.items()}
        width = 0
        try:
            writers["indptr"].write(np.zeros(1, dtype=np.int64))
            for pointers, indices, data in self._blocks():
                self._check(pointers, indices, data)
                width = max(width, int(indices.max(initial=-1)) + 1)
                for part, values in zip(PARTS, (pointers[1:], indices, data), strict=True):
                    writers[part].write(values)
            arrays = {f"features.{part}": writer.close() for part, writer in writers.items()}
        finally:
            for writer in writers.values():
                writer.abandon()
        if self.columns is not None and self.columns < width:
            self._refuse("as many columns as its shape says", f"{width:,} columns and not {self.columns:,}")
        return arrays, {"feature_columns": width if self.columns is None else self.columns}

    def _check(self, pointers: NDArray[np.int64], indices: NDArray[Any], data: NDArray[Any]) -> None:
        if not len(indices):
            return
        if int(indices.min()) < 0 or int(indices.max()) >= 2**31 - 1:
            self._refuse("columns from 0 to 2^31 - 2", "others")
        rises = np.diff(indices.astype(np.int64)) > 0
        starts = pointers[1:-1] - pointers[0]
        rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # from one row to the next
        if not rises.all():
            self._refuse("distinct columns in order in every row", "others")
        if not np.isfinite(data).all() or not np.all(data):
            self._refuse("finite numbers other than zero", "others")
