"""A small graph with communities, its labelled nodes, and a search on it that takes a moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, Range


@pytest.fixture(scope="session")
def graph() -> Graph:
    """60 nodes in 2 communities, 20 sparse binary features that lean towards the community, no labels."""
    rng = np.random.default_rng(0)
    community = np.repeat(np.arange(2), 30)
    likely = np.where(community[:, None] == community, 0.2, 0.02)
    upper = np.triu(rng.random((60, 60)) < likely, 1)
    words = np.where(community[:, None] == np.arange(20) % 2, 0.3, 0.15)
    return Graph.from_scipy(
        sparse.csr_array((upper | upper.T).astype(float)),
        features=sparse.csr_array((rng.random((60, 20)) < words).astype(np.float32)),
    )


@pytest.fixture(scope="session")
def labelled() -> tuple[Any, Any]:
    """40 nodes, 20 of each community, and their names."""
    nodes = np.concatenate([np.arange(20), np.arange(30, 50)])
    return nodes, np.where(nodes < 30, "ant", "bee")


@pytest.fixture(scope="session")
def quick_search() -> dict[str, Any]:
    """Arguments of a short search, not to be changed."""
    space = {"alpha": Range(0.05, 0.9), "hidden": [4, 8], "max_epochs": 6}
    return {"space": space, "trials": 4, "holdouts": 2, "seed": 7, "progress": False}


@pytest.fixture
def quick(quick_search: dict[str, Any]) -> dict[str, Any]:
    """The same for a test that may change them."""
    return {**quick_search, "space": dict(quick_search["space"])}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """One thread for kernels on tiny graphs, which has no influence on the bits and much on the time of a busy machine."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
