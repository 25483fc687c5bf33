"""Modules of several runs stacked by torch.func, in blocks of nodes, and in mixed precision."""

from __future__ import annotations

from collections.abc import Callable
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
from pprop.training import together
from pprop.training.loop import run_captured, run_loop
from pprop.training.modules import ModuleTrainer
from pprop.training.result import LoopResult
from pprop.training.task import Task, node_sets
from pprop.training.train import TrainOptions, train_alphas

pytestmark = pytest.mark.slow

RULE = Stopping(max_epochs=20)
ALONE = "modules: 3 runs one after another: "


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


def without_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(40, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))


class Frozen(nn.Module):
    """Part of it is not trained, part of its state is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(40, 8), nn.Linear(8, 3)
        self.first.requires_grad_(False)
        self.register_buffer("scale", torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu() * self.scale)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 4, 3), nn.Dropout1d(0.4), nn.ReLU(), nn.Flatten(), nn.Linear(152, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x[:, None, :])


def trained(
    build: Callable[[], nn.Module], graph: Graph, splits: list[Split], *, kind: str = "APPNP", rule: Stopping = RULE,
    **options: Any,
) -> pprop.Trained:  # fmt: skip
    model = getattr(pprop, kind)(predictor=build, **options)
    return pprop.train(model, graph, splits[:3], seeds=[1, 2, 3], stopping=rule, verbose=True)


def assert_same(one: pprop.Trained, other: pprop.Trained, rtol: float = 1e-4) -> None:
    np.testing.assert_array_equal(one.epochs, other.epochs)
    for mine, theirs in zip(one.history, other.history, strict=True):
        np.testing.assert_allclose(mine.train_loss, theirs.train_loss, rtol=rtol)
        np.testing.assert_allclose(mine.stopping_loss, theirs.stopping_loss, rtol=rtol)
    for mine, theirs in zip(one.weights, other.weights, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(one.logits, other.logits, atol=20 * rtol)


@pytest.mark.parametrize("build", [with_dropout, without_dropout, Frozen, Convolution])
@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
def test_runs_together_agree_with_runs_one_by_one(
    community_graph: Graph,
    community_splits: list[Split],
    build: Callable[[], nn.Module],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone = trained(build, community_graph, community_splits, kind=kind)
    assert capsys.readouterr().err == f"{ALONE}runs go together only on cuda\n"
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    several = trained(build, community_graph, community_splits, kind=kind)
    assert capsys.readouterr().err.startswith("modules: 3 runs, 3 together; a run takes about ")
    assert_same(alone, several)


def test_runs_that_end_leave_the_others_together_as_they_would_be_alone(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Stopping(patience=3, max_epochs=120)
    weights = np.random.default_rng(0).random(90)

    def runs() -> pprop.Trained:
        model = pprop.APPNP(predictor=with_dropout)
        return pprop.train(
            model, community_graph, community_splits, seeds=list(range(6)), weights=weights, stopping=rule
        )

    alone = runs()
    assert len(set(alone.epochs.tolist())) > 2, alone.epochs
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    assert_same(alone, runs())


def test_several_alphas_go_together(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    few = TrainOptions(RULE)
    each = train_alphas(
        pprop.APPNP(predictor=without_dropout), community_graph, community_splits[0], few, alphas=[0.1, 0.5], seeds=4
    )
    for one, alpha in zip(each, (0.1, 0.5), strict=True):
        model = pprop.APPNP(alpha=alpha, predictor=without_dropout)
        assert_same(one, pprop.train(model, community_graph, community_splits[0], seeds=4, stopping=RULE))


class Noisy(nn.Linear):
    """Draws randomness by other means than dropout."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  torch's name
        return super().forward(input) + (0.01 * torch.randn(len(input), 3) if self.training else 0)


class Hidden(nn.Linear):
    """Has a tensor of its own that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__(40, 3)
        self.shift = torch.randn(3)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        return super().forward(input) + self.shift


class Branching(nn.Linear):
    """Looks at a value."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        logits = super().forward(input)
        return logits if logits.sum() > 0 else 2 * logits


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(40, 3)
        self.other = self.one

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) + self.other(x)


