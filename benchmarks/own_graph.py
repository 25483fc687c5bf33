"""Claim: a table of 10 million edges becomes a Graph on two cores, ids kept.

- with integer ids in 6 s and 1.5 GB at most, from CSV and from Parquet;
- with ids of text in 12 s, from CSV and from Parquet;
- from a pandas frame with integer ids in 4 s.

    python benchmarks/own_graph.py                  # two cores, 3 GB, two minutes
    python benchmarks/own_graph.py --edges 1e6      # a try

The files are made in a temporary folder, with a tenth as many nodes as edges. Each case runs in a process of its own, with
the libraries loaded and the file in the system's cache; its peak is the largest resident size of the whole process, that of
pandas with its frame included. One JSON object a line on standard output, a case each, and one with the claims at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import describe_machine, warn_if_busy

# Seconds and bytes at most, at 10 million edges; None where nothing is claimed.
CLAIMS: dict[str, tuple[float, float | None]] = {
    "integers.csv": (6, 1.5e9),
    "integers.parquet": (6, 1.5e9),
    "text.csv": (12, None),
    "text.parquet": (12, None),
    "pandas": (4, None),
}
CLAIMED_EDGES = 10_000_000
SEED = 19


def main() -> None:
    """Make the files, run each case in a process of its own, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=CLAIMED_EDGES, help="rows of each table")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads and cores")
    parser.add_argument("--cases", nargs="*", default=list(CLAIMS), choices=list(CLAIMS))
    parser.add_argument("--case", nargs=2, metavar=("CASE", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_case(arguments.case[0], Path(arguments.case[1]))))
        return
    warn_if_busy()
    edges = int(arguments.edges)
    kept: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder), edges)
        for case in arguments.cases:
            found = measure(case, folder, arguments.threads)
            seconds, peak = CLAIMS[case]
            if edges == CLAIMED_EDGES:
                kept[case] = found["seconds"] <= seconds and (peak is None or found["peak_bytes"] <= peak)
            print(json.dumps({"case": case, "edges": edges, **found}), flush=True)
    print(json.dumps({"edges": edges, "claims_kept": kept, "machine": describe_machine("cpu")}))


def make_files(folder: Path, edges: int) -> None:
    """Write the same edges with integer ids and with ids of text, as CSV and as Parquet."""
    import numpy as np

    from pprop.graph.tables.arrow import arrow_csv, pa, parquet, pc

    random = np.random.default_rng(SEED)
    names = random.permutation(edges)[: max(edges // 10, 2)]
    ends: dict[str, Any] = {
        column: pa.array(names[random.integers(0, len(names), edges)]) for column in ("source", "target")
    }
    words: dict[str, Any] = {
        column: pc.binary_join_element_wise("user", pc.cast(end, pa.string()), "_") for column, end in ends.items()
    }
    for name, columns in {"integers": ends, "text": words}.items():
        arrow_csv.write_csv(pa.table(columns), folder / f"{name}.csv")
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def measure(case: str, folder: str, threads: int) -> dict[str, Any]:
    """Run one case in a process of its own, on the first cores that this one may use."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    command = [sys.executable, __file__, "--case", case, folder]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )
    return json.loads(done.stdout)


def run_case(case: str, folder: Path) -> dict[str, Any]:
    """Make the Graph of one case; return its size, the seconds and the peak of this process."""
    from pprop import Graph, read_edges

    Graph.from_edges([0], [1])  # everything is loaded
    if case == "pandas":
        import pandas as pd

        frame = pd.read_parquet(folder / "integers.parquet")
        start = time.perf_counter()
        graph = Graph.from_pandas(frame)
    else:
        (folder / case).read_bytes()  # into the cache
        start = time.perf_counter()
        graph = read_edges(folder / case)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"seconds": round(seconds, 2), "peak_bytes": peak, "nodes": graph.n_nodes, "entries": graph.n_entries}


if __name__ == "__main__":
    main()
