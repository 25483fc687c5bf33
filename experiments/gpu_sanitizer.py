"""Run NVIDIA's compute-sanitizer over the GPU kernels: bad accesses, reads of unwritten memory, races in shared memory.

    PYTHONPATH=src python3 experiments/gpu_sanitizer.py --out found.txt
    PYTHONPATH=src python3 experiments/gpu_sanitizer.py --tool memcheck --part trainings --out found.txt

Three parts, each divided into checks that run side by side:

"contract": the contract tests of the triton backend, of which every operation is compared with a dense twin.

"trainings": `train` with sparse and dense features, with and without weights of edges, one run and nine that end at different
epochs, so that CUDA graphs are captured, replayed, and captured anew. The host looks every 5 epochs here, so that few epochs show
all of that. Both parts keep torch's caching allocator, which captures need, and which hands out parts of larger blocks: an access
beyond a tensor may stay inside the block, and what lay there before counts as written. So memcheck and initcheck run trainings
once more without it (PYTORCH_NO_CUDA_MEMORY_CACHING), where every tensor is an allocation of its own; captures then fail, and
epochs are launched one by one.

"reasons": what the tools say of a few lines of plain torch and triton, to judge their reports of the other two.

- "copies", by initcheck: a copy whose source is written before, first launched one by one, then in a CUDA graph.
- "sums", by racecheck: the sum of products over an axis, as triton compiles it with and without fused multiply-adds. Every thread
  that holds the sum stores it in shared memory; with them, one thread has round(a b + round(c d)) where its neighbour has
  round(c d + round(a b)), which can differ in the last bit (https://github.com/triton-lang/triton/issues/7264).

Where racecheck reports attention, it looks again without them (TRITON_DEFAULT_FP_FUSION=0). The reports are grouped by source
lines; of each group the first is shown whole. The tools hardly use the GPU, but a core each: `--at-once` one less than there are.
Trainings are made once before without a checker: kernels are compiled then, and what cannot run at all ends the script. What had
not been reached before by any tool comes first, and memcheck before the others.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl
from scipy import sparse

ROOT = Path(__file__).parents[1]
TOOLS = ("racecheck", "initcheck", "memcheck")
PARTS = ("reasons", "contract", "trainings")
CONTRACT = (
    "test_contract.py",
    "test_contract_dense_features.py",
    "test_contract_network.py",
    "test_contract_attention.py",
)
NODES, FEATURES, CLASSES = 300, 37, 3
ONE_TYPE = "triton and not float64"  # the kernels of float64 are the same source
ATTENTION = f"{ONE_TYPE} and test_attention"
SHARDS = {"memcheck": 4, "initcheck": 4, "racecheck": 8}  # of the contract tests
PLAIN = ("APPNP", "PPNP", "APPNP with a module")
# name: are features dense, are edges weighted, models
GROUPS = {
    "sparse": (False, False, PLAIN),
    "MLP and GCN": (False, False, ("MLP", "GCN")),
    "GAT": (False, False, ("GAT",)),
    "JK": (False, False, ("JK",)),
    "N-GCN": (False, False, ("N-GCN",)),
    "sparse weighted": (False, True, PLAIN),
    "dense": (True, False, PLAIN),
    "dense weighted": (True, True, PLAIN),
}
REACHED = ("sparse", "MLP and GCN")  # trainings that were checked before, at least in part: results/gpu/sanitizer.txt
EXACT = (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),)
UNFUSED = (("TRITON_DEFAULT_FP_FUSION", "0"),)


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


def trainings(group: str, device: str, backend: str) -> None:
    """Train the models of a group, one run and nine; print a line for each training."""
    import torch

    import pprop
    from pprop.training import loop

    def module() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(FEATURES, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, CLASSES))

    for name in ("_EPOCHS_PER_LOOK", "_EPOCHS_UNCAPTURED"):
        setattr(loop, name, 5)
    warnings.filterwarnings("ignore", message="No CUDA graph could be captured")
    makers: dict[str, Any] = {
        "APPNP": pprop.APPNP,
        "PPNP": pprop.PPNP,
        "APPNP with a module": lambda: pprop.APPNP(predictor=module),
        "MLP": pprop.MLP,
        "GCN": pprop.GCN,
        "GAT": pprop.GAT,
        "JK": pprop.JK,
        "N-GCN": pprop.NGCN,
    }
    dense, weighted, names = GROUPS[group]
    graph = example(dense=dense, weighted=weighted)
    for name in names:
        for runs in (1, 9):
            rng = np.random.default_rng(runs)
            orders = [rng.permutation(NODES) for _ in range(runs)]
            splits = [pprop.Split(order[: 20 + k], order[40 : 90 - k], order[90:]) for k, order in enumerate(orders)]
            trained = pprop.train(
                makers[name](),
                graph,
                splits,
                seeds=list(range(runs)),
                learning_rate=0.05,
                device=device,
                backend=backend,
                stopping=pprop.Stopping(patience=2, max_epochs=14),
                progress=False,
            )
            kind = f"{'dense' if dense else 'sparse'}, {'weighted' if weighted else 'unweighted'}, {runs} runs"
            print(f"{kind}: {name}: epochs {trained.epochs.min()} to {trained.epochs.max()}", flush=True)


def contract(shard: str, keyword: str) -> int:
    """Run every n-th of the contract tests with a keyword, from the k-th: k/n."""
    import pytest

    k, n = (int(number) for number in shard.split("/"))

    class EveryNth:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            items[:] = items[k::n]

    files = [f"tests/kernels/{name}" for name in CONTRACT]
    return int(pytest.main(["-v", "-p", "no:cacheprovider", "-k", keyword, *files], plugins=[EveryNth()]))


def copies() -> None:
    """Copy nine numbers that a kernel has just written, as the update of the stopping state does: one by one, in a graph."""
    import torch

    given = torch.rand(9, dtype=torch.float64, device="cuda")
    kept = torch.zeros_like(given)

    def epoch() -> None:
        kept[...] = torch.where(given > kept, given, kept)  # the copy's source is made by a kernel just before

    epoch()
    torch.cuda.synchronize()
    print("launched one by one: done", flush=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        epoch()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(kept, given)
    print("launched in a graph: done, and the numbers are right", flush=True)


jit: Any = triton.jit


@jit
def sum_products(x: Any, y: Any, out: Any, rows: tl.constexpr, columns: tl.constexpr, times: tl.constexpr) -> None:
    """Write the sum of every row of x y so many times."""
    at = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]  # pyright: ignore[reportUnknownVariableType]
    total = tl.sum(tl.load(x + at) * tl.load(y + at), axis=1)  # pyright: ignore[reportUnknownArgumentType]
    place = tl.arange(0, times)[:, None] * rows + tl.arange(0, rows)[None, :]
    tl.store(out + place, tl.broadcast_to(total[None, :], (times, rows)))


def sums(device: str) -> None:
    """Add up products over an axis in triton, with or without fused multiply-adds."""
    import torch

    fused = os.environ.get("TRITON_DEFAULT_FP_FUSION") != "0"
    for rows, columns in ((8, 4), (8, 16), (2, 16), (32, 8)):
        x, y = (torch.rand(rows, columns, device=device) for _ in range(2))
        out = torch.empty(32, rows, device=device)
        sum_products[(1,)](x, y, out, rows, columns, 32, num_warps=4)
        error = (out - (x.double() * y.double()).sum(1)).abs().max().item()
        assert error < 1e-5
        print(
            f"{rows} sums of {columns} products, {'fused' if fused else 'not fused'}: done, error {error:.0e}",
            flush=True,
        )


@dataclass(frozen=True)
class Check:
    """One process under one tool: a piece of a part."""

    tool: str
    part: str
    work: tuple[str, ...]  # arguments after --work
    environment: tuple[tuple[str, str], ...] = ()  # variables, beside those there are

    def run(self, sanitizer: str, limit: float, kept: Path | None) -> str:
        """Return what the tool found, and the command."""
        command = [
            Path(sanitizer).name,
            "--tool",
            self.tool,
            "--error-exitcode",
            "9",
            "--target-processes",
            "application-only",
        ]
        if self.tool == "memcheck":
            command += ["--report-api-errors", "no"]  # captures that fail without the allocator are expected
        if self.tool == "racecheck":
            command += ["--racecheck-report", "hazard", "--show-backtrace", "no"]
        command += ["--print-limit", "100000", "python3", str(Path(__file__).relative_to(ROOT)), "--work", *self.work]
        shown = " ".join([f"{name}={value}" for name, value in self.environment] + [_quoted(word) for word in command])
        at = command.index("python3")
        if limit < 20:
            return f"$ {shown}\nnot begun\n"
        begin = time.monotonic()
        ended, lines = _run(
            [sanitizer, *command[1:at], sys.executable, *command[at + 1 :]], dict(self.environment), limit
        )
        if kept is not None:
            name = re.sub(r"\W+", "_", " ".join([self.tool, *self.work, *(name for name, _ in self.environment)]))
            (kept / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
        said = [line for line in lines if not line.startswith("=========") and line]
        tests = [line for line in said if re.search(r"^tests/.*::", line)]
        if tests or self.part == "contract":
            said = [f"{sum(' PASSED' in line for line in tests)} tests passed", *tests[-1:]]
        took = f"{ended}, {time.monotonic() - begin:.0f} s"
        return "\n".join([f"$ {shown}", *said[-10:], *summary(lines), took, ""])


def _quoted(word: str) -> str:
    return f"'{word}'" if " " in word else word


def _run(command: list[str], environment: dict[str, str], limit: float) -> tuple[str, list[str]]:
    """Return how a command ended, and its lines."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        # in a group of its own: what it starts ends with it
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended = f"exit code {process.wait(timeout=limit)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            ended = f"not finished within {limit:.0f} s"
        said.seek(0)
        return ended, [line.rstrip() for line in said]


