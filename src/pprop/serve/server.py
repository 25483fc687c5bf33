"""A served model on an address, until it is interrupted."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

from pprop._errors import InputError
from pprop._optional import check_installed, require
from pprop.serve.limits import ServerLimits

PURPOSE = "The server"


def check_packages() -> None:
    """Refuse to begin without the packages that a server needs."""
    check_installed("fastapi", "uvicorn", "prometheus_client", extra="serve", purpose=PURPOSE)


def bound(limits: ServerLimits, *, any_port: bool = False) -> socket.socket:
    """Return a socket at the address, or say why there is none; with `any_port` another port where that is in use."""
    family = socket.AF_INET6 if ":" in limits.host else socket.AF_INET
    host = limits.host.strip("[]")
    # with the protocol named, asyncio sends small packets at once; otherwise each answer waits 40 ms for the client
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, limits.port))
        made.listen(512)  # now, and not later: two sockets may be bound to a port that none listens on
    except OSError as error:
        if error.errno == errno.EADDRINUSE and any_port:
            made.close()
            return bound(ServerLimits(limits.host, 0, limits.token))
        made.close()
        if error.errno == errno.EADDRINUSE:
            text = f"Port {limits.port} of {limits.host} is in use. Choose another one with --port."
        else:
            text = f"Cannot listen on {limits.host} port {limits.port}: {error.strerror or error}."
        raise OSError(text) from error
    except OverflowError as error:
        raise InputError(f"A port is a number from 0 to 65535. Got {limits.port} instead.") from error
    return made


def address_of(made: socket.socket, limits: ServerLimits) -> str:
    """Return the address of the page."""
    host = limits.host if limits.host not in ("0.0.0.0", "::") else "127.0.0.1"
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{shown}:{made.getsockname()[1]}/"


def make_server(app: object) -> Any:
    """Return uvicorn's server of an application."""
    uvicorn = require("uvicorn", extra="serve", purpose=PURPOSE)
    from pprop.serve.protocol import TimedProtocol

    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=2**14,
    )
    return uvicorn.Server(config)


def run(app: object, made: socket.socket, started: Callable[[], None] | None = None) -> None:
    """Answer requests on a socket until SIGINT or SIGTERM; call `started` before the first is answered."""
    server = make_server(app)
    if started is not None:
        started()
    server.run(sockets=[made])
