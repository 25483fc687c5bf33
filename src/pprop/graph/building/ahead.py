"""Work on a stream of items by threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = 2

Item = TypeVar("Item")
Made = TypeVar("Made")


def worked_ahead(items: Iterable[Item], work: Callable[[Item], Made]) -> Iterator[tuple[Item, Made]]:
    """Give items with what threads have made of them, in order; a few are worked on ahead of the one that is asked for.

    >>> list(worked_ahead(range(4), lambda item: item**2))
    [(0, 0), (1, 1), (2, 4), (3, 9)]
    """
    with ThreadPoolExecutor(THREADS) as threads:
        waiting: deque[tuple[Item, Future[Made]]] = deque()
        try:
            for item in items:
                waiting.append((item, threads.submit(work, item)))
                if len(waiting) > THREADS:
                    first, made = waiting.popleft()
                    yield first, made.result()
            while waiting:
                first, made = waiting.popleft()
                yield first, made.result()
        finally:
            for _, made in waiting:
                made.cancel()
