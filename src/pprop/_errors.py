"""Every exception that pprop raises on purpose, as one tree.

::

    PpropError
    ├── InputError (also ValueError)         an argument is wrong; the message names it and the remedy
    │   ├── GraphError                       the arrays given do not describe a graph
    │   ├── FormatError                      a file is damaged, hostile or not what its suffix says
    │   │   └── UnknownNodeError             an edge names a node that the node table does not have
    │   ├── TakenError (also FileExistsError)   the name of a result was taken while it was made; says where it is
    │   ├── ColumnError                      a table has no column of that name
    │   ├── EdgeError                        an edit adds an edge that is there, or changes one that is not
    │   ├── MismatchError                    a graph does not fit a model
    │   └── SeveralErrors                    several arguments are wrong
    ├── DatasetError (also LookupError)      an unknown dataset, or one whose file is not available
    ├── MissingDependencyError (also ImportError)   an optional package or backend is not installed
    ├── CapacityError (also MemoryError)     the requested computation does not fit
    ├── ToleranceError (also ArithmeticError)   a solve ended without the requested tolerance; says what was reached
    └── DivergenceError (also ArithmeticError)  the loss of a training is not finite any more; says when

Catch ``PpropError`` for all of them; each is also the builtin that a Python user would expect.

An error is an object with fields: parameter, function, expected, found, where, remedies. ``str(error)`` prints them in the
words of Python, and ``error.sentence(words)`` in other words, such as those of the command line. Fields are read, and a
sentence is never taken apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast, final


@final
@dataclass(frozen=True)
class Remedy:
    """What to do: words, and arguments to pass.

    Attributes
    ----------
    words
        A sentence. Where `names` are given, each ``{}`` in it stands for one of these parameters.
    names
        Parameters that the sentence names. ``{all}`` in it stands for all of them that can be given, and without one there is
        no such sentence.
    settings
        Arguments to pass, by parameter: a value, a tuple of values to choose from, or ``...`` for any.
    shell
        The words for people who type commands, where `words` name functions of Python.

    Examples
    --------
    >>> print(PYTHON.remedy(Remedy("Use a lower {}.", ("learning_rate",))))
    Use a lower learning_rate.
    >>> print(PYTHON.remedy(Remedy(settings={"unknown_nodes": ("drop", "add")})))
    Pass unknown_nodes='drop' or 'add'.
    """

    words: str = ""
    names: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    shell: str = ""


@final
@dataclass(frozen=True)
class NumberIn:
    """What a float must be, or each of several, where an error expects that; the interval is written as in mathematics.

    >>> print(NumberIn("(0, 1]"))
    a float in (0, 1]
    >>> print(NumberIn("(0, 1]", several=True))
    a sequence of floats in (0, 1], at least one and no two the same
    """

    interval: str
    several: bool = False

    def __str__(self) -> str:
        if self.several:
            return f"a sequence of floats in {self.interval}, at least one and no two the same"
        return f"a float in {self.interval}"

    def typed(self) -> str:
        """Return the same of numbers that are typed.

        >>> NumberIn("(0, 1]", several=True).typed()
        'different numbers in (0, 1], separated by commas'
        """
        return (
            f"different numbers in {self.interval}, separated by commas"
            if self.several
            else f"a number in {self.interval}"
        )


@final
@dataclass(frozen=True)
class Where:
    """The place of an error.

    Attributes
    ----------
    file
        A file, or what sentences call another table, such as "the DataFrame".
    row
        From 1; the header of a CSV file and blank lines are not counted.
    column
        Its name.
    edit
        Of several edits, the index of one.
    title
        What the author of an edit calls it.
    """

    file: Path | str | None = None
    row: int | None = None
    column: str | None = None
    edit: int | None = None
    title: str | None = None


class Words:
    """How an error is worded: here for people who call functions. A subclass has other words."""

    def name(self, parameter: str) -> str:
        """Return what a parameter is called inside a sentence."""
        return parameter

    def names(self, parameters: Sequence[str]) -> list[str]:
        """Return what those parameters are called that can be given, each once."""
        return [*dict.fromkeys(parameters)]

    def title(self, file: Path | str | None) -> str:
        """Return what a file or a table is called at the beginning of a sentence."""
        return str(file) if isinstance(file, Path) or not file else file[0].upper() + file[1:]

    def argument(self, error: PpropError) -> str:
        """Return the sentence about an argument.

        >>> print(PYTHON.argument(InputError(parameter="alpha", function="ppr", expected="above 0", found="0")))
        The 'alpha' parameter of ppr must be above 0. Got 0 instead.
        """
        expected, found, where = str(error.expected), error.found, error.where or Where()
        if where.column is not None:
            expected = f"a table with {expected} in every row of {where.column!r}"
        if where.file is not None:
            found += f" in {'' if where.row is None else f'row {where.row} of '}{table_text(where.file)}"
        return f"The {error.parameter!r} parameter of {error.function} must be {expected}. Got {found} instead."

    def remedy(self, remedy: Remedy) -> str:
        """Return what to do, as one or two sentences."""
        words = remedy.words
        if remedy.names:
            every = self.names(remedy.names)
            missing = "{all}" in words and not every
            words = "" if missing else words.format(*map(self.name, remedy.names), all=", ".join(every))
        return " ".join(part for part in (words, self.settings(remedy.settings) if remedy.settings else "") if part)

    def settings(self, settings: Mapping[str, object]) -> str:
        """Return the sentence that names arguments to pass."""
        parts: list[str] = []
        for parameter, value in settings.items():
            values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            parts.append(f"{parameter}={' or '.join('...' if one is ... else repr(one) for one in values)}")
        return f"Pass {', '.join(parts)}" + ("" if parts[-1].endswith("...") else ".")


PYTHON = Words()


@final
class Advice(UserWarning):
    """A warning that says what to do, in the words of whoever reads it.

    Parameters
    ----------
    text
        What is so.
    remedies
        What to do where it is not meant.
    command_line
        Whether the command line prints it. Its reports have some of it in words of their own.

    Examples
    --------
    >>> print(Advice("All edges count alike.", Remedy(settings={"weight": "minutes"})))
    All edges count alike. Pass weight='minutes'.
    """

    def __init__(self, text: str, *remedies: Remedy, command_line: bool = True) -> None:
        super().__init__(text, *remedies)
        self.text, self.remedies, self.command_line = text, remedies, command_line

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, words: Words = PYTHON) -> str:
        """Return the warning as text."""
        return " ".join([self.text, *map(words.remedy, self.remedies)])


def sentence_of(warning: Warning | str, words: Words) -> str:
    """Return a warning as text, what to do in these words where it says that."""
    return warning.sentence(words) if isinstance(warning, Advice) else str(warning)


def is_for_commands(warning: Warning | str) -> bool:
    """Return whether the command line prints a warning."""
    return not isinstance(warning, Advice) or warning.command_line


class PpropError(Exception):
    """Base of every exception that pprop raises on purpose.

    Parameters
    ----------
    text
        The sentence, where it is not about an argument.
    parameter, function, expected, found
        The argument that is wrong, the function that was called, what it must be, and a description of what it is.
    where
        The place in a table or among edits.
    remedies
        What to do about it.

    Examples
    --------
    >>> print(PpropError("The moon is full.", remedies=[Remedy("Wait.")]))
    The moon is full. Wait.
    """

    joint = " "  # between what is wrong and each remedy

    def __init__(
        self,
        text: str = "",
        *,
        parameter: str | None = None,
        function: str = "",
        expected: str | NumberIn = "",
        found: str = "",
        where: Where | None = None,
        remedies: Sequence[Remedy] = (),
    ) -> None:
        super().__init__(
            text
        )  # a copy, also one in another process, is made of the text and then gets the other fields
        self.text, self.parameter, self.function = text, parameter, function
        self.expected, self.found, self.where, self.remedies = expected, found, where, tuple(remedies)

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def sentence(self, words: Words = PYTHON) -> str:
        """Return the error as text."""
        where, place = self.where or Where(), ""
        if where.title is not None:
            place = f"{where.title}:"
        elif where.edit is not None:
            place = f"No edit was made, because of the one at index {where.edit}:"
        parts = (place, self.what(words), *map(words.remedy, self.remedies))
        return self.joint.join(part for part in parts if part)

    def what(self, words: Words) -> str:
        """Return what is wrong, without the place among edits and the remedies."""
        return self.text if self.parameter is None else words.argument(self)

    def at(self, where: Where) -> Self:
        """Return this error, with its place.

        >>> print(InputError("There is no such node.").at(Where(title="Line 7 of edits.txt")))
        Line 7 of edits.txt: There is no such node.
        """
        self.where = where
        return self


class InputError(PpropError, ValueError):
    """An argument is outside what the function accepts."""


class GraphError(InputError):
    """The arrays given do not describe a graph."""


class FormatError(InputError):
    """A file is damaged, hostile, or not what its suffix says."""


class TakenError(InputError, FileExistsError):
    """The name of a result was taken while the result was made; the message names the place where it is kept."""


@final
class ColumnError(InputError):
    """A table has no column of a name.

    Attributes
    ----------
    missing
        The names, by the arguments that give them.
    columns
        The columns that the table has.

    Examples
    --------
    >>> print(ColumnError(missing={"source": "source"}, columns=["from", "to"], where=Where("the DataFrame")))
    The DataFrame has no column 'source'. Its columns: from, to.
    """

    def __init__(
        self, text: str = "", *, missing: Mapping[str, str] | None = None, columns: Sequence[str] = (), **fields: Any
    ) -> None:
        super().__init__(text, **fields)
        self.missing, self.columns = dict(missing or {}), tuple(columns)

    def what(self, words: Words) -> str:
        """Return which columns are missing, and which there are."""
        if self.text:
            return self.text
        *most, last = (repr(name) for name in self.missing.values())
        names = f"columns {', '.join(most)} and {last}" if most else f"column {last}"
        title = words.title(None if self.where is None else self.where.file)
        return f"{title} has no {names}. Its columns: {columns_text(self.columns)}."


@final
class UnknownNodeError(FormatError):
    """An edge names a node that the node table does not have.

    Attributes
    ----------
    node
        Its id.
    nodes
        The node table.
    count, rows
        How many rows of the edges have such a node, and how many rows there are.
    """

    def __init__(
        self,
        text: str = "",
        *,
        node: object = None,
        nodes: Path | str | None = None,
        count: int = 1,
        rows: int = 1,
        **fields: Any,
    ) -> None:
        super().__init__(text, **fields)
        self.node, self.nodes, self.count, self.rows = node, nodes, count, rows

    def what(self, words: Words) -> str:
        """Return which node is unknown, and how many rows have such a node."""
        if self.text or self.where is None:
            return self.text
        title, nodes = (
            words.title(self.where.file),
            self.nodes if isinstance(self.nodes, str) else words.title(self.nodes),
        )
        have = "has an unknown node" if self.count == 1 else "have unknown nodes"
        count = f"{self.count:,} of {self.rows:,} rows {have}"
        return f"{title}, row {self.where.row}: node {self.node!r} is not in {nodes} ({count})."


@final
class EdgeError(InputError):
    """An edit adds an edge that is there, or changes one that is not.

    Attributes
    ----------
    u, v
        The ends: positions, or what its author calls the nodes.
    there
        Whether the graph has the edge.

    Examples
    --------
    >>> print(EdgeError(u=2, v=5, there=False, function="remove_edge"))
    remove_edge: there is no edge between 2 and 5.
    """

    def __init__(
        self, text: str = "", *, u: object = None, v: object = None, there: bool = False, **fields: Any
    ) -> None:
        super().__init__(text, **fields)
        self.u, self.v, self.there = u, v, there

    def what(self, words: Words) -> str:
        """Return whether the edge is there."""
        start = f"{self.function}: there is" if self.function else "There is"
        return f"{start} {'already an' if self.there else 'no'} edge between {self.u} and {self.v}."


@final
class MismatchError(InputError):
    """A graph does not fit a model.

    Attributes
    ----------
    subject
        What differs: "features", "graph" or "source".
    """

    def __init__(self, text: str = "", *, subject: str = "", **fields: Any) -> None:
        super().__init__(text, **fields)
        self.subject = subject


@final
class SeveralErrors(InputError):  # noqa: N818  several
    """More than one argument is wrong.

    Examples
    --------
    >>> print(SeveralErrors(errors=[InputError("One."), InputError("Two.")]))
    One.
    Two.
    """

    joint = "\n"

    def __init__(self, text: str = "", *, errors: Sequence[PpropError] = (), **fields: Any) -> None:
        super().__init__(text, **fields)
        self.errors = tuple(errors)

    def what(self, words: Words) -> str:
        """Return the sentences of all errors, each on its own line."""
        return "\n".join(error.sentence(words) for error in self.errors)


def together(errors: Sequence[PpropError], *remedies: Remedy) -> PpropError:
    """Return one error for some, with what to do about them all.

    >>> print(together([InputError("One."), InputError("Two.")], Remedy("Count.")))
    One.
    Two.
    Count.
    """
    if len(errors) == 1:
        (error,) = errors
        error.remedies = (*error.remedies, *remedies)
        return error
    return SeveralErrors(errors=errors, remedies=remedies)


class DatasetError(PpropError, LookupError):
    """A dataset is unknown, or its file is not available on this machine."""


class MissingDependencyError(PpropError, ImportError):
    """An optional package, or the backend that needs it, is not installed."""


class CapacityError(PpropError, MemoryError):
    """The requested computation does not fit into memory."""


class ToleranceError(PpropError, ArithmeticError):
    """A solve ended before it reached the requested tolerance; the message says what it reached."""


class DivergenceError(PpropError, ArithmeticError):
    """The loss of a training is not finite any more, or its final logits are not.

    Attributes
    ----------
    runs, epochs
        Positions of the runs that diverged, from 0, and the epoch of each in which it did, from 1.
    finished
        What the call would have returned, of all other runs; None if there are none.
    """

    def __init__(
        self, message: str, runs: Sequence[int] = (), epochs: Sequence[int] = (), finished: Any = None, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.runs, self.epochs, self.finished = tuple(runs), tuple(epochs), finished


def table_text(table: Path | str) -> str:
    """Return what a table is called inside a sentence: a file in quotes, others by their names.

    >>> table_text(Path("a/edges.csv")), table_text("the DataFrame")
    ("'a/edges.csv'", 'the DataFrame')
    """
    return repr(str(table)) if isinstance(table, Path) else table


MOST_COLUMNS = 20  # in one sentence


def columns_text(columns: Sequence[str]) -> str:
    """Return names of columns with commas between them, quoted where they would be misread.

    >>> columns_text(["from", "to, via", "minutes"])
    "from, 'to, via', minutes"
    """
    plain = (
        name if name == name.strip() and name.isprintable() and name and "," not in name else repr(name)
        for name in columns[:MOST_COLUMNS]
    )
    more = len(columns) - MOST_COLUMNS
    return ", ".join(plain) + (f" and {more} more" if more > 0 else "") or "none"
