"""Every exception that pprop raises on purpose, as one tree.

::

    PpropError
    ├── InputError (also ValueError)         an argument is wrong; the message names it and the remedy
    │   ├── GraphError                       the arrays given do not describe a graph
    │   ├── FormatError                      a file is damaged, hostile or not what its suffix says
    │   └── TakenError (also FileExistsError)   the name of a result was taken while it was made; says where it is
    ├── DatasetError (also LookupError)      an unknown dataset, or one whose file is not available
    ├── MissingDependencyError (also ImportError)   an optional package or backend is not installed
    ├── CapacityError (also MemoryError)     the requested computation does not fit
    ├── ToleranceError (also ArithmeticError)   a solve ended without the requested tolerance; says what was reached
    └── DivergenceError (also ArithmeticError)  the loss of a training is not finite any more; says when

Catch ``PpropError`` for all of them; each is also the builtin that a Python user would expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class PpropError(Exception):
    """Base of every exception that pprop raises on purpose."""


class InputError(PpropError, ValueError):
    """An argument is outside what the function accepts."""


class GraphError(InputError):
    """The arrays given do not describe a graph."""


class FormatError(InputError):
    """A file is damaged, hostile, or not what its suffix says."""


class TakenError(InputError, FileExistsError):
    """The name of a result was taken while the result was made; the message names the place where it is kept."""


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
        self, message: str, runs: Sequence[int] = (), epochs: Sequence[int] = (), finished: Any = None
    ) -> None:
        super().__init__(message)
        self.runs, self.epochs, self.finished = tuple(runs), tuple(epochs), finished
