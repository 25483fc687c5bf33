"""The version of the code that a cell runs through, read off its sources.

From a few entries, such as the training and the model of the cell, the imports inside the package are followed. Each
source is hashed as its syntax tree without comments, docstrings and imports for the type checker. So rows stay valid
when a comment or another model is edited, and go stale when a kernel is. Other packages are not part of it: rows record
their versions.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import cast, final

from pprop.study.cell import Cell
from pprop.study.zoo import model_kind

__all__ = ["COMMON", "code_version", "entries_of", "sources_of", "version_of"]

COMMON = (
    "pprop.training.train",
    "pprop.study.zoo:stopping_rule",
    "pprop.study.recipe:TrainedTogether",
    "pprop.study.recipe:Fitted",
)
"""What every trained cell runs through: the training, and how the study feeds it and takes the measure of it."""

FITTED = "pprop.study.recipe:Fitted"
"""What the cell of a model that is not trained runs through, besides the model."""

BACKENDS = {
    "numba": "pprop.kernels.numba_cpu.backend",
    "triton": "pprop.kernels.triton_gpu.backend",
    "reference": "pprop.kernels.reference.backend",
}

WITHOUT_RESULT = (
    *("_errors", "_interrupt", "_memory", "_optional", "_validate", "training.progress", "training.pace"),
    *("_version", "datasets.load"),  # a row has both the version and the fingerprint of the graph that was loaded
)
"""Modules that refuse, measure or tell, and compute nothing that a row would not show otherwise."""

SEEDS = ("training.train",)
"""Where the seed of a run is made, which a model without anything random gets and leaves."""

PACKAGE = Path(__file__).parents[1]


def code_version(cell: Cell, backend: str) -> str:
    """Return the version of all that a cell runs through on a backend, 12 hexadecimal digits.

    Parameters
    ----------
    cell
        Its model is one of `pprop.study.zoo`.
    backend
        ``"numba"``, ``"triton"`` or ``"reference"``. A model that is not trained uses none of them: it has one version.

    Examples
    --------
    >>> from pprop.study.zoo import make_cell
    >>> appnp, mlp = (make_cell(model, {}, "citeseer") for model in ("appnp", "mlp"))
    >>> len(code_version(appnp, "numba")), code_version(appnp, "numba") == code_version(mlp, "numba")
    (12, False)
    """
    kind = model_kind(cell.model)
    if not kind.trained:
        return version_of((FITTED, *kind.modules), without=() if kind.seeded else SEEDS)
    return version_of((*entries_of(backend), *kind.modules))


def entries_of(backend: str) -> tuple[str, ...]:
    """Return where the code begins that every cell of a trained model, or of one's own, runs through on a backend.

    >>> entries_of("numba")[-1]
    'pprop.kernels.numba_cpu.backend'
    """
    return (*COMMON, BACKENDS[backend])


@cache
def version_of(entries: tuple[str, ...], package: Path = PACKAGE, without: tuple[str, ...] = ()) -> str:
    """Return the version of the sources that `entries` lead to, 12 hexadecimal digits.

    Parameters
    ----------
    entries
        Modules (``"pprop.training.train"``), or single functions in them (``"pprop.study.builders:gcn"``), which bring
        along only what they name.
    package
        Folder of the package that the entries belong to.
    without
        Modules inside the package that are left out, and what only they lead to, besides those of `WITHOUT_RESULT`.

    Examples
    --------
    >>> version_of(("pprop.study.builders:gcn",)) == version_of(("pprop.study.builders:jk",))
    False
    """
    text = "\n".join(f"{name} {digest}" for name, digest in sorted(sources_of(entries, package, without).items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def sources_of(entries: Iterable[str], package: Path = PACKAGE, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return every module, or function of a module, that `entries` lead to, with the hash of its code.

    Examples
    --------
    >>> sorted(sources_of(["pprop.study.metrics"]))
    ['pprop.study.metrics']
    """
    found: dict[str, str] = {}
    left_out = {f"{package.name}.{module}" for module in (*WITHOUT_RESULT, *without)}
    waiting = list(entries)
    while waiting:
        entry = waiting.pop()
        name, _, function = entry.partition(":")
        if entry in found or name in left_out:
            continue
        source = _source(package, name)
        found[entry], imports = source.whole() if not function else source.part(function)
        waiting.extend(imports)
    return found


