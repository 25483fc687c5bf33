"""A saved model comes back as it was, bit for bit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from torch import nn

import pprop
from pprop import APPNPClassifier, Graph, GraphSource, InputError, MLPNodeClassifier, PPNPClassifier

CLASSES = (APPNPClassifier, PPNPClassifier, MLPNodeClassifier)
QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 10, "random_state": 0}
EVERYWHERE = np.arange(90)


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_bytes())


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_a_loaded_model_predicts_as_the_saved_one_bit_for_bit(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, kind: Any, backend: str
) -> None:
    saved = kind(graph, backend=backend, **QUICK).fit(nodes, animals)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert type(loaded) is kind
    assert np.array_equal(loaded.decision_function(EVERYWHERE), saved.decision_function(EVERYWHERE))
    assert np.array_equal(loaded.predict_proba(EVERYWHERE), saved.predict_proba(EVERYWHERE))
    assert loaded.predict(EVERYWHERE).tolist() == saved.predict(EVERYWHERE).tolist()
    assert loaded.get_params() == saved.get_params()
    assert loaded.record_ == saved.record_
    assert (loaded.alpha_, loaded.n_iter_, loaded.n_features_in_) == (saved.alpha_, saved.n_iter_, 1)
    for name, curve in vars(saved.history_).items():  # NaN where early stopping watched no score
        assert np.array_equal(vars(loaded.history_)[name], curve, equal_nan=True)
    assert loaded.graph_changed_ is False
    assert len(loaded.stopping_nodes_) > 0
    assert loaded.train_nodes_.tolist() == sorted(saved.train_nodes_.tolist())
    assert loaded.stopping_nodes_.tolist() == sorted(saved.stopping_nodes_.tolist())


def test_settings_far_from_the_defaults_come_back(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "alpha": np.float64(0.25),
        "steps": 3,
        "hidden": (6, np.int64(5)),
        "dropout": 0.1,
        "propagation_dropout": 0.2,
        "normalization": "row",
        "self_loops": False,
        "random_state": 2**63,
        "backend": "reference",
    }
    saved = APPNPClassifier(graph, max_epochs=3, **settings).fit(nodes, animals)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert {name: getattr(loaded, name) for name in settings} == {**settings, "hidden": [6, 5]}
    assert np.array_equal(loaded.logits_, saved.logits_)
    again = loaded.fit(nodes, animals)
    assert np.array_equal(again.logits_, saved.logits_)


@pytest.mark.parametrize("labels", [np.array([-3, 5, 8]), np.array(["å | `b`", ".", "日本"])])
def test_classes_come_back_with_their_kind(graph: Graph, nodes: Any, tmp_path: Path, labels: Any) -> None:
    saved = MLPNodeClassifier(graph, **QUICK).fit(nodes, labels[nodes // 30])
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.classes_.dtype == saved.classes_.dtype
    assert loaded.classes_.tolist() == sorted(labels.tolist())


def test_the_folder_has_three_files_that_name_what_was_trained(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    saved = APPNPClassifier(graph.replace(name="zoo"), **QUICK).fit(nodes, animals)
    saved.save(tmp_path / "model", accuracy=0.875, test_nodes=40)
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "MODEL_CARD.md",
        "manifest.json",
        "weights.safetensors",
    ]
    manifest = manifest_of(tmp_path / "model")
    assert (manifest["format"], manifest["format_version"], manifest["accuracy"]) == ("pprop-model", 3, 0.875)
    assert manifest["test_nodes"] == pprop.load(tmp_path / "model", graph=graph).test_nodes_ == 40
    assert manifest["model"] == {
        "class": "APPNPClassifier",
        "alpha": 0.1,
        "predictor": None,
        "normalization": "row",
        "parameters": 344,
    }
    assert manifest["classes"] == {"kind": "str", "values": ["ant", "bee", "cat"]}
    assert manifest["graph"] == {
        "name": "zoo",
        "source": None,
        "fingerprint": graph.fingerprint,
        "nodes": 90,
        "edges": graph.n_edges,
        "directed": False,
        "feature_shape": [40],
        "scaled": False,
        "scaling": "l1",
    }
    assert manifest["training"] == vars(saved.record_)
    assert manifest["versions"]["pprop"] == pprop.__version__
    assert {"numpy", "scipy", "torch", "numba", "scikit-learn", "safetensors"} <= set(manifest["versions"])
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card.startswith("# APPNPClassifier\n")
    assert "`zoo` (90 nodes" in card
    assert "| accuracy on test nodes | 87.5 % of 40 (95 % interval 73.9 to 94.5) |" in card
    assert "| backend, device | numba, cpu |" in card


def test_a_model_trained_on_a_gpu_is_loaded_on_any_machine(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    """The manifest is that of such a training; the weights are those of a CPU."""
    saved = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    saved.device = saved.settings_["device"] = "cuda"
    record = replace(saved.record_, backend="triton", device="cuda:0")
    saved.fitted_ = replace(saved.fitted_, record=record)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert (cast("Any", loaded).device, loaded.record_.backend, loaded.record_.device) == ("cuda", "triton", "cuda:0")
    np.testing.assert_allclose(loaded.logits_, saved.logits_, rtol=1e-5, atol=1e-6)


def test_a_module_comes_back_with_its_weights(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))

    saved = APPNPClassifier(graph, predictor=make, max_epochs=5, random_state=0).fit(nodes, animals)
    saved.save(tmp_path / "model")
    for predictor in (make, make()):
        loaded = pprop.load(tmp_path / "model", graph=graph, predictor=predictor)
        assert np.array_equal(loaded.logits_, saved.logits_)
        assert list(loaded.weights_) == list(saved.weights_)
    assert "make" in manifest_of(tmp_path / "model")["model"]["predictor"]


def test_a_module_is_needed_again_and_has_to_be_the_same(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    MLPNodeClassifier(graph, predictor=nn.Linear(40, 3), max_epochs=2).fit(nodes, animals).save(tmp_path / "module")
    MLPNodeClassifier(graph, **QUICK).fit(nodes, animals).save(tmp_path / "plain")
    sentence = (
        "trained with the predictor torch.nn.modules.linear.Linear, whose code is not saved with it. Pass predictor="
    )
    with pytest.raises(InputError, match=sentence):
        pprop.load(tmp_path / "module", graph=graph)
    with pytest.raises(
        InputError, match=r"is not that of the model in .*: the weight 'bias' is unknown to the predictor"
    ):
        pprop.load(tmp_path / "module", graph=graph, predictor=nn.Linear(40, 3, bias=False))
    with pytest.raises(
        InputError, match=r"the weight 'weight' is float32 of shape \(3, 40\), where the predictor would"
    ):
        pprop.load(tmp_path / "module", graph=graph, predictor=nn.Linear(40, 4))
    with pytest.raises(
        InputError, match="The 'predictor' parameter of load must be None for a model with the built-in"
    ):
        pprop.load(tmp_path / "plain", graph=graph, predictor=nn.Linear(40, 3))


def test_a_dataset_is_found_by_its_name(tmp_path: Path, only_bundled: Path) -> None:
    citeseer = pprop.load_dataset("citeseer")
    assert citeseer.labels is not None
    saved = MLPNodeClassifier(citeseer, max_epochs=2, random_state=0, backend="reference").fit(
        np.arange(60), citeseer.labels[:60]
    )
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model")
    assert loaded.graph == citeseer
    assert np.array_equal(loaded.logits_, saved.logits_)


def test_a_file_is_found_by_its_path_from_anywhere(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pprop.write_npz(graph, "zoo.npz")
    saved = MLPNodeClassifier(graph, **QUICK).fit(nodes, animals)
    saved.save("model", source=GraphSource("npz", {"path": Path("zoo.npz")}))
    monkeypatch.chdir("/")
    loaded = pprop.load(tmp_path / "model")
    assert loaded.graph == graph
    loaded.save(tmp_path / "copy")  # the source is kept
    assert np.array_equal(pprop.load(tmp_path / "copy").logits_, saved.logits_)


def test_tables_are_read_again_with_the_same_arguments(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = [f"n{i},n{(i + k) % 12},{k}" for i in range(12) for k in (1, 2)]
    (tmp_path / "edges.csv").write_text("\n".join(["from,to,strength", *edges]))
    rows = [f"n{i},{'red' if i % 2 else 'blue'},{rng.random():.3f},{rng.random():.3f}" for i in range(12)]
    (tmp_path / "nodes.csv").write_text("\n".join(["key,team,a,b", *rows]))
    source = GraphSource(
        "edges",
        {
            "path": tmp_path / "edges.csv",
            "nodes": tmp_path / "nodes.csv",
            "source": "from",
            "target": "to",
            "weight": "strength",
            "directed": True,
            "id_column": "key",
            "label_column": "team",
            "feature_columns": ("b", "a"),
        },
    )
    graph = source.read()
    assert (graph.directed, graph.n_nodes, graph.feature_names) == (True, 12, ("b", "a"))
    saved = APPNPClassifier(graph, backend="reference", **QUICK).fit(np.arange(12), ["blue", "red"] * 6)
    saved.save(tmp_path / "model", source=source)
    loaded = pprop.load(tmp_path / "model")
    assert loaded.graph == graph
    assert np.array_equal(loaded.logits_, saved.logits_)
    assert loaded.source_ == source


def test_every_argument_of_a_table_survives_the_manifest(tmp_path: Path) -> None:
    arguments = {
        "path": tmp_path / "e.tsv.gz",
        "nodes": tmp_path / "n.csv",
        "feature_columns": {"zip": "category", "note": "unused"},
        "missing_labels": ("?", "-9"),
        "unknown_nodes": "drop",
    }
    source = GraphSource("edges", arguments)
    entry = json.loads(json.dumps(source.to_json()))
    assert entry["path"] == str(tmp_path / "e.tsv.gz")
    assert GraphSource.from_json(entry) == source


def test_another_graph_is_refused_by_name_and_used_when_given(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    pprop.write_npz(graph, tmp_path / "zoo.npz")
    saved = APPNPClassifier(graph.replace(recommended=pprop.Recommended(0.3, 50)), **QUICK).fit(nodes, animals)
    saved.save(tmp_path / "model", source=GraphSource("npz", {"path": tmp_path / "zoo.npz"}), accuracy=0.9)
    smaller = graph.subgraph(np.arange(50))
    pprop.write_npz(smaller, tmp_path / "zoo.npz")
    with pytest.raises(InputError) as caught:
        pprop.load(tmp_path / "model")
    assert str(caught.value) == (
        f"The graph {str(tmp_path / 'zoo.npz')!r} is not the one that the model in {str(tmp_path / 'model')!r} was "
        f"trained on: its fingerprint is {smaller.fingerprint}, not {graph.fingerprint}. "
        "Name the graph to use it all the same. Pass graph=..."
    )
    loaded = pprop.load(tmp_path / "model", graph=smaller)
    assert loaded.graph_changed_ is True
    assert (loaded.alpha_, loaded.accuracy_, loaded.source_) == (0.3, None, None)
    assert loaded.decision_function(np.arange(50)).shape == (50, 3)
    with pytest.raises(InputError, match="integers from 0 to 49"):
        loaded.predict([50])


def test_predictions_on_another_graph_are_its_propagated_network(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    saved = APPNPClassifier(graph, alpha=0.2, **QUICK).fit(nodes, animals)
    saved.save(tmp_path / "model")
    smaller = graph.subgraph(np.arange(60))
    features = cast("Any", smaller.features).toarray().astype(np.float64)
    rows = features / np.maximum(features.sum(axis=1, keepdims=True), 1e-30)
    alone = np.maximum(rows @ saved.weights_["layer0"], 0) @ saved.weights_["layer1"]
    expected = pprop.propagate(smaller, alone, alpha=0.2, normalization="row")
    loaded = pprop.load(tmp_path / "model", graph=smaller)
    np.testing.assert_allclose(loaded.logits_, expected, rtol=1e-4, atol=1e-6)


def test_a_graph_with_other_features_is_refused(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    APPNPClassifier(graph, **QUICK).fit(nodes, animals).save(tmp_path / "model")
    narrow = graph.replace(features=np.ones((90, 39)))
    sentence = (
        "The 'graph' parameter of load must be a graph with 40 features per node, .* Got one with 39 features instead"
    )
    with pytest.raises(InputError, match=sentence):
        pprop.load(tmp_path / "model", graph=narrow)
    with pytest.raises(InputError, match=r"Got one with no features instead."):
        pprop.load(tmp_path / "model", graph=graph.replace(features=None))


def test_a_graph_that_nobody_can_find_is_asked_for(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    APPNPClassifier(graph.replace(name="zoo"), **QUICK).fit(nodes, animals).save(tmp_path / "model")
    with pytest.raises(InputError, match=r"does not say where its graph, named 'zoo', can be read. Pass graph=..."):
        pprop.load(tmp_path / "model")


def test_what_is_saved_is_what_was_fitted(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    saved = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    saved.set_params(alpha=0.9, hidden=99)  # another graph is refused: test_changed_graph.py
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert np.array_equal(loaded.logits_, saved.logits_)
    assert (loaded.get_params()["alpha"], cast("Any", loaded).hidden) == (None, 8)


def test_a_loss_that_is_no_number_is_saved_as_unknown(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    saved = MLPNodeClassifier(graph, **QUICK).fit(nodes, animals)
    saved.fitted_ = replace(saved.fitted_, record=replace(saved.record_, stopping_loss=math.nan))
    saved.save(tmp_path / "model")
    assert manifest_of(tmp_path / "model")["training"]["stopping_loss"] is None
    assert math.isnan(pprop.load(tmp_path / "model", graph=graph).record_.stopping_loss)
