"""The steps of a stored graph on a GPU that holds its entries: panels of H go there, and those of Z come back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._errors import CapacityError, Remedy
from pprop._process import check_interrupt
from pprop._validate import counted
from pprop.propagation.stored.file_rows import ahead
from pprop.propagation.stored.graph_rows import DegreeScales, largest_block
from pprop.propagation.stored.panels import PanelSteps, Reader, StepsProgress, Values
from pprop.propagation.stored.plan import Sizes, StepsPlan, gib
from pprop.settings import DEVICE

_PANEL = 32  # columns whose states the kernels hold at a time
_NODE_BYTES = 44  # of a node while nodes are numbered anew: offsets, numbers, their order, scales
_GATHER = 3e-11  # rough seconds of an entry and 16 columns
_BUS = 5e9  # rough bytes a second to the device and back


def make_device_plan(sizes: Sizes, memory: int, disk_speed: float | None) -> StepsPlan:
    """Return the plan with the fewest panels of columns that a GPU has the memory for, or refuse.

    Parameters
    ----------
    sizes
        Of the graph and the predictions.
    memory
        Bytes of the device that may be used.
    disk_speed
        Bytes a second; None when nothing is read from a file.

    Examples
    --------
    >>> papers = Sizes(nodes=111_000_000, entries=3_200_000_000, columns=172, steps=10)
    >>> make_device_plan(papers, memory=130 * 2**30, disk_speed=2e9).panels
    (172,)
    >>> make_device_plan(papers, memory=60 * 2**30, disk_speed=2e9).panels
    (32, 32, 32, 32, 32, 12)
    """
    n, weighted = sizes.nodes, sizes.weighted
    graph = (8 if weighted else 4) * sizes.entries
    fixed = graph + (13 + 4 * sizes.scales) * n
    numbering = 2 * graph + _NODE_BYTES * n  # before there are states
    widths = [sizes.columns, *range(_PANEL * ((sizes.columns - 1) // _PANEL), 0, -_PANEL), 16, 8, 4, 2, 1]
    fitting = [w for w in widths if w <= sizes.columns and fixed + _states(n, w) <= memory]
    if not fitting or numbering > memory:
        needed = max(fixed + _states(n, 1), numbering)
        raise CapacityError(
            f"Steps over {counted(n, 'node')} and {counted(sizes.entries, 'entry', 'entries')} need at least {gib(needed)} of "
            f"the GPU's memory, and may use {gib(memory)}.",
            remedies=[Remedy("The CPU reads the entries from the disk.", settings={"device": DEVICE.default})],
        )
    width = fitting[0]
    count = -(-sizes.columns // width)
    panels = tuple(min(width, sizes.columns - width * k) for k in range(count))
    rows = n * sizes.columns * sizes.value_bytes  # read whole for every panel
    read = 2 * (sizes.entries * sizes.entry_bytes + n * sizes.pointer_bytes) + count * rows
    seconds = 0.0 if disk_speed is None else read / disk_speed
    seconds += (graph + 8 * n * sizes.columns) / _BUS
    seconds += sizes.steps * sizes.entries * _GATHER * -(-sizes.columns // 16)
    return StepsPlan(sizes, memory, panels, _states(n, width), fixed, n, sizes.entries, 0, read, disk_speed, seconds, 0)


def gpu_found() -> bool:
    """Whether torch finds a GPU."""
    return torch.cuda.is_available()


def _states(nodes: int, columns: int) -> int:
    """Bytes of a panel of H, whose place Z takes, and of two states of the columns that are computed at a time."""
    return 4 * nodes * (columns + 2 * min(columns, _PANEL))


@final
class DeviceSteps(PanelSteps):
    """K power steps over a graph that a GPU holds; see `propagate_folder`. Where triton is interpreted, the GPU is the CPU."""

    apart = True  # the result is not one of the states
    place = torch.device("cuda")

    def _run(self, normalization: str, self_loops: bool, put: Callable[[Values, int, int], None] | None) -> Values:
        from pprop.kernels.triton_gpu.large_steps import run_steps
        from pprop.kernels.triton_gpu.launch import LargeTuning

        assert put is not None
        n, plan, tuning = self._rows.n_nodes, self._plan, LargeTuning()
        side = self._uploaded(self._scales(normalization, self_loops), tuning)
        shares = torch.tensor([self._alpha, 1.0])
        shares[1] -= shares[0]
        reader, begin = Reader(self._rows, self._given, self._starts, plan), 0
        with ThreadPoolExecutor(1, "pprop-read") as reading:
            for number, width in enumerate(plan.panels):
                name = f"panel {number + 1} of {len(plan.panels)}, " if len(plan.panels) > 1 else ""
                reader.choose(begin, begin + width)
                values = torch.empty(n, width, device=self.place)
                for k, own in enumerate(ahead(reader.own, range(len(reader.spans)), reading)):
                    first, last = reader.spans[k]
                    self._check_given(own, first, begin)
                    values[first:last] = torch.from_numpy(own)
                    check_interrupt()
                self._told(StepsProgress(f"{name}{plan.sizes.steps} steps", 0.0))
                if plan.sizes.steps:
                    run_steps(side, shares.to(self.place), plan.sizes.steps, values, tuning, out=values)
                for first, last in reader.spans:
                    part = values[first:last].cpu().numpy()
                    self._check_result(part)
                    put(part, first, begin)
                    check_interrupt()
                    self._told(StepsProgress(f"{name}{plan.sizes.steps} steps", last / n))
                begin += width
        return np.empty((0, 0), np.float32)

    def _uploaded(self, scales: DegreeScales, tuning: Any) -> Any:
        """Return the matrix on the device, its nodes numbered for the kernels."""
        from pprop.kernels.triton_gpu.large_steps import Renumbered

        rows = self._rows
        indices = torch.empty(rows.n_entries, dtype=torch.int32, device=self.place)
        weights = None if rows.weights is None else torch.empty(rows.n_entries, device=self.place)
        buffers = [rows.buffers(*largest_block(rows, self._starts)) for _ in range(2)]
        spans, at = list(zip(self._starts[:-1], self._starts[1:], strict=True)), 0
        with ThreadPoolExecutor(1, "pprop-read") as pool:
            for block in ahead(lambda span, slot: rows.read(*span, buffers[slot]), spans, pool):
                to = slice(at, at + len(block.indices))
                indices[to] = torch.from_numpy(block.indices)
                if weights is not None:
                    weights[to] = torch.from_numpy(block.weights)
                at = to.stop
                check_interrupt()
                self._told(StepsProgress("to the GPU", block.last / rows.n_nodes))
        one, other = (self._all(scale) for scale in (scales.rows, scales.columns))
        pair = (one, one if scales.rows is scales.columns else other)
        indptr = torch.from_numpy(np.array(rows.indptr.array)).to(self.place)
        loops = torch.from_numpy(scales.loops).to(self.place)
        return Renumbered(indptr, indices, weights, pair, tuning, loops)

    def _all(self, scale: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(scale).to(self.place).expand(self._rows.n_nodes).contiguous()
