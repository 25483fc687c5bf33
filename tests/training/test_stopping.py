"""The paper's early stopping against a scalar version written from its description."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pprop import InputError, Stopping
from pprop.scoring import Scoring
from pprop.settings import CRITERIA
from pprop.training.loop import StoppingState
from pprop.training.scored import rule_of


def stop_by_loss(losses: list[float], patience: int) -> tuple[int, int]:
    """Return the same for the rule that watches the loss alone."""
    left = patience
    for epoch, loss in enumerate(losses):
        left = patience if loss <= min(losses[: epoch + 1]) else left - 1
        if left == 0:
            return epoch + 1, losses.index(min(losses[: epoch + 1]))
    return len(losses), losses.index(min(losses))


def stop_by_window(losses: list[float], length: int) -> tuple[int, int]:
    """Return the same for the first GCN's rule, which keeps the last epoch."""
    for epoch in range(length + 1, len(losses)):
        if losses[epoch] > np.mean(losses[epoch - length : epoch]):
            return epoch + 1, epoch
    return len(losses), len(losses) - 1


def stop_alone(losses: list[float], accuracies: list[float], patience: int) -> tuple[int, int]:
    """Return the number of epochs and the best epoch of one run, step by step as the paper words it."""
    left, best_loss, best_accuracy = patience, float("inf"), float("-inf")
    kept: tuple[float, float] | None = None
    best_epoch = -1
    for epoch, (loss, accuracy) in enumerate(zip(losses, accuracies, strict=True)):
        if kept is None or accuracy > kept[0] or (accuracy == kept[0] and loss < kept[1]):
            kept, best_epoch = (accuracy, loss), epoch
        if accuracy >= best_accuracy or loss <= best_loss:
            left = patience
        else:
            left -= 1
        best_loss, best_accuracy = min(best_loss, loss), max(best_accuracy, accuracy)
        if left == 0:
            return epoch + 1, best_epoch
    return len(losses), best_epoch


def stop_on_a_plateau(losses: list[float], accuracies: list[float], patience: int) -> tuple[int, int]:
    """Return the epochs of one run and the one it keeps: only real progress refills the patience."""
    left, reference, best_accuracy, best_epoch = patience, math.inf, -math.inf, -1
    for epoch, (loss, accuracy) in enumerate(zip(losses, accuracies, strict=True)):
        kept = (accuracies[best_epoch], -losses[best_epoch]) if best_epoch >= 0 else (-math.inf, -math.inf)
        if (accuracy, -loss) > kept:
            best_epoch = epoch
        progress = loss < 0.999 * reference
        left = patience if progress or accuracy > best_accuracy else left - 1
        reference, best_accuracy = loss if progress else reference, max(best_accuracy, accuracy)
        if left == 0:
            return epoch + 1, best_epoch
    return len(losses), best_epoch


def test_stopping_nodes_that_are_all_right_end_a_run_on_its_plateau_and_not_by_the_papers_rule() -> None:
    losses = 1e-3 + np.exp(-np.arange(2000) / 20)  # falls for ever, and soon by next to nothing
    ends: dict[str, int] = {}
    for criterion in ("paper", "plateau"):
        state = StoppingState(Stopping(100, 2000, criterion), runs=1)
        for loss in losses:
            state.update(np.array([loss]), np.array([1.0]))
        ends[criterion] = int(state.epochs[0])
    assert ends["paper"] == 2000
    assert 300 < ends["plateau"] < 500  # 100 epochs after the last drop of a thousandth


