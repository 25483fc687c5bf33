"""A planted graph as files: edges in Parquet, labels and features as arrays of numpy, written piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple, final

import numpy as np
from scipy import sparse

from _planted import CHUNK, Planted
from _planted_features import NormalFeatures, WordFeatures
from pprop._process import check_interrupt
from pprop._validate import check_int, reject
from pprop.graph.files import check_disk, path_of, replaced_folder

EDGES_A_FILE = 2**26
_ROW_BYTES = 2**26  # of features written at once


@final
class PlantedFiles(NamedTuple):
    """What `write_planted` wrote."""

    folder: Path
    edges: tuple[Path, ...]  # columns source and target, int32
    labels: Path  # int64
    features: tuple[Path, ...]  # features.npy, or features.data.npy, features.indices.npy and features.indptr.npy


def write_planted(
    planted: Planted,
    folder: str | PathLike[str],
    *,
    edges_a_file: int = EDGES_A_FILE,
    progress: Callable[[str, float], object] | None = None,
) -> PlantedFiles:
    """Write a planted graph as a folder of Parquet files of edges and arrays of labels and features.

    Memory is bounded whatever the size. The files depend on the graph alone. Edges are undirected; a pair drawn twice is
    written twice. The folder appears when it is complete.

    Parameters
    ----------
    planted
        The graph.
    folder
        Where to: it must not exist, or be empty, and its parent must exist.
    edges_a_file
        Edges in one Parquet file.
    progress
        Called now and then with what is written, and which share of it is done.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = write_planted(Planted(nodes=100, classes=2), Path(place, "graph"))
    ...     [file.name for file in (*files.edges, files.labels, *files.features)]
    ['edges-00000.parquet', 'labels.npy', 'features.npy']
    """
    name = "write_planted"
    target = path_of(folder, "folder", name)
    check_int(edges_a_file, "edges_a_file", name, low=1)
    if not target.parent.is_dir() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        reject("folder", name, "a new folder in an existing one", repr(str(folder)))
    _check_disk(planted, target)
    told = progress or _silent
    with replaced_folder(target, replace=None) as new:
        new.mkdir()
        edges = _write_edges(planted, new, edges_a_file, told)
        features = _write_nodes(planted, new, told)
    return PlantedFiles(
        target, tuple(target / name for name in edges), target / "labels.npy", tuple(target / name for name in features)
    )


def _silent(stage: str, share: float) -> None:
    """Tell nobody."""


def _check_disk(planted: Planted, target: Path) -> None:
    """Refuse what the disk has no room for."""
    given = planted.features
    row = 8
    if isinstance(given, NormalFeatures):
        row += 4 * given.columns
    elif given is not None:
        row += 8 * given.draws + 8
    needed = 8 * planted.n_edges + row * planted.nodes
    check_disk(target.parent, needed, "The files of this graph")


def _write_edges(planted: Planted, folder: Path, edges_a_file: int, told: Callable[[str, float], object]) -> list[str]:
    from pprop.graph.tables.arrow import pa, parquet

    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    names: list[str] = []
    for begin in range(0, planted.n_edges, edges_a_file):
        names.append(f"edges-{len(names):05}.parquet")
        end = min(begin + edges_a_file, planted.n_edges)
        # ends are random numbers, which neither a dictionary nor compression makes shorter
        with parquet.ParquetWriter(folder / names[-1], schema, compression="none", use_dictionary=False) as writer:
            for first in range(begin, end, CHUNK):
                source, target = planted.edges(first, min(first + CHUNK, end))
                writer.write_table(pa.table({"source": source, "target": target}, schema=schema))
                check_interrupt()
                told("edges", min(first + CHUNK, end) / planted.n_edges)
    return names


def _write_nodes(planted: Planted, folder: Path, told: Callable[[str, float], object]) -> list[str]:
    """Write labels and features; return the names of the features' files."""
    n, given = planted.nodes, planted.features
    if isinstance(given, NormalFeatures):
        names, row = ["features"], 4 * given.columns
    elif isinstance(given, WordFeatures):
        names, row = ["features.data", "features.indices", "features.indptr"], 24 * given.draws
    else:
        names, row = [], 8
    block = max(1, min(n, _ROW_BYTES // row))
    streams = {name: (folder / f"{name}.npy").open("wb") for name in ["labels", *names]}
    shapes: dict[str, Any] = dict.fromkeys(streams, (n,))
    if isinstance(given, NormalFeatures):
        shapes["features"] = (n, given.columns)
    types = {"labels": "<i8", "features.indices": "<i4", "features.indptr": "<i8"}
    try:
        for name, stream in streams.items():
            _header(stream, types.get(name, "<f4"), shapes[name])
        entries = 0
        if "features.indptr" in streams:
            streams["features.indptr"].write(np.zeros(1, np.int64).data)
        for first in range(0, n, block):
            last = min(first + block, n)
            streams["labels"].write(planted.labels(first, last).data)
            rows = planted.feature_rows(first, last)
            if isinstance(rows, sparse.csr_array):
                streams["features.data"].write(rows.data.data)
                streams["features.indices"].write(rows.indices.astype(np.int32).data)
                streams["features.indptr"].write((rows.indptr[1:].astype(np.int64) + entries).data)
                entries += rows.nnz
            elif rows is not None:
                streams["features"].write(rows.data)
            check_interrupt()
            told("nodes", last / n)
        if entries:  # their number is known now; a header has room for it
            shapes |= {"features.data": (entries,), "features.indices": (entries,), "features.indptr": (n + 1,)}
            for name in names:
                streams[name].seek(0)
                _header(streams[name], types.get(name, "<f4"), shapes[name])
    finally:
        for stream in streams.values():
            stream.close()
    return [f"{name}.npy" for name in names]


def _header(stream: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write the header of an .npy file, always of 128 bytes for one or two dimensions."""
    about: Any = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    assert stream.tell() == 128
