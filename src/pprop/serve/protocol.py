"""How connections are held: an answer leaves in one piece, and a connection that says nothing is closed."""

from __future__ import annotations

import asyncio
from typing import Any, final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pprop.serve.guard import busy

HEAD_SECONDS = 20.0  # for a client to send a whole head of a request, once it is connected or has begun one

MOST_CONNECTIONS = 512


@final
class Joined:
    """A transport that sends what is written in one turn of the loop together: a head and its body are one packet."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep what is to be sent until the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        if self._parts:
            data, self._parts = b"".join(self._parts), []
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self._flush()
        self._transport.close()


class TimedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, over a `Joined` transport."""

    def connection_made(self, transport: Any) -> None:
        """Begin, and see to it that something comes."""
        super().connection_made(Joined(transport, self.loop))  # pyright: ignore[reportArgumentType]
        self._silence = self.loop.call_later(HEAD_SECONDS, self._end_silence)
        self._begun = True
        if len(self.connections) > MOST_CONNECTIONS:
            self.app = busy

    def data_received(self, data: bytes) -> None:
        """Take what comes; a head that has begun must end in time, as the first one must."""
        super().data_received(data)
        open_head = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if open_head and not self._begun:
            self._silence = self.loop.call_later(HEAD_SECONDS, self._end_silence)
        elif self._begun and not open_head:
            self._silence.cancel()
        self._begun = open_head

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._silence.cancel()
        super().connection_lost(exc)

    def _end_silence(self) -> None:
        """Close a connection on which no head was completed."""
        if not self.transport.is_closing():
            self.transport.close()
