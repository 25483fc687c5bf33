"""Models of format version 2: they load, and predict and train to the same bits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from tests.estimators.folders import edit

import pprop
from pprop import FormatError, Graph
from pprop.graph import read_npz
from pprop.kernels.registry import cpu_kind

FOLDER = Path(__file__).parent / "fixtures"
NAMES = ("appnp", "ensemble", "gcn")


@pytest.fixture(scope="module")
def earlier_graph() -> Graph:
    return read_npz(FOLDER / "graph.npz")


def assert_same(found: NDArray[Any], name: str) -> None:
    """Bit for bit on the kind of CPU that the models were saved on, elsewhere within the rounding of float32."""
    with np.load(FOLDER / "logits.npz") as stored:
        expected, same_cpu = stored[name], str(stored["cpu"]) == cpu_kind()
    if same_cpu:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_format_2_loads_and_predicts_the_same(name: str, earlier_graph: Graph):
    model = pprop.load(FOLDER / name, graph=earlier_graph)
    assert_same(model.logits_, name)
    assert not model.graph_changed_
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert len(model.known_nodes_) == model.record_.train_nodes + model.record_.stopping_nodes == 36


@pytest.mark.parametrize("name", NAMES)
def test_its_settings_learn_the_same_again(
    name: str, earlier_graph: Graph, nodes: NDArray[np.int64], animals: NDArray[np.str_]
):
    model: Any = clone(pprop.load(FOLDER / name, graph=earlier_graph))
    assert_same(model.fit(nodes, animals).logits_, name)


def test_its_settings_are_complete(earlier_graph: Graph, tmp_path: Path):
    """The first models of format version 2 lack settings that came later; those of version 3 have all."""
    for version in (2, 3):
        shutil.copytree(FOLDER / "appnp", tmp_path / str(version))
        edit(tmp_path / str(version), lambda manifest, version=version: manifest.update(format_version=version))
        edit(tmp_path / str(version), lambda manifest: manifest["settings"].pop("neighbours"))
    edit(tmp_path / "3", lambda manifest: manifest.update(features=None, test_nodes=None))
    assert_same(pprop.load(tmp_path / "2", graph=earlier_graph).logits_, "appnp")
    with pytest.raises(FormatError, match="the setting 'neighbours' is missing or unknown"):
        pprop.load(tmp_path / "3", graph=earlier_graph)
