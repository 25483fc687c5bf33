"""The files of one propagation, which all tasks map: the graph, H, the sums of rows and columns, and the states.

========================  =======================================================================================
``given.npy`` (n, c)      H
``row_sums.npy`` (n,)     sums of the rows of A with its self-loops; ``column_sums.npy`` of a directed graph
``loops.npy`` (n,)        1 where a self-loop of weight 1 is added
``state-k.npy`` (n, c)    y_k = S_c z_k after k steps, as in `pprop.kernels.numba_cpu.large_steps`
``values.npy`` (n, c)     Z
``progress.json``         of what this is, and how far it has come; written by the driver alone, after each step
========================  =======================================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop.graph.files import replaced_file
from pprop.graph.folder import GraphFolder
from pprop.graph.folder_arrays import HEADER
from pprop.kernels.numba_cpu.large_steps import TransitionRows
from pprop.spark.arrays import map_rows
from pprop.spark.ranges import Span

CHUNK_BYTES = 2**25  # of the rows that one piece of a state has: a row of a data frame, which Arrow must take


@final
@dataclass(frozen=True)
class Work:
    """What a task knows of a propagation.

    Attributes
    ----------
    folder, graph
        Where the files are, and the graph folder.
    n, c, dtype
        The shape of H, and "float32" or "float64".
    alpha, normalization, self_loops, directed
        As in `pprop.propagate`.
    tasks, stripes
        Shares of the entries of one step; and ranges of columns that are gathered from one after the other.
    """

    folder: Path
    graph: Path
    n: int
    c: int
    dtype: str
    alpha: float
    normalization: str
    self_loops: bool
    directed: bool
    tasks: int
    stripes: int

    @property
    def state_bytes(self) -> int:
        """Bytes of one state."""
        return self.n * self.c * np.dtype(self.dtype).itemsize

    @property
    def chunk_rows(self) -> int:
        """Rows of a state that are handled at once."""
        return max(CHUNK_BYTES // (self.c * np.dtype(self.dtype).itemsize), 1)

    @property
    def chunks(self) -> int:
        """Number of these."""
        return -(-self.n // self.chunk_rows)

    def rows_of(self, chunk: int) -> tuple[int, int]:
        """Return the first row of a chunk and that after its last."""
        return chunk * self.chunk_rows, min((chunk + 1) * self.chunk_rows, self.n)

    def path(self, name: str) -> Path:
        """Return the path of an array."""
        return self.folder / f"{name}.npy"

    def panel(self, name: str) -> NDArray[Any]:
        """Map a state, H or Z."""
        return map_rows(self.path(name), self.dtype, (self.n, self.c))

    def vector(self, name: str, dtype: Any = np.float64) -> NDArray[Any]:
        """Map a vector of length n."""
        return map_rows(self.path(name), dtype, (self.n,))

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the graph, mapped."""
        about = GraphFolder.open(self.graph).manifest["arrays"]
        names = [name for name in ("indptr", "indices", "weights") if name in about]
        return {
            name: map_rows(self.graph / f"{name}.npy", about[name]["dtype"], about[name]["shape"]) for name in names
        }

    def weights(self, begin: int, end: int) -> NDArray[Any]:
        """Return the weights of some entries, empty when all are one."""
        known = self.arrays.get("weights")
        return np.empty(0, self.dtype) if known is None else known[begin:end].astype(self.dtype)

    def scales(self, first: int, last: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
        """Return S_r, S_c and the added self-loops of some rows: T = S_r (A + loops) S_c."""
        loops = self.vector("loops", np.uint8)[first:last]
        sums = self.vector("row_sums")[first:last] + loops
        across = sums
        if self.directed and self.normalization != "row":
            across = self.vector("column_sums")[first:last] + loops
        power = 0.5 if self.normalization == "sym" else 1.0
        ones = np.ones(last - first, self.dtype)
        rows = ones if self.normalization == "col" else _inverse(sums, power).astype(self.dtype)
        columns = ones if self.normalization == "row" else _inverse(across, power).astype(self.dtype)
        return rows, columns, loops

    def transition(self, span: Span, here: NDArray[Any]) -> TransitionRows:
        """Return the rows of T of a span of whole rows; `here` are its rows of the state."""
        indptr = self.arrays["indptr"][span.first : span.last + 1] - span.begin
        rows, columns, loops = self.scales(span.first, span.last)
        indices = self.arrays["indices"][span.begin : span.end]
        weights = self.weights(span.begin, span.end)
        return TransitionRows.made(indptr, indices, weights, rows, columns, loops, here)


def _inverse(sums: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    root = np.sqrt(sums) if power == 0.5 else sums
    return np.divide(1.0, root, out=np.zeros(len(sums)), where=sums > 0)


@final
class Progress:
    """How far a propagation has come, in a file that is replaced after every stage and step."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self._file = folder / "progress.json"
        facts = json.loads(json.dumps(facts))
        self._known: dict[str, Any] = {"facts": facts, "stages": [], "step": 0, "report": {}}
        if not self._file.exists():
            return
        try:
            known = json.loads(self._file.read_text())
            before = known["facts"]
        except (ValueError, KeyError, OSError) as error:
            raise InputError(f"{str(self._file)!r} is damaged. Remove the folder, or give another one.") from error
        different = [name for name in facts if before.get(name) != facts[name]]
        if different:
            name = different[0]
            raise InputError(
                f"The folder {str(folder)!r} has a propagation with another {name} ({before.get(name)}, not {facts[name]}). "
                "Give another folder, or remove it."
            )
        self._known = known

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self._known["step"]

    @property
    def report(self) -> dict[str, Any]:
        """What was found so far."""
        return self._known["report"]

    def has(self, stage: str) -> bool:
        """Whether a stage is done."""
        return stage in self._known["stages"]

    def reached(self, *, stage: str | None = None, step: int | None = None, **report: Any) -> None:
        """Write down that a stage or a step is done, and what it found."""
        self._known["stages"] += [] if stage is None else [stage]
        self._known["step"] = self.step if step is None else step
        self._known["report"] |= report
        with replaced_file(self._file) as stream:
            stream.write(json.dumps(self._known, indent=1).encode())


def array_bytes(rows: int, columns: int, dtype: str) -> int:
    """Return the bytes of the file of an array."""
    return HEADER + rows * columns * np.dtype(dtype).itemsize
