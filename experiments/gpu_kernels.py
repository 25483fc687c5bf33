"""Check and time the GPU backend: contract tests, the trainer against the reference, and its kernels one by one.

    PYTHONPATH=src python3 experiments/gpu_kernels.py --data FOLDER --out FOLDER

prints a table and writes the same text and the numbers behind it. Times are medians of graph replays between events;
GB/s are bytes that the sums must read, counted from the sizes, over that time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from pprop import Graph, load_dataset, transition_matrix
from pprop.kernels import Draw
from pprop.kernels.reference.backend import ReferenceKernels
from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps, TrainerSpec
from pprop.kernels.triton_gpu.launch import Tuning
from pprop.kernels.triton_gpu.trainer import TritonTrainer
from pprop.models.network import normalized_features

ROOT = Path(__file__).parents[1]
ALPHA, STEPS, RATE, PENALTY = 0.1, 10, 0.01, 0.005
TESTS = (
    "test_contract.py",
    "test_contract_network.py",
    "test_large_steps.py",
    "test_masks.py",
    "test_triton_bits.py",
    "test_triton_trainer.py",
)


class Report:
    """Lines for people and numbers for later, written after every step, with a deadline for what is optional."""

    def __init__(self, folder: Path, name: str, seconds: float = float("inf")) -> None:
        self.folder, self.numbers, self.lines, self._name = folder, dict[str, Any](), list[str](), name
        self.begin, self.end = time.perf_counter(), time.perf_counter() + seconds
        folder.mkdir(parents=True, exist_ok=True)

    def say(self, line: str, **numbers: Any) -> None:
        line = f"[{time.perf_counter() - self.begin:5.0f} s] {line}"
        print(line, flush=True)
        self.lines.append(line)
        self.numbers.update(numbers)
        (self.folder / f"{self._name}.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        (self.folder / f"{self._name}.json").write_text(json.dumps(self.numbers, indent=1), encoding="utf-8")

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.end


def make_spec(graph: Graph, runs: int, kind: str, device: str, dropout: float = 0.5, hidden: int = 64) -> TrainerSpec:
    """R runs with random sets of 140 and 500 nodes (fewer on a small graph)."""
    rng = np.random.default_rng(1)
    X = normalized_features(graph)
    n, f = X.shape
    labels = np.asarray(graph.labels, dtype=np.int64)
    c = int(labels.max()) + 1
    few, many = min(140, n // 6), min(500, n // 2)
    nodes = np.stack([rng.permutation(n)[: few + many] for _ in range(runs)])
    sets = [
        LabelledNodes(torch.from_numpy(part).to(device), torch.from_numpy(labels[part]).to(device))
        for part in (nodes[:, :few], nodes[:, few:])
    ]
    propagation: PropagateSteps | PropagateRows | None = None
    if kind == "steps":
        propagation = PropagateSteps(transition_matrix(graph), ALPHA, STEPS)
    elif kind == "rows":
        T = torch.from_numpy(transition_matrix(graph).to_scipy().toarray()).to(device)
        inverse = torch.eye(n, dtype=torch.float64, device=device).sub(T, alpha=1 - ALPHA).inverse()
        every = torch.arange(n, device=device)
        propagation = PropagateRows((ALPHA * inverse).float(), every, every)
    generator = torch.Generator(device).manual_seed(3)
    weights = [
        (2 * torch.rand(runs, a, b, device=device, generator=generator) - 1) * (6 / (a + b)) ** 0.5
        for a, b in ((f, hidden), (hidden, c))
    ]
    seeds = torch.from_numpy(rng.integers(-(2**63), 2**63, runs)).to(device)
    matrix = 0.0 if kind == "none" else dropout
    return TrainerSpec(
        X, (weights[0], weights[1]), seeds, propagation, sets[0], sets[1], dropout, matrix, RATE, PENALTY
    )


class Yardstick:
    """The same training from the reference backend's single operations, in float64."""

    def __init__(self, spec: TrainerSpec) -> None:
        self.spec, self.kernels = spec, ReferenceKernels()
        self.weights = [w.double().clone() for w in spec.weights]
        self.moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in self.weights]
        X = spec.features
        values = X.data.astype(np.float64)
        self.features = self.kernels.features(sparse.csr_array((values, X.indices, X.indptr), shape=X.shape))
        self.epochs, self.run = 0, torch.arange(len(spec.seeds), device=spec.seeds.device)[:, None]
        p = spec.propagation
        if isinstance(p, PropagateSteps):
            self.bound: Any = self.kernels.steps(p.transition, p.alpha, p.steps)
        elif isinstance(p, PropagateRows):
            self.bound = self.kernels.rows(p.block.double(), p.nodes)

    def _draw(self, p: float, *, on: bool) -> Draw | None:
        return Draw(self.spec.seeds, self.epochs, p) if on and p > 0 else None

    def _forward(self, nodes: torch.Tensor, *, on: bool) -> tuple[torch.Tensor, torch.Tensor]:
        draw, matrix = self._draw(self.spec.dropout, on=on), self._draw(self.spec.matrix_dropout, on=on)
        hidden = self.kernels.activate(self.features.forward(self.weights[0], draw), 1, draw)
        H, p = hidden @ self.weights[1], self.spec.propagation
        if isinstance(p, PropagateRows):
            return hidden, self.bound.forward(H, p.row_of_node[nodes], matrix)
        return hidden, (H if p is None else self.bound.forward(H, matrix))[self.run, nodes]

    def epoch(self) -> torch.Tensor:
        spec, kernels = self.spec, self.kernels
        draw, matrix = self._draw(spec.dropout, on=True), self._draw(spec.matrix_dropout, on=True)
        hidden, logits = self._forward(spec.train.nodes, on=True)
        squares = (self.weights[0] ** 2).sum(dim=(1, 2))
        loss, _, slope = kernels.cross_entropy(logits, spec.train.labels)
        loss = loss + 0.5 * spec.penalty * squares
        if isinstance(spec.propagation, PropagateRows):
            slope = self.bound.adjoint(slope, spec.propagation.row_of_node[spec.train.nodes], matrix)
        else:
            spread = slope.new_zeros(len(slope), spec.features.shape[0], slope.shape[2])
            spread.index_put_((self.run, spec.train.nodes), slope, accumulate=True)
            slope = spread if spec.propagation is None else self.bound.adjoint(spread, matrix)
        down = kernels.activate_adjoint(slope @ self.weights[1].mT, hidden, draw)
        gradients = [self.features.adjoint(down, draw), hidden.mT @ slope]
        for layer, (w, g) in enumerate(zip(self.weights, gradients, strict=True)):
            penalty = spec.penalty if layer == 0 else 0.0
            kernels.adam(w, g, *self.moments[layer], step=self.epochs + 1, rate=spec.rate, penalty=penalty)
        _, logits = self._forward(spec.stopping.nodes, on=False)
        stop, right, _ = kernels.cross_entropy(logits, spec.stopping.labels)
        self.epochs += 1
        stop = stop + 0.5 * spec.penalty * (self.weights[0] ** 2).sum(dim=(1, 2))
        return torch.stack([loss, stop, right / spec.stopping.labels.shape[1]])


