"""The words of errors on the command line: options, arguments and files in place of Python's parameters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast, final

from pprop._errors import NumberIn, PpropError, Remedy, Words

# Parameters whose options or arguments have other names, the first that the verb has.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "feature_columns": ("features",),
    "n_runs": ("runs",),
    "k": ("top",),
    "replace": ("force",),
    "overwrite": ("force",),
    "path": ("graph", "edges", "model"),
    "name": ("graph",),
}
# Parameters that name columns.
COLUMNS = frozenset(
    {"source", "target", "weight", "id_column", "label_column", "split_column", "split_time", "split_group"}
)


@final
class Shell(Words):
    """How an error is worded for people who type a command.

    Parameters
    ----------
    options
        What is typed for each parameter of the verb: ``--alpha``, or the name of an argument, ``GRAPH``.
    values
        What stands for any value of an option, such as ``FILE``.

    Examples
    --------
    >>> from pprop._errors import InputError
    >>> error = InputError(parameter="alpha", function="ppr", expected=NumberIn("(0, 1]"), found="1.3")
    >>> print(error.sentence(Shell({"alpha": "--alpha"})))
    --alpha must be a number in (0, 1]. Got 1.3.
    """

    def __init__(self, options: Mapping[str, str], values: Mapping[str, str] | None = None) -> None:
        self._options, self._values = options, values or {}

    def option(self, parameter: str | None) -> str | None:
        """Return what is typed for a parameter; None for one that the verb does not have."""
        names = (parameter or "", *OPTIONS.get(parameter or "", ()))
        return next((self._options[name] for name in names if name in self._options), None)

    def name(self, parameter: str) -> str:
        """Return what is typed for a parameter, inside a sentence."""
        return self.option(parameter) or parameter

    def names(self, parameters: Sequence[str]) -> list[str]:
        """Return the options that give those parameters, where the verb has them.

        >>> Shell({"weight": "--weight", "features": "--features"}).names(["weight", "name", "feature_columns", "features"])
        ['--weight', '--features']
        """
        options = (self.option(parameter) for parameter in parameters)
        return [*dict.fromkeys(name for name in options if name is not None and name.startswith("-"))]

    def argument(self, error: PpropError) -> str:
        """Return the sentence about an option, or about a place in a file."""
        expected = error.expected.typed() if isinstance(error.expected, NumberIn) else error.expected
        where = error.where
        if where is not None and where.file is not None:
            row = "" if where.row is None else f", row {where.row}"
            column = "" if where.column is None else f", column {where.column!r}"
            return f"{self.title(where.file)}{row}{column}: expected {expected}, found {error.found}."
        option = self.option(error.parameter)
        if option is None:
            return super().argument(error)
        return f"{option} must be {expected}. Got {error.found.rstrip(',')}."

    def remedy(self, remedy: Remedy) -> str:
        """Return what to do, in words that name commands and options."""
        return super().remedy(replace(remedy, words=remedy.shell) if remedy.shell else remedy)

    def settings(self, settings: Mapping[str, object]) -> str:
        """Return the sentence that names options to add.

        >>> Shell({"source": "--source", "target": "--target"}).settings({"source": "from", "target": "to"})
        'Name them: --source from --target to'
        >>> Shell({"unknown_nodes": "--unknown-nodes"}).settings({"unknown_nodes": ("drop", "add")})
        'Add: --unknown-nodes drop (or add)'
        """
        parts: list[str] = []
        for parameter, value in settings.items():
            first, *others = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            name = self.name(parameter)
            word = self._values.get(parameter, "VALUE") if first is ... else shlex.quote(str(first))
            parts.append(name if first is True else f"{name} {word}")
            if others:
                parts.append(f"(or {' or '.join(shlex.quote(str(other)) for other in others)})")
        start = "Add" if not COLUMNS.issuperset(settings) else "Name it" if len(settings) == 1 else "Name them"
        return f"{start}: {' '.join(parts)}"
