"""A run whose loss or logits cease to be finite ends with an error that names it, and the other runs do not notice."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
import torch

import pprop
from pprop import DivergenceError, Graph, Split, Stopping, Trained
from pprop.kernels.contract import Trainer
from pprop.models import APPNP, GAT, GCN, JK, MLP, NGCN, PPNP, SolvedPPNP
from pprop.settings import CRITERIA
from pprop.training import trainers
from pprop.training.loop import StoppingState, run_captured, run_loop
from pprop.training.train import TrainOptions, train_alphas

pytestmark = pytest.mark.slow

RULE = Stopping(patience=3, max_epochs=12)
BAD = 7
"""The seed of the run that diverges."""


class Linear(torch.nn.Module):
    """A module that predicts what `change` makes of its logits and of how often it was trained."""

    def __init__(self, change: Callable[[torch.Tensor, int], torch.Tensor] = lambda logits, step: logits) -> None:
        super().__init__()
        self.layer, self.change, self.steps = torch.nn.Linear(40, 3), change, 0

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.steps += self.training
        return self.change(self.layer(features), self.steps)


MODELS = {
    "fused": APPNP(hidden=8),
    "exact": PPNP(hidden=8),
    "alone": MLP(hidden=8),
    "deep": APPNP(hidden=(8, 8)),
    "gcn": GCN(hidden=8),
    "gat": GAT(heads=2, units=4),
    "jk": JK(hidden=8),
    "ngcn": NGCN(hidden=4, powers=2, replicas=1),
    "solved": SolvedPPNP(hidden=8),
    "module": APPNP(predictor=Linear),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture
def bad_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with the seed `BAD` begin with weights whose squares float32 cannot hold."""

    def spoilt(initial: Callable[..., list[torch.Tensor]]) -> Callable[..., list[torch.Tensor]]:
        def weights(first: Any, seeds: torch.Tensor, kernels: Any) -> list[torch.Tensor]:
            factor = torch.where(seeds == BAD, 1e30, 1.0).float()[:, None, None]
            return [weight * factor for weight in initial(first, seeds, kernels)]

        return weights

    monkeypatch.setattr(trainers, "initial_weights", spoilt(trainers.initial_weights))


def fit(model: Any, graph: Graph, splits: list[Split], seeds: list[int], **options: Any) -> Trained:
    return pprop.train(model, graph, splits, seeds=seeds, stopping=RULE, progress=False, **options)


@pytest.mark.parametrize("rate", [1e30, 1e300])
@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_learning_rate_that_diverges_is_an_error_that_names_the_epoch(
    kind: str, backend: str, rate: float, community_graph: Graph, community_splits: list[Split]
):
    with pytest.raises(DivergenceError, match=r"Training diverged in epoch 1: .* Use a lower learning_rate") as caught:
        fit(MODELS[kind], community_graph, community_splits[:1], [0], learning_rate=rate, backend=backend)
    assert (caught.value.runs, caught.value.epochs, caught.value.finished) == ((0,), (1,), None)


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("model", [APPNP(hidden=8, penalty=1e45), GCN(hidden=8, penalty=1e45)], ids=["appnp", "gcn"])
def test_a_penalty_beyond_float32_diverges(model: Any, backend: str, community_graph, community_splits):
    with pytest.raises(DivergenceError, match="epoch 1:"):
        fit(model, community_graph, community_splits[:1], [0], backend=backend)


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"module"}))
def test_the_other_runs_of_a_batch_come_out_with_the_bits_they_have_alone(
    kind: str, bad_start: None, community_graph: Graph, community_splits: list[Split]
):
    seeds, told = [3, BAD, 5], dict[int, Trained]()

    def note(trained: Trained, runs: np.ndarray) -> None:
        assert trained.seeds == tuple(seeds[run] for run in runs.tolist())
        told.update(dict.fromkeys(runs.tolist(), trained))

    with pytest.raises(DivergenceError, match="Training diverged in epoch 1 of run 1:") as caught:
        fit(MODELS[kind], community_graph, community_splits[:3], seeds, backend="numba", on_end=note)
    others = caught.value.finished
    assert (caught.value.runs, sorted(told), others.seeds) == ((1,), [0, 2], (3, 5))
    for place, run in enumerate((0, 2)):
        alone = fit(MODELS[kind], community_graph, [community_splits[run]], [seeds[run]], backend="numba")
        assert others.splits[place] is community_splits[run]
        assert others.logits[place].tobytes() == alone.logits[0].tobytes()
        assert others.stopping_loss[place] == alone.stopping_loss[0]
        assert others.history[place].train_loss.tobytes() == alone.history[0].train_loss.tobytes()
        for mine, theirs in zip(others.weights, alone.weights, strict=True):
            assert mine[place].tobytes() == theirs[0].tobytes()


