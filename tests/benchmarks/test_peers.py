"""The benchmarks' peers compute what pprop computes: with dropout off, the same losses epoch by epoch."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import pprop
from pprop.models.model import FeatureNetwork, initial_weights

FOLDER = Path(__file__).parents[2] / "benchmarks"
EPOCHS = 5


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    module = importlib.import_module("_peers")
    monkeypatch.setattr(module, "DROPOUT", 0.0)
    return module


@pytest.fixture(scope="module")
def trained() -> pprop.Trained:
    graph = pprop.load_dataset("citeseer")
    return pprop.train(
        pprop.APPNP(dropout=0.0),
        graph,
        pprop.paper_split(graph, pprop.TEST_SEEDS[0]),
        seeds=7,
        stopping=pprop.Stopping(max_epochs=EPOCHS),
    )


def assert_trains_like(peer, trained: pprop.Trained) -> None:
    first, second = initial_weights(FeatureNetwork().weights(peer.problem.features.shape[1], 6), torch.tensor([7]))
    with torch.no_grad():
        peer.first.copy_(first[0])
        peer.second.copy_(second[0])
    curves = np.array([peer.epoch() for _ in range(EPOCHS)])
    np.testing.assert_allclose(curves[:, 0], trained.history[0].stopping_loss, rtol=1e-4)
    np.testing.assert_allclose(curves[:, 1], trained.history[0].stopping_accuracy, atol=0.005)


def test_plain_coo_code_trains_like_pprop(peers, trained):
    assert_trains_like(peers.CooPeer(peers.load_problem("citeseer", "cpu")), trained)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("torch_geometric") is None, reason="needs the extra 'bench'")
@pytest.mark.parametrize("features", ["coo", "csr", "dense"])
@pytest.mark.parametrize("adjacency", ["index", "csr"])
def test_pytorch_geometric_trains_like_pprop(peers, trained, features, adjacency):
    problem = peers.load_problem("citeseer", "cpu")
    assert_trains_like(peers.PygPeer(problem, features, adjacency), trained)
