"""Large graphs take other kernels, with the same results and a choice that does not depend on the number of runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Graph
from pprop.graph import transition_matrix
from pprop.kernels import BACKENDS, Draw
from pprop.kernels.contract import LARGE_ENTRIES
from pprop.kernels.numba_cpu import backend as numba_backend
from pprop.kernels.numba_cpu.large_steps import LargeSteps
from pprop.kernels.tensors import TensorSteps


@pytest.fixture
def random_transition():
    rng = np.random.default_rng(4)
    A = sparse.random_array((400, 400), density=0.02, rng=rng, format="csr")
    return transition_matrix(Graph.from_scipy(A, directed=True))


def test_a_large_graph_takes_the_kernels_for_large_graphs(monkeypatch, random_transition):
    monkeypatch.setattr(numba_backend, "LARGE_ENTRIES", len(random_transition.indices))
    kernels = next(b for b in BACKENDS if b.name == "numba").kernels
    reference = next(b for b in BACKENDS if b.name == "reference").kernels.steps(random_transition, 0.1, 5)
    steps = kernels.steps(random_transition, 0.1, 5)
    assert isinstance(steps, TensorSteps)
    assert isinstance(steps.own, LargeSteps)
    H = torch.randn(3, 400, 7, dtype=torch.float64)
    draw = Draw(torch.tensor([1, 2, 3]), 4, 0.5)
    for given in (None, draw):
        torch.testing.assert_close(steps.forward(H, given), reference.forward(H, given))
        torch.testing.assert_close(steps.adjoint(H, given), reference.adjoint(H, given))
    assert torch.equal(steps.forward(H, None)[1:2], steps.forward(H[1:2], None))
    assert torch.equal(steps.adjoint(H, None)[1:2], steps.adjoint(H[1:2], None))


def test_a_small_graph_and_no_steps_do_not(random_transition):
    kernels = next(b for b in BACKENDS if b.name == "numba").kernels
    assert len(random_transition.indices) < LARGE_ENTRIES
    steps = kernels.steps(random_transition, 0.1, 5)
    assert isinstance(steps, TensorSteps)
    assert not isinstance(steps.own, LargeSteps)
