"""A small graph with communities, on which training takes a moment."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, Split


@pytest.fixture(scope="session")
def community_graph() -> Graph:
    """90 nodes in 3 communities, 40 sparse binary features that lean towards the community."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 30)
    likely = np.where(labels[:, None] == labels, 0.15, 0.01)
    upper = np.triu(rng.random((90, 90)) < likely, 1)
    words = np.where(labels[:, None] == np.arange(40) % 3, 0.25, 0.1)
    return Graph.from_scipy(
        sparse.csr_array((upper | upper.T).astype(float)),
        features=sparse.csr_array((rng.random((90, 40)) < words).astype(np.float32)),
        labels=labels,
    )


@pytest.fixture(scope="session")
def community_splits() -> list[Split]:
    """Six splits: 5 training nodes per class, 30 stopping nodes, the rest for evaluation."""
    splits: list[Split] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        train = np.concatenate([rng.choice(np.arange(30 * k, 30 * k + 30), 5, replace=False) for k in range(3)])
        rest = rng.permutation(np.setdiff1d(np.arange(90), train))
        splits.append(Split(train=train, stopping=rest[:30], evaluation=rest[30:]))
    return splits
