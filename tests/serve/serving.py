"""A small graph and models of it, and a client that calls an application without a network."""

from __future__ import annotations

import asyncio
from typing import Any, final

import httpx
import numpy as np
import scipy.sparse as sp

import pprop

ADDRESS = "http://127.0.0.1:8642"
CLASSES = ("art", "maths", "zoology")
TOKEN = "a-secret"


def planted(n: int = 60, *, directed: bool = False, weighted: bool = False, ids: bool = True) -> pprop.Graph:
    """Return three groups of nodes, mostly connected inside, whose features tell the groups apart."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 3
    chance = np.where(group[:, None] == group, 0.25, 0.02)
    upper = np.triu(rng.random((n, n)) < chance, 1).astype(float)
    if weighted:
        upper *= rng.random((n, n)) + 0.5
    features = rng.random((n, 6)) + 2.0 * np.eye(3, 6)[group]
    labels = group.copy()
    labels[-3:] = -1
    return pprop.Graph.from_scipy(
        sp.csr_array(upper if directed else upper + upper.T),
        directed,
        features=features,
        labels=labels,
        ids=[f"n{k}" for k in range(n)] if ids else None,
        class_names=CLASSES,
        feature_names=[f"f{k}" for k in range(6)],
        name="planted",
    )


def fitted(graph: pprop.Graph, kind: Any = pprop.APPNPClassifier, **settings: Any) -> Any:
    """Return a model that knows the labels of every fourth node."""
    assert graph.labels is not None
    known = np.arange(0, graph.n_nodes - 3, 4)
    given = {"hidden": 8, "max_epochs": 40, "random_state": 0, **settings}
    return kind(graph, **given).fit(known, np.array(CLASSES)[graph.labels[known]])


@final
class Client:
    """Requests to an ASGI application, as a browser or a program on this machine sends them."""

    def __init__(self, app: Any, address: str = "127.0.0.1") -> None:
        self._app, self._address = app, address

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, client=(self._address, 1))
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                return await client.request(method, path, **options)

        return asyncio.run(send())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)