@pytest.mark.parametrize("device", [None, torch.device("cpu")], ids=["numpy", "torch"])
@pytest.mark.parametrize("patience", [1, 3, 10])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_runs_at_once_stop_like_each_run_alone(criterion: str, patience: int, device: torch.device | None) -> None:
    rng = np.random.default_rng(patience)
    runs, cap = 200, 60
    losses = np.round(np.linspace(2, 1, cap) + rng.normal(0, 0.3, (runs, cap)), 1)  # rounded, so that ties occur
    accuracies = np.round(rng.random((runs, cap)), 1)
    if criterion == "window":  # a mean is rounded as its library likes: no ties with it
        losses += 1e-3 * rng.random((runs, cap))
    state = StoppingState(Stopping(patience, cap, criterion), runs, device)
    given = (losses, accuracies) if device is None else (torch.from_numpy(losses), torch.from_numpy(accuracies))
    for epoch in range(cap + 5):  # an ended run may be told more, and nothing changes
        state.update(*(curve[:, min(epoch, cap - 1)] for curve in given))
    assert bool(state.ended.all())
    epochs, best = (list(map(int, values)) for values in (state.epochs, state.best_epoch))
    alone = [
        {
            "paper": lambda r: stop_alone(list(losses[r]), list(accuracies[r]), patience),
            "loss": lambda r: stop_by_loss(list(losses[r]), patience),
            "window": lambda r: stop_by_window(list(losses[r]), patience),
            "plateau": lambda r: stop_on_a_plateau(list(losses[r]), list(accuracies[r]), patience),
        }[criterion](r)
        for r in range(runs)
    ]
    assert [tuple(pair) for pair in zip(epochs, best, strict=True)] == alone
    assert len({e for e, _ in alone}) > 4  # the case is not degenerate: runs end at different epochs


def test_a_tie_keeps_the_earlier_epoch_but_refills_the_patience() -> None:
    state = StoppingState(Stopping(patience=2, max_epochs=100), runs=1)
    for _ in range(50):
        state.update(np.array([1.0]), np.array([0.5]))
    assert not state.ended[0]
    assert state.best_epoch[0] == 0


def test_runs_that_leave_do_not_disturb_the_others() -> None:
    rng = np.random.default_rng(1)
    whole = StoppingState(Stopping(patience=5), runs=6)
    part = StoppingState(Stopping(patience=5), runs=6)
    part.keep(np.array([1, 4]))
    for _ in range(20):
        loss, accuracy = rng.random(6), rng.random(6)
        whole.update(loss, accuracy)
        part.update(loss[[1, 4]], accuracy[[1, 4]])
    assert np.array_equal(whole.best_epoch[[1, 4]], part.best_epoch)
    assert np.array_equal(whole.ended[[1, 4]], part.ended)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_loss_that_is_not_finite_ends_the_run_and_is_kept(criterion: str) -> None:
    state = StoppingState(Stopping(patience=5, criterion=criterion), runs=2)
    state.update(np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    improved = state.update(np.array([np.nan, 1.1]), np.array([0.4, 0.4]))
    assert state.ended.tolist() == [True, False]
    assert improved[0]
    assert state.best_epoch[0] == 1
    assert np.isnan(state.kept_loss[0])


def test_an_unknown_criterion_is_refused() -> None:
    with pytest.raises(InputError, match="'criterion' parameter of Stopping must be one of 'paper', 'loss'"):
        Stopping(criterion="accuracy")


def test_a_criterion_that_has_no_rule_takes_none_from_the_others() -> None:
    rule = Stopping()
    object.__setattr__(rule, "criterion", "another")  # as if CRITERIA had one more
    state = StoppingState(rule, runs=1)
    for part in (state._better, state._exhausted):  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(AssertionError, match="no rule for the criterion 'another'"):
            part(np.array([1.0]), np.array([0.5]))
    with pytest.raises(InputError, match="must be 'paper' or 'plateau' with a scoring"):
        rule_of(rule, Scoring("accuracy", np.array([0, 1])))


@pytest.mark.parametrize("field", ["patience", "max_epochs"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_impossible_settings_are_refused(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"The '{field}' parameter of Stopping must be an integer of at least 1"):
        Stopping(**{field: value})  # pyright: ignore[reportArgumentType]  the point of the test


@pytest.mark.parametrize("criterion", ["paper", "loss", "window"])
@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_without_patience_a_run_makes_all_epochs_and_keeps_the_last(
    criterion: str, device: torch.device | None
) -> None:
    state = StoppingState(Stopping(None, 5, criterion), runs=1, device=device)
    make = np.array if device is None else torch.tensor
    for epoch in range(5):
        assert not bool(state.ended[0])
        state.update(make([1.0 + epoch]), make([0.9 - 0.1 * epoch]))  # worse and worse
    assert bool(state.ended[0])
    assert (int(state.epochs[0]), int(state.best_epoch[0]), float(state.kept_loss[0])) == (5, 4, 5.0)


def test_without_patience_a_run_that_diverges_ends_all_the_same() -> None:
    state = StoppingState(Stopping(None, 5), runs=2)
    state.update(np.array([np.nan, 1.0]), np.array([0.5, 0.5]))
    assert state.ended.tolist() == [True, False]
