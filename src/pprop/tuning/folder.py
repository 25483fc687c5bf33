"""The folder of a search: one process at a time, what is searched, every trial, and the best so far."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pprop._errors import FormatError, InputError
from pprop._optional import require
from pprop.graph.files import read_json

__all__ = ["BEST", "DESCRIPTION", "FILES", "TRIALS", "open_study", "read_best", "write_json"]

DESCRIPTION, TRIALS, BEST, LOCK = "tuning.json", "trials.sqlite3", "best.json", ".lock"
FIGURES = tuple(f"{name}.{kind}" for name in ("history", "slices") for kind in ("png", "svg"))
FILES = frozenset({DESCRIPTION, TRIALS, f"{TRIALS}-journal", BEST, LOCK, "model", *FIGURES})
"""What may be in the folder."""


@contextmanager
def open_study(folder: Path | None, description: Mapping[str, Any]) -> Generator[Any]:
    """Give Optuna's study of a search: that of the folder, which is made if it is not there, or one in memory.

    Trials that a killed process left unfinished are marked as failed, which is right because no other process can have
    the folder open at the same time.
    """
    optuna: Any = require("optuna", extra="tune", purpose="Tuning")
    before: int = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # its notes on every trial are not ours
    try:
        if folder is None:
            yield optuna.create_study(direction="maximize", storage=optuna.storages.InMemoryStorage())
            return
        with _writable(optuna, folder), _locked(folder):
            _check_description(folder, description)
            storage = _storage(optuna, folder / TRIALS)
            try:
                study = _resumed(optuna, storage, folder)
                yield study
            finally:
                storage.remove_session()
                storage.engine.dispose()
    finally:
        optuna.logging.set_verbosity(before)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a small JSON file, which is at no moment half written."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8") as stream:
            json.dump(content, stream, indent=2, allow_nan=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_best(folder: Path) -> dict[str, Any]:
    """Return what a search has found so far."""
    return cast("dict[str, Any]", read_json(folder / BEST))


@contextmanager
def _writable(optuna: Any, folder: Path) -> Generator[None]:
    """Say in one sentence that a folder cannot be made, read or written, now or in the middle of the search."""
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
    """Keep other processes out of a folder, also those of a program that ends without a word."""
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
    """Note what is searched in a new folder; refuse a folder in which something else is searched."""
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
