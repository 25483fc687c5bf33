"""Claim: `build_graph` makes a folder of Parquet edges with integer ids at 3 M edges a second on two cores, within 8 GiB.

    python benchmarks/build.py                                      # 50 M edges
    python benchmarks/build.py --edges 1.6e9 --nodes 111059956      # the shape of papers100M: 60 GB of disk
    python benchmarks/build.py --first-appearance                   # nodes numbered by first appearance

Sources are uniform and targets skewed (n u^2), so that one bucket has many times the entries of another. Memory is
RssAnon, what the process itself holds, read every 20 ms. Disk is what the files of the build and its edges take, read every half second.
`disk_mb_a_second` is what a plain write and sync of 1 GB to the same disk reaches just before. The folder is removed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import pprop
from pprop.graph.building.matrix import MatrixBuild
from pprop.graph.building.stages import Build
from pprop.graph.tables.arrow import pa, parquet

PART = 10**6  # rows of a row group


def main() -> None:
    """Generate edges, build the folder, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=5e7)
    parser.add_argument("--nodes", type=float, default=None, help="default: an eighth of the edges")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB")
    parser.add_argument("--first-appearance", action="store_true")
    parser.add_argument("--folder", default=None, help="where there is room")
    arguments = parser.parse_args()
    edges = int(arguments.edges)
    nodes = int(arguments.nodes or edges / 8)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        file = Path(place, "edges.parquet")
        generate(file, edges, nodes)
        report = {"benchmark": "build", "edges": edges, "nodes": nodes, "memory_gib": arguments.memory}
        report |= {"first_appearance": arguments.first_appearance, "edge_file_gb": file.stat().st_size / 1e9}
        report["disk_mb_a_second"] = disk_speed(Path(place))
        report |= measure(file, Path(place, "graph"), None if arguments.first_appearance else nodes, arguments.memory)
    print(json.dumps(report))


def generate(file: Path, edges: int, nodes: int) -> None:
    """Write random edges, some at a time."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, edges, PART):
            size = min(PART, edges - start)
            target = (nodes * rng.random(size) ** 2).astype(np.int64)
            writer.write_table(pa.table({"source": rng.integers(0, nodes, size), "target": target}))


def disk_speed(folder: Path) -> float:
    """Return MB a second of a plain write and sync."""
    block, file = os.urandom(2**24), folder / "speed"
    begin = time.perf_counter()
    with file.open("wb") as stream:
        for _ in range(64):
            stream.write(block)
        os.fsync(stream.fileno())
    seconds = time.perf_counter() - begin
    file.unlink()
    return 64 * len(block) / 1e6 / seconds


def measure(file: Path, out: Path, nodes: int | None, memory: float) -> dict[str, Any]:
    """Return speed, memory and disk of one build, and the time of its stages."""
    peak = {"memory": 0, "disk": 0}
    over = threading.Event()
    stages: dict[str, float] = {}

    def watch() -> None:
        turn = 0
        while not over.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            held = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            peak["memory"] = max(peak["memory"], 1024 * held)
            turn += 1
            if turn % 25 == 0:
                peak["disk"] = max(peak["disk"], used(file.parent))

    for owner, method in ((Build, "_numbers"), (MatrixBuild, "scatter"), (MatrixBuild, "sort")):
        _time(owner, method, stages)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    begin, cpu = time.perf_counter(), time.process_time()
    folder = pprop.build_graph(
        file, out, nodes=nodes, memory=memory, progress=True, say=lambda text: print(text, file=sys.stderr)
    )
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    over.set()
    thread.join()
    edges = parquet.read_metadata(file).num_rows
    result: dict[str, Any] = {
        "entries": folder.n_entries,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "stages": stages,
        "m_edges_a_second": edges / 1e6 / seconds,
        "peak_rss_anon_gib": peak["memory"] / 2**30,
        "peak_disk_gb": peak["disk"] / 1e9,
        "folder_gb": used(out) / 1e9,
        "fingerprint": folder.fingerprint,
    }
    shutil.rmtree(out)
    return result


def used(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # removed in the meantime
            continue
    return total


def _time(owner: Any, method: str, stages: dict[str, float]) -> None:
    true = getattr(owner, method)

    def timed(*arguments: Any) -> Any:
        begin = time.perf_counter()
        try:
            return true(*arguments)
        finally:
            stages[method.strip("_")] = time.perf_counter() - begin

    setattr(owner, method, timed)


if __name__ == "__main__":
    main()
