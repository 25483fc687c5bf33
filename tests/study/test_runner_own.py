"""Users' models in the runner: their seeds, their faults, and when their rows go stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pprop
from pprop import TEST_SEEDS, InputError
from pprop.study import revisions
from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.revisions import current_revision, declared_revisions
from pprop.study.run.progress import show_study
from pprop.study.run.runner import Job, StudyOutcome, run_study
from pprop.study.run.user_model import user_cell
from pprop.study.stats.paired import current_rows
from pprop.study.store.row import Row
from pprop.study.store.store import Store

pytestmark = pytest.mark.slow

RUNS = tuple(Seeds(split, 0) for split in TEST_SEEDS[:2])


def small(model: str, **settings: Any) -> Cell:
    return make_cell(model, {"max_epochs": 5, **settings}, "citeseer")


def study(folder: Path, *jobs: Job) -> StudyOutcome:
    with (
        Store.open(folder, create=True) as store,
        show_study(lambda text: None, cells=len(jobs), runs=1, show=False) as watch,
    ):
        return run_study(store, jobs, watch)


def rows(folder: Path) -> list[Row]:
    with Store.open(folder) as store:
        return store.rows()


OWN = """
import numpy as np, pprop, torch

def appnp(graph):
    assert graph.labels is None
    return pprop.APPNP(alpha=0.2)

def module(graph):
    return torch.nn.Linear(graph.features.shape[1], graph.n_classes)

def wide(graph):
    return torch.nn.Linear(graph.features.shape[1], 99)

class Majority:
    def __init__(self, graph, seed=0, shape=None):
        self.graph, self.seed, self.shape = graph, seed, shape
    def fit(self, nodes, y, stopping):
        assert len(nodes) == len(y) == 120 and len(stopping[0]) == len(stopping[1]) == 500
        self.best = np.bincount(stopping[1]).argmax()
        return self
    def predict(self, nodes):
        return np.full(len(nodes) if self.shape is None else self.shape, self.best)

def majority(graph, seed):
    assert 0 <= seed < 2**64
    return Majority(graph, seed)

def probabilities(graph):
    return Majority(graph, shape=(graph.n_nodes, 6))

def clumsy(graph):
    model = Majority(graph)
    model.predict = lambda nodes: 1 / 0
    return model

SEEDS = []

def seeded(graph, seed):
    SEEDS.append(seed)
    torch.manual_seed(seed)
    return torch.nn.Linear(graph.features.shape[1], graph.n_classes)

class Odd(torch.nn.Linear):
    def __init__(self, graph, change):
        super().__init__(graph.features.shape[1], graph.n_classes)
        self.change = change
    def forward(self, x):
        return self.change(super().forward(x))

def raises(graph):
    return Odd(graph, lambda z: {}["key"])

def narrow(graph):
    return torch.nn.Linear(3, graph.n_classes)

def detached(graph):
    return Odd(graph, lambda z: z.detach())

def nan(graph):
    return Odd(graph, lambda z: z * float("nan"))

def far(graph):
    return Odd(graph, lambda z: torch.cat([z[:-1], z[-1:] * float("nan")]))

def ragged(graph):
    model = Majority(graph)
    model.predict = lambda nodes: [[1, 2], [3]]
    return model

def leaves(graph):
    model = Majority(graph)
    model.predict = lambda nodes: exit(7)
    return model

def nothing(graph):
    return 42

def broken(graph):
    raise TypeError("oh dear")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of models in the present folder."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_users_description_gives_the_rows_of_the_model_it_describes(tmp_path: Path, own: str):
    mine, theirs = user_cell(f"{own}:appnp", "citeseer", max_epochs=5), small("appnp", alpha=0.2)
    assert study(tmp_path, Job(mine, RUNS[:2]), Job(theirs, RUNS[:2])).computed == 4
    with Store.open(tmp_path) as store:
        pairs = list(zip(store.rows(mine.config), store.rows(theirs.config), strict=True))
    for row, other in pairs:
        np.testing.assert_array_equal(row.predictions, other.predictions)
        assert row.key.revision != other.key.revision


def test_a_users_module_starts_from_other_weights_in_every_run(tmp_path: Path, own: str):
    mine = user_cell(f"{own}:module", "citeseer", max_epochs=3)
    split = RUNS[0].split
    assert study(tmp_path, Job(mine, (Seeds(split, 0), Seeds(split, 1)))).computed == 2
    first, second = rows(tmp_path)
    assert first.epochs == second.epochs == 3
    assert first.stopping_loss != second.stopping_loss


def test_an_object_with_fit_and_predict_joins_with_its_share_of_the_largest_class(tmp_path: Path, own: str):
    mine = user_cell(f"{own}:majority", "citeseer")
    assert study(tmp_path, Job(mine, RUNS[:2])).computed == 2
    graph = pprop.load_dataset("citeseer")
    assert graph.labels is not None
    for row in rows(tmp_path):
        split = pprop.paper_split(graph, row.key.seeds.split)
        best = np.bincount(graph.labels[split.stopping]).argmax()
        assert row.accuracy == (graph.labels[split.evaluation] == best).mean()
        assert row.epochs == 0
        assert np.isnan(row.stopping_loss)
        assert np.isnan(row.ms_per_epoch)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("wide", "The predictor must return a tensor of shape (2110, 6), (n, classes). Got (2110, 99) instead."),
        (
            "probabilities",
            "must return one class per node: integers from 0 to 5, shape (2110,). Got ndarray of shape (2110, 6) and "
            "dtype int64 instead.",
        ),
        ("clumsy", "failed: ZeroDivisionError: division by zero"),
        ("nothing", "and predict(nodes). Got 42 instead."),
        ("broken", "could not be built: TypeError: oh dear"),
        ("raises", "failed: KeyError: 'key'"),
        ("narrow", "failed: RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        ("detached", "The predictions do not depend on the parameters of the predictor."),
        (
            "nan",
            "Training diverged in epoch 1 of split seed 2144199730, init seed 0: the loss or the logits are not finite.",
        ),
        ("far", "the loss or the logits are not finite. Use a lower learning_rate"),
        ("ragged", "failed: ValueError: "),
        ("leaves", "failed: SystemExit: 7"),
        ("absent", "has no function 'absent'."),
    ],
)
def test_a_wrong_model_of_a_user_is_refused_with_what_was_expected(
    tmp_path: Path, own: str, function: str, sentence: str
):
    outcome = study(tmp_path, Job(user_cell(f"{own}:{function}", "citeseer", max_epochs=3), RUNS[:1]))
    (refused,) = outcome.refused
    assert sentence in refused.reason
    assert (outcome.computed, outcome.left) == (0, 0)


