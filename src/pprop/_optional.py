"""The one way to import a package that is not a hard dependency."""

from __future__ import annotations

import importlib
from types import ModuleType

from pprop._errors import MissingDependencyError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of pprop installs it.

    Examples
    --------
    >>> require("no_such_module", extra="figures", purpose="Drawing figures")
    Traceback (most recent call last):
        ...
    pprop._errors.MissingDependencyError: Drawing figures needs 'no_such_module'. Install it with: pip install "pprop[figures]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f'{purpose} needs {package!r}. Install it with: pip install "pprop[{extra}]"'
        ) from error
