"""Compare four epochs of the GPU's fused trainer with float64, and time an epoch of 100 runs of APPNP and its kernels.

    PPROP_DATA=folder PYTHONPATH=src python3 experiments/gpu_kernels.py
    PYTHONPATH=src:benchmarks python3 experiments/gpu_kernels.py --dense    # the shapes of benchmarks/dense.py

Float64 is the reference backend's program of single operations, with the same masks. Times are medians of graph replays between
events; that of the whole epoch is the mean over 64 in an unbroken row, so that masks count for what they cost.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pprop import APPNP, MLP, PPNP, Graph, Split, Stopping, load_dataset, paper_split
from pprop.kernels.contract import Trainer
from pprop.kernels.registry import choose_backend
from pprop.kernels.triton_gpu.trainer import TritonTrainer
from pprop.models import Model
from pprop.models.inference import PropagatedModel, bind_propagation
from pprop.settings import LEARNING_RATE
from pprop.training.epoch import NetworkObjective, RunsTrainer
from pprop.training.task import Task, node_sets
from pprop.training.trainers import network_trainer

DEVICE = torch.device("cuda")
EPOCHS, RUNS, RATE = 4, 100, LEARNING_RATE.default


def bind(
    model: Model, graph: Graph, runs: int, backend: str, splits: list[Split] | None = None
) -> tuple[Task, PropagatedModel]:
    """Return the training of some runs, each with a split of its own, on a backend."""
    splits = splits or [paper_split(graph, seed, test=False) for seed in range(runs)]
    assert graph.labels is not None
    sets = [[split.train for split in splits], [split.stopping for split in splits]]
    train, stopping = (node_sets(nodes, graph.labels).to(DEVICE) for nodes in sets)
    kernels = choose_backend(backend, DEVICE.type, "train").kernels
    task = Task(graph, kernels, tuple(range(runs)), graph.n_classes, train, stopping, Stopping(), RATE, DEVICE)
    needed = torch.cat([train.nodes.flatten(), stopping.nodes.flatten()])
    return task, bind_propagation(model, graph, kernels, needed)


def check(model: Model, graph: Graph, name: str) -> None:
    """Compare losses and weights of three runs with float64."""
    trainer = network_trainer(*bind(model, graph, 3, "triton"), fused=True)
    task, bound = bind(model, graph, 3, "reference")
    weights = [weight.double() for weight in trainer.weights()]
    twin = RunsTrainer(task, NetworkObjective(task, bound), weights, [model.penalty, 0.0])
    losses = max(float((trainer.epoch() - twin.epoch())[:2].abs().max()) for _ in range(EPOCHS))
    pairs = zip(trainer.weights(), twin.weights(), strict=True)
    off = [f"{float(((found - exact).square().sum() / exact.square().sum()).sqrt()):.1e}" for found, exact in pairs]
    print(
        f"{name}: {EPOCHS} epochs, losses off by {losses:.1e}, weights by {' and '.join(off)} of their norm", flush=True
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


def replayed(function: Callable[[], Any], row: int = 1, repeats: int = 15) -> float:
    """Return the median milliseconds of a replay of the captured function, so many in a row."""
    graph, found = captured(function), list[float]()
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(row):
            graph.replay()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / row)
    return float(np.median(found))


def parts(trainer: TritonTrainer) -> dict[str, Callable[[], Any]]:
    """Return the kernels of an epoch in their order."""
    network, propagation, clock, seeds = trainer.network, trainer.propagation, trainer.clock, trainer.seeds
    steps: Any = propagation
    logits = propagation.forward(network, clock, seeds, ahead=0)
    return {
        "backward steps": lambda: propagation.backward(clock, seeds),
        "backward second": lambda: network.backward_second(propagation.above),
        "adam second": lambda: network.adam_second(trainer.corrections, RATE),
        "backward first": lambda: network.backward_first(clock, trainer.corrections, RATE),
        "draw nothing new": lambda: trainer.draw(ahead=0, force=False),
        "draw everything": lambda: trainer.draw(ahead=0, force=True),
        "forward layers": lambda: steps.predict(network, clock, ahead=0),
        "forward steps": lambda: steps.forward_steps(clock, ahead=0),
        "losses": lambda: trainer.losses(logits),
        "finish": lambda: trainer.finish(advance=0),
    }


def show(name: str, trainer: Trainer, runs: int) -> None:
    """Print the times of an epoch and of its kernels."""
    assert isinstance(trainer, TritonTrainer)
    print(f"{name}, {runs} runs: {replayed(trainer.epoch, row=64, repeats=3):.3f} ms an epoch", flush=True)
    trainer.clock.fill_(5)  # begins no block of masks
    print("".join(f"    {part:18} {replayed(function):.3f} ms\n" for part, function in parts(trainer).items()))


def dense() -> None:
    """Show all shapes of the benchmark but the largest."""
    benchmark: Any = importlib.import_module("dense")
    for name, (nodes, entries, features, share, classes, runs) in benchmark.GPU_SHAPES.items():
        if nodes < benchmark.LARGE:
            graph = benchmark.make_graph(nodes, entries, features, share, classes).scaled()
            order = np.random.default_rng(1).permutation(nodes)
            split = Split(order[: 20 * classes], order[20 * classes : 20 * classes + 500], order[-1000:])
            begin = time.perf_counter()
            trainer = network_trainer(*bind(APPNP(), graph, runs, "triton", [split] * runs), fused=True)
            torch.cuda.synchronize()
            print(f"trainer made in {time.perf_counter() - begin:.2f} s, compilation included")
            show(name, trainer, runs)


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    if sys.argv[1:] == ["--dense"]:
        dense()
        return
    for name, model in {"APPNP": APPNP(), "PPNP": PPNP(), "MLP": MLP()}.items():
        check(model, load_dataset("cora_ml"), f"Cora-ML, {name}")
    for name in ("cora_ml", "pubmed", "ms_academic"):
        show(name, network_trainer(*bind(APPNP(), load_dataset(name), RUNS, "triton"), fused=True), RUNS)


if __name__ == "__main__":
    main()
