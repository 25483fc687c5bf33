"""What power steps over a stored graph hold in memory, read from disk and take, computed before they begin.

Beside two states of a panel of columns, memory holds the degree scales, two buffers and, as far as it goes, the first
rows of H and then the first entries; the rest of both is read again in every step, once for every panel. A byte kept saves
a byte read per step, whichever it is, so the one choice is the width of a panel. A gather costs about as much for 16
columns of float32, which are one cache line, as for one: so panels are multiples of 16 columns where those fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from pprop._errors import CapacityError
from pprop._validate import counted

LINE = 16  # columns of float32 in a cache line
_PROCESS = 400 * 2**20  # bytes that Python, its packages and compiled kernels take by themselves
_SORTED = 24 * 2**20  # bytes in which a core sorts entries, where states are large
# Rough seconds of an entry's gathers on one core, for the first and every further cache line of a row.
_FIRST_LINE, _NEXT_LINE = 22e-9, 10e-9


@final
@dataclass(frozen=True)
class Sizes:
    """What a plan is made for.

    Attributes
    ----------
    nodes, entries, columns, steps
        n, entries of the graph, c and K.
    entry_bytes, pointer_bytes, value_bytes
        Bytes on the disk of an entry (4, with weights in float32 8), of a row pointer and of a prediction; 0 for what is
        in memory.
    scales
        Arrays of degree scales, 1 or 2.
    to_file
        Whether Z is written to a file.
    weighted
        Whether entries have weights.
    """

    nodes: int
    entries: int
    columns: int
    steps: int
    entry_bytes: int = 4
    pointer_bytes: int = 8
    value_bytes: int = 4
    scales: int = 1
    to_file: bool = True
    weighted: bool = False

    @property
    def kept_entry_bytes(self) -> float:
        """What an entry that is kept takes in memory, with its share of the row pointers."""
        return self.entry_bytes + 8 * self.nodes / max(self.entries, 1)


@final
@dataclass(frozen=True)
class StepsPlan:
    """What the steps hold, read, write and take. `print` it for a summary.

    Attributes
    ----------
    sizes
        Of the graph and the predictions.
    memory
        Bytes that may be used.
    panels
        Columns of each panel.
    state_bytes, fixed_bytes
        Two states of the widest panel; scales, buffers, the process itself, and Z where several panels make one array.
    kept_rows, kept_entries
        Rows of H and entries that stay in memory between steps.
    read_bytes
        What a step of the widest panel reads from disk.
    total_read_bytes
        What all steps of all panels read, with the pass for the degrees.
    disk_speed
        Bytes a second that were measured; None when nothing is read from a file.
    seconds
        A rough estimate: the larger of reading and gathering, for every step.
    threads
        Cores that gather; 0 for a GPU, whose memory is then meant: the graph and all of a panel stay there.
    """

    sizes: Sizes
    memory: int
    panels: tuple[int, ...]
    state_bytes: int
    fixed_bytes: int
    kept_rows: int
    kept_entries: int
    read_bytes: int
    total_read_bytes: int
    disk_speed: float | None
    seconds: float
    threads: int

    def __str__(self) -> str:
        sizes = self.sizes
        widths = counted(len(self.panels), "panel") + f" of at most {counted(max(self.panels), 'column')}"
        speed = "" if self.disk_speed is None else f" at {self.disk_speed / 1e9:.2f} GB/s"
        kept = [f"{self.kept_rows / sizes.nodes:.0%} of the predictions"] if sizes.value_bytes else []
        kept += [f"{self.kept_entries / max(sizes.entries, 1):.0%} of the entries"] if sizes.entry_bytes else []
        keep = f"{gib(self.kept_bytes)} to keep {' and '.join(kept)}" if kept else "nothing to keep of files"
        return "\n".join(
            (
                f"{counted(sizes.nodes, 'node')}, {counted(sizes.entries, 'entry', 'entries')}, "
                f"{counted(sizes.columns, 'column')}, {counted(sizes.steps, 'step')}: {widths}",
                f"memory: {gib(self.state_bytes)} for two states, {gib(self.fixed_bytes)} for scales and buffers, "
                f"{keep}; of {gib(self.memory)}",
                f"disk: {self.read_bytes / 1e9:.1f} GB a step, {self.total_read_bytes / 1e9:.1f} GB in all{speed}",
                f"time: about {self.seconds:.0f} s on {counted(self.threads, 'core') if self.threads else 'a GPU'}",
            )
        )

    @property
    def kept_bytes(self) -> int:
        """Bytes of the predictions and entries that stay in memory."""
        return 4 * self.kept_rows * max(self.panels) + round(self.kept_entries * self.sizes.kept_entry_bytes)


def make_plan(sizes: Sizes, memory: int, buffer_bytes: int, disk_speed: float | None, threads: int) -> StepsPlan:
    """Return the plan that takes the least time within a number of bytes, or refuse.

    Parameters
    ----------
    sizes
        Of the graph and the predictions.
    memory
        Bytes that the process may hold.
    buffer_bytes
        Of the two buffers that blocks are read into.
    disk_speed
        Bytes a second; None when nothing is read from a file.
    threads
        Cores that gather.

    Examples
    --------
    >>> papers = Sizes(nodes=111_000_000, entries=3_200_000_000, columns=16, steps=10)
    >>> plan = make_plan(papers, memory=20 * 2**30, buffer_bytes=2**28, disk_speed=1.6e9, threads=2)
    >>> plan.panels, round(plan.kept_rows / papers.nodes, 2), round(plan.read_bytes / 1e9, 1)
    ((16,), 0.84, 14.8)
    """
    fixed = (4 * sizes.scales + 1) * sizes.nodes + buffer_bytes + _PROCESS + threads * _SORTED
    whole, result = 8 * sizes.nodes * sizes.columns, 0 if sizes.to_file else 4 * sizes.nodes * sizes.columns
    widths = {sizes.columns, 1, 2, 4, 8, *range(LINE, sizes.columns, LINE)}
    plans = [
        _plan_of(sizes, memory, fixed + (0 if width == sizes.columns else result), width, disk_speed, threads)
        for width in sorted(widths, reverse=True)
        if width <= sizes.columns
    ]
    plans = [plan for plan in plans if plan.fixed_bytes + plan.state_bytes <= memory]
    if not plans:
        needed = min(whole, 8 * sizes.nodes + result)
        remedy = (
            " Give a file for the result, or more memory." if result and sizes.columns > 1 else " Give more memory."
        )
        raise CapacityError(
            f"Steps over {counted(sizes.nodes, 'node')} with {counted(sizes.columns, 'column')} need at least "
            f"{gib(needed)} for states{' and their result' if needed < whole and result else ''} and {gib(fixed)} "
            f"for scales and buffers, and may use {gib(memory)}.{remedy}"
        )
    return min(plans, key=lambda plan: plan.seconds)


def _plan_of(sizes: Sizes, memory: int, fixed: int, width: int, disk_speed: float | None, threads: int) -> StepsPlan:
    n, count = sizes.nodes, -(-sizes.columns // width)
    panels = tuple(min(width, sizes.columns - width * k) for k in range(count))
    spare = max(0, memory - fixed - 8 * n * width)
    kept_rows = min(n, spare // (4 * width)) if sizes.value_bytes else 0
    spare -= 4 * width * kept_rows
    kept_entries = min(sizes.entries, int(spare / sizes.kept_entry_bytes)) if sizes.entry_bytes else 0
    of_rows = sizes.columns * sizes.value_bytes  # rows of H are read whole, and some of their columns used
    of_graph = sizes.entries * sizes.entry_bytes + n * sizes.pointer_bytes
    kept_share = kept_entries / sizes.entries if sizes.entries else 1.0
    read = round((1 - kept_share) * of_graph) + (n - kept_rows) * of_rows
    before = of_graph + count * n * of_rows
    speed = np.inf if disk_speed is None else disk_speed
    seconds = before / speed
    for panel in panels:
        lines = -(-panel // LINE)
        gathers = sizes.entries * (_FIRST_LINE + (lines - 1) * _NEXT_LINE) / threads
        seconds += sizes.steps * max(gathers, read / speed)
    total = before + count * sizes.steps * read
    return StepsPlan(
        sizes,
        memory,
        panels,
        8 * n * width,
        fixed,
        kept_rows,
        kept_entries,
        read,
        total,
        disk_speed,
        float(seconds),
        threads,
    )


def gib(size: float) -> str:
    """Return a number of bytes in words.

    >>> gib(2**31)
    '2.00 GiB'
    """
    return f"{size / 2**30:.2f} GiB"
