"""Launches of a block captured in a CUDA graph, to be replayed without Python."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

import torch


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
