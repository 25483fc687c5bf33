"""How requests are computed: short ones at once, longer ones in a few threads, all within a limit of time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, final

from fastapi import Response

from pprop._errors import InputError
from pprop.serve.faults import Fault, invalid

T = TypeVar("T")
THREADS = 2


@final
class Worker:
    """Threads for what takes longer than a request may hold up the others.

    Parameters
    ----------
    seconds
        After which a request is answered with an error. The thread ends its work all the same.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="pprop-serve")

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what a function returns; what pprop refuses becomes an answer."""
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(self._pool, lambda: checked(function, *arguments, **named))
        try:
            return await asyncio.wait_for(task, self._seconds)
        except TimeoutError:
            text = f"The answer took longer than {self._seconds:g} seconds to compute."
            raise Fault(503, "too_slow", text, {"Retry-After": "5"}) from None

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def checked(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call a function; what pprop refuses becomes an answer."""
    try:
        return function(*arguments, **named)
    except InputError as error:
        raise invalid(str(error)) from error


@final
class Json(Response):
    """An answer in JSON. Numbers are finite; text of any kind is written in ASCII."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
        super().__init__(body, status, {"Cache-Control": "no-store", **(headers or {})}, self.media_type)
