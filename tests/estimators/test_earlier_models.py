"""Models saved by the version before: they load, and predict and train to the same bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save as tensor_bytes
from sklearn.base import clone
from tests.estimators.folders import put_weights

import pprop
from pprop import Graph, InputError
from pprop.estimators.loading import saved_recipe
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
def test_a_model_of_the_version_before_loads_and_predicts_the_same(name: str, earlier_graph: Graph):
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


# What version 0.1 computed of the tables below.
FORMER_FINGERPRINT = "7a3cbd819e046db61e0c30c286d1d619"


def former_model(folder: Path) -> dict[str, NDArray[Any]]:
    """Write tables, and the folder of a model that version 0.1 would have trained on them; return its weights."""
    edges = ["a,b,strength", *(f"n{i},n{(i + k) % 12},{k}.5" for i in range(12) for k in (1, 3))]
    teams = ["red", "blue", "NA", ""]
    rows = [f"n{i},{10115 + 7 * i},{teams[i % 4]},w{i % 3},{(i - 6) ** 2 / 8},{i % 2}" for i in range(12)]
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    (folder / "nodes.csv").write_text("\n".join(["key,zip,team,word,x,flag", *rows]) + "\n")
    manifest: dict[str, Any] = json.loads((FOLDER / "appnp" / "manifest.json").read_bytes())
    manifest["settings"] |= {"hidden": 8, "backend": "reference"}
    manifest["training"] |= {"epochs": 2, "best_epoch": 1, "backend": "reference"}
    manifest["graph"] |= {"fingerprint": FORMER_FINGERPRINT, "feature_shape": [3]}
    manifest["graph"]["source"] = {
        "kind": "edges",
        "path": str(folder / "edges.csv"),
        "nodes": str(folder / "nodes.csv"),
        "source": "a",
        "target": "b",
        "weight": "strength",
        "directed": False,
        "id_column": "key",
        "label_column": "team",
        "feature_columns": None,
    }
    (folder / "model").mkdir()
    (folder / "model" / "manifest.json").write_text(json.dumps(manifest))
    rng = np.random.default_rng(0)
    weights = {"layer0": rng.normal(size=(3, 8)), "layer1": rng.normal(size=(8, 3))}
    curves = dict.fromkeys(("train_loss", "stopping_loss", "stopping_accuracy"), np.zeros(2))
    tensors = {f"weights.{name}": array.astype(np.float32) for name, array in weights.items()}
    content = tensor_bytes(tensors | {f"history.{name}": curve for name, curve in curves.items()})
    put_weights(folder / "model", content)
    return weights


def test_a_model_of_version_1_finds_its_tables_and_predicts_as_it_did(tmp_path: Path) -> None:
    weights = former_model(tmp_path)
    model: Any = pprop.load(tmp_path / "model")
    graph = model.graph_
    assert graph.fingerprint == FORMER_FINGERPRINT
    assert (graph.feature_names, graph.class_names) == (("zip", "x", "flag"), ("NA", "blue", "red"))
    assert (model.scaling, model.bias, model.class_weight, model.scaling_.kind) == ("l1", False, None, "l1")
    features = graph.features.astype(np.float64)
    rows = features / features.sum(axis=1, keepdims=True)
    alone = np.maximum(rows @ weights["layer0"], 0) @ weights["layer1"]
    expected = pprop.propagate(graph, alone, 0.15, solver=pprop.PowerIteration(7), normalization="row")
    np.testing.assert_allclose(model.logits_, expected, rtol=1e-4, atol=1e-6)
    assert saved_recipe(tmp_path / "model") is None


def test_a_model_of_version_1_is_saved_in_the_present_form(tmp_path: Path) -> None:
    former_model(tmp_path)
    model = pprop.load(tmp_path / "model")
    model.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "manifest.json").read_bytes())["format_version"] == 3
    again = pprop.load(tmp_path / "again")
    assert np.array_equal(again.logits_, model.logits_)
    assert saved_recipe(tmp_path / "again") == model.recipe_
    with pytest.raises(InputError, match="The column 'zip' became other features"):
        pprop.load(tmp_path / "again", graph=pprop.read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv",
            source="a", target="b", weight="strength", id_column="key", label_column="team"))  # fmt: skip


def test_tables_that_changed_after_version_1_are_refused(tmp_path: Path) -> None:
    former_model(tmp_path)
    table = (tmp_path / "nodes.csv").read_text().replace("10115", "10116")
    (tmp_path / "nodes.csv").write_text(table)
    with pytest.raises(InputError, match=f"was trained on: its fingerprint is .*, not {FORMER_FINGERPRINT}"):
        pprop.load(tmp_path / "model")
