"""Errors as objects: their fields come through pickling and copying, and one error reads in Python's words and the shell's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pprop import _errors
from pprop._errors import (
    ColumnError,
    DivergenceError,
    EdgeError,
    FormatError,
    InputError,
    MismatchError,
    NumberIn,
    PpropError,
    Remedy,
    SeveralErrors,
    UnknownNodeError,
    Where,
)
from pprop._validate import check_float, reject
from pprop.cli.words import Shell


def tree(root: type[PpropError]) -> Iterator[type[PpropError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == _errors.__name__:
            yield from tree(child)


FILE = Path("calls.csv")
EXAMPLES: dict[type[PpropError], PpropError] = {
    **{kind: kind("The moon is full.", remedies=[Remedy("Wait.")]) for kind in tree(PpropError)},
    InputError: InputError(parameter="alpha", function="ppr", expected=NumberIn("(0, 1]"), found="1.3"),
    FormatError: FormatError(
        parameter="path", function="read_edges", expected="a number", found="'x'", where=Where(FILE, 7, "minutes")
    ),
    ColumnError: ColumnError(missing={"source": "source"}, columns=["from", "to"], where=Where(FILE)),
    UnknownNodeError: UnknownNodeError(node="bo", nodes=Path("n.csv"), count=2, rows=9, where=Where(FILE, 3)),
    EdgeError: EdgeError(u=2, v=5, there=True, function="add_edge", where=Where(edit=4)),
    MismatchError: MismatchError("No.", subject="features", remedies=[Remedy(settings={"graph": ...})]),
    SeveralErrors: SeveralErrors(errors=[InputError("One."), ColumnError(missing={"target": "b"}, columns=["c"])]),
    DivergenceError: DivergenceError("It diverged.", [3], [7], "others", remedies=[Remedy("Use {}.", ("seed",))]),
}


def pickled(error: PpropError) -> PpropError:
    return pickle.loads(pickle.dumps(error))  # noqa: S301  its own


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_an_error_survives_another_process(kind: type[PpropError], again: Callable[[PpropError], PpropError]) -> None:
    error = EXAMPLES[kind]
    other = again(error)
    assert type(other) is kind
    assert str(other) == str(error) != ""
    assert repr(other) == repr(error)
    mine, theirs = dict(vars(error)), dict(vars(other))
    assert [str(one) for one in mine.pop("errors", ())] == [str(one) for one in theirs.pop("errors", ())]
    assert mine == theirs


@pytest.mark.parametrize(
    ("kind", "python", "shell"),
    [
        (
            InputError,
            "The 'alpha' parameter of ppr must be a float in (0, 1]. Got 1.3 instead.",
            "--alpha must be a number in (0, 1]. Got 1.3.",
        ),
        (
            FormatError,
            "The 'path' parameter of read_edges must be a table with a number in every row of 'minutes'. "
            "Got 'x' in row 7 of 'calls.csv' instead.",
            "calls.csv, row 7, column 'minutes': expected a number, found 'x'.",
        ),
        (MismatchError, "No. Pass graph=...", "No. Add: --graph GRAPH"),
        (DivergenceError, "It diverged. Use seed.", "It diverged. Use --seed."),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_one_error_in_two_languages(kind: type[PpropError], python: str, shell: str) -> None:
    words = Shell({"alpha": "--alpha", "seed": "--seed", "graph": "--graph"}, {"graph": "GRAPH"})
    assert str(EXAMPLES[kind]) == python
    assert EXAMPLES[kind].sentence(words) == shell


def test_what_the_checks_raise_has_fields() -> None:
    with pytest.raises(InputError) as caught:
        check_float(2, "alpha", "ppr", "(0, 1]")
    error = caught.value
    assert (error.parameter, error.function, error.expected, error.found) == ("alpha", "ppr", NumberIn("(0, 1]"), "2")
    with pytest.raises(FormatError) as other:
        reject("path", "load", "a folder", "a file", error=FormatError, remedy="Pass {a folder}.")
    assert other.value.remedies == (Remedy("Pass {a folder}."),)
    assert str(other.value).endswith("Got a file instead. Pass {a folder}.")
