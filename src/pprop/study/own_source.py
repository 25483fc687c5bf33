"""The version of one's own model: the source of its module, of what that imports, and what both use of pprop."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from pprop.study.code_version import PACKAGE, entries_of, version_of

__all__ = ["own_source_version"]

_LIBRARIES = tuple(
    Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def own_source_version(backend: str, module: ModuleType, made: object) -> str:
    """Return the version of all that one's own model runs through, 12 hexadecimal digits.

    It changes with the module, with any module that it imports, directly or not, and that is no installed package, and
    with the code in pprop that those modules name or that the model's class comes from. Data files are not part of it.

    Parameters
    ----------
    backend
        The one that computes.
    module
        Where the function is that makes the model.
    made
        What it made.

    Examples
    --------
    >>> import pprop.models
    >>> gcn, mlp = (own_source_version("numba", pprop.models, model()) for model in (pprop.GCN, pprop.MLP))
    >>> len(gcn), gcn == mlp
    (12, False)
    """
    entries = {kind.__module__ for kind in type(made).__mro__}
    files: dict[str, bytes] = {}
    waiting = [module.__name__]
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is None or name in files or (_is_installed(file) and name != module.__name__):
            continue
        files[name] = file.read_bytes()
        if file.suffix == ".py" and not _is_ours(file):
            tree = ast.parse(files[name], filename=str(file))
            entries |= set(_used_of_pprop(tree, sys.modules.get(name)))
            waiting += _imported(tree, name, file.name == "__init__.py")
    inside = sorted(entry for entry in entries if entry.startswith("pprop.") and entry not in files)
    digest = hashlib.sha256(version_of((*entries_of(backend), *inside)).encode())
    for name in sorted(files):
        digest.update(f"\n{name} {hashlib.sha256(files[name]).hexdigest()}".encode())
    return digest.hexdigest()[:12]


def _file(name: str) -> Path | None:
    """Return the file of a module, without importing it; None if it has none or is not there."""
    module = sys.modules.get(name)
    try:
        spec = None if module is not None else importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    origin = getattr(module, "__file__", None) or (spec.origin if spec is not None and spec.has_location else None)
    return Path(origin).resolve() if origin is not None and Path(origin).is_file() else None


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(PACKAGE.resolve())


def _is_installed(file: Path) -> bool:
    return _is_ours(file) or any(file.is_relative_to(library) for library in _LIBRARIES)


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


def _used_of_pprop(tree: ast.AST, module: ModuleType | None) -> Iterator[str]:
    """Return the modules of pprop that define what a module uses of it: names imported, and names like pprop.GCN."""
    for node in ast.walk(tree):
        value: object = None
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pprop" and not node.level:
            for alias in node.names:
                yield from _home(_attribute(sys.modules.get(node.module or ""), alias.name))
        elif isinstance(node, ast.Attribute):
            value = _value(node, module)
        yield from _home(value)


def _value(node: ast.expr, module: ModuleType | None) -> object:
    """Return what a name with dots stands for, as far as it leads through modules of pprop."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id) if module is not None else None
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, module), node.attr)
    return None


def _attribute(holder: object, name: str) -> object:
    if not isinstance(holder, ModuleType) or holder.__name__.split(".")[0] != "pprop":
        return None
    try:
        return getattr(holder, name, None)
    except Exception:  # an extra that is not installed: the model cannot use it either
        return None


def _home(value: object) -> Iterator[str]:
    if isinstance(value, ModuleType) and value.__name__.startswith("pprop."):
        yield value.__name__
    elif isinstance(home := getattr(value, "__module__", None), str) and home.startswith("pprop."):
        yield home
