"""The errors of the command line alone, and several checks whose errors are printed together."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, final

from pprop._errors import FormatError, InputError, PpropError, SeveralErrors

P = ParamSpec("P")
T = TypeVar("T")


@final
class UsageError(InputError):
    """The words of a command do not go together."""


@final
class WrongValueError(InputError):
    """A word is no value of its option."""

    @classmethod
    def of(cls, error: PpropError) -> Self:
        """Return an error about a value as one about a word that is no such value."""
        return cls(
            parameter=error.parameter,
            function=error.function,
            expected=error.expected,
            found=error.found,
            remedies=error.remedies,
        )


@final
class FileError(PpropError):
    """A file cannot be read or written: what the system said, among other errors."""


@final
class Checks:
    """Checks that do not depend on each other: their errors are raised together.

    Examples
    --------
    >>> with Checks() as checks:
    ...     checks.add(UsageError("Give one of --steps and --exact."))
    ...     checks.run(open, "nofile.csv")
    Traceback (most recent call last):
        ...
    pprop._errors.SeveralErrors: Give one of --steps and --exact.
    Cannot read or write 'nofile.csv': No such file or directory.
    """

    def __init__(self) -> None:
        self._errors: list[PpropError | OSError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.settle()

    def __bool__(self) -> bool:
        """Whether there is an error."""
        return bool(self._errors)

    def add(self, error: PpropError | OSError) -> None:
        """Add an error, or the several ones of other checks; of two about the value of one option the first is kept."""
        if isinstance(error, SeveralErrors) and not error.remedies:
            for each in error.errors:
                self.add(each)
        elif _about(error) not in map(_about, self._errors):
            self._errors.append(error)

    def run(self, check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what a check returns; add its error."""
        try:
            return check(*args, **kwargs)
        except (PpropError, OSError) as error:
            self.add(error)
        return None

    def settle(self) -> None:
        """Raise what was added, as one error: first what is wrong with the words of the command."""
        several = [FileError(file_sentence(one)) if isinstance(one, OSError) else one for one in self._errors]
        if len(several) > 1:
            raise SeveralErrors(errors=sorted(several, key=_rank))
        for error in self._errors:
            raise error


def _rank(error: PpropError) -> int:
    """Return the place of an error among several: first the words of the command, then their values."""
    return 0 if isinstance(error, UsageError) else 1 if isinstance(error, WrongValueError) else 2


def _about(error: PpropError | OSError) -> str:
    """Return the option whose value an error is about, or else its sentence: an option may name several damaged files."""
    if not isinstance(error, PpropError) or isinstance(error, FormatError):
        return str(error)
    if error.where is None and error.parameter is not None:
        return error.parameter
    return str(error)


def file_sentence(error: OSError) -> str:
    """Return what the system, or a check of this package, said of a file."""
    if isinstance(error.strerror, str) and isinstance(error.filename, str):
        return f"Cannot read or write {error.filename!r}: {error.strerror}."
    return str(error)
