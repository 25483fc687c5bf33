"""The contract that every backend keeps: each operator of the graph against a dense twin in float64.

The masks of the dropped operators come from the oracle in ``conftest.py``, which is written from the specification.
The operations of the network between them are in ``test_contract_network.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop.graph import transition_matrix
from pprop.kernels import Draw

FEATURES, EDGES, PPR = 0, 2, 3
SEEDS = [0, -3, 2**40 + 17]  # a negative seed is its two's complement
ALPHA = 0.15
WIDE = 17
"""Columns of a hidden layer. Other tests have 1, 3 and 17 columns, too: numba compiles once for each number."""


def draw_of(epoch, p, runs=3):
    return Draw(torch.tensor(SEEDS[:runs]), epoch, p)


def sparse_matrix(n, f, rng):
    """About a quarter of the entries; every fifth row and the last column are empty."""
    X = rng.standard_normal((n, f)) * (rng.random((n, f)) < 0.25)
    X[::5] = 0.0
    if f > 1:
        X[:, -1] = 0.0
    return X


# -- the first layer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "f", "width"), [(1, 1, 1), (257, 40, WIDE), (513, 11, 3), (30, 7, 1), (30, 7, WIDE)])
def test_first_layer_is_the_dense_product_and_its_adjoint_the_transposed_one(
    kernels, dtype, normal, assert_close, n, f, width
):
    """The 68 columns of four wide runs are more than the 64 that a program of the GPU takes at once."""
    X = sparse_matrix(n, f, np.random.default_rng(0)).astype(np.float32).astype(np.float64)
    product = kernels.features(sparse.csr_array(X))
    W, w64 = normal(4, f, width, dtype=dtype)
    G, g64 = normal(4, n, width, dtype=dtype)
    assert_close(product.forward(W, None), np.stack([X @ w for w in w64]))
    assert_close(product.adjoint(G, None), np.stack([X.T @ g for g in g64]))
    assert product.forward(W, None).dtype == dtype


@pytest.mark.parametrize(("n", "f"), [(4, 3), (1, 1), (300, 2)])
def test_first_layer_of_a_matrix_without_entries_is_zero(kernels, dtype, normal, n, f):
    product = kernels.features(sparse.csr_array((n, f)))
    W, _ = normal(2, f, WIDE, dtype=dtype)
    G, _ = normal(2, n, WIDE, dtype=dtype)
    for draw in (None, draw_of(3, 0.5, runs=2)):
        assert torch.equal(product.forward(W, draw), torch.zeros(2, n, WIDE, dtype=dtype))
        assert torch.equal(product.adjoint(G, draw), torch.zeros(2, f, WIDE, dtype=dtype))


@pytest.mark.parametrize(("p", "epoch"), [(0.1, 0), (0.5, 31), (0.5, 32), (0.6, 1000)])
def test_first_layer_drops_the_entries_of_the_specification(kernels, dtype, normal, assert_close, oracle, p, epoch):
    n, f = 40, 23
    X = sparse_matrix(n, f, np.random.default_rng(1))
    product = kernels.features(sparse.csr_array(X))
    dropped = [
        np.array(
            [[X[i, j] and X[i, j] * oracle.keep(seed, FEATURES, i, j, epoch, p) for j in range(f)] for i in range(n)]
        )
        * oracle.scale(p)
        for seed in SEEDS
    ]
    W, w64 = normal(3, f, WIDE, dtype=dtype)
    G, g64 = normal(3, n, WIDE, dtype=dtype)
    draw = draw_of(epoch, p)
    assert_close(product.forward(W, draw), np.stack([M @ w for M, w in zip(dropped, w64, strict=True)]))
    assert_close(product.adjoint(G, draw), np.stack([M.T @ g for M, g in zip(dropped, g64, strict=True)]))


def test_first_layer_remembers_no_mask_of_another_draw(kernels, normal):
    """A backend may keep random words between calls; none may leak into another epoch, run, probability or side."""
    X = sparse.csr_array(np.ones((6, 5)))
    W, _ = normal(2, 5, WIDE, dtype=torch.float64)
    G, _ = normal(2, 6, WIDE, dtype=torch.float64)
    used = kernels.features(X)
    for epoch, p, seeds in [
        (0, 0.5, [1, 2]),
        (1, 0.5, [1, 2]),
        (40, 0.5, [1, 2]),
        (40, 0.4, [1, 2]),
        (40, 0.4, [3, 2]),
    ]:
        draw = Draw(torch.tensor(seeds), epoch, p)
        assert torch.equal(used.forward(W, draw), kernels.features(X).forward(W, draw))
        assert torch.equal(used.adjoint(G, draw), kernels.features(X).adjoint(G, draw))
    assert torch.equal(used.forward(W, None), kernels.features(X).forward(W, None))


# -- power steps --------------------------------------------------------------------------------------------------


def power_steps(matrices, start, alpha=ALPHA):
    state = start
    for T in matrices:
        state = (1 - alpha) * T @ state + alpha * start
    return state


def power_steps_adjoint(matrices, G, alpha=ALPHA):
    """The adjoint from the definition: build the whole n x n map by applying the steps to the identity."""
    return power_steps(matrices, np.eye(len(G)), alpha).T @ G


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize(
    ("n", "directed", "weighted", "steps", "width"),
    [
        (1, False, False, 3, 1),
        (1, True, True, 1, 3),
        (23, False, True, 0, 3),
        (23, True, False, 1, 1),
        (23, True, True, 45, 3),
        (257, False, False, 10, 3),
        (257, True, True, 3, 1),
        (513, True, True, 10, 1),
    ],
)
def test_power_steps_are_those_of_the_dense_matrix(
    kernels,
    dtype,
    normal,
    assert_close,
    make_graph,
    dense_transition,
    normalization,
    n,
    directed,
    weighted,
    steps,
    width,
):
    graph, A = make_graph(n, directed=directed, weighted=weighted)
    T = [dense_transition(A, normalization)] * steps
    bound = kernels.steps(transition_matrix(graph, normalization), ALPHA, steps)
    H, h64 = normal(2, n, width, dtype=dtype)
    G, g64 = normal(2, n, width, dtype=dtype)
    Z, back = bound.forward(H, None), bound.adjoint(G, None)
    assert_close(Z, np.stack([power_steps(T, h) for h in h64]))
    # with one matrix at every step the map is a polynomial in T, and its transpose the same polynomial in T^T
    assert_close(back, np.stack([power_steps([M.T for M in T], g) for g in g64]))
    assert Z.dtype == back.dtype == dtype


@pytest.mark.parametrize(("directed", "normalization"), [(False, "sym"), (True, "sym"), (True, "row"), (True, "col")])
def test_power_steps_without_self_loops(
    kernels, dtype, normal, assert_close, make_graph, dense_transition, normalization, directed
):
    """Without self-loops a directed node may send to nobody: its column, and its scale, are empty."""
    graph, A = make_graph(23, directed=directed, weighted=True)
    if directed:
        assert (A.sum(axis=0) == 0).sum() > 1  # the isolated node, and at least one that only receives
    T = [dense_transition(A, normalization, self_loops=False)] * 3
    bound = kernels.steps(transition_matrix(graph, normalization, self_loops=False), ALPHA, 3)
    H, h64 = normal(2, 23, 3, dtype=dtype)
    assert_close(bound.forward(H, None), np.stack([power_steps(T, h) for h in h64]))
    assert_close(bound.adjoint(H, None), np.stack([power_steps_adjoint(T, h) for h in h64]))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_power_steps_at_the_ends_of_alpha(kernels, dtype, normal, assert_close, make_graph, dense_transition, alpha):
    graph, A = make_graph(23, directed=True, weighted=True)
    T = [dense_transition(A, "sym")] * 3
    bound = kernels.steps(transition_matrix(graph), alpha, 3)
    H, h64 = normal(1, 23, 3, dtype=dtype)
    assert_close(bound.forward(H, None), power_steps(T, h64[0], alpha)[None])
    assert_close(bound.adjoint(H, None), power_steps_adjoint(T, h64[0], alpha)[None])


@pytest.mark.parametrize(
    ("p", "steps", "epoch", "directed", "weighted"),
    [(0.6, 1, 5, True, True), (0.1, 3, 0, False, False), (0.5, 10, 7, True, True)],
)
def test_power_steps_drop_the_entries_of_the_specification_afresh_at_every_step(
    kernels, dtype, normal, assert_close, make_graph, dense_transition, oracle, p, steps, epoch, directed, weighted
):
    check_dropped_steps(
        kernels, dtype, normal, assert_close, make_graph, dense_transition, oracle, p, steps, epoch, directed, weighted
    )


def test_more_steps_than_a_random_word_has_bits(
    kernels, dtype, normal, assert_close, make_graph, dense_transition, oracle
):
    """45 steps of epoch 1 are positions 45 to 89 of each entry's sequence, in three words."""
    check_dropped_steps(
        kernels, dtype, normal, assert_close, make_graph, dense_transition, oracle, 0.5, 45, 1, True, False
    )


