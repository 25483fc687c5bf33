"""A served model and a real browser, for the tests of the page, and what the page must show by plain matrices."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import pprop
from pprop.serve.app import create_app
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.served import Served
from pprop.serve.server import address_of, bound, make_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CLASSES = ("apples", "<b>pears</b>", "plums & figs")
IMAGE = '<img src=x onerror="window.hacked=1">'
SCRIPT = '"><script>window.hacked=1</script>'
HOSTILE_ID = "<i>&\"'~#%/x"
SIZE = 90
ALPHA, STEPS = 0.1, 10


def names() -> list[str]:
    """Names of the nodes: two of them would run in a page that took them for markup."""
    found = [f"Fruit number {node}" for node in range(SIZE)]
    found[7], found[8] = IMAGE, SCRIPT
    return found


def orchard() -> pprop.Graph:
    """A weighted graph of three groups; every fifth node has no label, and one id is hostile."""
    random = np.random.default_rng(4)
    group = np.arange(SIZE) % 3
    chance = np.where(group[:, None] == group[None, :], 0.13, 0.025)
    drawn = np.triu(random.random((SIZE, SIZE)) < chance, 1)
    drawn[np.arange(SIZE - 1), np.arange(1, SIZE)] = True  # nobody is alone
    weights = np.triu(drawn * random.integers(1, 5, (SIZE, SIZE)), 1)
    features = np.eye(3)[group] + 1.1 * random.standard_normal((SIZE, 3))
    labels = np.where(np.arange(SIZE) % 5 == 4, -1, group)
    ids = [f"n{node}" for node in range(SIZE)]
    ids[9] = HOSTILE_ID
    return pprop.Graph.from_scipy(
        sparse.csr_array((weights + weights.T).astype(np.float64)),
        features=features,
        labels=labels,
        class_names=CLASSES,
        ids=ids,
    )


def trained(graph: pprop.Graph) -> pprop.APPNPClassifier:
    """A small model of it, trained in a second."""
    assert graph.labels is not None
    known = [node for node in range(0, SIZE, 4) if graph.labels[node] >= 0]
    model = pprop.APPNPClassifier(
        graph,
        alpha=ALPHA,
        steps=STEPS,
        hidden=16,
        dropout=0.0,
        learning_rate=0.05,
        max_epochs=60,
        random_state=0,
        backend="reference",
    )
    return model.fit(known, [CLASSES[graph.labels[node]] for node in known], stopping=0.3)


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities of logits."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def spread(graph: pprop.Graph, alpha: float, steps: int) -> NDArray[np.float64]:
    """The matrix of APPNP's steps, dense and by its definition (equation 4)."""
    transition = pprop.transition_matrix(graph, "row").to_scipy().toarray()
    start = np.eye(graph.n_nodes)
    found = start
    for _ in range(steps):
        found = (1 - alpha) * transition @ found + alpha * start
    return found


@final
@dataclass
class Truth:
    """What the page must show, from the library's logits and dense matrices alone."""

    model: pprop.APPNPClassifier
    graph: pprop.Graph
    alone: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.alone = np.asarray(
            np.linalg.solve(spread(self.graph, ALPHA, STEPS), self.model.logits_.astype(np.float64)), dtype=np.float64
        )

    @property
    def classes(self) -> list[str]:
        """The classes in the model's order."""
        return [str(name) for name in self.model.classes_]

    def position(self, key: str) -> int:
        """The position of an id."""
        assert self.graph.ids is not None
        return [str(one) for one in self.graph.ids.tolist()].index(key)

    def network(self) -> NDArray[np.float64]:
        """Probabilities of the network alone, shape (n, c)."""
        return softmax(self.alone)

    def logits(self, alpha: float = ALPHA, steps: int = STEPS) -> NDArray[np.float64]:
        """Logits at another alpha and number of steps, shape (n, c)."""
        return spread(self.graph, alpha, steps) @ self.alone

    def edited(self, changes: dict[tuple[str, str], float], alpha: float = ALPHA) -> NDArray[np.float64]:
        """Probabilities with some edges of other weights, shape (n, c)."""
        return softmax(self.edited_spread(changes, alpha) @ self.alone)

    def edited_spread(self, changes: dict[tuple[str, str], float], alpha: float = ALPHA) -> NDArray[np.float64]:
        """The matrix that spreads predictions with some edges of other weights, shape (n, n)."""
        matrix = self.graph.adjacency.tolil(copy=True)
        for (source, target), weight in changes.items():
            i, j = self.position(source), self.position(target)
            matrix[i, j] = matrix[j, i] = weight
        other = sparse.csr_array(matrix)
        other.eliminate_zeros()
        return spread(pprop.Graph.from_scipy(other), alpha, STEPS)


@contextmanager
def serving(served: Served, port: int = 0, token: str | None = None) -> Generator[str]:
    """The address of a server that runs in a thread."""
    limits = ServerLimits(port=port, token=token)
    made = bound(limits)
    app = create_app(Holder(served), limits)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [made]})
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield address_of(made, limits)
    finally:
        server.should_exit = True
        thread.join()
        made.close()


def need_browser() -> None:
    """Skip where no Chromium is installed."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    pytest.importorskip("playwright", reason="playwright drives the browser")


@contextmanager
def chromium() -> Generator[Any]:
    """The installed browser, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
