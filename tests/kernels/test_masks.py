"""What two backends, and two batches, have in common: the entries they drop, and on the CPU every bit."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Graph
from pprop.graph import transition_matrix
from pprop.kernels import BACKENDS, Draw
from pprop.kernels.numba_cpu import bits, dense, rows
from pprop.kernels.numba_cpu import sparse as sparse_kernels

SEEDS = torch.tensor([4, -9, 2**62 + 1])


def feature_mask(kernels, draw):
    """drop(X) W with X all ones and W the identity shows which entries of X were kept."""
    product = kernels.features(sparse.csr_array(np.ones((9, 33))))
    identity = torch.eye(33, dtype=torch.float64).repeat(len(draw.seeds), 1, 1)
    return torch.cat([product.forward(some, draw) for some in (identity[:, :, :17], identity[:, :, 16:])], dim=2) > 0


def edge_masks(kernels, draw, steps=3):
    """One step at alpha = 0 from the identity is the dropped matrix itself; K steps in one call use K masks."""
    rng = np.random.default_rng(8)
    graph = Graph.from_scipy(sparse.csr_array((rng.random((17, 17)) < 0.25).astype(float)), directed=True)
    identity = torch.eye(17, dtype=torch.float64).repeat(len(draw.seeds), 1, 1)
    single = [
        # positions epoch * 1 of the single-step operator are the same sequence, one step at a time
        kernels.steps(transition_matrix(graph), 0.0, 1).forward(
            identity, Draw(draw.seeds, draw.epoch * steps + step, draw.probability)
        )
        for step in range(steps)
    ]
    product = single[0]
    for matrix in single[1:]:
        product = matrix @ product
    torch.testing.assert_close(kernels.steps(transition_matrix(graph), 0.0, steps).forward(identity, draw), product)
    return torch.stack(single) > 0


def ppr_mask(kernels, draw):
    """Some columns of the identity show as many columns of the kept block, which has two words of them."""
    n, nodes = 38, torch.tensor([60, 2, 33])
    bound = kernels.rows(torch.ones(3, n, dtype=torch.float64), nodes)
    at = torch.arange(3).repeat(len(draw.seeds), 1)
    parts = [
        bound.forward(torch.eye(n, dtype=torch.float64)[:, k : k + 19].repeat(len(draw.seeds), 1, 1), at, draw)
        for k in (0, 19)
    ]
    return torch.cat(parts, dim=2) > 0


def hidden_mask(kernels, draw):
    return kernels.activate(torch.ones(len(draw.seeds), 6, 38, dtype=torch.float64), 2, draw) > 0


@pytest.mark.parametrize("mask", [feature_mask, edge_masks, ppr_mask, hidden_mask])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_all_backends_drop_the_same_entries(kernels, reference, mask, p):
    draw = Draw(SEEDS, 37, p)
    first = mask(reference, draw)
    assert first.any()
    assert not first.all()
    assert torch.equal(mask(kernels, draw), first)


@pytest.mark.parametrize("mask", [feature_mask, edge_masks, ppr_mask, hidden_mask])
def test_masks_differ_between_epochs_runs_and_steps(kernels, mask):
    draws = [mask(kernels, Draw(SEEDS, epoch, 0.5)) for epoch in (0, 1, 32)]
    for a in range(3):
        for b in range(a):
            assert not torch.equal(draws[a], draws[b])
    runs = draws[0].movedim(1, 0) if mask is edge_masks else draws[0]
    assert not torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[1], runs[2])
    if mask is edge_masks:
        assert not torch.equal(draws[0][0], draws[0][1])
        assert not torch.equal(draws[0][1], draws[0][2])


def all_results(kernels, seeds, pick):
    """Every operation with dropout for the runs `pick`, on operands drawn for 5 runs."""
    rng = np.random.default_rng(6)
    n, f, h, c, m = 513, 40, 17, 3, 300

    def some(*shape):
        return torch.from_numpy(rng.standard_normal(shape)).float()[pick].contiguous()

    graph = Graph.from_scipy(sparse.random_array((n, n), density=0.01, rng=3) > 0, directed=True)
    draw = Draw(seeds[pick], 3, 0.5)
    features = kernels.features(sparse.random_array((n, f), density=0.2, rng=4, dtype=np.float32, format="csr"))
    steps = kernels.steps(transition_matrix(graph), 0.1, 10)
    rows_of = kernels.rows(torch.from_numpy(rng.standard_normal((m, n))).float(), torch.arange(m) + 1)
    at = torch.arange(m).repeat(5, 1)[pick].contiguous()
    hidden = kernels.activate(features.forward(some(5, f, h), draw), 1, draw)
    weights = some(5, h, c)
    logits = kernels.linear(hidden, weights)
    Z, read = steps.forward(logits, draw), rows_of.forward(logits, at, draw)
    loss, right, gradient = kernels.cross_entropy(read, torch.arange(m).repeat(5, 1)[pick] % c)
    above = steps.adjoint(rows_of.adjoint(gradient, at, draw), draw)
    hidden_gradient = kernels.activate_adjoint(kernels.linear_input_adjoint(above, weights), hidden, draw)
    weight_gradient = kernels.linear_weight_adjoint(hidden, above)
    first_gradient = features.adjoint(hidden_gradient, draw)
    moments = torch.zeros_like(weights), torch.zeros_like(weights)
    norm = kernels.adam(weights, weight_gradient, *moments, step=1, rate=0.01, penalty=0.005)
    return [Z, read, loss, right, gradient, above, hidden, weight_gradient, first_gradient, weights, norm]


def test_on_the_cpu_a_run_has_the_same_bits_alone_in_a_batch_and_with_any_number_of_threads():
    kernels = next(backend for backend in BACKENDS if backend.name == "numba").kernels
    seeds = torch.arange(5) * 1001
    threads = numba.get_num_threads()
    try:
        whole = all_results(kernels, seeds, [0, 1, 2, 3, 4])
        numba.set_num_threads(1)
        again = all_results(kernels, seeds, [0, 1, 2, 3, 4])
        alone = all_results(kernels, seeds, [3])
    finally:
        numba.set_num_threads(threads)
    reordered = all_results(kernels, seeds, [4, 3])
    for a, b, c, d in zip(whole, again, alone, reordered, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a[3], c[0])
        assert torch.equal(a[3], d[1])


def test_cached_kernels_close_over_plain_numbers_only():
    """numba pickles what a kernel closes over into its cache key; another compiled function changes at every start."""
    made: list[Any] = [
        sparse_kernels.product(7),
        dense.linear(7),
        dense.linear_weight_adjoint(7),
        rows.rows_forward(7),
        rows.rows_adjoint(7),
    ]
    plain: list[Any] = [dense.activate, dense.activate_adjoint, dense.cross_entropy, dense.adam, bits.site_words]
    for kernel in [*made, *plain]:
        closure = kernel.__wrapped__.__closure__ or ()
        assert all(isinstance(cell.cell_contents, int) for cell in closure), kernel.__wrapped__.__qualname__
