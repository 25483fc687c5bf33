"""Claim: on a GPU a user's own module with our propagation makes an epoch 3 times as fast as with PyTorch Geometric's APPNP
layer, and the propagation alone, forward and backward, is 10 times as fast.

    python benchmarks/modules.py --device cuda --out results/gpu/modules.json
    python benchmarks/modules.py small --blocks 3      # anywhere, to see that it runs

The module is the same on both sides: two layers, h = 64, dropout 0.5 before each. The graph and the features are random; K = 10,
dropout 0.5 on the edges. An epoch is one training step of one run and the evaluation on the stopping nodes. Contestants take turns in
one process. The propagation alone is measured as the training runs it: captured once, replayed. The last line is one JSON
object, with settings and commit; where the sources are a copy without its git folder, the variable COMMIT names that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  torch's own name for it
from torch import Tensor, nn

import pprop
from _measure import describe_machine, describe_sources, interleave, percentiles, ratios, time_epochs, warn_if_busy
from _ours import difference_timer
from _peers import DROPOUT, HIDDEN, PENALTY, RATE, STEPS, Problem, PygPropagation
from dense import make_graph
from pprop.graph import transition_matrix
from pprop.kernels import Draw, choose_backend
from pprop.kernels.capture import Replayed, call_directly
from pprop.models.model import network_inputs
from pprop.models.module import module_inputs

ALPHA = 0.1
# nodes, entries of the adjacency, features, classes, runs at once
SHAPES = {
    "89k_500": (89_250, 900_000, 500, 7, 1),
    "89k_500_8_runs": (89_250, 900_000, 500, 7, 8),
    "small": (2_000, 20_000, 50, 7, 1),
}
MODULE = {"layers": 2, "hidden": HIDDEN, "dropout": DROPOUT, "steps": STEPS, "alpha": ALPHA, "edge_dropout": DROPOUT}
GOALS = {"epoch": 3, "propagation": 10}  # times as fast as the faster form of PyTorch Geometric's layer


def main() -> None:
    """Measure every shape; print a line each, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--blocks", type=int, default=5, help="turns of every contestant")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one contestant's turn, at least one epoch")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", type=Path, help="file for the JSON")
    arguments = parser.parse_args()
    warn_if_busy()
    chosen = arguments.shapes or ["89k_500", "89k_500_8_runs"]
    report: dict[str, Any] = {"benchmark": "modules", **describe_sources(), "goals": GOALS, "module": MODULE}
    peers = {} if arguments.no_peers else {"torch_geometric": metadata.version("torch_geometric")}
    report |= {"machine": describe_machine(arguments.device) | peers, "shapes": {}}
    for name in chosen:
        row = report["shapes"][name] = measure(SHAPES[name], arguments)
        print(f"{name}: {json.dumps(row)}", file=sys.stderr, flush=True)
    text = json.dumps(report)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")
    print(text)


