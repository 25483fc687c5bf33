"""What the verbs share on their way out: the result, notes, errors in one line, exit codes."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self, final

import typer

from pprop._errors import PpropError

__all__ = ["EXIT_CODES", "DebugOption", "DeviceOption", "JsonOption", "Session", "VerboseOption"]

EXIT_CODES = {
    0: "done",
    1: "an unexpected error, a self-test of doctor that failed, or a row that study verify finds to differ",
    2: "wrong usage: an unknown option, a missing argument",
    3: "bad input: a value, graph, file content or dataset that pprop refuses",
    4: "a file or folder that cannot be read or written, or is already there",
    5: "a study that is not finished: runs are left",
    130: "interrupted with Ctrl-C",
    141: "standard output was closed early, as by head",
}
UNEXPECTED, BAD_INPUT, FILES, UNFINISHED, INTERRUPTED, CLOSED = 1, 3, 4, 5, 130, 141

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, or cuda for a GPU.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Tell how much memory the training takes.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@final
class Session:
    """One call of a verb: the only place that prints, and where its errors become one line and an exit code.

    >>> with Session("data list", json=True) as session:
    ...     session.result({"answer": 42}, "The answer is 42.")
    {"answer": 42}
    """

    def __init__(self, verb: str, *, json: bool = False, debug: bool = False) -> None:
        self.verb = f"pprop {verb}"
        self.json = json
        self._debug = debug
        self._kept: list[Path] = []

    def say(self, text: str) -> None:
        """Tell a person something, on standard error."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def result(self, record: Mapping[str, Any], text: str) -> None:
        """Print the result on standard output: the record as one line of JSON if asked for, else the text."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain) if self.json else text
        sys.stdout.write(line if line.endswith("\n") or not line else f"{line}\n")

    def keep(self, path: Path) -> None:
        """Note that `path` is complete, for the sentence after Ctrl-C."""
        self._kept.append(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
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
        sys.stderr.write(f"{self.verb}: {' '.join(sentence.split())}\n")
        raise typer.Exit(code) from None

    def _describe(self, error: BaseException) -> tuple[int | None, str]:
        """Return the exit code and the sentence for an error; no code for one that typer handles."""
        match error:
            case KeyboardInterrupt():
                kept = ", ".join(repr(str(path)) for path in self._kept)
                return INTERRUPTED, f"Interrupted. {f'Kept: {kept}.' if kept else 'Nothing was written.'}"
            case PpropError():
                return BAD_INPUT, str(error)
            case OSError(strerror=str(reason), filename=str(name)):
                return FILES, f"Cannot read or write {name!r}: {reason}."
            case OSError():
                return FILES, str(error)
            case typer.BadParameter() | typer.Exit() | typer.Abort() | SystemExit() | GeneratorExit():
                return None, ""
            case _:
                hint = "" if self._debug else " Run it again with --debug to see where."
                return UNEXPECTED, f"Unexpected error: {type(error).__name__}: {error}.{hint}"

    def _end_closed(self) -> None:
        """End without a word: whoever read standard output has seen enough."""
        with suppress(OSError, ValueError):  # the interpreter flushes once more on its way out
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(CLOSED)


def _plain(value: Any) -> object:
    """Return a numpy scalar or array, or a path, as JSON knows it."""
    if isinstance(value, Path):
        return str(value)
    if value.dtype == "float32":
        value = value.astype(str).astype(float)  # the shortest digits, as in a table
    return value.tolist()