def check_dropped_steps(
    kernels, dtype, normal, assert_close, make_graph, dense_transition, oracle, p, steps, epoch, directed, weighted
):
    n = 13
    graph, A = make_graph(n, directed=directed, weighted=weighted)
    T = dense_transition(A, "sym")
    entries = [(int(i), int(j)) for i, j in zip(*T.nonzero(), strict=True)]
    matrices = []
    for seed in SEEDS[:2]:
        matrices.append([])
        for step in range(steps):
            M = np.zeros((n, n))
            for i, j in entries:  # always from T, never from an already dropped matrix
                M[i, j] = T[i, j] * oracle.keep(seed, EDGES, i, j, epoch * steps + step, p) * oracle.scale(p)
            matrices[-1].append(M)
    bound = kernels.steps(transition_matrix(graph), ALPHA, steps)
    H, h64 = normal(2, n, 3, dtype=dtype)
    G, g64 = normal(2, n, 3, dtype=dtype)
    draw = draw_of(epoch, p, runs=2)
    forward = np.stack([power_steps(m, h) for m, h in zip(matrices, h64, strict=True)])
    backward = np.stack([power_steps_adjoint(m, g) for m, g in zip(matrices, g64, strict=True)])
    assert_close(bound.forward(H, draw), forward)
    assert_close(bound.adjoint(G, draw), backward)


