"""The contract that every backend keeps, for the first layer on a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop.graph.features.scaling import DenseRows
from pprop.kernels import Draw

DENSE_FEATURES = 8
SEEDS, EPOCH = [0, -3], 130
SHAPES = [(1, 1, 1), (7, 3, 2), (13, 33, 5), (40, 40, 17)]


def kept(oracle, n, f, p):
    """The decision on column j of node i is number j of the sequence of site (i, epoch)."""
    return np.array(
        [[[oracle.keep(seed, DENSE_FEATURES, i, EPOCH, j, p) for j in range(f)] for i in range(n)] for seed in SEEDS]
    )


@pytest.mark.parametrize(("n", "f", "width"), SHAPES)
@pytest.mark.parametrize("p", [None, 0.5, 0.3])
def test_it_is_the_dense_product_with_the_masks_of_the_specification(
    kernels, dtype, normal, assert_close, oracle, n, f, width, p
):
    X = np.random.default_rng(2).standard_normal((n, f)).astype(np.float32)
    X[0, 0] = 0.0
    layer = kernels.features(DenseRows(X))
    draw = None if p is None else Draw(torch.tensor(SEEDS), EPOCH, p)
    dropped = X.astype(np.float64) * (1 if p is None else kept(oracle, n, f, p) * oracle.scale(p))
    dropped = np.broadcast_to(dropped, (2, n, f))
    W, w64 = normal(2, f, width, dtype=dtype)
    G, g64 = normal(2, n, width, dtype=dtype)
    assert_close(layer.forward(W, draw), dropped @ w64)
    assert_close(layer.adjoint(G, draw), dropped.transpose(0, 2, 1) @ g64)


def test_a_longer_row_uses_several_calls_and_a_longer_column_several_blocks(
    kernels, dtype, normal, assert_close, oracle
):
    n, f = (40, 40) if "Elsewhere" in type(kernels).__name__ else (150, 200)
    X = np.random.default_rng(4).standard_normal((n, f)).astype(np.float32)
    layer, draw = kernels.features(DenseRows(X)), Draw(torch.tensor(SEEDS), EPOCH, 0.5)
    dropped = X.astype(np.float64) * kept(oracle, n, f, 0.5) * oracle.scale(0.5)
    W, w64 = normal(2, f, 3, dtype=dtype)
    G, g64 = normal(2, n, 3, dtype=dtype)
    assert_close(layer.forward(W, draw), dropped @ w64)
    assert_close(layer.adjoint(G, draw), dropped.transpose(0, 2, 1) @ g64)


@pytest.mark.parametrize(
    ("stored", "scaled"),
    [("float16", "columns"), ("float32", "columns"), ("float32", "rows"), ("float64", "no"), ("int8", "columns")],
)
def test_stored_numbers_are_scaled_on_the_way_to_the_bits_of_a_scaled_copy(kernels, dtype, normal, stored, scaled):
    n, f = 13, 67  # whole words of lanes, and a rest
    rng = np.random.default_rng(5)
    X = (
        rng.integers(0, 100, (n, f)).astype(stored)
        if stored.endswith("int8")
        else rng.normal(3, 40, (n, f)).astype(stored)
    )
    rows = DenseRows(
        X,
        by_row=rng.uniform(0.1, 9, (n, 2)) if scaled == "rows" else None,
        by_column=rng.uniform(0.1, 9, (2, f)) if scaled == "columns" else None,
    )
    expected = X.astype(np.float64)
    if rows.by_row is not None:
        expected = expected / rows.by_row[:, :1] / rows.by_row[:, 1:]
    if rows.by_column is not None:
        expected = expected / rows.by_column[0] - rows.by_column[1]
    copied = DenseRows(expected.astype(np.float32))
    W, _ = normal(2, f, 5, dtype=dtype)
    G, _ = normal(2, n, 5, dtype=dtype)
    for draw in (None, Draw(torch.tensor(SEEDS), EPOCH, 0.5)):
        ours, theirs = kernels.features(rows), kernels.features(copied)
        assert torch.equal(ours.forward(W, draw), theirs.forward(W, draw))
        assert torch.equal(ours.adjoint(G, draw), theirs.adjoint(G, draw))
