"""The layers of docs/architecture.md, read off the source: who imports whom, and what stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csgraph

import pprop

SOURCE = Path(pprop.__file__).parent

# From the ground up. A module imports its own row and the rows before it.
ROWS: tuple[tuple[str, ...], ...] = (
    (
        "_errors",
        "_validate",
        "_optional",
        "_process",
        "_version",
        "_words",
    ),
    ("settings",),
    ("graph",),
    ("datasets", "scoring"),
    ("kernels",),
    ("propagation",),
    ("models",),
    ("training",),
    ("scale",),
    ("estimators",),
    ("spark",),
    ("study",),
    ("tuning",),
    ("cli", "serve"),
    ("__init__", "__main__"),  # the doors: they may open on anything, and nothing inside goes out through them
)
RANK = {layer: rank for rank, row in enumerate(ROWS) for layer in row}

# A package that only these layers import.
ONLY_IN = {
    "fastapi": {"serve"},
    "matplotlib": {"study"},
    "numba": {"kernels"},
    "optuna": {"tuning"},
    "prometheus_client": {"serve"},
    "pydantic": {"serve"},
    "pyspark": {"spark"},
    "starlette": {"serve"},
    "triton": {"kernels"},
    "typer": {"cli"},
    "uvicorn": {"serve"},
}
# A package that these layers do not import.
NEVER_IN = {"torch": {"graph", "datasets", "propagation", "scoring"}}
# A package that these folders inside a layer do not import.
NEVER_IN_FOLDER = {"torch": {"kernels/numba_cpu"}}
# Except in these modules: the Data that one makes consists of tensors; gradients, and the layer; steps on a GPU.
EXCEPT = {
    "torch": {
        "graph/convert/pyg.py",
        "propagation/gradients.py",
        "propagation/module.py",
        "propagation/stored/device.py",
    }
}

# Groups of modules that import each other. Remove a group here when it is broken; never add one.
CIRCLES: list[set[str]] = []

# Classes of one name in two modules: the same concept on two backends. A new pair needs another name for one of them.
BACKEND_PAIRS = frozenset({"DenseFirst", "FirstLayer", "LargeSteps", "Masks", "SparseFirst"})


def layer_of(root: Path, file: Path) -> str:
    return file.relative_to(root).with_suffix("").parts[0]


def resolve(node: ast.ImportFrom, root: Path, file: Path) -> str:
    """Return the absolute name of the module in ``from ... import``."""
    if node.level == 0:
        return node.module or ""
    package = [root.name, *file.relative_to(root).parent.parts]
    parents = package[: len(package) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)


def imports(root: Path, file: Path, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, name) of every import, also in functions, under TYPE_CHECKING and by a call.

    The name is that in ``from module import name``, else empty.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name, "") for alias in names)
            case ast.ImportFrom(names=names):
                yield from ((node.lineno, resolve(node, root, file), alias.name) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "require")
                | ast.Attribute(attr="import_module" | "require"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield node.lineno, module, ""
            case _:
                pass


def imported(root: Path, file: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute module name) of every import statement, each once."""
    found = (
        # "from pprop import graph": the name is the module
        (line, f"{module}.{name}" if module == root.name and name else module)
        for line, module, name in imports(root, file, tree)
    )
    yield from dict.fromkeys(found)


