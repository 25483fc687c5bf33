"""Modules: several runs, several alphas, every backend, the loop of a GPU, and a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pprop
from pprop import Graph, Split, Stopping
from pprop.kernels import BACKENDS, choose_backend
from pprop.models.inference import bind_propagation
from pprop.models.module import module_inputs
from pprop.training.loop import run_captured, run_loop
from pprop.training.modules import ModuleTrainer, _KernelLoss, _TorchLoss
from pprop.training.result import LoopResult
from pprop.training.task import Task, node_sets
from pprop.training.train import TrainOptions, train_alphas

pytestmark = pytest.mark.slow

RULE = Stopping(max_epochs=20)


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


def without_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


def assert_same(one: pprop.Trained, other: pprop.Trained, rtol: float = 1e-4) -> None:
    np.testing.assert_array_equal(one.epochs, other.epochs)
    for mine, theirs in zip(one.history, other.history, strict=True):
        np.testing.assert_allclose(mine.train_loss, theirs.train_loss, rtol=rtol)
        np.testing.assert_allclose(mine.stopping_loss, theirs.stopping_loss, rtol=rtol)
    for mine, theirs in zip(one.weights, other.weights, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(one.logits, other.logits, atol=20 * rtol)


@pytest.mark.parametrize(("seeds", "note"), [([4], "1 run"), ([4, 5, 6], "3 runs one after another")])
def test_runs_go_one_after_another_and_the_note_says_so(
    community_graph: Graph,
    community_splits: list[Split],
    seeds: list[int],
    note: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = pprop.APPNP(predictor=with_dropout)
    several = pprop.train(model, community_graph, community_splits[0], seeds=seeds, stopping=RULE, verbose=True)
    assert capsys.readouterr().err == f"modules: {note}\n"
    alone = pprop.train(model, community_graph, community_splits[0], seeds=seeds[-1], stopping=RULE)
    assert np.array_equal(several.logits[-1], alone.logits[0])


def test_several_alphas_are_trained_as_each_alone(community_graph: Graph, community_splits: list[Split]) -> None:
    few = TrainOptions(RULE)
    each = train_alphas(
        pprop.APPNP(predictor=without_dropout), community_graph, community_splits[0], few, alphas=[0.1, 0.5], seeds=4
    )
    for one, alpha in zip(each, (0.1, 0.5), strict=True):
        model = pprop.APPNP(alpha=alpha, predictor=without_dropout)
        assert_same(one, pprop.train(model, community_graph, community_splits[0], seeds=4, stopping=RULE), rtol=0)


def module_task(graph: Graph, splits: list[Split], backend: str, weights: np.ndarray[Any, Any] | None = None) -> Task:
    assert graph.labels is not None
    sets = (
        node_sets([getattr(split, name) for split in splits], graph.labels, weights) for name in ("train", "stopping")
    )
    train, stopping = sets
    return Task(
        graph=graph,
        kernels=choose_backend(backend, "cpu", "test").kernels,
        seeds=tuple(range(len(splits))),
        n_classes=3,
        train=train,
        stopping=stopping,
        rule=RULE,
        rate=0.01,
        device=torch.device("cpu"),
    )


class Silent:
    def epoch(self, epoch: int, runs_ended: int) -> None:
        pass

    def ended(self, result: LoopResult, runs: Any) -> None:
        pass


def test_the_loop_of_a_gpu_keeps_the_same_weights(community_graph: Graph, community_splits: list[Split]) -> None:
    task = module_task(community_graph, community_splits[:1], "reference")
    model = pprop.APPNP(predictor=with_dropout)
    needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
    rule = Stopping(patience=4, max_epochs=37)

    def trainer() -> ModuleTrainer:
        bound = bind_propagation(model, task.graph, task.kernels, needed)
        return ModuleTrainer(task, bound, module_inputs(task.graph))

    looked = run_loop(trainer(), 1, rule, Silent())
    replayed = run_captured(trainer(), 1, rule, Silent(), task.device)
    np.testing.assert_array_equal(looked.epochs, replayed.epochs)
    np.testing.assert_array_equal(looked.best_epoch, replayed.best_epoch)
    for one, other in zip(looked.weights, replayed.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kind", ["APPNP", "PPNP"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backend", ["reference", "numba", "triton"])
def test_the_loss_of_a_gpu_is_that_of_torch_on_every_backend(
    community_graph: Graph, community_splits: list[Split], kind: str, backend: str, weighted: bool
) -> None:
    if not next(b for b in BACKENDS if b.name == backend).computes_on("cpu"):
        pytest.skip(f"the {backend} backend does not compute on the CPU here")
    options: dict[str, Any] = {"steps": 2} if kind == "APPNP" else {}
    model = getattr(pprop, kind)(predictor=with_dropout, **options)
    weights = np.random.default_rng(0).random(90) if weighted else None
    found: list[list[torch.Tensor]] = []
    for name, loss_of in (("reference", _TorchLoss), (backend, _KernelLoss)):
        task = module_task(community_graph, community_splits[:1], name, weights)
        needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
        loss = loss_of(task, bind_propagation(model, task.graph, task.kernels, needed))
        values = list[torch.Tensor]()
        for epoch in range(3):  # each with masks of its own
            predictions = torch.randn(1, 90, 3, generator=torch.Generator().manual_seed(epoch))
            values += [*loss.gradient(predictions), *loss.evaluate(predictions)]
        found.append(values)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
@pytest.mark.parametrize("block", [None, 40])
def test_a_gpu_trains_a_module_as_a_cpu_does(
    community_graph: Graph, community_splits: list[Split], kind: str, block: int | None
) -> None:
    model = getattr(pprop, kind)(predictor=without_dropout, block_nodes=block)
    one, other = (
        pprop.train(model, community_graph, community_splits[0], seeds=1, stopping=RULE, device=device)
        for device in ("cpu", "cuda")
    )
    assert_same(one, other, rtol=1e-3)


@needs_gpu
def test_a_gpus_generator_is_left_alone(community_graph: Graph, community_splits: list[Split]) -> None:
    torch.cuda.manual_seed(0)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(0)
    model = pprop.APPNP(predictor=with_dropout)
    pprop.train(model, community_graph, community_splits[0], seeds=[1, 2], stopping=RULE, device="cuda")
    assert torch.equal(torch.rand(3, device="cuda"), expected)
