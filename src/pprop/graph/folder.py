"""A graph as a folder of arrays that are mapped from the disk; `pprop.graph.folder_manifest` says what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import CapacityError, TakenError
from pprop._process import usable_memory
from pprop._validate import check_bool, counted, describe, reject
from pprop.graph.attributes import Features, freeze, seal
from pprop.graph.files import path_of, replaced_folder
from pprop.graph.folder_arrays import Digest, Texts, blocks, write_array, write_texts
from pprop.graph.folder_manifest import (
    FILES,
    check_target,
    file_state,
    manifest_fields,
    open_array,
    read_manifest,
    refuse,
    write_manifest,
)
from pprop.graph.graph import Graph

MOST_ENTRIES = 2**31 - 1  # of a matrix of scipy whose indices take four bytes


@final
@dataclass(frozen=True, eq=False)
class GraphFolder:
    """A graph whose arrays stay on the disk until they are read; `GraphFolder.open` makes one.

    Attributes
    ----------
    path : Path
    n_nodes, n_entries, n_edges, n_classes : int
    directed : bool
    indptr, indices : arrays of shape (n + 1,) and (entries,)
        int64 and int32, mapped. Row i lists the nodes from which node i receives, sorted.
    weights : array of shape (entries,) or None
        float32 or float64, mapped; None when every weight is one.
    features : array of shape (n, ...) or CSR array of shape (n, f), or None
        Mapped.
    labels : array of shape (n,) or None
        Class index per node in int64, -1 where unknown, mapped.
    ids : array of shape (n,), Texts or None
        Integers, mapped; or texts, of which ``folder.ids[rows]`` gives an array.
    class_names, feature_names : tuple of str, or None
    name : str or None
    fingerprint : str
        32 hex digits of the content, made when the folder was written. It is no `Graph.fingerprint`, which for the same
        content is another, since it is not made from blocks.

    Examples
    --------
    >>> import tempfile, pprop, scipy.sparse as sp
    >>> place = tempfile.TemporaryDirectory()
    >>> ring = sp.csr_array([[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [1, 0, 0, 1, 0]])
    >>> folder = pprop.write_folder(pprop.Graph.from_scipy(ring, ids=list("abcde")), Path(place.name, "ring"))
    >>> folder
    GraphFolder(5 nodes, 5 edges, undirected)
    >>> folder.indices[folder.indptr[0] : folder.indptr[1]].tolist(), folder.ids[:2]
    ([1, 4], array(['a', 'b'], dtype='<U1'))
    >>> folder.graph()
    Graph(5 nodes, 5 edges, undirected)
    >>> place.cleanup()
    """

    path: Path
    directed: bool
    n_edges: int
    fingerprint: str
    class_names: tuple[str, ...] | None
    name: str | None
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)
    _seen: Mapping[str, tuple[int, ...]] = field(repr=False)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> GraphFolder:
        """Open a folder: its manifest is read, and the types and sizes of all files are compared with it.

        Raises
        ------
        FormatError
            It is no graph folder, or one of another version, half built, cut short or changed.
        """
        place = path_of(path, "path", "GraphFolder.open")
        manifest = read_manifest(place)
        arrays = {name: open_array(place, name, about) for name, about in manifest["arrays"].items()}
        names = manifest["class_names"]
        return cls(
            place,
            manifest["directed"],
            manifest["edges"],
            manifest["fingerprint"],
            None if names is None else tuple(names),
            manifest["name"],
            arrays,
            manifest,
            {name: file_state(place / f"{name}.npy") for name in arrays},
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored entries (an undirected edge has two)."""
        return len(self.indices)

    @property
    def n_classes(self) -> int:
        """Number of classes: of the names where there are any, else one more than the largest label."""
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.labels is None else int(self.labels.max(initial=-1)) + 1

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where each row begins and ends, shape (n + 1,)."""
        return self.arrays["indptr"]

    @property
    def indices(self) -> NDArray[np.int32]:
        """The columns of the entries, shape (entries,)."""
        return self.arrays["indices"]

    @property
    def weights(self) -> NDArray[Any] | None:
        """The weights of the entries, float32 or float64, shape (entries,); None where all are one."""
        return self.arrays.get("weights")

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The class of each node, -1 where unknown, shape (n,)."""
        return self.arrays.get("labels")

    @property
    def features(self) -> Features | None:
        """The features, shape (n, ...): a mapped array, or a CSR array of mapped ones. A new object at every call."""
        if "features.data" not in self.arrays:
            return self.arrays.get("features")
        data, indices, indptr = (self.arrays[f"features.{part}"] for part in ("data", "indices", "indptr"))
        if len(data) > MOST_ENTRIES:
            self._refuse_scipy("features", len(data))
        shape = (self.n_nodes, self.manifest["feature_columns"])
        matrix = sparse.csr_array((freeze(data), freeze(indices), seal(indptr.astype(np.int32))), shape=shape)
        matrix.has_canonical_format = True
        return matrix

    @property
    def ids(self) -> NDArray[Any] | Texts | None:
        """The users' names of the nodes, shape (n,)."""
        return self._texts("ids") if "ids.offsets" in self.arrays else self.arrays.get("ids")

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        return tuple(self._texts("feature_names").array().tolist()) if "feature_names.offsets" in self.arrays else None

    def _texts(self, name: str) -> Texts:
        return Texts(self.arrays[f"{name}.offsets"], self.arrays[f"{name}.bytes"])

    def __repr__(self) -> str:
        parts = [
            counted(self.n_nodes, "node"),
            counted(self.n_edges, "edge"),
            "directed" if self.directed else "undirected",
        ]
        parts += ["weighted"] if self.weights is not None else []
        parts += (
            [f"{self.manifest['feature_columns']} features"] if self.manifest["feature_columns"] is not None else []
        )
        parts += (
            [f"{len(self.class_names)} classes"] if self.class_names is not None and self.labels is not None else []
        )
        return f"GraphFolder({', '.join(parts)})"

    def check_unchanged(self) -> None:
        """Raise FormatError if a file is not the one that was opened, or was written to since. A replaced folder is no change.

        A folder that a new one takes the place of keeps its files for as long as it is open.
        """
        for name, seen in self._seen.items():
            file = self.path / f"{name}.npy"
            now = file_state(file) if file.exists() else ()
            if now and now[0] == seen[0] and now != seen:
                refuse(self.path, f"with {file.name!r}, which has changed since it was opened,", "Open it again.")

    def verify(self) -> None:
        """Read everything once, and raise FormatError where an array is not the one that was written."""
        self.check_unchanged()
        for name, array in self.arrays.items():
            digest = Digest()
            for rows in blocks(len(array), array[:1].nbytes):
                digest.update(array[rows])
            if digest.hexdigest() != self.manifest["arrays"][name]["digest"]:
                refuse(self.path, f"with other numbers in '{name}.npy' than were written", "Build it again.")

    def graph(self) -> Graph:
        """Return a Graph on the mapped arrays; only weights in float32 and ids in text are copied into memory.

        All entries are read once, to know that no index is out of range.

        Raises
        ------
        CapacityError
            The copies do not fit into memory, or the entries are more than scipy's matrices take without a copy of them.
        """
        self.check_unchanged()
        self._check_texts()
        if self.n_entries > MOST_ENTRIES:
            self._refuse_scipy("entries", self.n_entries)
        ids, weights = self.ids, self.weights
        copies = (8 * self.n_entries if weights is not None and weights.dtype != np.float64 else 0) + (
            ids.array_bytes if isinstance(ids, Texts) else 0
        )
        memory = usable_memory()
        if memory is not None and copies > memory:
            raise CapacityError(
                f"A Graph of {str(self.path)!r} takes {copies / 1e9:.1f} GB for weights and ids, and this process may use "
                f"{memory / 1e9:.1f} GB. Use the arrays of the GraphFolder."
            )
        self._check_entries()
        held = self.features
        given, manifest = manifest_fields(self.manifest), self.manifest
        csr = freeze(self.indptr), freeze(self.indices), None if weights is None else freeze(_wide(weights))
        return Graph._of_parts(  # pyright: ignore[reportPrivateUsage]
            csr,
            self.directed,
            features=freeze(held) if isinstance(held, np.ndarray) else held,
            labels=None if self.labels is None else freeze(self.labels),
            ids=seal(ids.array()) if isinstance(ids, Texts) else None if ids is None else freeze(ids),
            class_names=self.class_names,
            feature_names=self.feature_names,
            name=manifest["name"],
            **given,
        )

    def _refuse_scipy(self, what: str, count: int) -> NoReturn:
        got = f"{count:,} {what if what == 'entries' else 'numbers of features'}"
        raise CapacityError(
            f"A Graph of {str(self.path)!r} has {got}, and scipy takes at most {MOST_ENTRIES:,} without a copy of "
            f"{8 * count / 1e9:.1f} GB. Use the arrays of the GraphFolder."
        )

    def _check_texts(self) -> None:
        """Refuse offsets that no program of pprop writes, and that would make texts of any length."""
        for name in ("ids", "feature_names"):
            if f"{name}.offsets" in self.arrays and not self._texts(name).sound:
                refuse(self.path, f"with '{name}.offsets.npy' out of range", "Build it again.")

    def _check_entries(self) -> None:
        """Refuse entries that no program of pprop writes, and that would send a loop out of its arrays."""
        for prefix, columns in (("", self.n_nodes), ("features.", self.manifest["feature_columns"])):
            if f"{prefix}indices" not in self.arrays:
                continue
            indptr, indices = self.arrays[f"{prefix}indptr"], self.arrays[f"{prefix}indices"]
            sound = indptr[0] == 0 and indptr[-1] == len(indices)
            sound = sound and all(
                (np.diff(indptr[one.start : one.stop + 1]) >= 0).all() for one in blocks(len(indptr) - 1, 8)
            )
            for one in blocks(len(indices) if sound else 0, 4):
                part = indices[one]
                sound = sound and int(part.min()) >= 0 and int(part.max()) < columns
            if not sound:
                refuse(self.path, f"with '{prefix}indices.npy' out of range", "Build it again.")
        labels = self.labels
        high = self.n_nodes if self.class_names is None else len(self.class_names)
        if labels is not None and (int(labels.min()) < -1 or int(labels.max()) >= high):
            refuse(self.path, "with 'labels.npy' out of range", "Build it again.")


def _wide(weights: NDArray[Any]) -> NDArray[np.float64]:
    return weights if weights.dtype == np.float64 else seal(weights.astype(np.float64))


def write_folder(graph: Graph, path: str | PathLike[str], *, replace: bool = False) -> GraphFolder:
    """Write a graph as a folder, all at once or not at all, and open it.

    Parameters
    ----------
    graph
        Any but one whose features are scaled: a model scales them itself.
    path
        The folder to be made.
    replace
        Whether a graph folder that is there may be replaced.

    Examples
    --------
    >>> import tempfile, scipy.sparse as sp
    >>> place = tempfile.TemporaryDirectory()
    >>> graph = Graph.from_scipy(sp.csr_array([[0, 2.0], [2.0, 0]]), labels=[0, 1])
    >>> write_folder(graph, Path(place.name, "pair")).graph() == graph
    True
    >>> place.cleanup()
    """
    if not isinstance(graph, Graph):
        reject("graph", "write_folder", "a Graph", describe(graph))
    if graph.scaling is not None:
        reject("graph", "write_folder", "a graph before scaled()", "one with scaled features")
    target = check_target(path, "path", "write_folder", replace=check_bool(replace, "replace", "write_folder"))
    try:
        with replaced_folder(target, replace=FILES if replace else None) as new:
            new.mkdir()
            arrays = _write_arrays(graph, new)
            width = None if graph.feature_shape is None else graph.feature_shape[1]
            write_manifest(
                new,
                arrays,
                directed=graph.directed,
                edges=graph.n_edges,
                feature_columns=width,
                class_names=graph.class_names,
                name=graph.name,
                recommended=graph.recommended,
                recipe=graph.recipe,
            )
    except TakenError:
        raise
    except OSError as error:
        got = f"{str(path)!r} ({error.strerror or error})"
        reject("path", "write_folder", "a path that can be written", got)
    return GraphFolder.open(target)


def _write_arrays(graph: Graph, folder: Path) -> dict[str, Any]:
    given: dict[str, NDArray[Any] | None] = {"indptr": graph.indptr, "indices": graph.indices, "labels": graph.labels}
    given["weights"] = None if graph.weights is None else narrowed(graph.weights)
    features = graph.features
    if isinstance(features, sparse.csr_array):
        parts = (("indptr", np.int64), ("indices", np.int32), ("data", features.dtype))
        given |= {f"features.{part}": getattr(features, part).astype(dtype, copy=False) for part, dtype in parts}
    else:
        given["features"] = features
    text: dict[str, Any] = {}
    if graph.ids is not None and graph.ids.dtype.kind == "U":
        text["ids"] = graph.ids
    elif graph.ids is not None:
        given["ids"] = graph.ids.astype(np.uint64 if graph.ids.dtype == np.uint64 else np.int64)
    if graph.feature_names is not None:
        text["feature_names"] = graph.feature_names
    arrays = {name: write_array(folder / f"{name}.npy", array) for name, array in given.items() if array is not None}
    for name, texts in text.items():
        arrays |= write_texts(folder, name, texts)
    return arrays


def narrowed(weights: NDArray[np.float64]) -> NDArray[Any]:
    """Return weights in float32 where that loses nothing.

    >>> narrowed(np.array([0.5])).dtype, narrowed(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore"):
        narrow = weights.astype(np.float32)
    return narrow if np.array_equal(narrow, weights) else weights
