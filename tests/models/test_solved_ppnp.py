"""PPNP with a solve in every epoch: against the dense matrix, against PPNP without masks, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pprop
from pprop import Chebyshev, InputError, SolvedPPNP, Stopping
from pprop.graph import transition_matrix
from pprop.kernels import choose_backend
from pprop.models.architecture import DropoutMasks
from pprop.models.model import network_inputs

pytestmark = pytest.mark.slow

KERNELS = choose_backend("auto", "cpu", "test").kernels


@pytest.fixture(scope="module")
def graph():
    """Citeseer with its six classes in pairs: kernels are compiled for three classes in other tests too."""
    citeseer = pprop.load_dataset("citeseer")
    assert citeseer.labels is not None
    return citeseer.replace(labels=citeseer.labels % 3, class_names=None)


def test_outputs_and_gradients_are_those_of_the_dense_matrix(graph):
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, *weight.shape) for weight in SolvedPPNP(hidden=8).weights(3703, 3)]
    weights = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    twins = [weight.detach().double().requires_grad_() for weight in weights]
    bound = SolvedPPNP(alpha=0.2, hidden=8, solver=Chebyshev(1e-5)).bind(graph, KERNELS)
    Z = bound.outputs(weights, DropoutMasks(None))
    T = transition_matrix(graph).to_scipy().toarray()
    P = torch.from_numpy(0.2 * np.linalg.inv(np.eye(len(T)) - 0.8 * T))
    X = torch.from_numpy(np.array(network_inputs(graph).toarray())).double()
    twin = P @ (torch.relu(X @ twins[0][0]) @ twins[1][0])
    assert (Z[0] - twin).norm() <= 2e-5 * twin.norm()
    G = torch.randn(twin.shape, generator=generator)
    (Z[0] * G).sum().backward()
    (twin * G.double()).sum().backward()
    for weight, other in zip(weights, twins, strict=True):
        assert weight.grad is not None
        assert other.grad is not None
        assert (weight.grad - other.grad).norm() <= 1e-4 * other.grad.norm()


def test_without_masks_the_training_is_that_of_ppnp(graph):
    split = pprop.paper_split(graph, seed=pprop.VALIDATION_SEEDS[0])
    rule = Stopping(max_epochs=20)
    rows = pprop.train(pprop.PPNP(0.1, hidden=8, propagation_dropout=0.0), graph, split, seeds=3, stopping=rule)
    solved = pprop.train(SolvedPPNP(0.1, hidden=8), graph, split, seeds=3, stopping=rule)
    np.testing.assert_allclose(solved.history[0].train_loss, rows.history[0].train_loss, rtol=2e-3)
    agree = solved.predict(split.evaluation) == rows.predict(split.evaluation)
    assert agree.mean() > 0.98


def test_backends_train_the_same(graph):
    split, rule = pprop.paper_split(graph, seed=pprop.VALIDATION_SEEDS[0]), Stopping(max_epochs=3)
    numba, reference = (
        pprop.train(SolvedPPNP(0.1, hidden=8), graph, split, seeds=3, stopping=rule, backend=name).logits
        for name in ("numba", "reference")
    )
    np.testing.assert_allclose(reference, numba, rtol=0, atol=1e-5 * abs(numba).max())


@pytest.mark.slow
def test_with_dropped_edges_it_learns_as_much_as_ppnp():
    graph = pprop.load_dataset("citeseer")
    split, rule = pprop.paper_split(graph, seed=pprop.VALIDATION_SEEDS[0]), Stopping(max_epochs=60)
    solved = pprop.train(SolvedPPNP(0.1, edge_dropout=0.5), graph, split, seeds=3, stopping=rule)
    rows = pprop.train(pprop.PPNP(0.1), graph, split, seeds=3, stopping=rule)
    assert solved.accuracy()[0] == pytest.approx(rows.accuracy()[0], abs=0.02)


def test_what_it_cannot_do_is_said(graph):
    with pytest.raises(InputError, match=r"must be Chebyshev\(tol\), .*Use PPNP\(\) or APPNP\(\) for others"):
        SolvedPPNP(solver=pprop.Exact())  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"'alpha' parameter of SolvedPPNP must be a float in \(0, 1\]"):
        SolvedPPNP(alpha=0.0)
    with pytest.raises(InputError, match=r"'edge_dropout' parameter of SolvedPPNP must be a float in \[0, 1\)"):
        SolvedPPNP(edge_dropout=1.0)
    split, rule = pprop.paper_split(graph, seed=pprop.VALIDATION_SEEDS[0]), Stopping(max_epochs=1)
    with pytest.raises(InputError, match="what float32 can reach"):
        pprop.train(SolvedPPNP(solver=Chebyshev(1e-9)), graph, split, stopping=rule)


def test_a_backend_that_replays_epochs_is_refused(graph, monkeypatch):
    monkeypatch.setattr(type(KERNELS), "capturable", True)
    with pytest.raises(InputError, match="backend='reference'"):
        SolvedPPNP().bind(graph, KERNELS)
