"""What all verbs share on their way out: plain text, one session with its exit codes, files that appear complete."""

from __future__ import annotations

import errno
import json
import math
import os
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, cast, final

import typer

from pprop._errors import (
    PYTHON,
    FormatError,
    PpropError,
    SeveralErrors,
    TakenError,
    Words,
    is_for_commands,
    sentence_of,
)
from pprop._process import COMPILING, compiling
from pprop.cli.errors import Checks, FileError, UsageError, file_sentence

EXIT_CODES = {
    0: "done",
    1: "an unexpected error, a self-test of doctor that failed, or a row that study verify finds to differ",
    2: "wrong usage: an unknown option, a missing argument, options that do not go together",
    3: "bad input: a value of an option, graph, file content or dataset that pprop refuses",
    4: "a file or folder that cannot be read or written, or is already there; a full disk",
    5: "a study that is not finished: runs are left",
    130: "interrupted with Ctrl-C",
    141: "standard output was closed early, as by head",
}
UNEXPECTED, USAGE, BAD_INPUT, FILES, UNFINISHED, INTERRUPTED, CLOSED = 1, 2, 3, 4, 5, 130, 141


def columns(headings: Sequence[str], rows: Sequence[Sequence[object]], left: Sequence[int] = (0,)) -> str:
    """Return a table as text: a heading, a rule, the rows; columns in `left` are aligned left, the others right.

    >>> print(columns(["graph", "nodes"], [["citeseer", 2110], ["cora_ml", 2810]]))
    graph     nodes
    --------  -----
    citeseer   2110
    cora_ml    2810
    """
    table = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(headings))]
    table.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(f"{cell:<{width}}" if k in left else f"{cell:>{width}}" for k, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in table)
    ]
    return "\n".join(line.rstrip() for line in lines)


def picked(source: object, *names: str) -> dict[str, Any]:
    """Return some attributes by name, as a part of a record.

    >>> picked(3 + 4j, "real", "imag")
    {'real': 3.0, 'imag': 4.0}
    """
    return {name: getattr(source, name) for name in names}


@final
class Session:
    """One call of a verb: the only place that prints, and where an error becomes one line and an exit code.

    >>> with Session("data list", json=True) as session:
    ...     session.result({"answer": 42}, "The answer is 42.")
    {"answer": 42}
    """

    def __init__(self, verb: str, *, json: bool = False, debug: bool = False, words: Words = PYTHON) -> None:
        self.verb = f"pprop {verb}"
        self.words = words  # of errors
        self.json = json
        self._debug = debug
        self._kept: list[Path] = []
        self._warnings = warnings.catch_warnings()
        self._compiling = compiling.telling(lambda: self.say(COMPILING))
        self._cautions: set[str] = set()
        self.checks = Checks()  # of the call
        self.unread: set[str] = set()  # parameters without a value that could be read

    def say(self, text: str) -> None:
        """Print a line on standard error."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def result(self, record: Mapping[str, Any], text: str) -> None:
        """Print the result on standard output: with --json the record as one line, otherwise the text."""
        line = json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) if self.json else text
        end = "" if line.endswith("\n") or not line else "\n"
        # in pieces: not every system tells a writer in the middle of one that the reader has gone
        sys.stdout.writelines(f"{line}{end}".splitlines(keepends=True))

    def keep(self, path: Path) -> None:
        """Note that `path` is complete, for the sentence after Ctrl-C."""
        self._kept.append(path)

    def __enter__(self) -> Self:
        self._warnings.__enter__()
        self._compiling.__enter__()
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = self._show_warning
        return self

    def _show_warning(self, message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        """Print what the library warns of as a line of this verb, once; others keep quiet."""
        if not is_for_commands(message):
            return
        line = f"Caution: {' '.join(sentence_of(message, self.words).split())}"
        if issubclass(category, UserWarning) and line not in self._cautions:
            self._cautions.add(line)
            self.say(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._compiling.__exit__(None, None, None)
        self._warnings.__exit__(None, None, None)
        if error is None:
            try:
                sys.stdout.flush()
            except BrokenPipeError:
                self._end_closed()
            return False
        if isinstance(error, BrokenPipeError):
            self._end_closed()
        code, sentence = self._describe(error)
        if code is None:
            return False
        if self._debug:
            traceback.print_exception(error)
        lines = [" ".join(line.split()) for line in sentence.splitlines()]
        sys.stderr.write(f"{self.verb}: {f'{chr(10)}  '.join(lines)}\n")
        raise typer.Exit(code) from None

    def _describe(self, error: BaseException) -> tuple[int | None, str]:
        """Return the exit code and the sentence for an error; no code for one that typer handles."""
        match error:
            case KeyboardInterrupt():
                kept = ", ".join(repr(str(path)) for path in self._kept)
                return INTERRUPTED, f"Interrupted. {f'Kept: {kept}.' if kept else 'Nothing was written.'}"
            case PpropError():
                code, sentence = _code_of(error), error.sentence(self.words)
                if code == USAGE:
                    several = isinstance(error, SeveralErrors)
                    sentence = f"{sentence}{chr(10) if several else ' '}Try: {self.verb} --help"
                return code, sentence
            case OSError():
                return FILES, file_sentence(error)
            case typer.Exit() | typer.Abort() | SystemExit() | GeneratorExit():
                return None, ""
            case _:
                hint = "" if self._debug else " Run it again with --debug to see where."
                return UNEXPECTED, f"Unexpected error: {type(error).__name__}: {error}.{hint}"

    def _end_closed(self) -> None:
        """End without a message: the reader of standard output has closed it."""
        with suppress(OSError, ValueError):  # the interpreter flushes once more when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(CLOSED)


def _code_of(error: PpropError) -> int:
    """Return the exit code of an error; of several, the first one's."""
    match error:
        case SeveralErrors(errors=(first, *_)):
            return _code_of(first)
        case UsageError():
            return USAGE
        case FileError() | TakenError():
            return FILES
        case _:
            return FILES if _disk_is_full(error) else BAD_INPUT