def check(report: Report, name: str, spec: TrainerSpec, tuning: Tuning, epochs: int = 4) -> None:
    """Compare losses, accuracies and weights with the yardstick."""
    trainer, twin = TritonTrainer(spec, tuning), Yardstick(spec)
    worst = 0.0
    for _ in range(epochs):
        worst = max(worst, float((trainer.epoch().double() - twin.epoch())[:2].abs().max()))
    weights: list[float] = []
    for found, expected in zip(trainer.weights(), twin.weights, strict=True):
        difference = (found.double() - expected).square().sum() / expected.square().sum()
        weights.append(float(difference.sqrt()))
    fine = worst < 1e-4 and max(weights) < 1e-3
    report.say(
        f"{'ok  ' if fine else 'FAIL'} {name}: {epochs} epochs, losses off by {worst:.1e}, weights by "
        f"{weights[0]:.1e} and {weights[1]:.1e} of their norm",
        **{f"check {name}": [fine, worst, *weights]},
    )


def captured(function: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def timed(function: Callable[[], Any]) -> float:
    """Milliseconds between two events around the function."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def replayed(function: Callable[[], Any], repeats: int = 15) -> float:
    """Median milliseconds of one replay of the captured function."""
    graph = captured(function)
    return float(np.median([timed(graph.replay) for _ in range(repeats)]))


def replayed_in_a_row(function: Callable[[], Any], repeats: int = 64) -> float:
    """Mean milliseconds of a replay in an unbroken row: epochs that draw new masks count for what they cost."""
    graph = captured(function)

    def row() -> None:
        for _ in range(repeats):
            graph.replay()

    return float(np.median([timed(row) for _ in range(3)])) / repeats


def counted(spec: TrainerSpec, trainer: TritonTrainer) -> dict[str, float]:
    """Bytes that the gathers of each kernel must read, for all runs."""
    runs, f, hidden = spec.weights[0].shape
    classes, n = trainer.network.shape.padded_classes, spec.features.shape[0]
    keep = 1 - spec.dropout
    count = {
        "forward first": spec.features.nnz * hidden * 4.0 * runs,
        "backward first": (spec.features.nnz * hidden * 4.0 * keep + 6 * f * hidden * 4.0) * runs,
        "forward second": 2 * n * hidden * 4.0 * runs,
        "backward second": 2 * n * hidden * 4.0 * runs,
    }
    if isinstance(spec.propagation, PropagateSteps):
        entries = len(spec.propagation.transition.indices) * spec.propagation.steps * classes * 4.0 * runs
        count["forward steps"] = entries * (2 - spec.matrix_dropout)
        count["backward steps"] = entries * (1 - spec.matrix_dropout)
    return count


def parts(spec: TrainerSpec, trainer: TritonTrainer) -> dict[str, Callable[[], Any]]:
    """The kernels of an epoch in their order."""
    network, propagation = trainer.network, trainer.propagation
    clock, seeds, corrections = trainer.clock, trainer.seeds, trainer.corrections
    steps: Any = propagation
    have = isinstance(spec.propagation, PropagateSteps)
    logits = propagation.forward(network, clock, seeds, ahead=0)
    return {
        "backward steps": lambda: propagation.backward(clock, seeds),
        "backward second": lambda: network.backward_second(propagation.above),
        "adam second": lambda: network.adam_second(corrections, RATE),
        "backward first": lambda: network.backward_first(clock, corrections, RATE),
        "draw nothing new": lambda: trainer.draw(ahead=0, force=False),
        "draw everything": lambda: trainer.draw(ahead=0, force=True),
        "forward first": lambda: network.forward(clock, ahead=0),
        "forward second": lambda: steps.predict(network) if have else network.predict(propagation.predictions, None, None),
        "forward steps": (lambda: steps.forward_steps(clock, ahead=0)) if have else (
            lambda: propagation.forward(network, clock, seeds, ahead=0)),
        "losses": lambda: trainer.losses(logits),
        "finish": lambda: trainer.finish(advance=0),
    }  # fmt: skip


def time_parts(report: Report, name: str, spec: TrainerSpec, tuning: Tuning) -> None:
    """Every kernel of the epoch on its own, and the whole."""
    trainer = TritonTrainer(spec, tuning)
    trainer.clock.fill_(5)  # begins no block of masks
    bytes_of, total = counted(spec, trainer), 0.0
    for part, function in parts(spec, trainer).items():
        took = replayed(function)
        total += took if part != "draw everything" else 0.0
        rate = f"{bytes_of[part] / took / 1e6:8.0f} GB/s" if part in bytes_of else ""
        report.say(f"    {name:28s} {part:18s} {took:8.3f} ms {rate}", **{f"{name} / {part}": took})
    whole = replayed_in_a_row(trainer.epoch)
    report.say(f"    {name:28s} {'WHOLE EPOCH':18s} {whole:8.3f} ms  (parts {total:.3f})", **{f"{name} / epoch": whole})


def start_tests(report: Report) -> subprocess.Popen[str]:
    """Begin the contract tests on the GPU, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={ROOT}", "-p", "no:cacheprovider",
               "--import-mode=importlib", "-k", "triton", "--durations=3",
               *(str(ROOT / "tests" / "kernels" / name) for name in TESTS)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    log = (report.folder / "gpu_tests.txt").open("w", encoding="utf-8")
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True, env=environment, cwd=ROOT)


