"""Features and labels of the nodes of a build, written to its folder some rows at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import CapacityError, FormatError, Remedy
from pprop._validate import describe, reject
from pprop.graph.archive import DAMAGE, open_saved
from pprop.graph.attributes import Features, check_features, check_finite, check_labels
from pprop.graph.building.sparse_rows import ENDING, SparseFiles
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import STORED
from pprop.graph.files import existing_file, mapped_array
from pprop.graph.folder_arrays import ArrayWriter, blocks, map_array, write_array, write_texts
from pprop.graph.tables.build import TableColumns, padded
from pprop.graph.tables.classes import class_codes, distinct_labels
from pprop.graph.tables.readers import read_table, table_suffix
from pprop.graph.tables.streams import TableStream

FUNCTION = "build_graph"
TABLE_FACTOR = 6  # bytes of memory for a byte of a file of columns that become features at once
FILE_FACTOR = 4  # and for one of an array beside them

Fields = tuple[dict[str, Any], dict[str, Any]]  # what the manifest says of arrays, and of everything else


@final
@dataclass(frozen=True)
class NodeTable:
    """A node table whose rows become features and labels.

    Attributes
    ----------
    stream
        Its rows, all columns.
    columns
        What its columns mean.
    known, n_nodes
        How many rows it has, and how many nodes there are with those that are added after them.
    workplace, result
        Folders for what is needed until the end, and for the arrays.
    memory, rows
        Bytes, and rows at a time.
    tick
        Called with the number of rows read.
    """

    stream: TableStream
    columns: TableColumns
    known: int
    n_nodes: int
    workplace: Path
    result: Path
    memory: int
    rows: int
    tick: Callable[[int], None]

    @property
    def _exclude(self) -> list[str]:
        return [name for name in (self.columns.id_column, self.columns.label_column) if name is not None]

    def labels(self) -> Fields:
        """Write the labels. Distinct cells are collected first, as what is a class depends on all of them."""
        column = self.columns.label_column
        if column is None:
            return {}, {}
        stream = replace(self.stream, wanted=frozenset([column]))
        codes: dict[str, int] = {}
        counts = np.zeros(0, dtype=np.int64)
        table = None
        with ArrayWriter(self.workplace / "cells.npy", np.int32) as writer:
            for table, _ in stream.tables(self.rows):
                numbers, texts = distinct_labels(table, column, self.columns.label_kind)
                mine = np.array([codes.setdefault(text, len(codes)) for text in texts], dtype=np.int32)
                counts = np.pad(counts, (0, len(codes) - len(counts)))
                np.add.at(counts, mine, np.bincount(numbers, minlength=len(texts)))
                writer.write(mine[numbers])
                self.tick(table.n_rows)
            cells = writer.close()
        assert table is not None
        classes, names = class_codes(
            list(codes), counts, table, column, self.columns.missing_labels, self.columns.label_kind
        )
        held = map_array(self.workplace / "cells.npy", cells["dtype"], cells["shape"])
        with ArrayWriter(self.result / "labels.npy", np.int64) as writer:
            for rows in blocks(len(held), 4):
                writer.write(classes[held[rows]])
            writer.write(np.full(self.n_nodes - len(held), -1))
            about = writer.close()
        (self.workplace / "cells.npy").unlink()
        return {"labels": about}, {"class_names": names}

    def features(self) -> Fields:
        """Write the features that the columns become by their recipe."""
        given = self.columns.feature_columns
        header, _ = next(self.stream.tables(1))
        others = [name for name in header.names if name not in self._exclude]
        files = self.columns.files
        if isinstance(given, Recipe) or given == "numbers" or not (others or files):
            return self._streamed()
        needed = sum(TABLE_FACTOR * _unpacked(file) for file in self.stream.files)
        needed += sum(FILE_FACTOR * file.stat().st_size for file in files)
        if needed > self.memory:
            what = f"all the columns of {self.stream.title}" + (" and the files" if files else "")
            remedy = Remedy(
                "Columns of numbers alone are read some rows at a time.", settings={"feature_columns": "numbers"}
            )
            if files:
                how = "uses the file in place of the columns, some rows at a time."
                remedy = Remedy(f"features={str(files[0])!r} {how}", shell=f"--feature-file {files[0]} {how}")
            raise CapacityError(
                f"Making features of {what} takes about {needed / 2**30:.1f} GiB, and memory is "
                f"{self.memory / 2**30:.1f} GiB.",
                remedies=[remedy],
            )
        table = read_table(self.stream.files[0], "nodes", FUNCTION)
        table = self.columns.with_files(table, table.n_rows)
        found = self.columns.features_of(padded(table, self.n_nodes - table.n_rows))
        recipe = found["recipe"]
        if "features" not in found:
            return {}, {"recipe": recipe}
        arrays, fields = write_features(found["features"], self.result)
        return arrays | write_texts(self.result, "feature_names", found["feature_names"]), fields | {"recipe": recipe}

    def _streamed(self) -> Fields:
        """Write columns of numbers, or those of a recipe that was fitted before, which no other row can change."""
        given = self.columns.feature_columns
        recipe = given if isinstance(given, Recipe) else None
        about: dict[str, Any] = {"exclude": self._exclude, "function": FUNCTION}
        writer: _NodeRows | None = None
        done = 0
        try:
            for part, _ in self.stream.tables(self.rows):
                done += part.n_rows
                with_files = self.columns.with_files(part, self.known)
                table = padded(with_files, self.n_nodes - done) if done == self.known else with_files
                title = table.title if not part.first else f"{table.title} from row {part.first + 1:,} on"
                if recipe is None:
                    recipe = Recipe.fit(table.columns, wanted="numbers", typed=table.typed, title=title, **about)
                features, names = recipe.encode(table.columns, typed=table.typed, title=title, **about)
                if names:
                    kept = check_features(features, table.n_rows, FUNCTION)
                    writer = writer or _NodeRows(kept, self.result)
                    writer.write(kept)
                self.tick(part.n_rows)
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        assert recipe is not None
        if writer is None:
            return {}, {"recipe": recipe}
        arrays = writer.close() | write_texts(self.result, "feature_names", recipe.feature_names)
        return arrays, {"recipe": recipe, "feature_columns": recipe.n_features}


@final
class _NodeRows:
    """Writes features, dense or sparse, part by part."""

    def __init__(self, first: Features, folder: Path) -> None:
        self._end = 0
        kinds: dict[str, Any] = {"features": first.dtype}
        if isinstance(first, sparse.csr_array):
            kinds = {"features.indptr": np.int64, "features.indices": np.int32, "features.data": first.dtype}
        width = first.shape[1:] if isinstance(first, np.ndarray) else ()
        self._writers = {name: ArrayWriter(folder / f"{name}.npy", kind, width) for name, kind in kinds.items()}
        if "features.indptr" in kinds:
            self._writers["features.indptr"].write(np.zeros(1, dtype=np.int64))

    def write(self, part: Features) -> None:
        if isinstance(part, np.ndarray):
            self._writers["features"].write(part)
            return
        self._writers["features.indptr"].write(part.indptr[1:].astype(np.int64) + self._end)
        self._writers["features.indices"].write(part.indices)
        self._writers["features.data"].write(part.data)
        self._end += part.nnz

    def close(self) -> dict[str, Any]:
        return {name: writer.close() for name, writer in self._writers.items()}

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()


def write_features(features: Features, folder: Path) -> Fields:
    """Write sound features, some rows at a time."""
    rows = _NodeRows(features, folder)
    if isinstance(features, np.ndarray):
        for some in blocks(len(features), features[:1].nbytes):
            rows.write(features[some])
    else:
        rows.write(features)
    return rows.close(), {"feature_columns": int(features.shape[1])}


def feature_file(path: object, n: int, memory: int) -> Features | SparseFiles:
    """Return the features in an npy file, mapped, or in an npz file of a sparse matrix; a row for each of n nodes in order."""
    file = existing_file(path, "features", FUNCTION)
    expected = f"a matrix of real numbers with {n:,} rows, in an .npy file or in one of scipy.sparse.save_npz"
    if file.name.endswith(ENDING):
        return SparseFiles.open(file, n)
    if file.suffix.lower() == ".npy":
        array = mapped_array(file, "features", FUNCTION)
        if array.ndim < 2 or len(array) != n or array.dtype.kind not in "buif":
            reject("features", FUNCTION, expected, f"{describe(array)} in {str(file)!r}", error=FormatError)
        return array
    if file.suffix.lower() != ".npz":
        reject("features", FUNCTION, expected, repr(str(path)), error=FormatError)
    try:
        archive = zipfile.ZipFile(file)
    except DAMAGE:
        reject("features", FUNCTION, expected, f"{str(path)!r} with damaged or other content", error=FormatError)
    with archive:
        found = open_saved(archive, file)
        if found is None or found.shape[0] != n:
            got = f"{str(path)!r} of shape {found.shape}" if found else f"{str(path)!r} with something else"
            reject("features", FUNCTION, expected, got, error=FormatError)
        if 4 * found.n_bytes > memory:
            raise CapacityError(
                f"Reading {str(path)!r} takes {4 * found.n_bytes / 2**30:.1f} GiB, and memory is {memory / 2**30:.1f} GiB."
            )
        return check_features(found.read(), n, FUNCTION)


def copy_features(features: Features | SparseFiles, folder: Path) -> Fields:
    """Write features of a file, in their type where a Graph keeps it; NaN and infinity are refused."""
    if isinstance(features, SparseFiles):
        return features.write(folder)
    if not isinstance(features, np.ndarray):
        return write_features(features, folder)
    wide = features.dtype.kind == "f" and features.dtype.itemsize >= 8
    dtype = (
        features.dtype if features.dtype.newbyteorder("=") in STORED else np.dtype(np.float64 if wide else np.float32)
    )
    check_finite(features, FUNCTION)
    with ArrayWriter(folder / "features.npy", dtype, features.shape[1:]) as writer:
        for rows in blocks(len(features), features[:1].nbytes):
            writer.write(features[rows])
        return {"features": writer.close()}, {"feature_columns": int(features.shape[1])}


def copy_labels(path: object, n: int, folder: Path) -> Fields:
    """Write the labels in an npy file, -1 where unknown, a class index for each of n nodes in order."""
    file = existing_file(path, "labels", FUNCTION)
    labels: NDArray[Any] = check_labels(mapped_array(file, "labels", FUNCTION), n, None, FUNCTION)
    return {"labels": write_array(folder / "labels.npy", labels)}, {}


def _unpacked(file: Path) -> int:
    if table_suffix(file) != ".parquet":
        return file.stat().st_size * (1 if file.suffix.lower() in (".csv", ".tsv", ".tab") else 4)
    from pprop.graph.tables.arrow import parquet

    about: Any = parquet.read_metadata(file)
    return sum(about.row_group(index).total_byte_size for index in range(about.num_row_groups))
