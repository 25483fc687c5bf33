"""The pages for readers of the code: links lead somewhere, paths exist, and docs/architecture.md names what is there."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

import pytest

import pprop
from pprop.kernels.contract import Kernels

ROOT = Path(__file__).parents[1]
SOURCE = Path(pprop.__file__).parent
MAP = ROOT / "docs" / "architecture.md"
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", MAP]
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
PATH = re.compile(r"`(\.?\w[\w.*-]*(?:/[\w.*-]+)+/?|\w+\.(?:md|toml|txt))`")
BACKENDS = {"reference": "reference", "numba": "numba_cpu", "triton": "triton_gpu"}


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken: list[str] = []
    for _, target in LINK.findall(prose(page)):
        if re.match(r"\w+:", target):  # https:, mailto:
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    return broken


def missing_paths(page: Path) -> list[str]:
    places = (ROOT, SOURCE, page.parent)
    return [path for path in PATH.findall(prose(page)) if not any(list(place.glob(path)) for place in places)]


def defined(file: Path) -> set[str]:
    """The names of functions, classes and their methods, and of constants in a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def named_in_links(text: str) -> list[tuple[str, Path]]:
    """The pairs (name, file) of the links [`name`](file.py) of docs/architecture.md."""
    return [
        (name.strip("`"), MAP.parent / target)
        for name, target in LINK.findall(text)
        if re.fullmatch(r"`\w+`", name) and target.endswith(".py")
    ]


def kernel_rows() -> list[list[str]]:
    """The cells of the index of kernels: the operation, then one cell a backend."""
    (table,) = re.findall(
        r"^\| operation \| reference \| numba \| triton \|\n.*\n((?:\|.*\n)+)", prose(MAP), re.MULTILINE
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_or_heading(page: Path):
    assert broken_links(page) == []


@pytest.mark.parametrize("page", WITH_PATHS, ids=lambda page: page.name)
def test_every_path_exists(page: Path):
    assert missing_paths(page) == []


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_every_dotted_name_can_be_imported(page: Path):
    for name in set(re.findall(r"`[^`]*?\b(pprop(?:\.\w+)+)", prose(page))):
        assert pkgutil.resolve_name(name) is not None


def test_a_broken_link_and_a_missing_path_are_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](page.md#one-two) [b](gone.md) [c](#three) `kernels/contract.py` `kernels/gone.py` `gone.md`\n"
    )
    assert broken_links(page) == ["gone.md", "#three"]
    assert missing_paths(page) == ["kernels/gone.py", "gone.md"]


def test_names_in_links_of_the_map_are_defined_in_their_files():
    named = named_in_links(prose(MAP))
    assert len(named) > 60
    assert [f"{name} in {file.name}" for name, file in named if name not in defined(file)] == []


def test_the_index_has_every_operation_of_the_contract_for_every_backend():
    rows = kernel_rows()
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    operations = {name for name, value in vars(Kernels).items() if callable(value) and not name.startswith("_")}
    assert operations <= listed
    for operation, *cells in rows:
        assert len(cells) == len(BACKENDS), operation
        for folder, cell in zip(BACKENDS.values(), cells, strict=True):
            for _, file in named_in_links(cell):
                assert file.parent.name in (folder, "kernels"), (operation, cell)


def test_the_map_names_every_layer_and_every_module_of_kernels():
    text = prose(MAP)
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {folder for folder in folders if f"`{folder}`" not in text} == set()
    modules = {path.relative_to(SOURCE / "kernels").as_posix() for path in (SOURCE / "kernels").rglob("[!_]*.py")}
    assert {module for module in modules if f"kernels/{module}" not in text} == set()


def test_the_map_has_the_equations_of_the_paper():
    assert re.findall(r"^\| \((\d)\) \|", prose(MAP), flags=re.MULTILINE) == ["1", "2", "3", "4"]
