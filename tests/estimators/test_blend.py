"""BlendClassifier: the geometric mean of its members, saved as folders within a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from pprop import APPNPClassifier, FormatError, Graph, InputError, LabelPropagationClassifier, MLPNodeClassifier, load
from pprop.estimators.blend import BlendClassifier

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 20, "random_state": 0, "backend": "numba"}


@pytest.fixture(scope="module")
def blend(graph: Graph, nodes: Any, animals: Any) -> BlendClassifier:
    members = [APPNPClassifier(graph, **QUICK), MLPNodeClassifier(graph, **QUICK), LabelPropagationClassifier(graph)]
    return BlendClassifier(graph, members=members).fit(nodes, animals, stopping=0.25)


def test_probabilities_are_the_geometric_mean_of_the_members(
    graph: Graph, nodes: Any, animals: Any, blend: Any
) -> None:
    alone = [
        APPNPClassifier(graph, **QUICK).fit(nodes, animals, stopping=0.25),
        MLPNodeClassifier(graph, **QUICK).fit(nodes, animals, stopping=0.25),
        LabelPropagationClassifier(graph).fit(nodes, animals),
    ]
    for member, one in zip(blend.members_, alone, strict=True):
        assert np.array_equal(member.logits_, one.logits_)
    product = np.prod([np.maximum(one.predict_proba(), 1e-6) ** (1 / 3) for one in alone], axis=0)
    np.testing.assert_allclose(blend.predict_proba(), product / product.sum(axis=1, keepdims=True), rtol=1e-6)
    assert blend.known_nodes_.tolist() == sorted(nodes)
    assert sorted(blend.stopping_nodes_) == sorted(alone[0].stopping_nodes_)
    assert blend.weights_.keys() == {f"member{k}.layer{layer}" for k in (0, 1) for layer in (0, 1)}


def test_a_blend_is_saved_and_loaded_with_equal_bits_and_its_members_are_models(
    graph: Graph, blend: BlendClassifier, tmp_path: Path
) -> None:
    blend.save(tmp_path / "model")
    again = load(tmp_path / "model", graph=graph)
    assert type(again) is BlendClassifier
    assert np.array_equal(again.logits_, blend.logits_)
    assert again.record_.seconds == blend.record_.seconds
    assert [type(one).__name__ for one in again.members_] == [type(one).__name__ for one in blend.members_]
    single = load(tmp_path / "model" / "member0", graph=graph)
    assert np.array_equal(single.logits_, blend.members_[0].logits_)
    again.save(tmp_path / "model", overwrite=True)  # in place of itself
    blend.members_[1].save(tmp_path / "model", overwrite=True)  # and a single model in place of a blend
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        *("MODEL_CARD.md", "manifest.json", "weights.safetensors")
    ]


def test_a_member_that_was_exchanged_or_is_missing_is_damage(
    graph: Graph, blend: BlendClassifier, tmp_path: Path
) -> None:
    blend.save(tmp_path / "model")
    place = tmp_path / "model" / "member0"
    shutil.move(place, tmp_path / "kept")
    with pytest.raises(FormatError, match=r"member0/manifest.json cannot be read"):
        load(tmp_path / "model", graph=graph)
    shutil.copytree(tmp_path / "model" / "member1", place)
    with pytest.raises(FormatError, match="member0 is not the member that the manifest describes"):
        load(tmp_path / "model", graph=graph)
    manifest = tmp_path / "model" / "manifest.json"
    content = json.loads(manifest.read_text())
    for members, what in ([], "does not say which members"), ([1], "as 'members'"), (["x"] * 99, "as 'members'"):
        manifest.write_text(json.dumps(content | {"members": members}))
        with pytest.raises(FormatError, match=what):
            load(tmp_path / "model", graph=graph)


def test_a_folder_with_a_file_of_ones_own_in_a_member_is_not_replaced(blend: BlendClassifier, tmp_path: Path) -> None:
    blend.save(tmp_path / "model")
    (tmp_path / "model" / "member1" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="'member1'"):
        blend.save(tmp_path / "model", overwrite=True)


def test_a_blend_of_networks_moves_to_another_graph_and_one_with_labels_does_not(
    graph: Graph, nodes: Any, animals: Any, blend: BlendClassifier
) -> None:
    part = np.arange(60)
    features: Any = graph.features
    other = Graph.from_scipy(graph.adjacency[part][:, part], features=sparse.csr_array(features)[part])
    members = [APPNPClassifier(graph, **QUICK), MLPNodeClassifier(graph, **QUICK)]
    networks = BlendClassifier(graph, members=members).fit(nodes, animals, stopping=0.25)
    moved = networks.on(other)
    assert moved.graph_changed_
    alone = [one.on(other).predict_proba() for one in networks.members_]
    product = np.sqrt(np.prod(np.maximum(alone, 1e-6), axis=0))
    np.testing.assert_allclose(moved.predict_proba(), product / product.sum(axis=1, keepdims=True), rtol=1e-6)
    with pytest.raises(InputError, match="belong to the nodes of the graph that it was fitted on"):
        blend.on(other)


def test_it_is_cloned_and_not_explained_and_wrong_members_are_named(
    graph: Graph, nodes: Any, animals: Any, blend: BlendClassifier
) -> None:
    twin: Any = clone(blend)
    assert [type(one).__name__ for one in twin.members] == [type(one).__name__ for one in blend.members]
    with pytest.raises(InputError, match="averages the probabilities of several classifiers"):
        blend.explain(0)
    for members in ([], [1], [blend], "ab", [APPNPClassifier(graph, predictor=lambda: None)]):  # pyright: ignore[reportArgumentType]
        with pytest.raises(InputError, match="'members' parameter of BlendClassifier must be a list of 1 to 16"):
            BlendClassifier(graph, members=members).fit(nodes, animals)  # pyright: ignore[reportArgumentType]
