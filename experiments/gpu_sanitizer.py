"""Run NVIDIA's compute-sanitizer over the GPU kernels: bad accesses, reads of unwritten memory, races in shared memory.

    PYTHONPATH=src python3 experiments/gpu_sanitizer.py                        # results/gpu/sanitizer.txt
    PYTHONPATH=src python3 experiments/gpu_sanitizer.py --tool memcheck --part trainings

Two parts. "contract": the contract tests of the triton backend, of which every operation is compared with a dense twin.
"trainings": `train` with sparse and dense features, with and without weights of edges, one run and several that end at
different epochs, so that CUDA graphs are captured, replayed, and captured anew. Both keep torch's caching allocator, which
captures need, and which hands out parts of larger blocks: an access beyond a tensor may stay inside the block. So memcheck
runs both parts once more without it (PYTORCH_NO_CUDA_MEMORY_CACHING), where every tensor is an allocation of its own;
captures then fail, and epochs are launched one by one.

Let it have the GPU alone: beside four processes that trained, none of its checks finished in 500 s. Alone, with seven at once
on 16 cores, one of them finished in 240 s.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).parents[1]
TOOLS = ("memcheck", "initcheck", "racecheck")
CONTRACT = (
    "test_contract.py",
    "test_contract_dense_features.py",
    "test_contract_network.py",
    "test_contract_attention.py",
)
NODES, FEATURES, CLASSES = 300, 37, 3
ONE_TYPE = "triton and not float64"  # the kernels of float64 are the same source


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer: on the PATH, or where the CUDA toolkit is usually installed."""
    found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(found).is_file():
        sys.exit("compute-sanitizer was not found. It comes with the CUDA toolkit.")
    return found


def example(*, dense: bool, weighted: bool) -> Any:
    """Return a graph with a hub, an isolated node, self-loops, a row and a column of features without entries."""
    from pprop import Graph

    rng = np.random.default_rng(7)
    A = (rng.random((NODES, NODES)) < 4 / NODES) * (rng.uniform(0.5, 2.0, (NODES, NODES)) if weighted else 1.0)
    A[:, 3] = A[3, :] = 1.0
    A[5, :] = A[:, 5] = 0.0
    X = rng.random((NODES, FEATURES)) * (rng.random((NODES, FEATURES)) < (1.0 if dense else 0.2))
    X[11], X[:, 2] = 0.0, 0.0
    labels = rng.integers(0, CLASSES, NODES)
    features = X.astype(np.float32) if dense else sparse.csr_array(X.astype(np.float32))
    return Graph.from_scipy(
        sparse.csr_array(A if weighted else np.triu(A) + np.triu(A, 1).T),
        features=features,
        labels=labels,
        directed=weighted,
    )


def trainings(device: str, backend: str) -> None:
    """Train every kind of model, one run and nine, on every kind of input; print a line for each."""
    import torch

    import pprop

    def module() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(FEATURES, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, CLASSES))

    plain = {"APPNP": pprop.APPNP(), "PPNP": pprop.PPNP(), "APPNP with a module": pprop.APPNP(predictor=module)}
    others = {"MLP": pprop.MLP(), "GCN": pprop.GCN(), "GAT": pprop.GAT(), "JK": pprop.JK(), "N-GCN": pprop.NGCN()}
    for dense, weighted in ((False, False), (False, True), (True, False), (True, True)):
        graph = example(dense=dense, weighted=weighted)
        for name, model in (plain if weighted or dense else plain | others).items():
            for runs in (1, 9):
                rng = np.random.default_rng(runs)
                orders = [rng.permutation(NODES) for _ in range(runs)]
                splits = [
                    pprop.Split(order[: 20 + k], order[40 : 90 - k], order[90:]) for k, order in enumerate(orders)
                ]
                rule = pprop.Stopping(patience=3, max_epochs=40)
                trained = pprop.train(
                    model, graph, splits, seeds=list(range(runs)), stopping=rule, device=device, backend=backend, progress=False
                )  # fmt: skip
                kind = f"{'dense' if dense else 'sparse'}, {'weighted' if weighted else 'unweighted'}, {runs} runs"
                print(f"{kind}: {name}: epochs {trained.epochs.min()} to {trained.epochs.max()}", flush=True)


