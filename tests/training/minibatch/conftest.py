"""A small graph with communities, on which training takes a moment."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, Split


@pytest.fixture(scope="session")
def graph() -> Graph:
    """61 nodes in 3 communities, the last one alone; 40 sparse binary features that lean towards the community."""
    rng = np.random.default_rng(0)
    labels = np.append(np.repeat(np.arange(3), 20), 0)
    likely = np.where(labels[:, None] == labels, 0.2, 0.02)
    upper = np.triu(rng.random((61, 61)) < likely, 1)
    upper[:, 60] = False
    words = np.where(labels[:, None] == np.arange(40) % 3, 0.25, 0.1)
    words[:, 30:] /= 4
    return Graph.from_scipy(
        sparse.csr_array((upper | upper.T).astype(float)),
        features=sparse.csr_array((rng.random((61, 40)) < words).astype(np.float32)),
        labels=labels,
    )


@pytest.fixture(scope="session")
def split() -> Split:
    """Five training nodes of each class and the node alone, 20 stopping nodes, the rest for evaluation."""
    rng = np.random.default_rng(1)
    train = np.concatenate([rng.choice(np.arange(20 * k, 20 * k + 20), 5, replace=False) for k in range(3)])
    rest = rng.permutation(np.setdiff1d(np.arange(60), train))
    return Split(train=np.append(train, 60), stopping=rest[:20], evaluation=rest[20:])