def wait_for(report: Report, name: str, processes: list[Any], seconds: float) -> None:
    """Wait, at most until `seconds` after the start."""
    for process in processes:
        try:
            process.wait(max(0.1, report.begin + seconds - time.perf_counter()))
        except subprocess.TimeoutExpired:
            process.kill()
            report.say(f"    {name}: stopped after {seconds:.0f} s")


def random_graph(n: int, f: int, c: int, *, directed: bool, weighted: bool) -> Graph:
    """About six neighbours a node and one hub, 5 % of the features."""
    rng = np.random.default_rng(7)
    i, j = np.concatenate([rng.integers(0, n, (2, 6 * n)), [np.zeros(n // 3, np.int64), np.arange(n // 3)]], axis=1)
    if not directed:
        i, j = np.concatenate([i, j]), np.concatenate([j, i])
    place = np.unique(i * n + j)
    values = rng.uniform(0.5, 2.0, len(place)) if weighted and directed else np.ones(len(place))
    adjacency = sparse.csr_array((values, (place // n, place % n)), shape=(n, n))
    X = rng.random((n, f)) * (rng.random((n, f)) < 0.05)
    return Graph.from_scipy(adjacency, directed=directed, features=sparse.csr_array(X), labels=rng.integers(0, c, n))


def check_all(report: Report, graph: Graph | None) -> None:
    small = {"feature_warps": 2, "tile_warps": 2}
    cases: list[tuple[str, float, dict[str, Any]]] = [
        ("steps", 0.5, {}),
        ("steps", 0.3, small),
        ("steps", 0.5, {"slice_width": 32, "feature_warps": 8}),
        ("rows", 0.5, small),
        ("none", 0.5, {}),
        ("steps", 0.0, {}),
    ]
    for kind, dropout, change in cases:
        weighted = "slice_width" not in change
        spec = make_spec(random_graph(700, 300, 5, directed=weighted, weighted=weighted), 3, kind, "cuda", dropout, 40)
        check(report, f"random graph, {kind}, p = {dropout}, {change}", spec, Tuning(**change))
    if graph is not None:
        check(report, "Cora-ML", make_spec(graph, 3, "steps", "cuda"), Tuning())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with cora_ml.npz and ms_academic.npz")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gpu-output")))
    parser.add_argument("--test-seconds", type=float, default=110.0, help="stop the contract tests after this time")
    parser.add_argument("--only", choices=["tests", "check", "time"], help="one part alone")
    arguments = parser.parse_args()
    graphs: dict[str, Graph] = {}
    if arguments.data:
        os.environ["PPROP_DATA"] = str(arguments.data)
        graphs = {name: load_dataset(name) for name in ("cora_ml", "ms_academic")}
    report = Report(arguments.out, "gpu_kernels")
    report.say(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    tests = [start_tests(report)] if arguments.only in (None, "tests") else []
    if arguments.only in (None, "check"):
        check_all(report, graphs.get("cora_ml"))
    wait_for(report, "tests", tests, arguments.test_seconds)
    if tests:
        for line in (report.folder / "gpu_tests.txt").read_text(encoding="utf-8").strip().splitlines()[-8:]:
            report.say(f"    tests: {line[:150]}")
    if arguments.only in (None, "time"):
        for name, graph in graphs.items():
            for runs in (1, 10, 100):
                time_parts(report, f"{name} R={runs}", make_spec(graph, runs, "steps", "cuda"), Tuning())
        if "cora_ml" in graphs:
            time_parts(report, "cora_ml PPNP R=100", make_spec(graphs["cora_ml"], 100, "rows", "cuda"), Tuning())
    report.say("done")


if __name__ == "__main__":
    main()
