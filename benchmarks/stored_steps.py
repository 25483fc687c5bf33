"""Power steps over a graph on disk: time an entry, memory held, and what the disk gave.

Claim: ten steps over the shape of papers100M (111 M nodes, 3.2 G entries, 16 columns) take at most 10 minutes and 20 GiB on two
cores, from disk.

    python benchmarks/stored_steps.py /disk/folder --nodes 111e6 --entries 3.2e9 --memory 20
    python benchmarks/stored_steps.py /disk/folder --nodes 3e6 --entries 90e6 --memory 1

Columns of the entries are uniform random numbers, the worst case for a cache, sorted in every row as in a graph folder; all
rows have as many, --entries over --nodes rounded. The folder gets
`indptr.npy`, `indices.npy` and `predictions.npy`, made once and removed by --remove.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pprop.scale import StepsProgress, propagate_folder

BLOCK = 2**24


def array(file: Path, shape: tuple[int, ...], dtype: Any, make: Callable[[int, int], Any]) -> Any:
    """Map a file, made in blocks of rows by make(first, last) if it is not there."""
    if not file.exists():
        part = file.with_suffix(".part")
        out = np.lib.format.open_memmap(part, "w+", dtype, shape)
        step = max(1, BLOCK // int(np.prod(shape[1:], dtype=np.int64)))
        for first in range(0, shape[0], step):
            out[first : first + step] = make(first, min(first + step, shape[0]))
        out.flush()
        del out
        part.rename(file)
    found = np.load(file, mmap_mode="r")
    if found.shape != shape:
        raise SystemExit(f"{file} is of another size, {found.shape}. Run with --remove first.")
    return found


def anonymous() -> int:
    """Return the bytes that this process itself holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Power steps over a graph on disk.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=float, default=3e6)
    parser.add_argument("--entries", type=float, default=90e6)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--memory", type=float, default=1.0, help="GiB")
    parser.add_argument("--out", type=Path, help="file for the result")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--remove", action="store_true", help="remove the files of an earlier run and end")
    given: Any = parser.parse_args()
    files: dict[str, Path] = {name: given.folder / f"{name}.npy" for name in ("indptr", "indices", "predictions")}
    if given.remove:
        for file in files.values():
            file.unlink(missing_ok=True)
        return
    given.folder.mkdir(exist_ok=True)
    n, rng = int(given.nodes), np.random.default_rng(0)
    degree = round(given.entries / given.nodes)
    m = n * degree

    def rows_of_entries(a: int, b: int) -> Any:
        return np.sort(rng.integers(0, n, (b - a, degree), dtype=np.int32), axis=1)

    graph: Any = SimpleNamespace(
        indptr=array(files["indptr"], (n + 1,), np.int64, lambda a, b: np.arange(a, b) * degree),
        indices=array(files["indices"], (n, degree), np.int32, rows_of_entries).reshape(-1),
        weights=None,
        directed=False,
    )
    shape = n, given.columns
    predictions = array(
        files["predictions"],
        shape,
        np.float32,
        lambda a, b: rng.standard_normal((b - a, given.columns), dtype=np.float32),
    )
    ends: dict[str, tuple[float, float]] = {}
    peak, over = [0], threading.Event()

    def told(at: StepsProgress) -> None:
        ends[at.stage] = time.perf_counter(), time.process_time()

    def watch() -> None:
        while not over.wait(0.05):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    memory = int(given.memory * 2**30)
    try:
        found = propagate_folder(graph, predictions, steps=given.steps, memory=memory, out=given.out, progress=told)
    finally:
        over.set()
        watcher.join()
    print(found.plan)
    marks = list(ends.values())
    # without the first step, in which kernels may be compiled
    each = np.diff(marks[1:], axis=0) if len(marks) > 2 else np.full((1, 2), np.nan)
    wall, processor = np.quantile(each, [0.2, 0.5, 0.8], axis=0).T
    figures = {
        "nodes": n,
        "entries": m,
        "columns": given.columns,
        "steps": given.steps,
        "seconds": found.seconds,
        "seconds_a_step_p20_p50_p80": wall.tolist(),
        "nanoseconds_an_entry_p20_p50_p80": (wall / m * 1e9).tolist(),
        "processor_nanoseconds_an_entry_p20_p50_p80": (processor / m * 1e9).tolist(),
        "peak_anonymous_gib": peak[0] / 2**30,
        "read_gb": found.bytes_read / 1e9,
        "disk_gb_a_second": None if found.plan.disk_speed is None else found.plan.disk_speed / 1e9,
    }
    print(json.dumps(figures, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
