"""Launches of a block captured in a CUDA graph, to be replayed without Python."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor

# Tensors as a function of one.
Tensors = Callable[[Tensor], tuple[Tensor, ...]]


@contextmanager
def captured(device: torch.device) -> Generator[torch.cuda.CUDAGraph]:
    """Capture the launches of a block; the graph can be replayed after it.

    No garbage is collected meanwhile: a graph of a training that failed may be among it, and freeing one breaks a capture.
    """
    torch.cuda.synchronize(device)
    collects = gc.isenabled()
    gc.disable()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            yield graph
    finally:
        if collects:
            gc.enable()


def call_directly(function: Tensors, values: Tensor) -> tuple[Tensor, ...]:
    """Return function(values): what `Replayed` does, without a graph."""
    return function(values)


@final
class Replayed:
    """Calls a function of one CUDA tensor of a fixed shape, whose launches are captured at the second call and replayed.

    The first call compiles kernels and uploads what they read. What a replay returns lies where the next one writes. The
    function comes with every call, and is the same one: an object that kept it could not be freed with its owner.
    """

    def __init__(self) -> None:
        self._called = False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._input = torch.empty(0)
        self._output: tuple[Tensor, ...] = ()

    def __call__(self, function: Tensors, values: Tensor) -> tuple[Tensor, ...]:
        if not self._called:
            self._called = True
            return function(values)
        if self._graph is None:
            self._input = values.detach().clone(memory_format=torch.contiguous_format)
            with captured(values.device) as graph:
                self._output = function(self._input)
            self._graph = graph
        self._input.copy_(values)
        self._graph.replay()
        return self._output