def _disk_is_full(error: BaseException | None) -> bool:
    """Whether an error comes from a full disk, whatever the library has made of it.

    >>> _disk_is_full(OSError(errno.ENOSPC, "No space left on device")), _disk_is_full(PermissionError(errno.EACCES, "no"))
    (True, False)
    """
    while error is not None:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def _plain(value: Any) -> object:
    """Return a value as JSON knows it: paths as text, numpy's numbers as Python's, and None for those not finite."""
    match value:
        case Mapping():
            return {key: _plain(each) for key, each in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [_plain(each) for each in cast("list[Any]", value)]
        case Path():
            return str(value)
        case float():
            return value if math.isfinite(value) else None
        case _ if not hasattr(value, "dtype"):
            return value
        case _:  # the digits of a float32 are the shortest, as in a table
            return _plain((value.astype(str).astype(float) if value.dtype == "float32" else value).tolist())


def check_file(path: Path | None, *, force: bool, formats: Sequence[str] | None = None, option: str = "--out") -> None:
    """Refuse, before any work is done, a file in another format, one that cannot be written, or that exists already.

    >>> check_file(Path("predictions.xlsx"), force=False, formats=[".csv", ".parquet"])
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: --out must end in .csv or .parquet. Got 'predictions.xlsx' instead.
    """
    if path is None:
        return
    if formats is not None and path.suffix.lower() not in formats:
        *most, last = formats
        choices = f"{', '.join(most)} or {last}" if most else last
        raise FormatError(f"{option} must end in {choices}. Got {str(path)!r} instead.")
    if path.is_dir():
        raise IsADirectoryError(f"{option} must be a file, and {str(path)!r} is a folder.")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} is already there. Choose another {option}, or add --force to replace it.")
    _check_parent(path)


def check_folder(path: Path, *, names: frozenset[str], force: bool) -> None:
    """Refuse, before any work is done, a folder that could not be written, or that exists already.

    Even with `force`, a folder with a file that is not among `names`, the files that the verb writes, is left alone.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"--out must be a folder, and {str(path)!r} is a file.")
    if path.is_dir() and any(path.iterdir()):
        strange = sorted(file.name for file in path.iterdir() if file.name not in names)
        if strange:
            raise FileExistsError(
                f"The folder {str(path)!r} holds {strange[0]!r}, which is not pprop's to replace. Choose another --out."
            )
        if not force:
            raise FileExistsError(
                f"The folder {str(path)!r} is already there. Choose another --out, or add --force to replace it."
            )
    _check_parent(path)


def check_place(path: Path) -> None:
    """Refuse, before any work is done, what cannot be a folder, new or with more files to come."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"--out must be a folder, and {str(path)!r} is a file.")
    _check_parent(path)


def _check_parent(path: Path) -> None:
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{str(path)!r} cannot be written: {str(nearest)!r} is a file.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(f"{str(path)!r} cannot be written: this user may not write in {str(nearest)!r}.")


@contextmanager
def new_file(path: Path, session: Session, *, force: bool) -> Generator[IO[bytes]]:
    """Open a temporary file beside `path`; it takes its place, flushed to disk, when the block ends without an error.

    Where the name was taken in the meantime and `force` is false, the file is kept beside it and an error names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    from pprop.graph.files import replaced_file

    with replaced_file(path, replace=force) as stream:
        yield stream
    session.keep(path)


@contextmanager
def new_folder(path: Path, session: Session, *, names: frozenset[str], force: bool) -> Generator[Path]:
    """Give the name of a folder to be made; it takes the place of `path` when the block ends without an error.

    With `force` it replaces a folder with no files but `names`. Where the name was taken in the meantime, the folder is
    kept beside it and an error names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    from pprop.graph.files import replaced_folder

    with replaced_folder(path, replace=names if force else None) as folder:
        yield folder
    session.keep(path)