class Bilinear(nn.Linear):
    """The same weights in another use."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        return super().forward(input.square())


def odd_type() -> nn.Module:
    return (nn.Linear if torch.rand(()) < 0.95 else Bilinear)(40, 3)  # of the seeds 1, 2 and 3 the last


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: Noisy(40, 3), "torch.func cannot compute it (RuntimeError: vmap: called random operation"),
        (Hidden, "together it does not predict what it predicts alone"),
        (lambda: Branching(40, 3), "torch.func cannot compute it (RuntimeError"),
        (lambda: nn.Sequential(nn.Linear(40, 3), nn.BatchNorm1d(3)), "its forward pass changes its buffers"),
        (odd_type, "the modules of the runs differ in more than the values of their tensors"),
        (Shared, "it uses a tensor under two names"),
    ],
)
def test_a_module_that_cannot_go_together_is_trained_alone_and_the_note_says_why(
    community_graph: Graph,
    community_splits: list[Split],
    build: Callable[[], nn.Module],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone = trained(build, community_graph, community_splits)
    capsys.readouterr()
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    several = trained(build, community_graph, community_splits)
    assert capsys.readouterr().err.startswith(ALONE + reason)
    assert_same(alone, several, rtol=0)


def test_mixed_precision_goes_one_after_another(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    trained(without_dropout, community_graph, community_splits, mixed_precision=True)
    assert capsys.readouterr().err.startswith(ALONE + "torch.autocast has no effect inside torch.func.vmap")


def test_memory_limits_how_many_go_together(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    alone = trained(with_dropout, community_graph, community_splits)
    capsys.readouterr()
    monkeypatch.setattr(together, "TOGETHER_ON", {"cpu"})
    monkeypatch.setattr(together, "memory_limit", lambda device: 45_000)
    several = trained(with_dropout, community_graph, community_splits)
    assert capsys.readouterr().err.startswith("modules: 3 runs, 2 together; ")
    assert_same(alone, several)


def module_task(graph: Graph, splits: list[Split], backend: str) -> Task:
    assert graph.labels is not None
    sets = (node_sets([getattr(split, name) for split in splits], graph.labels) for name in ("train", "stopping"))
    train, stopping = sets
    return Task(
        graph=graph, kernels=choose_backend(backend, "cpu", "test").kernels, seeds=tuple(range(len(splits))),
        n_classes=3, train=train, stopping=stopping, rule=RULE, rate=0.01, device=torch.device("cpu"),
    )  # fmt: skip


class Silent:
    def epoch(self, epoch: int, runs_ended: int) -> None:
        pass

    def ended(self, result: LoopResult, runs: Any) -> None:
        pass


@pytest.mark.parametrize("runs", [1, 5])
def test_the_loop_of_a_gpu_keeps_the_same_weights(
    community_graph: Graph, community_splits: list[Split], runs: int
) -> None:
    task = module_task(community_graph, community_splits[:runs], "reference")
    model = pprop.APPNP(predictor=with_dropout)
    needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
    rule = Stopping(patience=4, max_epochs=37)

    def trainer() -> ModuleTrainer:
        bound = bind_propagation(model, task.graph, task.kernels, needed)
        return ModuleTrainer(task, bound, module_inputs(task.graph))

    looked = run_loop(trainer(), runs, rule, Silent())
    replayed = run_captured(trainer(), runs, rule, Silent(), task.device)
    np.testing.assert_array_equal(looked.epochs, replayed.epochs)
    np.testing.assert_array_equal(looked.best_epoch, replayed.best_epoch)
    for one, other in zip(looked.weights, replayed.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kind", ["APPNP", "PPNP"])
@pytest.mark.parametrize("backend", ["numba", "triton"])
def test_every_backend_propagates_the_predictions_of_several_modules(
    community_graph: Graph, community_splits: list[Split], kind: str, backend: str
) -> None:
    if not next(b for b in BACKENDS if b.name == backend).computes_on("cpu"):
        pytest.skip(f"the {backend} backend does not compute on the CPU here")
    values: list[np.ndarray[Any, Any]] = []
    options: dict[str, Any] = {"steps": 2} if kind == "APPNP" else {}
    model = getattr(pprop, kind)(predictor=with_dropout, **options)
    for name in ("reference", backend):
        task = module_task(community_graph, community_splits[:2], name)
        needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
        bound = bind_propagation(model, task.graph, task.kernels, needed)
        trainer = ModuleTrainer(task, bound, module_inputs(task.graph))
        values.append(np.stack([trainer.epoch().numpy() for _ in range(3)]))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4)


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
def test_a_gpu_trains_several_modules_as_one_by_one(
    community_graph: Graph, community_splits: list[Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rule = pprop.APPNP(predictor=with_dropout), Stopping(patience=20, max_epochs=20)
    several = pprop.train(model, community_graph, community_splits, seeds=list(range(6)), stopping=rule, device="cuda")
    monkeypatch.setattr(together, "TOGETHER_ON", set())
    alone = pprop.train(model, community_graph, community_splits, seeds=list(range(6)), stopping=rule, device="cuda")
    assert_same(several, alone, rtol=1e-3)


@needs_gpu
def test_a_gpus_generator_is_left_alone(community_graph: Graph, community_splits: list[Split]) -> None:
    torch.cuda.manual_seed(0)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(0)
    model = pprop.APPNP(predictor=with_dropout)
    pprop.train(model, community_graph, community_splits[0], seeds=[1, 2], stopping=RULE, device="cuda")
    assert torch.equal(torch.rand(3, device="cuda"), expected)
