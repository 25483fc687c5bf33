"""The function that makes a user's model, and the hash of the modules it comes from."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pprop._errors import InputError, PpropError

# Where modules are that are not the user's: the revision stands for pprop's, rows record the versions of others.
_OTHERS = (
    Path(__file__).resolve().parents[1],
    *(Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


def find_function(name: str) -> tuple[ModuleType, Callable[..., Any]]:
    """Return the module of ``"module:function"``, looked for in the current folder too, and its function.

    >>> find_function("copy:copy")[0].__name__
    'copy'
    """
    module_name, _, function_name = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with explained(f"The module of the model {name!r} cannot be imported"):
        module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"The module {module_name!r} has no function {function_name!r}.")
    if getattr(module, "__file__", None) is None:
        raise InputError(
            f"The module {module_name!r} has no source file, so a change of the model would not be noticed."
        )
    return module, cast("Callable[..., Any]", function)


def user_source(module: ModuleType) -> str:
    """Return the hash of a module and of all it imports, directly or not, that is no installed package, 12 digits.

    The module itself counts even if it is installed, unless it is one of pprop. Data files are not part of the hash.

    >>> import copy
    >>> len(user_source(copy))
    12
    """
    files: dict[str, bytes] = {}
    waiting = [module.__name__]
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is None or name in files or file.is_relative_to(_OTHERS[0]):
            continue
        if name != module.__name__ and any(file.is_relative_to(library) for library in _OTHERS):
            continue
        files[name] = file.read_bytes()
        if file.suffix == ".py":
            waiting += _imported(ast.parse(files[name], filename=str(file)), name, file.name == "__init__.py")
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"\n{name} {hashlib.sha256(files[name]).hexdigest()}".encode())
    return digest.hexdigest()[:12]


@contextmanager
def explained(what: str, but: Sequence[BaseException] = ()) -> Generator[None]:
    """Turn every exception of a user's code, a call of exit too, into an InputError; those of pprop stay.

    >>> with explained("The model failed"):
    ...     1 / 0
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The model failed: ZeroDivisionError: division by zero
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, PpropError) or any(error is other for other in but):
            raise
        why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise InputError(f"{what}: {why}") from error


def _file(name: str) -> Path | None:
    """Return the file of a module, without importing it; None if it has none or is not there."""
    module = sys.modules.get(name)
    try:
        spec = None if module is not None else importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    origin = getattr(module, "__file__", None) or (spec.origin if spec is not None and spec.has_location else None)
    return Path(origin).resolve() if origin is not None and Path(origin).is_file() else None


def _imported(tree: ast.AST, name: str, is_package: bool) -> Iterator[str]:
    """Return the names of modules that a module may import, wherever in it; some may be no modules."""
    parents = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            found = [home, *(f"{home}.{alias.name}" for alias in node.names)]
        else:
            continue
        for one in found:
            parts = one.split(".")
            yield from (".".join(parts[: end + 1]) for end in range(len(parts)))  # a package's own code runs, too