def measure(shape: tuple[int, int, int, int, int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return milliseconds and ratios of the epochs and of the propagation of one shape."""
    (nodes, entries, features, classes, runs), device = shape, arguments.device
    graph = make_graph(nodes, entries, features, 1.0, classes)
    order = np.random.default_rng(1).permutation(graph.n_nodes)
    split = pprop.Split(order[: 20 * classes], order[20 * classes : 20 * classes + 500], order[-1000:])
    assert graph.labels is not None
    problem = Problem(
        name="random",
        alpha=ALPHA,
        features=network_inputs(graph),
        transition=transition_matrix(graph).to_scipy().astype(np.float32),
        adjacency=graph.adjacency,
        labels=torch.tensor(graph.labels, device=device),
        train=torch.tensor(split.train, device=device),
        stopping=torch.tensor(split.stopping, device=device),
        n_classes=classes,
        device=device,
    )

    def network() -> nn.Module:
        first, last = nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)
        return nn.Sequential(nn.Dropout(DROPOUT), first, nn.ReLU(), nn.Dropout(DROPOUT), last)

    forms = () if arguments.no_peers else ("index", "csr")
    layers = {f"pyg_{'edges' if form == 'index' else form}": PygPropagation(problem, form) for form in forms}
    found: dict[str, Any] = {"runs": runs, "nodes": graph.n_nodes, "entries": graph.adjacency.nnz}
    found |= {"features": features, "classes": classes}
    epochs = {
        "pprop": ours(graph, split, network, runs, arguments),
        "pprop_mixed_precision": ours(graph, split, network, runs, arguments, mixed_precision=True),
        "pprop_blocks": ours(graph, split, network, runs, arguments, block_nodes=-(-nodes // 4)),
    }
    inputs = module_inputs(graph, torch.device(device))
    epochs |= {name: timer(peer(problem, layer, network(), inputs), arguments) for name, layer in layers.items()}
    measured = interleave(epochs, arguments.blocks)
    measured = {name: [ms / (runs if "pprop" in name else 1) for ms in each] for name, each in measured.items()}
    found["epoch_ms"] = {name: percentiles(values) for name, values in measured.items()}
    found["epoch_ratio"] = ratios(measured)
    alone: dict[str, Callable[[], float]] = {"pprop": timer(our_propagation(graph, classes, device), arguments)}
    alone |= {
        name: timer(their_propagation(layer, graph.n_nodes, classes, device), arguments)
        for name, layer in layers.items()
    }
    measured = interleave(alone, arguments.blocks)
    found["propagation_ms"] = {name: percentiles(values) for name, values in measured.items()}
    found["propagation_ratio"] = ratios(measured)
    return found


def timer(call: Callable[[], object], arguments: argparse.Namespace) -> Callable[[], float]:
    """Return a function that measures one call in milliseconds; the first calls, which compile and capture, are over."""
    for _ in range(3):
        call()
    return lambda: time_epochs(call, arguments.seconds, arguments.device)


def ours(
    graph: pprop.Graph,
    split: pprop.Split,
    network: Callable[[], nn.Module],
    runs: int,
    arguments: argparse.Namespace,
    **options: Any,
) -> Callable[[], float]:
    """Return a function that measures an epoch of `pprop.train` with the module."""
    model = pprop.APPNP(ALPHA, STEPS, predictor=network, propagation_dropout=DROPOUT, penalty=PENALTY, **options)

    def train(epochs: int) -> float:
        begin = time.perf_counter()
        pprop.train(
            model,
            graph,
            split,
            seeds=list(range(runs)),
            device=arguments.device,
            progress=False,
            learning_rate=RATE,
            stopping=pprop.Stopping(patience=epochs, max_epochs=epochs),
        )
        return time.perf_counter() - begin

    return difference_timer(train, arguments.seconds)


def peer(problem: Problem, layer: PygPropagation, module: nn.Module, inputs: Tensor) -> Callable[[], object]:
    """Return an epoch of one run with the same module and PyTorch Geometric's layer, written to be fast."""
    module = module.to(problem.device)
    first = next(module.parameters())
    optimizer = torch.optim.Adam(module.parameters(), lr=RATE, fused=True)

    def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels) + 0.5 * PENALTY * first.square().sum()

    def epoch() -> object:
        module.train()
        optimizer.zero_grad()
        logits = layer(module(inputs), training=True)[problem.train]
        loss_of(logits, problem.labels[problem.train]).backward()
        optimizer.step()
        module.eval()
        with torch.no_grad():
            logits, labels = layer(module(inputs), training=False)[problem.stopping], problem.labels[problem.stopping]
            accuracy = (logits.argmax(dim=1) == labels).to(torch.float32).mean()
            return torch.stack([loss_of(logits, labels), accuracy]).cpu()  # which early stopping waits for

    return epoch


def our_propagation(graph: pprop.Graph, classes: int, device: str) -> Callable[[], object]:
    """Return forward and backward of our propagation with dropout, as the training of a module replays them."""
    place = torch.device(device)
    kernels = choose_backend("auto", place.type, "benchmark").kernels
    steps = kernels.steps(transition_matrix(graph), ALPHA, STEPS)
    predictions = torch.randn(1, graph.n_nodes, classes, device=place)
    epoch = torch.zeros(1, dtype=torch.int64, device=place) if place.type == "cuda" else 0
    draw = Draw(torch.tensor([1], device=place), epoch, DROPOUT)

    def both(values: Tensor) -> tuple[Tensor, Tensor]:
        found = steps.forward(values, draw), steps.adjoint(values, draw)
        if isinstance(epoch, Tensor):
            epoch.add_(1)  # every epoch has masks of its own
        return found

    call = Replayed() if place.type == "cuda" else call_directly
    return lambda: call(both, predictions)


def their_propagation(layer: PygPropagation, nodes: int, classes: int, device: str) -> Callable[[], object]:
    """Return forward and backward of PyTorch Geometric's layer."""
    predictions = torch.randn(nodes, classes, device=device, requires_grad=True)
    gradient = torch.randn(nodes, classes, device=device)

    def both() -> object:
        (found,) = torch.autograd.grad(layer(predictions, training=True), predictions, gradient)
        return found

    return both


if __name__ == "__main__":
    main()
