"""pprop as a contestant: milliseconds per epoch of `pprop.train`, set-up excluded by taking a difference."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import pprop

SHORT = 5  # epochs of the training that is subtracted


def train_runs(
    graph: pprop.Graph,
    pairs: list[tuple[int, int]],
    stopping: pprop.Stopping,
    device: str,
    backend: str = "auto",
    progress: bool | None = False,
) -> pprop.Trained:
    """Train the paper's APPNP once for every pair (split seed, initialisation seed)."""
    alpha = 0.1 if graph.recommended is None else graph.recommended.alpha
    return pprop.train(
        pprop.APPNP(alpha=alpha),
        graph,
        [pprop.paper_split(graph, split_seed) for split_seed, _ in pairs],
        seeds=[pprop.run_seed(split_seed, init) for split_seed, init in pairs],
        stopping=stopping,
        backend=backend,
        progress=progress,
        **_device(device),
    )


def epoch_timer(
    graph: pprop.Graph, pairs: list[tuple[int, int]], device: str, seconds: float, backend: str = "auto"
) -> Callable[[], float]:
    """Return a function that measures one epoch of all runs of a dataset together, in milliseconds; see `difference_timer`."""

    def train(epochs: int) -> float:
        begin = time.perf_counter()
        train_runs(graph, pairs, pprop.Stopping(patience=epochs, max_epochs=epochs), device, backend)
        return time.perf_counter() - begin

    return difference_timer(train, seconds)


def difference_timer(train: Callable[[int], float], seconds: float) -> Callable[[], float]:
    """Return a function that measures one epoch in milliseconds, given one that trains so many and returns its seconds.

    Each call trains twice with early stopping out of the way, for 5 epochs and for 5 + N, and divides the difference by
    N, so that what happens once (reading features, predictions at the end) does not count and all that happens in every
    epoch does. N is chosen here such that N epochs fill `seconds`. Kernels are compiled here, too.
    """
    train(SHORT)  # compiles
    more, taken = 10, train(SHORT + 10) - train(SHORT)
    while taken < 0.5 * seconds:
        more = int(more * min(20.0, max(2.0, seconds / max(taken, 1e-6))))
        taken = train(SHORT + more) - train(SHORT)

    def measure() -> float:
        return 1000 * (train(SHORT + more) - train(SHORT)) / more

    return measure


def _device(device: str) -> dict[str, Any]:
    if "device" in inspect.signature(pprop.train).parameters:
        return {"device": device}
    if device != "cpu":
        raise SystemExit(f"pprop.train does not compute on {device!r} yet.")
    return {}