def reports(lines: list[str]) -> Iterator[list[str]]:
    """Divide a tool's lines into its reports: a line without indentation and those that follow it."""
    report: list[str] = []
    for line in lines:
        mark = re.search(r"(?<!=)={9}(?!=)(.*)", line)  # a test's progress may stand before it
        if mark is None:
            continue
        text = mark[1]
        if text.strip() and not text.startswith("  "):
            if report:
                yield report
            report = [text.strip()]
        elif text.strip() and report:
            report.append(text.rstrip())
    if report:
        yield report


def summary(lines: list[str], most: int = 12, frames: int = 14) -> list[str]:
    """Group reports that differ in addresses and numbers only; return the first of each group, and how many it has.

    >>> hazard = ["========= Error: Potential WAW hazard detected at __shared__ 0x4 in block (0,0,0) :",
    ...           "=========     Write Thread (0,0,0) at f+0x10 in a.py:7", "=========     Write Thread (1,0,0) at f+0x10 in a.py:7",
    ...           "=========     Current Value : 2, Incoming Value : 3"]
    >>> print(*summary([*hazard, *hazard, "========= RACECHECK SUMMARY: 2 hazards displayed"])[-2:], sep=chr(10))
    [2 reports; 2 at the lowest byte of 4, values apart by 1 to 1]
    ========= RACECHECK SUMMARY: 2 hazards displayed
    """
    groups: dict[str, list[list[str]]] = {}
    ends: list[str] = []
    for report in reports(lines):
        if "SUMMARY" in report[0]:
            ends.append(f"========= {report[0]}")
        elif report[0] not in ("COMPUTE-SANITIZER", "Target application returned an error"):
            seen = [line for line in report if "Host Frame" not in line and "Value" not in line]
            kind = re.sub(r"\+0x[0-9a-f]+|0x[0-9a-f]+|\(\d+,\d+,\d+\)|\b\d+ (?=bytes)", "#", " ".join(seen))
            groups.setdefault(kind, []).append(report)
    shown: list[str] = []
    for found in list(groups.values())[:most]:
        host = [line for line in found[0] if "Host Frame" in line]
        shown += ["=========" + (" " * (k == 0)) + line for k, line in enumerate(found[0]) if line not in host[frames:]]
        shown.append(f"[{len(found)} reports{_values(found)}]")
    if len(groups) > most:
        shown.append(f"[{len(groups) - most} more kinds of reports]")
    return [*shown, *ends]


