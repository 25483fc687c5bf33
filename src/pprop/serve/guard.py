"""What stands before every request: hosts, origins, token, rate, size and time; and what every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final

from pprop.serve.faults import Fault
from pprop.serve.limits import ServerLimits
from pprop.serve.metrics import Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("pprop.serve")
POLICY = "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; frame-ancestors 'none'"
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_CLIENTS = 4096  # whose rates are remembered
_DRAINED = 2**25  # bytes of a body that is too large which are read, so that the client sees the answer
_DRAIN_SECONDS = 3.0
_OTHER = "other"


@final
class Rates:
    """A bucket for each client that fills at a rate; a request takes one from it.

    >>> rates = Rates(rate=1.0)
    >>> [rates.wait("a", now=0.0) for _ in range(3)], rates.wait("a", now=1.5)
    ([0.0, 0.0, 1.0], 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(2.0 * rate, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Take one; return 0, or the seconds after which there is one again."""
        left, since = self._buckets.get(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        late = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._buckets[client] = (left if late else left - 1.0), now
        self._buckets.move_to_end(client)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return late


def is_open(path: str) -> bool:
    """Whether a path is answered without a token."""
    return path in ("/", "/healthz") or path.startswith("/static/")


@final
class Guard:
    """An ASGI application around another one.

    Parameters
    ----------
    app
        What answers the requests that are let through.
    limits, metrics
        What is allowed, and where requests are counted.
    paths
        That are counted under their own names.
    """

    def __init__(self, app: App, limits: ServerLimits, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app, self._limits, self._metrics, self._paths = app, limits, metrics, paths
        self._rates = Rates(limits.rate)
        self._token = None if limits.token is None else limits.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        begin, status = time.perf_counter(), 500
        started, method = False, scope["method"]

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            elif method == "HEAD":  # the head of the answer to GET, without its body
                message["body"] = b""
            await send(message)

        path: str = scope["path"]
        try:
            self._check(scope)
            if method in ("POST", "PUT", "PATCH", "DELETE"):
                receive = await self._body(scope, receive)
            await self._app({**scope, "method": "GET"} if method == "HEAD" else scope, receive, sent)
        except Fault as fault:
            if not started:
                await answer(fault, sent)
        except Exception:  # the answer was sent by the application
            LOG.exception("The request %s %s failed.", scope["method"], path[:200])
            if not started:
                raise
        finally:
            name = "/static" if path.startswith("/static/") else path if path in self._paths else _OTHER
            counted = method if method in ("GET", "POST", "HEAD") else _OTHER
            self._metrics.request(name, counted, status, time.perf_counter() - begin)

    def _check(self, scope: Scope) -> None:
        """Refuse a request that comes too soon, under a wrong name, from another site or without the token."""
        client = scope.get("client")
        late = self._rates.wait(client[0] if client else "", time.monotonic())
        if late:
            headers = {"Retry-After": str(math.ceil(late))}
            raise Fault(429, "too_many_requests", "There are too many requests. Wait a little.", headers)
        found: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            found.setdefault(name, []).append(value)
        hosts = found.get(b"host", [])
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not host or not self._limits.accepts(host):
            message = "This server does not answer under that host name. Start it with --allow-host NAME if it should."
            raise Fault(403, "wrong_host", message)
        self._check_site(scope, found, host)
        if self._token is not None and not is_open(scope["path"]):
            self._check_token(found.get(b"authorization", []), self._token)

    @staticmethod
    def _check_site(scope: Scope, found: dict[bytes, list[bytes]], host: str) -> None:
        """Refuse what a page of another site has sent; a browser says where a request comes from."""
        origins = found.get(b"origin", [])
        same = {f"http://{host.lower()}", f"https://{host.lower()}"}
        foreign = any(origin.decode("latin-1").lower() not in same for origin in origins)
        if not is_open(scope["path"]):  # a link to the page itself may stand anywhere
            foreign = foreign or any(site in (b"cross-site", b"same-site") for site in found.get(b"sec-fetch-site", []))
        if foreign:
            raise Fault(403, "other_site", "Requests of other sites are not answered.")

    @staticmethod
    def _check_token(given: list[bytes], token: bytes) -> None:
        scheme, _, shown = (given[0] if len(given) == 1 else b"").partition(b" ")
        right = hmac.compare_digest(shown.strip(), token)  # compared in any case, in constant time
        if scheme.lower() != b"bearer" or not right:
            code, text = ("wrong_token", "The token is wrong.") if given else ("no_token", "A token is needed.")
            message = f"{text} Send it in the header 'Authorization: Bearer TOKEN'."
            raise Fault(401, code, message, {"WWW-Authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the whole body, within the limits of size and time; return what gives it to the application."""
        most = self._limits.body
        large = Fault(413, "too_large", f"The body of a request may have {most:,} bytes.", {"Connection": "close"})
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        parts, size, more = list[bytes](), 0, True
        try:
            async with asyncio.timeout(self._limits.seconds):
                while more:
                    if size > most or (declared.isdigit() and int(declared[:20]) > most):
                        await self._drain(receive, size)
                        raise large
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Fault(400, "closed", "The connection was closed before the request was complete.")
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > most:
                    raise large
        except TimeoutError:
            text = f"The request did not arrive within {self._limits.seconds:g} seconds."
            raise Fault(408, "too_slow", text, {"Connection": "close"}) from None
        content: list[bytes] = [b"".join(parts)]

        async def replay() -> MutableMapping[str, Any]:
            if content:
                return {"type": "http.request", "body": content.pop(), "more_body": False}
            return await receive()

        return replay

    @staticmethod
    async def _drain(receive: Receive, size: int) -> None:
        """Read on for a while: a client that still sends does not see an answer."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while size < _DRAINED:
                    message = await receive()
                    size += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


async def busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer, in place of the application, that there are too many connections."""
    del receive
    if scope["type"] == "http":
        headers = {"Retry-After": "5", "Connection": "close"} | {key.decode(): value.decode() for key, value in HEADERS}
        await answer(Fault(503, "busy", "There are too many connections. Come again in a while.", headers), send)


async def answer(fault: Fault, send: Send) -> None:
    """Send the answer that a fault is."""
    content = json.dumps(fault.body).encode()
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in fault.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    headers.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": fault.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
