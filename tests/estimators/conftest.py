"""A small graph with communities, on which a fit takes a moment."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop import Graph

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="session")
def graph() -> Graph:
    """90 nodes in 3 communities of 30, 40 sparse binary features that lean towards the community, no labels."""
    rng = np.random.default_rng(0)
    community = np.repeat(np.arange(3), 30)
    likely = np.where(community[:, None] == community, 0.15, 0.01)
    upper = np.triu(rng.random((90, 90)) < likely, 1)
    words = np.where(community[:, None] == np.arange(40) % 3, 0.25, 0.1)
    return Graph.from_scipy(
        sparse.csr_array((upper | upper.T).astype(float)),
        features=sparse.csr_array((rng.random((90, 40)) < words).astype(np.float32)),
    )


@pytest.fixture(scope="session")
def nodes() -> NDArray[np.int64]:
    """36 nodes, 12 of each community, mixed."""
    rng = np.random.default_rng(1)
    return rng.permutation(np.concatenate([rng.choice(np.arange(30 * k, 30 * k + 30), 12, False) for k in range(3)]))


@pytest.fixture(scope="session")
def animals(nodes: NDArray[np.int64]) -> NDArray[np.str_]:
    """The communities of those nodes as strings."""
    return NAMES[nodes // 30]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """One thread for kernels on tiny graphs, which has no influence on the bits and much on the time of a busy machine."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