def _values(found: list[list[str]]) -> str:
    """Return how far apart the bytes of racecheck's hazards are, and at which byte of a number."""
    text = ["\n".join(report) for report in found]
    values = [re.search(r"Current Value : (\d+), Incoming Value : (\d+)", each) for each in text]
    places = [re.search(r"__shared__ 0x([0-9a-f]+)", each) for each in text]
    apart = [abs(int(value[1]) - int(value[2])) for value in values if value]
    if not apart:
        return ""
    lowest = sum(int(place[1], 16) % 4 == 0 for place in places if place)
    return f"; {lowest} at the lowest byte of 4, values apart by {min(apart)} to {max(apart)}"


def checks(tools: list[str], parts: list[str], groups: list[str]) -> list[Check]:
    """Return what is to be done, in the order in which it begins."""
    found: list[Check] = []
    if "reasons" in parts:
        found.append(Check("initcheck", "reasons", ("copies",)))
        found += [Check("racecheck", "reasons", ("sums",), environment) for environment in ((), UNFUSED)]
    for tool in tools:
        if "contract" in parts:
            shards = [("contract", "--shard", f"{k}/{SHARDS[tool]}") for k in range(SHARDS[tool])]
            found += [Check(tool, "contract", shard) for shard in shards]
            if tool == "memcheck":
                found += [Check(tool, "contract", shard, EXACT) for shard in shards]
            if tool == "racecheck":
                shards = [("contract", "--shard", f"{k}/2", "--keyword", ATTENTION) for k in range(2)]
                found += [Check(tool, "contract", shard, UNFUSED) for shard in shards]
        if "trainings" in parts:
            pieces = [("trainings", "--group", name) for name in groups]
            found += [Check(tool, "trainings", piece) for piece in pieces]
            if tool != "racecheck":
                found += [Check(tool, "trainings", piece, EXACT) for piece in pieces]
            elif "GAT" in groups:
                found.append(Check(tool, "trainings", ("trainings", "--group", "GAT"), UNFUSED))
    return sorted((check for check in found if check.tool in tools), key=_turn)