def circles(root: Path) -> list[set[str]]:
    """Return the groups of modules that import each other, by their names inside the package `root`.

    A package is its ``__init__``: ``from fake.graph import Graph`` imports it, ``from fake.graph import npz``, where
    ``npz`` is a module, and ``from fake.graph.npz import read_npz`` do not.
    """
    files: dict[str, Path] = {}
    for file in sorted(root.rglob("*.py")):
        parts = (root.name, *file.relative_to(root).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    number = {name: at for at, name in enumerate(files)}
    edges = np.zeros((len(files), len(files)), dtype=bool)
    for name, file in files.items():
        for _, module, member in imports(root, file, ast.parse(file.read_text(encoding="utf-8"))):
            target = f"{module}.{member}" if f"{module}.{member}" in files else module
            if target in files:
                edges[number[name], number[target]] = True
    _, group = csgraph.connected_components(edges, directed=True, connection="strong")
    names = np.array([name.removeprefix(f"{root.name}.") for name in files])
    return sorted((set(names[group == one].tolist()) for one in np.flatnonzero(np.bincount(group) > 1)), key=min)


def named_twice(root: Path) -> dict[str, list[str]]:
    """Return the modules, as paths below the package folder `root`, of each class name that is defined more than once."""
    places: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(file.relative_to(root).as_posix())
    return {name: files for name, files in places.items() if len(files) > 1}


def import_fault(layer: str, module: str, root: Path) -> str | None:
    """Say what is wrong with `module` being imported in `layer`, or None."""
    package, *inner = module.split(".")
    if package != root.name:
        if layer not in ONLY_IN.get(package, {layer}):
            return f"imports {package}, which only {' and '.join(sorted(ONLY_IN[package]))} may import"
        if layer in NEVER_IN.get(package, ()):
            return f"imports {package}, which {layer} does without"
        return None
    target = inner[0] if inner and inner[0] in RANK else "__init__"  # a name that the package's front door hands out
    if layer in RANK and RANK[target] > RANK[layer]:
        return f"imports {module}, which is above {layer}"
    return None


def faults(root: Path) -> list[str]:
    """Return one line for every break of the architecture in the package folder `root`."""
    found: list[str] = []
    for file in sorted(root.rglob("*.py")):
        text, name, layer = file.read_text(encoding="utf-8"), file.relative_to(root), layer_of(root, file)
        tree = ast.parse(text, filename=str(file))
        if layer not in RANK:
            found.append(f"{name}: '{layer}' is in no row of the architecture")
        if ast.get_docstring(tree) is None:
            found.append(f"{name}: the module has no docstring")
        for line, module in imported(root, file, tree):
            if str(name.as_posix()) in EXCEPT.get(module, ()):
                continue
            package, folder = module.partition(".")[0], name.parent.as_posix()
            if fault := import_fault(layer, module, root):
                found.append(f"{name}:{line}: {fault}")
            elif folder in NEVER_IN_FOLDER.get(package, ()):
                found.append(f"{name}:{line}: imports {package}, which {folder} does without")
    return found


def loaded_by(code: str, watched: set[str]) -> set[str]:
    """Return which of the packages `watched` a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return watched & set(run.stdout.split())


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package without a fault, to be spoiled by the test."""
    root = tmp_path / "fake"
    files = {
        "__init__.py": "from fake.models.net import Net",
        "_errors.py": "import math",
        "graph/__init__.py": "from fake._errors import GraphError",
        "kernels/cpu.py": "import numba\nfrom .contract import Backend\nfrom ..graph import Graph",
        "kernels/contract.py": "import torch",
        "models/net.py": "from fake.kernels import cpu\nfrom fake import graph",
    }
    for name, code in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""A docstring."""\n{code}\n', encoding="utf-8")
    return root


def test_the_package_keeps_its_layers():
    assert not faults(SOURCE)


def test_the_check_sees_the_whole_package():
    seen = {layer_of(SOURCE, file) for file in SOURCE.rglob("*.py")}
    assert {"__init__", "_errors", "graph"} <= seen


def test_a_package_with_downward_imports_has_no_fault(package: Path):
    assert faults(package) == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import fake.models.net", "imports fake.models.net, which is above graph"),
        ("from fake.models.net import Net", "imports fake.models.net, which is above graph"),
        ("from fake import models", "imports fake.models, which is above graph"),
        ("from fake import Net", "imports fake.Net, which is above graph"),
        ("from ..models import net", "imports fake.models, which is above graph"),
        ("from .. import models", "imports fake.models, which is above graph"),
        ("def f():\n    from fake.kernels import cpu", "imports fake.kernels, which is above graph"),
        ("import numba", "imports numba, which only kernels may import"),
        ("from numba import njit", "imports numba, which only kernels may import"),
        (
            "import importlib\nimportlib.import_module('triton.language')",
            "imports triton, which only kernels may import",
        ),
        ("require('pyspark', extra='spark')", "imports pyspark, which only spark may import"),
        ("import matplotlib.pyplot as plt", "imports matplotlib, which only study may import"),
        ("from typer import Option", "imports typer, which only cli may import"),
        ("from torch import Tensor", "imports torch, which graph does without"),
    ],
)
def test_a_forbidden_import_is_named_with_its_line(package: Path, code: str, fault: str):
    (package / "graph" / "bad.py").write_text(f'"""A docstring."""\n{code}\n', encoding="utf-8")
    line = 1 + len(code.splitlines())
    assert faults(package) == [f"graph/bad.py:{line}: {fault}"]


def test_a_package_that_a_folder_does_without_is_named(package: Path):
    (package / "kernels" / "numba_cpu").mkdir()
    (package / "kernels" / "numba_cpu" / "bad.py").write_text('"""A docstring."""\nimport torch\n', encoding="utf-8")
    assert faults(package) == ["kernels/numba_cpu/bad.py:2: imports torch, which kernels/numba_cpu does without"]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("graph/silent.py", "import math\n", "graph/silent.py: the module has no docstring"),
        ("plugins.py", '"""Stray."""\n', "plugins.py: 'plugins' is in no row of the architecture"),
    ],
)
def test_a_faulty_module_is_named(package: Path, name: str, text: str, fault: str):
    (package / name).write_text(text, encoding="utf-8")
    assert faults(package) == [fault]


def test_no_modules_import_each_other_in_a_circle():
    assert circles(SOURCE) == CIRCLES


@pytest.mark.parametrize(
    "code",
    [
        "from fake.models.net import Net",
        "from fake.models import net",
        "from ..models.net import Net",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fake.models.net import Net",
        "def f():\n    from fake.models.net import Net",
        "import importlib\nimportlib.import_module('fake.models.net')",
    ],
)
def test_a_circle_is_found_however_a_module_is_imported(package: Path, code: str):
    assert circles(package) == []
    (package / "kernels" / "cpu.py").write_text(code, encoding="utf-8")
    assert circles(package) == [{"kernels.cpu", "models.net"}]


def test_a_module_that_imports_its_own_package_is_a_circle(package: Path):
    (package / "graph" / "npz.py").write_text("from fake.graph import Graph", encoding="utf-8")
    assert circles(package) == []
    (package / "graph" / "__init__.py").write_text("from fake.graph.npz import read", encoding="utf-8")
    assert circles(package) == [{"graph", "graph.npz"}]


def test_one_name_stands_for_one_class_or_for_its_twin_on_another_backend():
    found = named_twice(SOURCE)
    assert set(found) == BACKEND_PAIRS
    folders = [[str(Path(file).parent) for file in files] for files in found.values()]
    assert folders == [["kernels/numba_cpu", "kernels/triton_gpu"]] * len(folders)


def test_a_class_name_that_is_taken_is_found_with_its_modules(package: Path):
    assert named_twice(package) == {}
    for name in ("graph/net.py", "models/net.py"):
        (package / name).write_text('"""A docstring."""\nclass Net: ...\n', encoding="utf-8")
    assert named_twice(package) == {"Net": ["graph/net.py", "models/net.py"]}


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import pprop", {"numba", "scipy", "sklearn", "torch"}) == set()


def test_the_check_for_heavy_imports_sees_one():
    assert loaded_by("import scipy", {"scipy", "torch"}) == {"scipy"}


KERNELS_ON_ARRAYS = """
import numpy as np, scipy.sparse as sp
from pprop.graph import Graph, transition_matrix
from pprop.kernels import Draw, choose_backend
path = transition_matrix(Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))))
kernels = choose_backend("numba", "cpu", "example").own_kernels
H = np.eye(5, dtype=np.float32)[None]
draw = Draw(np.array([7]), 0, 0.5)
steps = kernels.steps(path, 0.1, 3)
Z = steps.forward(H, draw)
assert np.allclose((Z * H).sum(), (H * steps.adjoint(H, draw)).sum())  # <T H, H> = <H, T^T H>
loss, right, gradient = kernels.cross_entropy(Z, np.array([[0, 1, 2, 3, 4]]))
assert type(Z) is type(loss) is type(gradient) is np.ndarray
"""


def test_kernels_of_the_cpu_compute_without_torch():
    assert loaded_by(KERNELS_ON_ARRAYS, {"numba", "torch"}) == {"numba"}


PROPAGATED = """
import numpy as np, pprop, scipy.sparse as sp
from pprop.propagation.attribution import Attributor
from pprop.propagation.operator import PPROperator
path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
exact = pprop.propagate(path, np.eye(5), solver=pprop.Exact())
for solver in (pprop.PowerIteration(300), pprop.Chebyshev(), pprop.ConjugateGradient(), pprop.Contraction()):
    solution = pprop.solve(path, np.eye(5), solver=solver)
    assert np.allclose(solution.value, exact, atol=1e-5) and solution.statistics.backend == "numba"
assert pprop.propagate(path, np.eye(5, dtype=np.float16), alpha=0, solver=pprop.Limit(), self_loops=True).any()
assert np.allclose(pprop.ppr(path, [0], eps=1e-8).matrix.toarray(), exact[:1], atol=1e-6)
changing = pprop.LiveGraph(path, np.eye(5))
changing.add_edge(0, 4)
Attributor(np.eye(5), PPROperator(path, 0.1), pprop.PowerIteration()).exact(np.array([1]), 3)
pprop.scale.propagate_folder(path, np.eye(5, dtype=np.float32))
"""


def test_predictions_are_propagated_without_torch():
    assert loaded_by(f"import pprop.scale\n{PROPAGATED}", {"numba", "torch"}) == {"numba"}
