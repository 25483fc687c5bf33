"""The settings are declared once, in pprop/settings.py: a second default elsewhere is found."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pprop
from pprop import settings
from pprop.settings import Setting

SOURCE = Path(pprop.__file__).parent
DECLARED: list[Setting[Any]] = [value for value in vars(settings).values() if isinstance(value, Setting)]


def defaults_by_name() -> dict[str, set[tuple[type, Any]]]:
    """Return the defaults that the settings of each name have, with their types: True is not 1."""
    found: dict[str, set[tuple[type, Any]]] = {}
    for setting in DECLARED:
        found.setdefault(setting.name, set()).add((type(setting.default), setting.default))
    return found


def literals(tree: ast.Module) -> Iterator[tuple[int, str, ast.expr]]:
    """Yield (line, name, value) of every default of a parameter or a field, and of every entry of a dict."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                by_position = [*node.args.posonlyargs, *node.args.args]
                last = by_position[len(by_position) - len(node.args.defaults) :]
                pairs = [*zip(last, node.args.defaults, strict=True)]
                pairs += [
                    (arg, value)
                    for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                    if value
                ]
                yield from ((arg.lineno, arg.arg, value) for arg, value in pairs)
            case ast.ClassDef():
                for line in node.body:
                    match line:
                        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                            yield line.lineno, name, value
                        case ast.Assign(targets=[ast.Name(id=name)], value=value):
                            yield line.lineno, name, value
                        case _:
                            pass
            case ast.Call(args=[ast.Constant(value=str(name)), value, *_]):  # number("learning_rate", 0.01, ...)
                yield value.lineno, name, value
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield value.lineno, key.value, value
            case _:
                pass


def second_declarations(root: Path) -> list[str]:
    """Return a line for every literal that repeats a declared default under the same name."""
    known, found = defaults_by_name(), []
    for file in sorted(root.rglob("*.py")):
        if file == root / "settings.py":
            continue
        for line, name, value in literals(ast.parse(file.read_text(encoding="utf-8"))):
            match value:
                case ast.Constant(value=int() | float() | str() as default):
                    if (type(default), default) in known.get(name, ()):
                        found.append(f"{file.relative_to(root)}:{line}: {name} = {default!r}")
                case _:
                    pass
    return found


def test_no_default_of_a_setting_is_declared_twice():
    found = second_declarations(SOURCE)
    assert not found, "\n".join(["Read these from pprop.settings, for instance LEARNING_RATE.default:", *found])


@pytest.mark.parametrize(
    "code",
    [
        "def train(model, learning_rate=0.01): ...",
        "def train(model, *, learning_rate: float = 0.01): ...",
        "class Training:\n    learning_rate: float = 0.01",
        "class Training:\n    learning_rate = 0.01",
        "def cell(): return {'learning_rate': 0.01}",
        "rate = number('learning_rate', 0.01, '(0, inf)')",
        "make = lambda learning_rate=0.01: learning_rate",
        "def gcn(penalty=0.02): ...",
    ],
)
def test_a_second_declaration_is_found(tmp_path: Path, code: str):
    tmp_path.joinpath("model.py").write_text(code)
    (found,) = second_declarations(tmp_path)
    assert found.startswith("model.py:")


@pytest.mark.parametrize(
    "code",
    [
        "def train(model, learning_rate=LEARNING_RATE.default): ...",
        "def weight(penalty=0.0): ...",
        "def sizes(members=True): ...",
        "FORMATS = {'learning_rate': '{:g}'}",
    ],
)
def test_what_is_no_declaration_is_not(tmp_path: Path, code: str):
    tmp_path.joinpath("model.py").write_text(code)
    assert second_declarations(tmp_path) == []


@pytest.mark.parametrize("setting", DECLARED, ids=lambda setting: f"{setting.name}-{setting.default}")
def test_every_default_is_possible_and_explained_in_one_line(setting: Setting[Any]):
    setting.check(setting.default, "settings")
    assert setting.help.endswith(".")
    assert "\n" not in setting.help


@pytest.mark.parametrize("setting", [one for one in DECLARED if one.search is not None], ids=lambda one: one.name)
def test_what_tuning_searches_is_possible(setting: Setting[Any]):
    searched = setting.search
    for value in (searched.low, searched.high) if isinstance(searched, settings.Range) else searched or ():
        setting.check(value, "tune")