def _turn(check: Check) -> int:
    """Return when a check begins: trainings that were never reached, by each tool; racecheck of the contract; the rest."""
    if check.part == "reasons":
        return 1
    if check.part == "trainings" and check.work[-1] not in REACHED:
        return {"memcheck": 0, "racecheck": 2, "initcheck": 3}[check.tool] + 2 * (check.environment == EXACT)
    return 4 if check.tool == "racecheck" else 6


def versions(sanitizer: str) -> str:
    """Return what ran, in lines."""
    import torch

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


def compile_kernels(checks: list[Check], at_once: int) -> str:
    """Make once without a checker the trainings that are checked, so that their kernels are compiled; say how it went."""
    begin = time.monotonic()
    works = {(one.work, one.environment): "" for one in checks if one.part == "trainings" and one.environment != EXACT}

    def compiled(key: tuple[tuple[str, ...], tuple[tuple[str, str], ...]]) -> None:
        work, environment = key
        command = [sys.executable, str(Path(__file__).relative_to(ROOT)), "--work", *work]
        ended, lines = _run(command, dict(environment), 120)
        if ended != "exit code 0":
            works[key] = "\n".join([f"without a checker: {' '.join(work)}: {ended}", *lines[-20:], ""])

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(compiled, works))
    bad = "".join(works.values())
    if works and all(works.values()):
        sys.exit(bad)
    return f"{bad}without a checker: {len(works)} processes, {time.monotonic() - begin:.0f} s"


def main() -> int:
    """Check, or do the work that is checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", choices=TOOLS, action="append", help="default: all three, in this order")
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all three")
    parser.add_argument("--group", choices=GROUPS, action="append", help="of trainings; default: all")
    parser.add_argument("--out", type=Path, help="file for what was found; default: printed only")
    parser.add_argument("--raw", type=Path, help="folder for all that the tools printed")
    parser.add_argument(
        "--at-once", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="checks at the same time"
    )
    parser.add_argument("--limit", type=float, default=1800, help="seconds; what has not ended then is ended")
    parser.add_argument(
        "--work", choices=("trainings", "contract", "copies", "sums"), help="do the work, without a checker"
    )
    parser.add_argument(
        "--list", action="store_true", help="print what would be checked, in this order, and do nothing"
    )
    parser.add_argument("--shard", default="0/1", help="of --work contract: k/n, every n-th test from the k-th")
    parser.add_argument("--keyword", default=ONE_TYPE, help="of --work contract: pytest's -k")
    parser.add_argument("--device", default="cuda", help="of --work trainings and sums")
    parser.add_argument("--backend", default="auto", help="of --work trainings")
    given = parser.parse_args()
    groups = given.group or list(GROUPS)
    if given.work == "trainings":
        for group in groups:
            trainings(group, given.device, given.backend)
    elif given.work == "contract":
        return contract(given.shard, given.keyword)
    elif given.work == "sums":
        sums(given.device)
    elif given.work == "copies":
        copies()
    if given.work:
        return 0
    begin = time.monotonic()
    wanted = checks(given.tool or list(TOOLS), given.part or list(PARTS), groups)
    if given.raw is not None:
        given.raw.mkdir(parents=True, exist_ok=True)
    if given.list:
        print(
            *(f"{' '.join([one.tool, *one.work, *(name for name, _ in one.environment)])}" for one in wanted), sep="\n"
        )
        return 0
    sanitizer = find_sanitizer()
    head = f"{versions(sanitizer)}\n{compile_kernels(wanted, given.at_once)}, {given.at_once} at once"
    print(head, flush=True)
    found = dict.fromkeys(wanted, "")

    def check(one: Check) -> None:
        found[one] = one.run(sanitizer, given.limit - (time.monotonic() - begin), given.raw)
        print(found[one], flush=True)
        if given.out is not None:
            given.out.write_text("\n\n".join([head, *filter(None, found.values())]), encoding="utf-8")

    with ThreadPoolExecutor(given.at_once) as pool:
        list(pool.map(check, wanted))
    return int(any("exit code 0" not in text for text in found.values()))


if __name__ == "__main__":
    sys.exit(main())
