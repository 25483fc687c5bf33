"""The trials of a search: proposed and recorded by Optuna, in memory or in a folder that one process at a time has open."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pprop._errors import FormatError, InputError
from pprop._optional import require
from pprop.graph.files import read_json, replaced_file
from pprop.tuning.space import Range, Space

DESCRIPTION, TRIALS, BEST, LOCK = "tuning.json", "trials.sqlite3", "best.json", ".lock"
FIGURES = tuple(f"{name}.{kind}" for name in ("history", "slices") for kind in ("png", "svg"))
# What may be in the folder.
FILES = frozenset({DESCRIPTION, TRIALS, f"{TRIALS}-journal", BEST, LOCK, "model", *FIGURES})


def _optuna() -> Any:
    return require("optuna", extra="tune", purpose="Tuning")


@contextmanager
def open_study(folder: Path | None, description: Mapping[str, Any]) -> Generator[Any]:
    """Give Optuna's study of a search: that of the folder, which is made if it is not there, or one in memory.

    Trials that a killed process left unfinished are marked as failed, which is right because no other process can have
    the folder open at the same time.
    """
    optuna = _optuna()
    before: int = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # no note on every trial
    try:
        if folder is None:
            yield optuna.create_study(direction="maximize", storage=optuna.storages.InMemoryStorage())
            return
        with _writable(optuna, folder), _locked(folder):
            _check_description(folder, description)
            storage = _storage(optuna, folder / TRIALS)
            try:
                yield _resumed(optuna, storage, folder)
            finally:
                storage.remove_session()
                storage.engine.dispose()
    finally:
        optuna.logging.set_verbosity(before)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a small JSON file, which is at no moment half written."""
    with replaced_file(path) as stream:
        stream.write((json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


@contextmanager
def _writable(optuna: Any, folder: Path) -> Generator[None]:
    """Raise InputError where the folder cannot be made, read or written, at once or in the middle of the search."""
    sqlalchemy: Any = require("sqlalchemy", extra="tune", purpose="Tuning")
    try:
        yield
    except (OSError, sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error.__cause__ or error).splitlines()[0]
        raise InputError(
            "The 'folder' parameter of tune must be a folder that can be written. "
            f"Got {str(folder)!r} instead ({reason})."
        ) from error


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Keep other processes out of a folder; the lock ends with this process."""
    folder.mkdir(parents=True, exist_ok=True)
    strange = sorted(file.name for file in folder.iterdir() if file.name not in FILES and not _is_part(file))
    if strange and not (folder / DESCRIPTION).exists():
        raise InputError(
            f"The folder {str(folder)!r} holds {strange[0]!r} and no tuning. Choose a new folder, or one that tune wrote."
        )
    with open(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644), "rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another process is tuning in the folder {str(folder)!r}. Wait for it, or choose another folder."
            ) from None
        for file in folder.iterdir():
            if _is_part(file):
                file.unlink()
        yield


def _is_part(file: Path) -> bool:
    return file.name.startswith(".") and file.name.endswith(".part") and file.is_file()


def _check_description(folder: Path, description: Mapping[str, Any]) -> None:
    """Write what is searched to a new folder; refuse a folder in which something else is searched."""
    file, wanted = folder / DESCRIPTION, json.loads(json.dumps(description))
    if not os.path.lexists(file):
        write_json(file, description)
        return
    try:
        found = read_json(file)
    except ValueError as error:
        raise _damaged(folder, f"{DESCRIPTION} is no valid JSON") from error
    if not isinstance(found, dict):
        raise _damaged(folder, f"{DESCRIPTION} describes nothing")
    for name, value in wanted.items():
        if cast("dict[str, object]", found).get(name) != value:
            raise InputError(
                f"The folder {str(folder)!r} holds a tuning with another {name!r}, so that its trials cannot be "
                "continued. Choose another folder, or give the same arguments again."
            )


def _storage(optuna: Any, file: Path) -> Any:
    sqlalchemy: Any = require("sqlalchemy", extra="tune", purpose="Tuning")
    if os.path.lexists(file) and not file.is_file():
        raise _damaged(file.parent, f"{file.name} is not a regular file")
    try:
        return optuna.storages.RDBStorage(f"sqlite:///{file.absolute()}")
    except (sqlalchemy.exc.DatabaseError, RuntimeError) as error:
        raise _damaged(file.parent, f"{file.name} cannot be read ({str(error).splitlines()[0]})") from error


def _resumed(optuna: Any, storage: Any, folder: Path) -> Any:
    states: Any = optuna.trial.TrialState
    try:
        study = optuna.create_study(direction="maximize", storage=storage, study_name="pprop", load_if_exists=True)
        for trial in study.get_trials(deepcopy=False, states=[states.RUNNING]):
            study.tell(trial.number, state=states.FAIL)
    except (LookupError, TypeError, ValueError) as error:  # values that Optuna never wrote
        raise _damaged(folder, f"{TRIALS} holds trials that cannot be read") from error
    return study


def _damaged(folder: Path, what: str) -> FormatError:
    return FormatError(f"The tuning in {str(folder)!r} is damaged: {what}. Choose another folder.")


def propose(study: Any, space: Space, seed: int, done: int) -> tuple[Any, dict[str, Any]]:
    """Return Optuna's trial and the point of the space that it proposes, a function of the seed and the trials done.

    The sampler is made anew for every trial, so that a search which was interrupted proposes what it would have.
    """
    optuna = _optuna()
    study.sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + done) % 2**32)
    trial = study.ask(fixed_distributions=_distributions(space))
    return trial, _point(space, trial.params)


def add_trial(
    study: Any, space: Space, token: Any, point: Mapping[str, Any], scores: tuple[float, ...], seconds: float
) -> None:
    """Record a trial that has ended: one that Optuna proposed, or, without a token, any other."""
    optuna = _optuna()
    value, notes = sum(scores) / len(scores), {"scores": list(scores), "seconds": seconds}
    if token is None:
        params = {
            name: point[name] if isinstance(values, Range) else values.index(point[name])
            for name, values in space.varied.items()
        }
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
    optuna = _optuna()
    trials = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    try:
        return [
            (_point(space, trial.params), tuple(trial.user_attrs["scores"]), trial.user_attrs["seconds"])
            for trial in trials
        ]
    except (KeyError, IndexError, TypeError) as error:
        raise FormatError("A trial of this tuning lacks its settings or its scores. Choose another folder.") from error


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
