"""The graphs and the peers of the propagation benchmarks: what is raced is one graph and one map."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

FOLDER = Path(__file__).parents[2] / "benchmarks"
ALPHA, STEPS = 0.1, 4


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("_rmat"), importlib.import_module("_large")


def matrix_of(graph):
    n, entries = graph.n_nodes, graph.n_entries
    return sparse.csr_array((np.ones(entries), graph.indices.numpy(), graph.indptr.numpy()), shape=(n, n))


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_rmat_graph_is_undirected_with_one_loop_a_node_and_the_size_asked_for(scripts, shuffle):
    graph = scripts[0].rmat(100_000, shuffle=shuffle)
    A = matrix_of(graph)
    assert graph.n_nodes == 4096
    assert abs(graph.n_entries - 100_000) < 1000
    assert abs(A - A.T).max() == 0
    assert (A.diagonal() == 1).all()
    A.sum_duplicates()
    assert A.nnz == graph.n_entries
    assert (np.diff(graph.indices.numpy()) > 0).mean() > 0.9  # sorted within rows


def test_edges_fall_into_the_quadrants_with_graph500s_shares(scripts):
    scale = 12
    keys = scripts[0]._edges(100_000, scale, torch.Generator().manual_seed(0))
    low, high = keys >> scale, keys & (2**scale - 1)
    half = 2 ** (scale - 1)
    shares = [float(part.double().mean()) for part in (high < half, (low < half) & (high >= half), low >= half)]
    np.testing.assert_allclose(shares, (0.57, 0.38, 0.05), atol=0.006)


def test_the_same_seed_gives_the_same_graph_and_shuffling_changes_numbers_alone(scripts):
    plain, again, shuffled = (scripts[0].rmat(10_000, seed=3, shuffle=s) for s in (False, False, True))
    assert torch.equal(plain.indices, again.indices)
    assert not torch.equal(plain.indices, shuffled.indices)
    assert torch.equal(plain.indptr.diff().sort().values, shuffled.indptr.diff().sort().values)


@pytest.mark.parametrize("peer", ["scipy", "torch_csr", "pyg", "pyg_csr"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch Geometric's, of torch
def test_every_peer_makes_the_same_steps_as_pprop(scripts, peer):
    if peer.startswith("pyg") and importlib.util.find_spec("torch_geometric") is None:
        pytest.skip("PyTorch Geometric is not installed")
    rmat, large = scripts
    transition = rmat.sym_transition(rmat.rmat(20_000))
    H = torch.randn(transition.n_nodes, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        value = large.PEERS[peer](transition, ALPHA, STEPS, "cpu")(H)
    ours = large.bind_ours(transition, ALPHA, STEPS, "cpu", direct=True).forward(H[None], None)[0]
    torch.testing.assert_close(value, ours, rtol=1e-5, atol=1e-6)


def test_memory_is_measured_while_a_call_holds_it(scripts):
    size = 1 << 26
    growth, _ = scripts[1].peak_resident(lambda: np.ones(size, np.uint8).sum())
    assert 0.9 * size < growth < 1.5 * size