def test_rows_of_a_users_model_go_stale_when_its_source_changes(tmp_path: Path, own: str):
    import importlib
    import sys

    mine = user_cell(f"{own}:appnp", "citeseer", max_epochs=2)
    study(tmp_path, Job(mine, RUNS[:1]))
    (tmp_path / f"{own}.py").write_text(OWN.replace("alpha=0.2", "alpha=0.3"))
    importlib.invalidate_caches()
    del sys.modules[own]
    assert study(tmp_path, Job(mine, RUNS[:1])).computed == 1
    assert len({row.key.revision for row in rows(tmp_path)}) == 2


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def f(:", "cannot be imported: SyntaxError: "),
        ("raise RuntimeError('oh dear')", "cannot be imported: RuntimeError: oh dear"),
        ("import sys; sys.exit('bye')", "cannot be imported: SystemExit: bye"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_and_spoils_nothing_else(
    tmp_path: Path, own: str, source: str, sentence: str
):
    name = f"{own}_bad"
    (tmp_path / f"{name}.py").write_text(source)
    outcome = study(tmp_path, Job(user_cell(f"{name}:f", "citeseer"), RUNS[:1]), Job(small("mlp"), RUNS[:1]))
    assert sentence in outcome.refused[0].reason
    assert outcome.computed == 1
    with pytest.raises(InputError, match="cannot be imported"):
        current_revision(user_cell(f"{name}:f", "citeseer"), "numba")


def test_a_function_without_a_source_file_is_refused(tmp_path: Path):
    outcome = study(tmp_path, Job(user_cell("sys:exit", "citeseer"), RUNS[:1]))
    assert "The module 'sys' has no source file" in outcome.refused[0].reason


def test_a_users_module_gets_the_seed_of_its_run(tmp_path: Path, own: str):
    import importlib

    split = RUNS[0].split
    mine = user_cell(f"{own}:seeded", "citeseer", max_epochs=2)
    assert study(tmp_path, Job(mine, (Seeds(split, 0), Seeds(split, 1)))).computed == 2
    wanted = {pprop.run_seed(split, init) % 2**64 for init in range(2)}
    assert wanted <= set(importlib.import_module(own).SEEDS)
    first, second = rows(tmp_path)
    assert first.stopping_loss != second.stopping_loss


@pytest.mark.parametrize("helper", ["import {0} as helper", "from {0} import ALPHA", "def late():\n    import {0}"])
def test_rows_of_a_users_model_go_stale_when_what_it_imports_changes(tmp_path: Path, own: str, helper: str):
    name = f"{own}_helper"
    mine = user_cell(f"{own}:appnp", "citeseer")
    (tmp_path / f"{own}.py").write_text(f"import numpy\n{helper.format(name)}\n{OWN}")
    (tmp_path / f"{name}.py").write_text(f"import {name}_2\nALPHA = 0.1\n")
    (tmp_path / f"{name}_2.py").write_text("BETA = 1\n")
    first = current_revision(mine, "numba")
    (tmp_path / f"{name}_2.py").write_text("BETA = 2\n")
    second = current_revision(mine, "numba")
    (tmp_path / f"{name}.py").write_text(f"import {name}_2\nALPHA = 0.2\n")
    assert len({first, second, current_revision(mine, "numba")}) == 3


def test_the_revision_of_a_users_model_goes_up_with_that_of_any_model_of_its_backend(
    own: str, monkeypatch: pytest.MonkeyPatch
):
    mine = user_cell(f"{own}:appnp", "citeseer")
    before = {backend: current_revision(mine, backend) for backend in ("numba", "triton")}
    declared = {name: dict(each) for name, each in declared_revisions().items()}
    declared["gat"]["numba"] += 1
    monkeypatch.setattr(revisions, "declared_revisions", lambda: declared)
    assert current_revision(mine, "triton") == before["triton"]
    (number, source), (raised, same) = (
        text.removeprefix("numba-").split("+") for text in (before["numba"], current_revision(mine, "numba"))
    )
    assert (int(raised), same) == (int(number) + 1, source)


def test_a_model_that_is_one_of_pprop_has_no_source_of_its_own():
    assert current_revision(user_cell("pprop.models:GCN", "citeseer"), "numba") == current_revision(
        user_cell("pprop.training:train", "citeseer"), "numba"
    )


def test_models_are_compared_on_rows_of_the_present_data_alone(tmp_path: Path):
    study(tmp_path, Job(small("mlp"), RUNS))
    mine, other = rows(tmp_path)
    with Store.open(tmp_path / "other", create=True) as store:
        store.add(replace(other, key=replace(other.key, data="0" * 16), created="9999"))
        assert current_rows(store, small("mlp")) == ()
        store.add(mine)
        assert [row.key for row in current_rows(store, small("mlp"))] == [mine.key]
