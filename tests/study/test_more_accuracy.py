"""The ensemble in the study: computed on the backend of the study, from the labels of the split alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop import APPNPEnsembleClassifier, run_seed
from pprop.study.cell import Seeds
from pprop.study.run.recipe import ComputePlace, Datasets
from pprop.study.run.user_model import user_cell, user_recipe
from pprop.study.store.row import Row

pytestmark = pytest.mark.slow

QUICK = """
from ensembles import build, build_folds


def quick(graph, seed):
    return build(graph, seed).set_params(members=2, hidden=4, steps=2, max_epochs=2)


def quick_folds(graph, seed):
    return build_folds(graph, seed).set_params(members=2, hidden=4, steps=2, max_epochs=2)
"""


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "quick_ensemble.py").write_text(QUICK, encoding="utf-8")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "experiments")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "quick_ensemble", raising=False)
    return "quick_ensemble"


@pytest.mark.parametrize(
    ("name", "settings", "backend"),
    [("quick", {}, "numba"), ("quick", {}, "reference"), ("quick_folds", {"folds": 5, "rounds": 0}, "numba")],
)
def test_a_row_of_the_ensemble_is_its_fit_on_the_backend_of_the_study(
    quick: str, name: str, settings: dict[str, Any], backend: str
):
    cell, rows = user_cell(f"{quick}:{name}", "citeseer"), list[Row]()
    prepared = Datasets().of(cell)
    recipe = user_recipe(cell, prepared, ComputePlace("cpu", backend))
    recipe.compute([Seeds(2144199730, 1)], rows.append)
    split, labels = prepared.split(2144199730, 20), prepared.graph.labels
    assert labels is not None
    known = np.full(len(labels), -1)
    for nodes in (split.train, split.stopping):
        known[nodes] = labels[nodes]
    twin = APPNPEnsembleClassifier(
        prepared.graph,
        members=2,
        hidden=4,
        steps=2,
        max_epochs=2,
        backend=backend,
        random_state=run_seed(2144199730, 1) % 2**64,
        **settings,
    )
    twin.fit(split.train, known[split.train], stopping=(split.stopping, known[split.stopping]))
    assert rows[0].backend == twin.record_.backend == backend
    assert rows[0].stopping_accuracy == twin.record_.stopping_accuracy
    assert (rows[0].predictions == twin.predict(np.arange(len(labels)))).all()
