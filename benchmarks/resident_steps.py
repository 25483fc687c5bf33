"""Claim: with the shape of papers100M on one H200, ten steps take under 1 s for 16 columns and under 9 s for 172.

    python benchmarks/resident_steps.py                                    # 111 M nodes, 3.2 G entries
    python benchmarks/resident_steps.py --nodes 3e6 --entries 90e6         # smaller
    python benchmarks/resident_steps.py --skewed                           # columns n u^2 instead of uniform ones

The graph is made on the GPU: as many entries in every row up to one, columns at random, uniform ones being the worst case for
a cache. H lies on the GPU, float32; Z takes its place, 32 columns at a time. Times are medians of calls between two events of
the device, numbering of the nodes apart. `floor_seconds` is what one row of the state an entry and one read of the entries
take at the speed of a plain copy on the same device. Ten rows of Z are compared with sums in float64 over one step.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch
from torch import Tensor

from _large import copy_bandwidth, milliseconds
from pprop.kernels.triton_gpu.large_steps import PANEL, Renumbered, run_steps
from pprop.kernels.triton_gpu.launch import LargeTuning

BLOCK = 2**27
ALPHA = 0.1


def main() -> None:
    """Make the graph, time the steps, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=float, default=111_059_956)
    parser.add_argument("--entries", type=float, default=3.2e9)
    parser.add_argument("--columns", type=int, nargs="*", default=[16, 172])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skewed", action="store_true")
    parser.add_argument("--tune", default="", help="launch shapes, such as short_rows=32,short_unroll=8")
    given = parser.parse_args()
    n, m = int(given.nodes), int(given.entries)
    tuning = LargeTuning(
        **{name: int(value) for name, value in (one.split("=") for one in given.tune.split(",") if one)}
    )
    indptr, indices = graph(n, m, skewed=given.skewed)
    loops = torch.ones(n, dtype=torch.uint8, device="cuda")
    scale = (indptr.diff() + 1).double().rsqrt().float()
    begin = time.perf_counter()
    side = Renumbered(indptr, indices, None, (scale, scale), tuning, loops)
    torch.cuda.synchronize()
    report: dict[str, Any] = {"benchmark": "resident_steps", "nodes": n, "entries": m, "skewed": given.skewed}
    report |= {
        "steps": given.steps,
        "device": torch.cuda.get_device_name(),
        "numbering_seconds": time.perf_counter() - begin,
    }
    shares = torch.tensor([ALPHA, 1 - ALPHA], device="cuda")
    check(side, indptr, indices, scale, shares, tuning)
    del indptr, indices, loops, scale
    torch.cuda.empty_cache()
    bandwidth = copy_bandwidth("cuda")
    report |= {"copy_tb_a_second": bandwidth / 1e12, "columns": {}}
    for columns in given.columns:
        H = torch.empty(n, columns, device="cuda").normal_()
        run_steps(side, shares, 1, H, tuning, out=H)  # compiles
        torch.cuda.reset_peak_memory_stats()

        def steps(H: Tensor = H) -> Tensor:
            return run_steps(side, shares, given.steps, H, tuning, out=H)

        times = sorted(milliseconds(steps, "cuda") for _ in range(given.repeats))
        moved = given.steps * (4 * m * columns + 4 * m * -(-columns // PANEL))
        report["columns"][columns] = {
            "seconds": times[len(times) // 2] / 1000,
            "seconds_least_most": [times[0] / 1000, times[-1] / 1000],
            "floor_seconds": moved / bandwidth,
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
        }
        print(columns, report["columns"][columns], file=sys.stderr, flush=True)
        del H, steps
        torch.cuda.empty_cache()
    print(json.dumps(report))


def graph(n: int, m: int, *, skewed: bool) -> tuple[Tensor, Tensor]:
    """Return offsets (n + 1,), int64, and columns (m,), int32, of random rows."""
    torch.manual_seed(0)
    indptr = torch.arange(n + 1, device="cuda") * m // n
    indices = torch.empty(m, dtype=torch.int32, device="cuda")
    for first in range(0, m, BLOCK):
        part = indices[first : first + BLOCK]
        if skewed:
            part.copy_(torch.rand(len(part), dtype=torch.float64, device="cuda").square_().mul_(n))
        else:
            part.random_(0, n)
    return indptr, indices


def check(
    side: Renumbered, indptr: Tensor, indices: Tensor, scale: Tensor, shares: Tensor, tuning: LargeTuning
) -> None:
    """Compare one step of some nodes with its definition."""
    n = len(indptr) - 1
    H = torch.empty(n, 4, device="cuda").normal_()
    Z = run_steps(side, shares, 1, H, tuning)
    nodes = torch.randint(n, (10,)).numpy()
    for node in map(int, nodes):
        of = indices[indptr[node] : indptr[node + 1]].long()
        wide = (scale[of, None] * H[of]).double().sum(0) + (scale[node] * H[node]).double()
        wanted = (1 - ALPHA) * scale[node] * wide + ALPHA * H[node]
        torch.testing.assert_close(Z[node].double(), wanted, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