@pytest.mark.parametrize("kind", ["deep", "gcn"])
def test_on_the_reference_backend_the_other_runs_are_unharmed(kind, bad_start, community_graph, community_splits):
    with pytest.raises(DivergenceError) as caught:
        fit(MODELS[kind], community_graph, community_splits[:3], [3, BAD, 5], backend="reference")
    pair = fit(MODELS[kind], community_graph, [community_splits[k] for k in (0, 2)], [3, 5], backend="reference")
    assert np.array_equal(caught.value.finished.epochs, pair.epochs)
    np.testing.assert_allclose(caught.value.finished.logits, pair.logits, rtol=1e-4, atol=1e-5)


def test_modules_after_one_that_diverges_are_trained(community_graph: Graph, community_splits: list[Split]):
    made: list[Linear] = []

    def build() -> Linear:  # once for the training of a run, and once for the logits of one that is sound
        late = len(made) == 2
        made.append(Linear(lambda logits, step: logits * (float("nan") if late and step > 2 else 1.0)))
        return made[-1]

    with pytest.raises(DivergenceError, match="epoch 3 of run 1:") as caught:  # two sound epochs do not save it
        fit(MLP(predictor=build), community_graph, community_splits[:3], [0, 1, 2])
    assert caught.value.finished.seeds == (0, 2)


def test_logits_that_are_not_finite_far_from_all_labels_are_an_error(community_graph, community_splits):
    (split,) = community_splits[:1]

    def spoil(logits: torch.Tensor, step: int) -> torch.Tensor:
        factor = torch.ones(90, 1)
        factor[split.evaluation[0]] = float("nan")
        return logits * factor

    with pytest.raises(DivergenceError, match="the logits are not finite"):
        fit(MLP(predictor=lambda: Linear(spoil)), community_graph, [split], [0])


def test_a_class_of_probability_zero_is_no_divergence(community_graph: Graph, community_splits: list[Split]):
    (split,) = community_splits[:1]
    assert community_graph.labels is not None
    never = torch.from_numpy((community_graph.labels[:, None] + 1) % 3 == np.arange(3))

    def rule_out(logits: torch.Tensor, step: int) -> torch.Tensor:
        return logits.masked_fill(never, -torch.inf)

    trained = fit(MLP(predictor=lambda: Linear(rule_out), penalty=0.0), community_graph, [split], [0])
    assert np.array_equal(np.isneginf(trained.logits[0]), never.numpy())
    assert np.isfinite(trained.predict_proba()).all()


