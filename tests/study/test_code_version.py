from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pprop.kernels import BACKENDS
from pprop.study import code_version as module
from pprop.study.code_version import code_version, sources_of, version_of
from pprop.study.zoo import MODELS, make_cell

FILES = {
    "__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from small.models import Net
        """,
    "train.py": """
        '''Train.'''
        from typing import TYPE_CHECKING
        from small.kernels import multiply
        from ._validate import check
        if TYPE_CHECKING:
            from small.typed import Typed

        def train(model):
            '''Return a model.'''
            import numpy  # not ours
            return multiply(model)
        """,
    "_validate.py": "def check(x): return x",
    "typed.py": "Typed = int",
    "kernels/__init__.py": "from small.kernels.dense import multiply\nfrom small.kernels.sparse import gather",
    "kernels/dense.py": "import small.kernels.sums as sums\ndef multiply(x): return 2 * sums.total(x)",
    "kernels/sums.py": "def total(x): return x",
    "kernels/sparse.py": "def gather(x): return x",
    "models/__init__.py": "from small.models.net import Network as Net\nfrom small.models.gat import GAT",
    "models/net.py": "class Network: width = 64",
    "models/gat.py": "class GAT: heads = 8",
    "builders.py": """
        import small.typed as other
        from small.kernels import gather, multiply

        SCALE = 3

        def net(settings):
            from small import Net
            return Net, _pick(settings), multiply

        def gat(settings):
            from small.models import GAT
            return GAT, gather

        def _pick(settings):
            return SCALE * settings
        """,
}
ENTRIES = ("small.train", "small.builders:net")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        path.write_text("\n".join(line[indent:] for line in lines) + "\n", encoding="utf-8")
    return tmp_path / "small"


def version(package: Path) -> str:
    """The version that a new process would see."""
    module._source.cache_clear()
    version_of.cache_clear()
    return version_of(ENTRIES, package)


def edit(package: Path, name: str, old: str, new: str) -> None:
    text = (package / name).read_text(encoding="utf-8")
    assert old in text
    (package / name).write_text(text.replace(old, new), encoding="utf-8")


def test_imports_lead_to_the_modules_that_define_the_names(package: Path):
    module._source.cache_clear()
    assert set(sources_of(ENTRIES, package)) == {
        "small.train",
        "small.builders:net",
        "small.kernels.dense",
        "small.kernels.sums",
        "small.models.net",
    }


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("train.py", "return multiply(model)", "return multiply(multiply(model))"),
        ("kernels/dense.py", "2 * ", "3 * "),
        ("kernels/sums.py", "return x", "return -x"),
        ("models/net.py", "64", "32"),
        ("builders.py", "SCALE = 3", "SCALE = 4"),
        ("builders.py", "Net, _pick(settings)", "_pick(settings), Net"),
        ("builders.py", "SCALE * settings", "settings * SCALE"),
        ("kernels/__init__.py", "small.kernels.dense import", "small.kernels.sparse import gather as"),
    ],
)
def test_an_edit_of_what_is_computed_changes_the_version(package: Path, name: str, old: str, new: str):
    before = version(package)
    edit(package, name, old, new)
    assert version(package) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("train.py", "'''Return a model.'''", "'''Return another text.'''"),
        ("train.py", "  # not ours", ""),
        ("train.py", "'''Train.'''", "'''Train.'''\n\n\n# a comment"),
        ("train.py", "import Typed", "import Typed as T"),
        ("kernels/dense.py", "return 2 * sums.total(x)", "\n    return (\n        2 * sums.total(x)\n    )"),
        ("kernels/sparse.py", "return x", "return -x"),
        ("models/gat.py", "8", "4"),
        ("builders.py", "return GAT, gather", "return None"),
        ("builders.py", "gather, multiply", "multiply, gather"),
        ("typed.py", "int", "str"),
        ("_validate.py", "return x", "return -x"),
    ],
)
def test_an_edit_that_no_run_sees_keeps_the_version(package: Path, name: str, old: str, new: str):
    before = version(package)
    edit(package, name, old, new)
    assert version(package) == before


def test_the_version_does_not_depend_on_the_place_of_the_package(package: Path, tmp_path: Path):
    before = version(package)
    elsewhere = tmp_path / "elsewhere" / "small"
    elsewhere.parent.mkdir()
    package.rename(elsewhere)
    assert version(elsewhere) == before


def test_a_missing_function_is_an_error(package: Path):
    with pytest.raises(ModuleNotFoundError, match=r"No jk in small\.builders"):
        version_of(("small.builders:jk",), package)


def test_a_cell_depends_on_its_model_and_backend_and_no_other():
    found = sources_of((*module.entries_of("numba"), *MODELS["gcn"].modules))
    assert {"pprop.models.gcn", "pprop.kernels.numba_cpu.sparse", "pprop.training.stopping"} <= set(found)
    others = {"pprop.models.jk", "pprop.models.ngcn", "pprop.models.gat", "pprop.study.zoo", "pprop.study.builders"}
    assert not others & set(found)
    assert not [
        name for name in found if name.startswith(("pprop.kernels.triton_gpu", "pprop.cli", "pprop.estimators"))
    ]


def test_a_model_that_is_not_trained_depends_on_neither_training_nor_estimators_nor_a_backend():
    kind = MODELS["bootstrapped_fp"]
    found = set(sources_of((module.FITTED, *kind.modules), without=module.SEEDS))
    assert {"pprop.models.feature_propagation", "pprop.models.one_vs_rest", "pprop.study.recipe:Fitted"} <= found
    apart = ("pprop.training", "pprop.estimators", "pprop.propagation", "pprop.kernels.numba_cpu")
    assert not [name for name in found if name.startswith(apart)]
    cell = make_cell("bootstrapped_fp", {}, "citeseer")
    assert len({code_version(cell, backend) for backend in ("numpy", "torch", "numba")}) == 1


def test_modules_are_left_out_with_what_they_alone_lead_to(package: Path):
    whole = sources_of(("small.builders:net",), package)
    assert {"small.kernels.dense", "small.kernels.sums"} <= whole.keys()
    fewer = sources_of(("small.builders:net",), package, ("kernels.dense",))
    assert fewer.keys() == whole.keys() - {"small.kernels.dense", "small.kernels.sums"}


def test_two_models_that_differ_in_settings_alone_share_their_code():
    versions = {name: code_version(make_cell(name, {}, "citeseer"), "numba") for name in MODELS}
    assert versions["gcn"] == versions["vanilla_gcn"]
    assert len(set(versions.values())) == len(versions) - 1


def test_backends_begin_where_the_registry_says():
    assert {backend.name: backend.module for backend in BACKENDS} == module.BACKENDS


def test_a_cell_has_another_version_on_another_backend():
    cell = make_cell("mlp", {}, "citeseer")
    assert len({code_version(cell, backend.name) for backend in BACKENDS}) == len(BACKENDS)


def test_empty_texts_that_some_versions_of_python_see_in_an_f_string_do_not_count():
    code = "def show(text, width): return f'{text:<{width}}  end', ['', text]"
    plain, padded = ast.parse(code), ast.parse(code)
    for node in ast.walk(padded):
        if isinstance(node, ast.JoinedStr):
            node.values.append(ast.Constant(""))  # as Python 3.12.1 does after a nested format
    emptied = ast.parse(code.replace("['', text]", "[text]"))
    written: list[list[str]] = []
    for tree in (plain, padded, emptied):
        parts: list[str] = []
        module._write(tree, parts, [])
        written.append(parts)
    assert written[0] == written[1]
    assert written[0] != written[2]  # an empty text of the program itself does count
