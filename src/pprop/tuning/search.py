"""Optuna's part: what to try next, and the record of what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pprop._errors import FormatError
from pprop._optional import require
from pprop.tuning.space import Range, Space

__all__ = ["add_trial", "finished", "propose"]


def propose(study: Any, space: Space, seed: int, done: int) -> tuple[Any, dict[str, Any]]:
    """Return Optuna's trial and the point of the space that it proposes, a function of the seed and the trials done.

    The sampler is made anew for every trial, so that a search which was interrupted proposes what it would have.
    """
    optuna: Any = _optuna()
    study.sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + done) % 2**32)
    trial = study.ask(fixed_distributions=_distributions(space))
    return trial, _point(space, trial.params)


def add_trial(
    study: Any, space: Space, token: Any, point: Mapping[str, Any], scores: tuple[float, ...], seconds: float
) -> None:
    """Record a trial that has ended: one that Optuna proposed, or, without a token, any other."""
    optuna: Any = _optuna()
    value, notes = sum(scores) / len(scores), {"scores": list(scores), "seconds": seconds}
    if token is None:
        params = {name: _stored(space, name, value) for name, value in point.items()}
        made = optuna.trial.create_trial(
            params=params, distributions=_distributions(space), value=value, user_attrs=notes
        )
        study.add_trial(made)
        return
    for name, note in notes.items():
        token.set_user_attr(name, note)
    study.tell(token, value)


def finished(study: Any, space: Space) -> list[tuple[dict[str, Any], tuple[float, ...], float]]:
    """Return settings, scores and seconds of the trials that came to an end, in their order."""
    optuna: Any = _optuna()
    trials = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    try:
        return [
            (_point(space, trial.params), tuple(trial.user_attrs["scores"]), trial.user_attrs["seconds"])
            for trial in trials
        ]
    except (KeyError, IndexError, TypeError) as error:
        raise FormatError("A trial of this tuning lacks its settings or its scores. Choose another folder.") from error


def _optuna() -> Any:
    return require("optuna", extra="tune", purpose="Tuning")


def _distributions(space: Space) -> dict[str, Any]:
    kinds: Any = _optuna().distributions
    made: dict[str, Any] = {}
    for name, values in space.varied.items():
        if not isinstance(values, Range):
            made[name] = kinds.CategoricalDistribution(tuple(range(len(values))))  # by number: a value may be a tuple
        elif values.whole:
            made[name] = kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
        else:
            made[name] = kinds.FloatDistribution(float(values.low), float(values.high), log=values.log)
    return made


def _point(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that Optuna's parameters stand for, in the order of the space."""
    return {
        name: params[name] if isinstance(values, Range) else values[params[name]]
        for name, values in space.varied.items()
    }


def _stored(space: Space, name: str, value: Any) -> Any:
    values = space.varied[name]
    return value if isinstance(values, Range) else values.index(value)