@cache
def _source(package: Path, name: str) -> _Source:
    return _Source(package, name)


@final
class _Source:
    """One module: its code without what has no effect, and whom it imports."""

    def __init__(self, package: Path, name: str) -> None:
        self._package, self._name = package, name
        file = _file(package, name)
        if file is None:
            raise ModuleNotFoundError(f"No source of {name} in {package}.")
        self._is_package = file.name == "__init__.py"
        self._tree = ast.parse(file.read_bytes(), filename=str(file))
        self._whole: tuple[str, set[str]] | None = None

    def whole(self) -> tuple[str, set[str]]:
        """Return the hash of the module and what it imports."""
        if self._whole is None:
            self._whole = self._digest([self._tree])
        return self._whole

    def part(self, function: str) -> tuple[str, set[str]]:
        """Return the same for one function and what it uses of its module."""
        named = {name: node for node in self._tree.body for name in _binds(node)}
        if function not in named:
            raise ModuleNotFoundError(f"No {function} in {self._name}.")
        used: dict[str, ast.stmt] = {}
        waiting = [function]
        while waiting:
            name = waiting.pop()
            if name in named and name not in used:
                used[name] = _import_of(name, named[name])
                waiting.extend(node.id for node in ast.walk(named[name]) if isinstance(node, ast.Name))
        return self._digest([used[name] for name in sorted(used)])

    def home(self, name: str) -> str:
        """Return the module that defines a name which is imported from this one."""
        if not self._is_package:
            return self._name
        # Also what is imported for the type checker alone: a front door hands it out when it is first used.
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and self._inside(module := self._absolute(node)):
                for alias in node.names:
                    if name == (alias.asname or alias.name) and module != self._name:
                        return _source(self._package, module).home(alias.name)
        inner = f"{self._name}.{name}"
        return inner if _file(self._package, inner) else self._name

    def _digest(self, nodes: Iterable[ast.AST]) -> tuple[str, set[str]]:
        parts: list[str] = []
        statements: list[ast.Import | ast.ImportFrom] = []
        for node in nodes:
            _write(node, parts, statements)
        targets = {target for statement in statements for target in self._targets(statement)}
        return hashlib.sha256("\n".join(parts).encode()).hexdigest(), targets

    def _targets(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if self._inside(alias.name))
        elif self._inside(module := self._absolute(node)):
            yield from (_source(self._package, module).home(alias.name) for alias in node.names)

    def _inside(self, module: str) -> bool:
        return module.split(".")[0] == self._package.name

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self._name.split(".") if self._is_package else self._name.split(".")[:-1]
        parents = parents[: len(parents) - node.level + 1]
        return ".".join([*parents, node.module] if node.module else parents)


def _file(package: Path, name: str) -> Path | None:
    path = package.parent.joinpath(*name.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _binds(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        case _:
            return [
                name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            ]


def _import_of(name: str, node: ast.stmt) -> ast.stmt:
    """Return an import reduced to the one name, and any other statement as it is."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return node
    aliases = [alias for alias in node.names if name == (alias.asname or alias.name).split(".")[0]]
    if isinstance(node, ast.Import):
        return ast.Import(aliases)
    return ast.ImportFrom(node.module, aliases, node.level)


def _is_note(node: object) -> bool:
    """Whether a statement changes no result: a text that stands alone, or imports for the type checker."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False


def _is_empty_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


def _write(node: object, parts: list[str], imports: list[ast.Import | ast.ImportFrom]) -> None:
    """Write a tree as text, without notes, and collect its imports.

    It is what `ast.dump` does, but the same for every version of Python: fields that are empty are left out, because
    later versions add some, and so are `kind`, how a text was written, and the empty texts that some versions see at the
    end of an f-string's format.
    """
    if isinstance(node, ast.JoinedStr):
        node = ast.JoinedStr([part for part in node.values if not _is_empty_text(part)])
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        parts.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or value == [] or name in ("ctx", "kind", "type_comment"):
                continue
            parts.append(name)
            _write(value, parts, imports)
        parts.append(")")
    elif isinstance(node, list):
        for item in cast("list[object]", node):
            if not _is_note(item):
                _write(item, parts, imports)
        parts.append("]")
    else:
        parts.append(f"{type(node).__name__} {node!r}")