def test_the_runs_of_other_alphas_are_finished(bad_start: None, community_graph: Graph, community_splits: list[Split]):
    common = TrainOptions(RULE, progress=False, backend="numba")
    model, splits, alphas = APPNP(hidden=8), community_splits[:2], [0.1, 0.5]
    with pytest.raises(DivergenceError, match=r"epoch 1 of run 1 with alpha 0\.1, epoch 1 of run 1 with") as caught:
        train_alphas(model, community_graph, splits, common, alphas=alphas, seeds=[3, BAD])
    assert caught.value.runs == (1, 3)
    alone = train_alphas(model, community_graph, splits[:1], common, alphas=alphas, seeds=[3])
    for mine, theirs in zip(caught.value.finished, alone, strict=True):
        assert (mine.model, mine.seeds) == (theirs.model, (3,))
        assert mine.logits.tobytes() == theirs.logits.tobytes()
    with pytest.raises(DivergenceError) as caught:
        train_alphas(model, community_graph, splits[:1], replace(common, learning_rate=1e30), alphas=alphas)
    assert caught.value.finished is None


class Told(Trainer):
    """A trainer whose curves are given, (epochs, runs); the weights of a run are its number and the epoch."""

    def __init__(self, losses: np.ndarray) -> None:
        self._losses, self._slots, self._epoch = torch.from_numpy(losses).float(), torch.arange(losses.shape[1]), 0
        self._best = self.weights()

    def epoch(self) -> torch.Tensor:
        loss = self._losses[min(self._epoch, len(self._losses) - 1), self._slots]
        self._epoch += 1
        return torch.stack([loss, loss, torch.full_like(loss, 0.5)])

    def weights(self) -> list[torch.Tensor]:
        return [torch.stack([self._slots, torch.full_like(self._slots, self._epoch)], dim=1).float()[:, None]]

    def remember(self, wanted: torch.Tensor) -> None:
        self._best = [torch.where(wanted[:, None, None], self.weights()[0], self._best[0])]

    def remembered(self) -> list[torch.Tensor]:
        return self._best

    def keep(self, slots: torch.Tensor) -> None:
        self._slots, self._best = self._slots[slots], [self._best[0][slots]]


class Silent:
    def epoch(self, epoch: int, runs_ended: int) -> None:
        pass

    def ended(self, result: Any, runs: Any) -> None:
        pass


@pytest.mark.parametrize("loop", ["plain", "captured"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_run_ends_in_the_epoch_in_which_it_diverges_and_no_other_does(loop: str, value: float):
    losses = np.linspace(2.0, 1.0, 80)[:, None] * np.array([1.0, 1.1, 1.2])
    losses[40:, 1] = value
    rule, silent = Stopping(patience=10, max_epochs=80), Silent()
    if loop == "plain":
        result = run_loop(Told(losses), 3, rule, silent)
    else:
        result = run_captured(Told(losses), 3, rule, silent, torch.device("cpu"))
    assert result.epochs.tolist() == [80, 41, 80]
    assert result.best_epoch.tolist() == [79, 40, 79]
    assert np.isfinite(result.stopping_loss).tolist() == [True, False, True]
    assert result.weights[0][[0, 2], 0].tolist() == [[0, 80], [2, 80]]


@pytest.mark.parametrize("device", [None, torch.device("cpu")], ids=["numpy", "torch"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_is_told_of_a_run_that_has_ended_does_not_make_it_diverge(criterion: str, device: torch.device | None):
    state = StoppingState(Stopping(patience=1, max_epochs=2, criterion=criterion), 1, device)
    wrap = (lambda x: np.array([x])) if device is None else (lambda x: torch.tensor([x], dtype=torch.float64))
    for loss in (1.0, 0.9, float("nan")):
        state.update(wrap(loss), wrap(0.5))
    assert (bool(state.ended[0]), float(state.kept_loss[0]), int(state.epochs[0])) == (True, 0.9, 2)


def test_many_runs_are_counted_and_the_error_has_them_all(community_graph: Graph, community_splits: list[Split]):
    with pytest.raises(DivergenceError, match="epoch 1 of run 4 and in 3 more runs:") as caught:
        fit(APPNP(hidden=8), community_graph, community_splits[:1] * 8, list(range(8)), learning_rate=1e30)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  scikit-learn brings errors home from processes
    assert (str(again), again.runs, again.epochs) == (str(caught.value), tuple(range(8)), (1,) * 8)
