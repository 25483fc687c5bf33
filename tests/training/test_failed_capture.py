"""A CUDA graph that cannot be captured: epochs are launched one by one, with the same results, and torch stays usable."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import pprop
from pprop import Graph, Split
from pprop.kernels import BACKENDS, capture
from pprop.kernels.capture import Replayed
from pprop.models.inference import bind_propagation
from pprop.training import loop
from pprop.training.task import Task, node_sets
from pprop.training.trainers import network_trainer

RULE = pprop.Stopping(patience=7, max_epochs=70)
REFUSED = "operation not permitted when stream is capturing"
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU to capture on")


class Silent:
    def epoch(self, epoch, runs_ended):
        pass

    def ended(self, result, runs):
        pass


class RefusedGraph:
    """torch.cuda.graph as it behaves where an operation of the block waits for the device."""

    begun = 0

    def __init__(self, graph: object, **_: Any) -> None:
        self.captures_nothing = graph == "restored"

    def __enter__(self) -> None:
        type(self).begun += 1

    def __exit__(self, *_: object) -> None:
        if not self.captures_nothing:
            raise RuntimeError("operation failed due to a previous error during capture")


@pytest.fixture
def no_captures(monkeypatch: pytest.MonkeyPatch) -> type[RefusedGraph]:
    """A machine on which every capture fails, without a GPU."""
    names = iter(["graph", "restored"] * 99)
    fakes = {
        "synchronize": lambda device: None,
        "current_stream": lambda device: None,
        "stream": lambda stream: nullcontext(),
        "current_device": lambda: 0,
        "CUDAGraph": lambda: next(names),
        "graph_pool_handle": lambda: (0, 1),
        "graph": RefusedGraph,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(RefusedGraph, "begun", 0)
    return RefusedGraph


def waits() -> None:
    raise RuntimeError(f"CUDA error: {REFUSED}\nCompile with ...")


def trainer_of(graph: Graph, splits: list[Split]) -> Any:
    """A trainer of six runs that end at different epochs."""
    kernels = next(backend for backend in BACKENDS if backend.name == "reference").kernels
    labels = np.random.default_rng(3).integers(0, 3, 90)  # nothing to learn: runs end early, and at different epochs
    train, stopping = (
        node_sets(list(nodes), labels) for nodes in zip(*[(s.train, s.stopping) for s in splits], strict=True)
    )
    model, seeds = pprop.APPNP(hidden=4, steps=1), tuple(range(6))
    task = Task(graph.scaled(), kernels, seeds, 3, train, stopping, RULE, 0.05, torch.device("cpu"))
    needed = torch.cat([train.nodes.flatten(), stopping.nodes.flatten()])
    return network_trainer(task, bind_propagation(model, task.graph, kernels, needed), fused=False)


def test_a_refused_capture_is_a_warning_that_names_its_cause(no_captures: type[RefusedGraph]) -> None:
    assert gc.isenabled()
    with pytest.warns(UserWarning, match=rf"captured \(RuntimeError: CUDA error: {REFUSED}\). .* one by one") as told:
        assert capture.capture(torch.device("cpu"), waits) is None
    assert len(told) == 1
    assert gc.isenabled()
    assert no_captures.begun == 2  # the second gives the generator its state back


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), KeyboardInterrupt()])
def test_what_is_no_refusal_is_raised(
    no_captures: type[RefusedGraph], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(RefusedGraph, "__exit__", lambda *_: None)

    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        capture.capture(torch.device("cpu"), fails)
    assert no_captures.begun == 2
    assert gc.isenabled()


def test_epochs_that_cannot_be_captured_are_launched_and_give_the_same_runs(
    no_captures: type[RefusedGraph], community_graph: Graph, community_splits: list[Split]
) -> None:
    """It is tried once, although ended runs are packed away, which changes the shapes."""
    trainer, device = trainer_of(community_graph, community_splits), torch.device("cpu")
    plain = loop.run_loop(trainer, 6, RULE, Silent())
    assert len(set(plain.epochs.tolist())) > 2
    trainer = trainer_of(community_graph, community_splits)
    trainer.capturable = True
    with pytest.warns(UserWarning, match="No CUDA graph could be captured"):
        found = loop.run_captured(trainer, 6, RULE, Silent(), device)
    assert no_captures.begun == 2
    assert np.array_equal(found.epochs, plain.epochs)
    assert np.array_equal(found.stopping_loss, plain.stopping_loss)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(found.weights, plain.weights, strict=True))


def test_a_function_that_cannot_be_captured_is_called_every_time(no_captures: type[RefusedGraph]) -> None:
    replayed, seen = Replayed(), list[float]()

    def double(values: torch.Tensor) -> tuple[torch.Tensor]:
        seen.append(float(values[0]))
        return (2 * values,)

    assert replayed(double, torch.ones(2))[0].tolist() == [2, 2]
    with pytest.warns(UserWarning, match="No CUDA graph could be captured"):
        assert replayed(double, torch.full((2,), 2.0))[0].tolist() == [4, 4]
    assert replayed(double, torch.full((2,), 3.0))[0].tolist() == [6, 6]
    assert seen == [1, 2, 2, 3]  # the second time once for the capture and once for the answer
    assert no_captures.begun == 2


def module() -> torch.nn.Module:
    """It draws from torch's generator of the GPU in every epoch."""
    return torch.nn.Sequential(torch.nn.Linear(40, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3))


@needs_gpu
@pytest.mark.parametrize("name", ["APPNP", "PPNP", "GCN", "a module"])
def test_a_training_whose_capture_fails_gives_the_same_and_the_next_ones_are_captured_again(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model: Any = pprop.APPNP(predictor=module) if name == "a module" else getattr(pprop, name)()

    def trained() -> Any:
        return pprop.train(model, community_graph, community_splits, stopping=RULE, device="cuda", progress=False)

    expected = trained()
    device, stream = torch.device("cuda"), torch.cuda.current_stream()
    torch.cuda.manual_seed(5)
    wanted = torch.randn(3, device=device)
    usual = capture._capture

    def refused(device: torch.device, launches: Any) -> Any:
        def and_waits() -> None:
            launches()
            torch.ones(2, device=device).sum().item()

        return usual(device, and_waits)

    with monkeypatch.context() as broken:
        broken.setattr(capture, "_capture", refused)
        torch.cuda.manual_seed(5)
        with pytest.warns(UserWarning, match=rf"No CUDA graph .*{REFUSED}"):
            found = trained()
    assert torch.cuda.current_stream() == stream
    assert torch.equal(torch.randn(3, device=device), wanted)  # as if there had been no capture
    before = torch.cuda.memory_reserved()
    again = trained()
    assert torch.cuda.memory_reserved() <= before + 2**26
    for one in (found, again):
        assert np.array_equal(one.epochs, expected.epochs)
        np.testing.assert_allclose(one.logits, expected.logits, rtol=1e-4, atol=1e-4)
