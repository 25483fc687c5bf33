"""A small model of three classes on sixty nodes, and clients of servers of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is an extra")

from tests.serve.serving import TOKEN, Client, fitted, planted

from pprop.serve.app import create_app
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.live import LiveHolder
from pprop.serve.served import Served


@pytest.fixture(scope="session")
def model() -> Any:
    return fitted(planted())


@pytest.fixture(scope="session")
def served(model: Any) -> Served:
    names = [f"Title {k}" for k in range(60)]
    return Served(model.fitted_, "a model", names, [f"{name}, and a long text." for name in names])


@pytest.fixture(scope="session")
def client(served: Served) -> Client:
    """A client of a server without a token."""
    return Client(create_app(Holder(served), ServerLimits(rate=1e6)))


@pytest.fixture(scope="session")
def guarded(served: Served) -> Client:
    """A client, without its token, of a server that wants one."""
    limits = ServerLimits(host="0.0.0.0", token=TOKEN, rate=1e6, body=1000)
    return Client(create_app(Holder(served), limits))


Live = Callable[[], tuple[Client, LiveHolder]]


@pytest.fixture
def live(model: Any, tmp_path: Path) -> Iterator[Live]:
    """Start a server with a log, again and again with the same log."""
    open_ones: list[LiveHolder] = []

    def start() -> tuple[Client, LiveHolder]:
        for one in open_ones:
            one.log.close()
        holder = LiveHolder(Served(model.fitted_, "a model"), tmp_path / "edits.log")
        open_ones.append(holder)
        return Client(create_app(holder, ServerLimits(rate=1e6))), holder

    yield start
    for one in open_ones:
        one.log.close()
