"""The one way to import a package that is not a hard dependency."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

from pprop._errors import MissingDependencyError

# Where an extra needs several packages at once, all of them; and where a package installs a module of another name.
TOGETHER = {"serve": ("fastapi", "uvicorn", "prometheus-client")}
PACKAGES = {"prometheus_client": "prometheus-client", "sqlalchemy": "optuna"}


def install(module: str, extra: str = "") -> str:
    """Return the command that installs a module, together with the others that the extra needs.

    >>> install("optuna", "tune"), install("fastapi", "serve")
    ('pip install optuna', 'pip install fastapi uvicorn prometheus-client')
    """
    return f"pip install {' '.join(TOGETHER.get(extra, (PACKAGES.get(module, module),)))}"


def check_installed(*modules: str, extra: str, purpose: str) -> None:
    """Raise MissingDependencyError where a module is not installed, without importing it.

    >>> check_installed("numpy", extra="figures", purpose="Drawing figures")
    """
    for module in modules:
        if sys.modules.get(module, module) is None or find_spec(module) is None:
            raise _missing(module, extra, purpose)


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or raise an error that says how to install it; `extra` is pprop's extra that has it.

    Examples
    --------
    >>> require("no_such_module", extra="figures", purpose="Drawing figures")
    Traceback (most recent call last):
        ...
    pprop._errors.MissingDependencyError: Drawing figures needs 'no_such_module'. Install it with: pip install no_such_module
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module.partition(".")[0], extra, purpose) from error


def _missing(package: str, extra: str, purpose: str) -> MissingDependencyError:
    return MissingDependencyError(f"{purpose} needs {package!r}. Install it with: {install(package, extra)}")