def checked(sanitizer: str, tool: str, part: str, *, exact: bool, limit: float) -> str:
    """Return what a tool found in a part, and the command."""
    work = [sys.executable, str(Path(__file__).relative_to(ROOT)), "--work", part]
    if part == "contract":
        files = [f"tests/kernels/{name}" for name in CONTRACT]
        work = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", ONE_TYPE, *files]
    command = [sanitizer, "--tool", tool, "--print-limit", "20", "--error-exitcode", "9"]
    if tool == "memcheck":
        command += ["--report-api-errors", "no"]  # captures that fail without the allocator are expected
    command += work
    allocator = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if exact else {}
    begin, environment = time.monotonic(), {**os.environ, **allocator, "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        # in a group of its own: what it starts ends with it
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            ended = f"exit code {process.wait(timeout=limit)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            ended = f"not finished within {limit:.0f} s"
        said.seek(0)
        lines = [line.rstrip() for line in said]
    found = [line for line in lines if line.startswith("=========") and "Host Frame" not in line]
    rest = [line for line in lines if not line.startswith("=========") and line]
    if part == "trainings":
        rest = [*rest[-2:], f"{sum(': epochs ' in line for line in rest)} trainings"]
    shown = [f"{name}={value}" for name, value in allocator.items()]
    head = " ".join([*shown, Path(sanitizer).name, *command[1:]]).replace(sys.executable, "python3")
    took = f"{ended}, {time.monotonic() - begin:.0f} s"
    return "\n".join([f"$ {head.replace(ONE_TYPE, repr(ONE_TYPE))}", *rest[-3:], *found[:200], took, ""])


def versions(sanitizer: str) -> str:
    """Return what ran, in lines."""
    import torch
    import triton

    from pprop.study.revisions import provenance_here

    said = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=True).stdout.split("Version")
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    here = provenance_here()
    return "\n".join(
        [
            f"{datetime.now(UTC):%Y-%m-%d}, commit {os.environ.get('COMMIT') or here.commit or 'unknown'}, sources {here.source}",
            f"{torch.cuda.get_device_name()}, driver {driver.stdout.strip()}, compute-sanitizer {said[-1].split()[0]}",
            f"torch {torch.__version__}, triton {triton.__version__}, Python {sys.version.split()[0]}",
        ]
    )


def main() -> int:
    """Check, or do the work that is checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", choices=TOOLS, action="append", help="default: all three")
    parser.add_argument("--part", choices=("contract", "trainings"), action="append", help="default: both")
    parser.add_argument("--out", type=Path, default=ROOT / "results/gpu/sanitizer.txt")
    parser.add_argument("--at-once", type=int, default=4, help="checks that run at the same time")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of a check")
    parser.add_argument("--work", choices=("trainings",), help="do the work of a part, without a checker")
    parser.add_argument("--device", default="cuda", help="of --work")
    parser.add_argument("--backend", default="auto", help="of --work")
    given = parser.parse_args()
    if given.work:
        warnings.filterwarnings("ignore", message="No CUDA graph could be captured")
        trainings(given.device, given.backend)
        return 0
    sanitizer, tools, parts = find_sanitizer(), given.tool or list(TOOLS), given.part or ["trainings", "contract"]
    jobs = [
        (tool, part, exact) for part in parts for tool in tools for exact in (False, True)[: 1 + (tool == "memcheck")]
    ]
    begin = time.monotonic()
    head = versions(sanitizer)
    found = dict.fromkeys(jobs, "")

    def check(job: tuple[str, str, bool]) -> None:
        tool, part, exact = job
        found[job] = checked(sanitizer, tool, part, exact=exact, limit=given.limit - (time.monotonic() - begin))
        given.out.write_text("\n\n".join([head, *filter(None, found.values())]), encoding="utf-8")

    with ThreadPoolExecutor(given.at_once) as pool:
        list(pool.map(check, jobs))
    bad = [text for text in found.values() if "exit code 0" not in text]
    print(given.out.read_text(encoding="utf-8"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