@pytest.mark.parametrize(("steps", "dropped"), [(0, False), (1, False), (2, True)])
def test_each_run_may_have_an_alpha_of_its_own_and_keeps_it_when_others_leave(
    kernels, normal, make_graph, dropped, steps
):
    graph, _ = make_graph(13, directed=True, weighted=steps == 1)
    transition, alphas = transition_matrix(graph), torch.tensor([0.1, 0.7, 0.0], dtype=torch.float64)
    H, _ = normal(3, 13, 3, dtype=torch.float32)
    draw = draw_of(11, 0.5) if dropped else None
    bound = kernels.steps(transition, alphas, steps)
    alone = [kernels.steps(transition, float(alpha), steps) for alpha in alphas]
    forward = torch.stack([one.forward(H, draw)[run] for run, one in enumerate(alone)])
    adjoint = torch.stack([one.adjoint(H, draw)[run] for run, one in enumerate(alone)])
    torch.testing.assert_close(bound.forward(H, draw), forward, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(bound.adjoint(H, draw), adjoint, rtol=1e-6, atol=1e-6)
    left = torch.tensor([0, 2])
    draw = None if draw is None else Draw(draw.seeds[left], draw.epoch, draw.probability)
    torch.testing.assert_close(bound.of_runs(left).forward(H[left], draw), forward[left], rtol=1e-6, atol=1e-6)


# -- rows of the PPR matrix ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_dtype", [torch.float32, torch.float64])
def test_rows_are_those_of_the_block_and_may_repeat(kernels, dtype, normal, assert_close, block_dtype):
    """A block of the other type is allowed: the result is as exact as the predictions."""
    b, n, m, width = 9, 257, 5, 3
    block, block64 = normal(b, n, dtype=block_dtype)
    bound = kernels.rows(block, torch.arange(b) * 3)
    rows = torch.tensor([[0, 8, 3, 3, 1], [2, 2, 2, 7, 0]])
    H, h64 = normal(2, n, width, dtype=dtype)
    G, g64 = normal(2, m, width, dtype=dtype)
    P = [block64[r] for r in rows.numpy()]
    assert_close(bound.forward(H, rows, None), np.stack([p @ h for p, h in zip(P, h64, strict=True)]))
    assert_close(bound.adjoint(G, rows, None), np.stack([p.T @ g for p, g in zip(P, g64, strict=True)]))
    assert bound.forward(H, rows, None).dtype == dtype


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_rows_drop_the_entries_of_the_specification_by_node_and_column(kernels, dtype, normal, assert_close, oracle, p):
    """The site is the node that a row belongs to, not the place of the row in the block."""
    n, epoch, nodes = 38, 4, [5, 61, 0, 33]  # two words of columns
    block, block64 = normal(4, n, dtype=dtype)
    bound = kernels.rows(block, torch.tensor(nodes))
    rows = torch.tensor([[0, 3, 2], [1, 1, 0]])
    P = []
    for run, seed in enumerate(SEEDS[:2]):
        keep = [[oracle.keep(seed, PPR, nodes[r], epoch, j, p) for j in range(n)] for r in rows[run].tolist()]
        P.append(block64[rows[run].numpy()] * np.array(keep) * oracle.scale(p))
    H, h64 = normal(2, n, 3, dtype=dtype)
    G, g64 = normal(2, 3, 3, dtype=dtype)
    draw = draw_of(epoch, p, runs=2)
    assert_close(bound.forward(H, rows, draw), np.stack([m @ h for m, h in zip(P, h64, strict=True)]))
    assert_close(bound.adjoint(G, rows, draw), np.stack([m.T @ g for m, g in zip(P, g64, strict=True)]))


def test_rows_of_a_single_node(kernels, dtype, assert_close):
    bound = kernels.rows(torch.ones(1, 1, dtype=dtype), torch.tensor([0]))
    H = torch.full((2, 1, 3), 3.0, dtype=dtype)
    assert_close(bound.forward(H, torch.zeros(2, 1, dtype=torch.int64), None), np.full((2, 1, 3), 3.0))
    assert_close(bound.adjoint(H, torch.zeros(2, 1, dtype=torch.int64), None), np.full((2, 1, 3), 3.0))


# -- adjoints, by their definition --------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [None, 0.5])
def test_adjoints_satisfy_the_inner_product_identity(kernels, dtype, normal, make_graph, p):
    """<A x, y> = <x, A^T y> for every linear operation, with one and the same mask on both sides."""
    n = 257
    graph, _ = make_graph(n, directed=True, weighted=True)
    draw = None if p is None else draw_of(9, p)
    X = sparse.csr_array(sparse_matrix(n, 40, np.random.default_rng(2)))
    features, steps = kernels.features(X), kernels.steps(transition_matrix(graph), ALPHA, 10)
    block, _ = normal(5, n, dtype=dtype)
    rows, at = kernels.rows(block, torch.tensor([8, 0, 200, 31, 32])), torch.tensor([[0, 1], [4, 3], [2, 2]])
    pairs = [
        (lambda x: features.forward(x, draw), lambda y: features.adjoint(y, draw), (40, WIDE), (n, WIDE)),
        (lambda x: steps.forward(x, draw), lambda y: steps.adjoint(y, draw), (n, 3), (n, 3)),
        (lambda x: rows.forward(x, at, draw), lambda y: rows.adjoint(y, at, draw), (n, 3), (2, 3)),
    ]
    for forward, adjoint, inside, outside in pairs:
        (x, x64), (y, y64) = normal(3, *inside, dtype=dtype), normal(3, *outside, dtype=dtype)
        left = (forward(x).double().numpy() * y64).sum(axis=(1, 2))
        right = (x64 * adjoint(y).double().numpy()).sum(axis=(1, 2))
        size = np.linalg.norm(y64.reshape(3, -1), axis=1) * np.linalg.norm(forward(x).double().reshape(3, -1), axis=1)
        assert (np.abs(left - right) <= 16 * torch.finfo(dtype).eps * size).all()


# -- what holds for all operations --------------------------------------------------------------------------------


def test_inputs_are_left_alone_and_results_share_no_memory_with_them(kernels, dtype, normal, make_graph):
    graph, _ = make_graph(23, directed=True, weighted=True)
    transitions = [transition_matrix(graph, kind) for kind in ("sym", "row", "col")]
    H, _ = normal(2, 23, 3, dtype=dtype)
    rows = torch.tensor([[0, 1], [2, 2]])
    block, _ = normal(4, 23, dtype=dtype)
    W, _ = normal(2, 3, 3, dtype=dtype)
    features = kernels.features(sparse.csr_array(np.ones((4, 23))))
    before = H.clone()
    for draw in (None, draw_of(2, 0.5, runs=2)):
        results = [
            features.forward(H, draw),
            kernels.rows(block, torch.arange(4)).forward(H, rows, draw),
            kernels.linear(H, W),
            kernels.linear_input_adjoint(H, W),
            kernels.linear_weight_adjoint(H, H),
            kernels.cross_entropy(H, torch.zeros(2, 23, dtype=torch.int64))[2],
            *(kernels.steps(of, ALPHA, steps).forward(H, draw) for of in transitions for steps in (0, 1, 2)),
            *(kernels.steps(of, ALPHA, steps).adjoint(H, draw) for of in transitions for steps in (0, 1, 2)),
        ]
        for result in results:
            result.fill_(77.0)
            assert torch.equal(H, before)


def test_operands_need_not_be_contiguous(kernels, dtype, normal, make_graph):
    graph, _ = make_graph(23, directed=True, weighted=True)
    steps = kernels.steps(transition_matrix(graph), ALPHA, 3)
    features = kernels.features(sparse.csr_array(sparse_matrix(23, 23, np.random.default_rng(4))))
    block, _ = normal(4, 23, dtype=dtype)
    rows, at = kernels.rows(block, torch.arange(4)), torch.tensor([[0, 1], [2, 2]])
    H, _ = normal(2, 23, 3, dtype=dtype)
    W, _ = normal(2, 3, 3, dtype=dtype)
    flipped, flipped_weights = H.mT.contiguous().mT, W.mT.contiguous().mT
    assert not flipped.is_contiguous()
    labels = torch.arange(46).reshape(2, 23) % 3
    for operation in [
        lambda h, w: steps.forward(h, None),
        lambda h, w: steps.adjoint(h, None),
        lambda h, w: features.forward(h, None),
        lambda h, w: features.adjoint(h, None),
        lambda h, w: rows.forward(h, at, None),
        lambda h, w: rows.adjoint(h[:, :2], at, None),
        lambda h, w: kernels.linear(h, w),
        lambda h, w: kernels.linear_input_adjoint(h, w),
        lambda h, w: kernels.linear_weight_adjoint(h, h),
        lambda h, w: kernels.cross_entropy(h, labels)[2],
    ]:
        torch.testing.assert_close(operation(flipped, flipped_weights), operation(H, W))
