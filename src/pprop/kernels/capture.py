"""Launches captured in a CUDA graph, to be replayed without Python, and what is done where they cannot be captured."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, final

import torch
from torch import Tensor

# Tensors as a function of one.
Tensors = Callable[[Tensor], tuple[Tensor, ...]]


def capture(device: torch.device, launches: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
    """Capture the launches of a function in a graph that can be replayed; None where torch or CUDA refuses that.

    A refusal is a warning: the caller makes the same launches one by one. Whatever ends a capture, torch can be used
    after it as before: a failed one would leave its stream as the current one, its memory reserved, and the generator of
    the device unable to draw.

    No garbage is collected meanwhile: a graph of a training that failed may be among it, and freeing one breaks a capture.
    """
    torch.cuda.synchronize(device)
    collects = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.stream(torch.cuda.current_stream(device)):  # a failed capture does not restore the stream
            return _capture(device, launches)
    finally:
        if collects:
            gc.enable()


def _capture(device: torch.device, launches: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            launches()
    except BaseException as error:
        _restore(device, pool)
        if not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError):
            raise
        first = error.__context__ or error  # torch ends the capture with a second error that only refers to the first
        warnings.warn(
            f"No CUDA graph could be captured ({type(first).__name__}: {str(first).partition(chr(10))[0]}). The kernels "
            "are launched one by one instead: the results are the same, but epochs and solves take longer. A possible "
            "cause is another library that waits for the GPU inside torch's functions.",
            stacklevel=3,
        )
        return None
    return graph


def _restore(device: torch.device, pool: Any) -> None:
    """Restore what a failed capture leaves behind in torch: a pool that takes allocations, a generator that cannot draw."""
    index = torch.cuda.current_device() if device.index is None else device.index
    with suppress(RuntimeError, AttributeError):  # the capture was ended nevertheless, or this torch has other names
        torch._C._cuda_endAllocateToPool(index, pool)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]
        torch._C._cuda_releasePool(index, pool)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]
    # the generator draws again when a capture that it is registered with has ended well
    with suppress(RuntimeError):
        number = torch.zeros(1, device=device)
        with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="thread_local"):
            number.add_(1.0)


def call_directly(function: Tensors, values: Tensor) -> tuple[Tensor, ...]:
    """Return function(values): what `Replayed` does, without a graph."""
    return function(values)


@final
class Replayed:
    """Calls a function of one CUDA tensor of a fixed shape, whose launches are captured at the second call and replayed.

    The first call compiles kernels and uploads what they read. What a replay returns lies where the next one writes. The
    function comes with every call, and is the same one: an object that kept it could not be freed with its owner. If its
    launches cannot be captured, every call calls it.
    """

    def __init__(self) -> None:
        self._called = self._refused = False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._input = torch.empty(0)
        self._output: tuple[Tensor, ...] = ()

    def __call__(self, function: Tensors, values: Tensor) -> tuple[Tensor, ...]:
        if self._called and self._graph is None and not self._refused:
            self._capture(function, values)
        self._called = True
        if self._graph is None:
            return function(values)
        self._input.copy_(values)
        self._graph.replay()
        return self._output

    def _capture(self, function: Tensors, values: Tensor) -> None:
        self._input = values.detach().clone(memory_format=torch.contiguous_format)

        def launches() -> None:
            self._output = function(self._input)

        self._graph = capture(values.device, launches)
        if self._graph is None:
            self._refused, self._input, self._output = True, torch.empty(0), ()
