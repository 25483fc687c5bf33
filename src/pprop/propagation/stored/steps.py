"""Power steps over a graph larger than memory: entries come from disk once a step, states in panels of columns.

A step needs the old state of any node at any time, so it is in memory, as the new one is; H and the entries are read in
order, a block of rows while the one before is summed. Whatever memory is left keeps the first blocks of both.

Every row is summed in one order, whatever the blocks, the panels and the threads, so the bits depend on none of them. They
are those of `propagate` up to rounding, since an added self-loop is summed last here and in its place there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._process import free_device_memory, remember_interrupts, usable_memory
from pprop._validate import check_choice, check_int, describe, reject
from pprop.graph.files import atomic_writer, check_disk
from pprop.kernels import choose_backend
from pprop.kernels.numba_cpu.large_steps import worker_threads
from pprop.propagation.stored.checkpoint import Checkpoint
from pprop.propagation.stored.file_rows import StoredRows
from pprop.propagation.stored.graph_rows import GraphRows, StoredGraph
from pprop.propagation.stored.panels import PanelSteps, StepsProgress, block_bytes
from pprop.propagation.stored.plan import Sizes, StepsPlan, make_plan
from pprop.settings import ALPHA, DEVICE, NORMALIZATION, SELF_LOOPS, STEPS

BLOCK_ENTRIES = 2**23  # of one read
_BLOCK_BYTES = 2**26  # of the predictions of one read, at most
_SHARE, _GPU_SHARE = 0.8, 0.9  # of the memory that the process may use, unless told, and of what a GPU has free


@final
@dataclass(frozen=True)
class FolderSteps:
    """What `propagate_folder` returns.

    Attributes
    ----------
    values
        Z, shape (n, c), float32; mapped from the file `out` where one was given.
    plan
        What was planned.
    seconds
        What the work took.
    bytes_read
        Bytes read from files.
    """

    values: NDArray[np.float32]
    plan: StepsPlan
    seconds: float
    bytes_read: int


def propagate_folder(
    graph: StoredGraph,
    predictions: NDArray[Any],
    alpha: float = ALPHA.default,
    steps: int = STEPS.default,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    memory: int | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[StepsProgress], object] | None = None,
    block_entries: int = BLOCK_ENTRIES,
    device: str = DEVICE.default,
) -> FolderSteps:
    """Spread predictions over a graph that does not fit into memory, by K power steps in float32.

    Z_0 = H, Z_k+1 = (1 - alpha) T Z_k + alpha H, as `propagate` with ``PowerIteration(steps)``.

    Parameters
    ----------
    graph
        A `GraphFolder`, a `Graph`, or any object with `indptr`, `indices`, `weights` and `directed`; n nodes. Arrays
        mapped from files are read from these, block by block.
    predictions
        H, shape (n, c), of a float type, in memory or mapped from a file. NaN and infinity are refused.
    alpha, steps, normalization, self_loops
        As in `propagate` and `transition_matrix`.
    memory
        Bytes that the process may hold. None: 80 % of what it may use. Predictions given in memory come on top.
    out
        Path of an ``.npy`` file for Z; needed where Z does not fit into memory. Of several panels it is written column by
        column (Fortran order).
    checkpoint
        Folder for the state after every step, written while the next one is made: called again after a kill with the same
        files and arguments (`steps`, `memory` and `out` may differ), the work goes on from there. It takes twice the size of
        Z on the disk, and is removed at the end. Only where all columns fit into one panel and all arrays are in files.
    progress
        Called now and then with a `StepsProgress`.
    block_entries
        Entries read at once.
    device
        ``"cpu"``; or ``"cuda"`` for a GPU that holds all entries and as many columns as fit beside them. `memory` is then
        the GPU's, of which 90 % of what is free are used unless told.

    Returns
    -------
    FolderSteps
        Z and what it cost.

    References
    ----------
    Gasteiger, Bojchevski and Günnemann, "Predict then Propagate", ICLR 2019, equation (4).

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> H = np.array([[1.0], [0.0], [0.0], [0.0], [0.0]], np.float32)
    >>> propagate_folder(path, H, alpha=0.2).values.round(3).ravel()
    array([0.471, 0.25 , 0.109, 0.051, 0.027], dtype=float32)
    """
    name = "propagate_folder"
    started = time.perf_counter()
    alpha, steps = ALPHA.check(alpha, name), STEPS.check(steps, name)
    normalization, self_loops = NORMALIZATION.check(normalization, name), SELF_LOOPS.check(self_loops, name)
    block_entries = check_int(block_entries, "block_entries", name, low=1)
    with ExitStack() as stack, remember_interrupts():
        rows = GraphRows(graph)
        stack.callback(rows.close)
        given = _stored_predictions(rows, predictions, name)
        stack.callback(given.close)
        starts = _block_starts(rows, given, block_entries)
        on_gpu = _on_gpu(device, name)
        plan = _plan(rows, given, starts, steps, normalization, memory, out, name, on_gpu=on_gpu)
        work_of = {"alpha": alpha, "normalization": normalization, "self_loops": self_loops}
        kept = None if checkpoint is None else _checkpoint(Path(checkpoint), rows, given, plan, work_of)
        work = _kind(on_gpu)(rows, given, starts, plan, alpha, progress or (lambda _: None), kept)
        if out is None:
            values = work.to_memory(normalization, self_loops)
        else:
            with atomic_writer(out, "out", name) as stream:
                work.to_file(normalization, self_loops, stream)
            values = np.load(Path(out), mmap_mode="r")
        if kept is not None:
            kept.remove()
        seconds = time.perf_counter() - started
        return FolderSteps(values, plan, seconds, rows.bytes_read + given.bytes_read)


def plan_steps(
    graph: StoredGraph,
    predictions: NDArray[Any],
    steps: int = STEPS.default,
    normalization: str = NORMALIZATION.default,
    *,
    memory: int | None = None,
    out: str | os.PathLike[str] | None = None,
    block_entries: int = BLOCK_ENTRIES,
    device: str = DEVICE.default,
) -> StepsPlan:
    """Return what `propagate_folder` would hold, read and take; the disk's speed is measured on 256 MiB.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> plan_steps(path, np.ones((5, 3), np.float32), memory=2**30).panels
    (3,)
    """
    name = "plan_steps"
    steps, normalization = STEPS.check(steps, name), NORMALIZATION.check(normalization, name)
    rows = GraphRows(graph)
    given = _stored_predictions(rows, predictions, name)
    try:
        starts = _block_starts(rows, given, check_int(block_entries, "block_entries", name, low=1))
        return _plan(rows, given, starts, steps, normalization, memory, out, name, on_gpu=_on_gpu(device, name))
    finally:
        rows.close()
        given.close()


def _on_gpu(device: object, name: str) -> bool:
    """Whether steps are to be made on a GPU, which is there."""
    if check_choice(device, "device", name, ["cpu", "cuda"]) == "cpu":
        return False
    from pprop.propagation.stored.device import DeviceSteps, gpu_found

    if DeviceSteps.place.type == "cuda" and not gpu_found():
        reject("device", name, "'cpu', as torch finds no GPU", "'cuda'")
    choose_backend("triton", DeviceSteps.place.type, name)
    return True


def _kind(on_gpu: bool) -> type[PanelSteps]:
    if not on_gpu:
        return PanelSteps
    from pprop.propagation.stored.device import DeviceSteps

    return DeviceSteps


def _stored_predictions(rows: GraphRows, predictions: NDArray[Any], name: str) -> StoredRows:
    n = rows.n_nodes
    expected = f"a float array of shape ({n}, c) with at least one column"
    if not isinstance(predictions, np.ndarray) or predictions.dtype.kind != "f" or predictions.ndim != 2:
        reject("predictions", name, expected, describe(predictions))
    if n == 0 or predictions.shape[0] != n or predictions.shape[1] == 0:
        reject("predictions", name, expected, describe(predictions))
    return StoredRows(predictions, "the predictions")


def _block_starts(rows: GraphRows, given: StoredRows, block_entries: int) -> list[int]:
    most_rows = max(1, min(block_entries, _BLOCK_BYTES // max(given.row_bytes, 1)))
    return rows.blocks(most_rows, block_entries)


def _plan(
    rows: GraphRows,
    given: StoredRows,
    starts: Sequence[int],
    steps: int,
    normalization: str,
    memory: int | None,
    out: str | os.PathLike[str] | None,
    name: str,
    *,
    on_gpu: bool,
) -> StepsPlan:
    if memory is None and on_gpu:
        from pprop.propagation.stored.device import DeviceSteps

        memory = int(_GPU_SHARE * (free_device_memory(DeviceSteps.place) or 2**62))
    elif memory is None:
        usable = usable_memory()
        if usable is None:
            reject("memory", name, "a number of bytes, as this system does not report its memory", "None")
        memory = int(_SHARE * usable)
    memory = check_int(memory, "memory", name, low=1)
    n, c = given.array.shape
    sizes = Sizes(
        n,
        rows.n_entries,
        c,
        steps,
        entry_bytes=rows.entry_bytes,
        pointer_bytes=8 if rows.indptr.in_file else 0,
        value_bytes=given.array.dtype.itemsize if given.in_file else 0,
        scales=2 if rows.directed and normalization == "sym" else 1,
        to_file=out is not None,
        weighted=rows.weights is not None,
    )
    if out is not None:
        check_disk(Path(out).parent, 4 * n * c)
    if on_gpu:
        from pprop.propagation.stored.device import make_device_plan

        return make_device_plan(sizes, memory, rows.indices.speed())
    return make_plan(sizes, memory, block_bytes(rows, given, starts), rows.indices.speed(), worker_threads())


def _checkpoint(folder: Path, rows: GraphRows, given: StoredRows, plan: StepsPlan, work: dict[str, Any]) -> Checkpoint:
    files = [*rows.identity, given.identity]
    if len(plan.panels) > 1 or None in files or plan.threads == 0:
        got = f"{len(plan.panels)} panels" if len(plan.panels) > 1 else "arrays in memory" if plan.threads else "a GPU"
        expected = "None, unless all columns fit into one panel of the CPU and all arrays are mapped from files"
        reject("checkpoint", "propagate_folder", expected, got)
    if not folder.parent.is_dir():
        reject("checkpoint", "propagate_folder", "a folder in an existing one", repr(str(folder)))
    kept = Checkpoint(folder, work | {"directed": rows.directed, "files": files})
    if kept.step >= plan.sizes.steps > 0:
        reject("checkpoint", "propagate_folder", "of fewer than 'steps' steps", f"a state after {kept.step}")
    check_disk(folder, plan.state_bytes)  # two files, as two states
    return kept
