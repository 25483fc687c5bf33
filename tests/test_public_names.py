"""The public names: `pprop.__all__` and docs/api.md list the same, and each can be looked up and is explained."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pprop

PAGE = Path(__file__).parents[1] / "docs" / "api.md"

# Not defined until the package has a front door; an empty list agrees with an empty page only.
PUBLIC: list[str] = list(getattr(pprop, "__all__", []))


def names_in(page: str) -> list[str]:
    """Return the names in backticks in the first column of every table, in order; a call's arguments are dropped."""
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.lstrip().startswith("|")]
    return [name for cell in first_cells for name in re.findall(r"`([A-Za-z_]\w*)[^`]*`", cell)]


def unexplained(name: str, thing: Any) -> str | None:
    """Say what the docstring of a public function or class lacks, or None. An exception needs no example."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return None
    text = thing.__doc__ or ""
    if not text.strip():
        return f"{name} has no docstring"
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return None
    if ">>>" not in text and not re.search(r"^\s*Examples\n\s*-{3,}$", text, flags=re.MULTILINE):
        return f"{name} has no example in its docstring"
    return None


def test_the_page_lists_exactly_the_public_names():
    assert sorted(names_in(PAGE.read_text(encoding="utf-8"))) == sorted(PUBLIC)


def test_every_public_name_resolves():
    assert [name for name in PUBLIC if not hasattr(pprop, name)] == []


def test_every_public_function_and_class_has_an_example():
    found = [unexplained(name, getattr(pprop, name)) for name in PUBLIC]
    assert [fault for fault in found if fault] == []


def test_names_are_read_from_the_first_column_only():
    page = (
        "# `pprop`\n\n| name | meaning |\n|---|---|\n"
        "| `solve(graph, H)` | like `propagate` |\n| `Exact`, `Graph` | two |\n| text | none |\n"
    )
    assert names_in(page) == ["solve", "Exact", "Graph"]


def test_a_missing_docstring_or_example_is_named():
    def bare() -> None: ...

    def told() -> None:
        """Told."""

    def shown() -> None:
        """Shown.

        >>> shown()
        """

    class WrongError(Exception):
        """Raised."""

    assert unexplained("bare", bare) == "bare has no docstring"
    assert unexplained("told", told) == "told has no example in its docstring"
    assert unexplained("shown", shown) is None
    assert unexplained("WrongError", WrongError) is None
    assert unexplained("version", "0.1") is None


def test_an_examples_section_counts_as_an_example():
    def shown() -> None:
        """Shown.

        Examples
        --------
        See the guide.
        """

    assert unexplained("shown", shown) is None
