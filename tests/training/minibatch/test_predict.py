"""Predictions in blocks of nodes are those of all nodes at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import pprop
from pprop import APPNP, Graph, Split, Stopping, scale
from pprop.kernels import choose_backend
from pprop.models.inference import Inference

SHORT = Stopping(max_epochs=10)


@pytest.fixture(scope="module")
def trained(graph: Graph, split: Split) -> pprop.Trained:
    return pprop.train(APPNP(0.2, hidden=8, bias=True), graph, split, seeds=[0, 1], stopping=SHORT)


@pytest.mark.parametrize("block", [1, 7, 61, 1000])
def test_blocks_of_any_size_give_the_bits_of_the_whole(trained: pprop.Trained, block: int):
    for run in (0, 1):
        np.testing.assert_array_equal(scale.predict(trained, run=run, block=block), trained.logits[run])


def test_a_file_holds_what_memory_would(trained: pprop.Trained, tmp_path: Path):
    found = scale.predict(trained, out=tmp_path / "logits.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), trained.logits[0])


def test_other_steps_spread_the_same_predictions(trained: pprop.Trained, graph: Graph):
    alone = scale.predict(trained, steps=0)
    expected = pprop.propagate(graph, alone, alpha=0.2, solver=pprop.PowerIteration(3))
    np.testing.assert_allclose(scale.predict(trained, steps=3), expected, rtol=1e-5, atol=1e-6)


def test_dense_features_in_blocks_are_those_of_the_whole(graph: Graph, split: Split):
    X = np.random.default_rng(0).standard_normal((graph.n_nodes, 5))
    trained = pprop.train(APPNP(hidden=8), graph.replace(features=X), split, stopping=SHORT)
    np.testing.assert_array_equal(scale.predict(trained, block=9), trained.logits[0])


def test_a_large_graph_is_predicted_in_blocks_by_every_model(
    trained: pprop.Trained, graph: Graph, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pprop.models.inference.BLOCK", 10)
    kernels = choose_backend("auto", "cpu", "test").kernels
    weights = [torch.from_numpy(array) for array in trained.weights]
    found = Inference(trained.model, graph.scaled(), kernels).logits(weights)
    np.testing.assert_array_equal(found.numpy(), trained.logits)


def test_what_cannot_be_predicted_is_refused(
    trained: pprop.Trained, graph: Graph, split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(pprop.InputError, match=r"must be a graph with 40 features\. Got one with 61"):
        scale.predict(trained, graph.replace(features=None).with_structure("identity"))
    with pytest.raises(pprop.InputError, match=r"'run' parameter of pprop\.scale\.predict must be an integer"):
        scale.predict(trained, run=2)
    with pytest.raises(pprop.InputError, match=r"a file name that ends in \.npy"):
        scale.predict(trained, out=tmp_path / "logits.csv")
    with pytest.raises(
        pprop.InputError, match=r"'out' parameter of pprop\.scale\.predict must be a file that can be written"
    ):
        scale.predict(trained, out=tmp_path / "nowhere" / "logits.npy")
    alone = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=SHORT)
    with pytest.raises(pprop.InputError, match=r"a training of pprop.APPNP\(\) with the built-in network"):
        scale.predict(alone)
    monkeypatch.setattr("pprop.models.blocks.memory_limit", lambda device: 100)
    with pytest.raises(pprop.CapacityError, match=r"Steps over 61 nodes with 3 columns need at least"):
        scale.predict(trained)


def test_steps_that_do_not_fit_into_memory_are_made_from_the_graph_as_it_is_stored(
    trained: pprop.Trained, graph: pprop.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = scale.predict(trained)
    monkeypatch.setattr("pprop.models.blocks.steps_fit", lambda *_: False)
    stored = pprop.write_folder(graph, tmp_path / "graph").graph()
    for held in (graph, stored):
        np.testing.assert_allclose(scale.predict(trained, held), expected, rtol=1e-5, atol=1e-6)
        file = tmp_path / "logits.npy"
        found = scale.predict(trained, held, out=file)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.load(file), found)
