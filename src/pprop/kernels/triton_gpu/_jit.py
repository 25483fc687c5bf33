"""What every kernel file needs: the decorators, and whether kernels are interpreted on the CPU."""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
from torch import Tensor

from pprop.kernels.contract import Draw

__all__ = ["INTERPRETED", "device", "epoch_tensor", "kernel", "multiprocessors", "power_of_two"]

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
"""Whether triton interprets kernels on CPU tensors. Fixed when triton is imported."""

device: Any = triton.jit
"""A function that kernels call."""


def kernel(*varying: str) -> Any:
    """Compile a kernel; the integers named `varying` (sizes that depend on R) get no variants of their own."""
    return triton.jit(do_not_specialize=varying)


def epoch_tensor(draw: Draw | None, place: torch.device, count: int = 1) -> Tensor:
    """Return the epoch of a draw, `count` times, as kernels read it; 0 for none."""
    epoch = 0 if draw is None else draw.epoch
    if isinstance(epoch, Tensor):
        return epoch.expand(count).contiguous()
    return torch.full((count,), epoch, dtype=torch.int64, device=place)


def power_of_two(value: int, least: int = 1) -> int:
    """Return the smallest power of two that is no less than either number.

    >>> power_of_two(7), power_of_two(3, least=8)
    (8, 8)
    """
    return max(least, 1 << max(value - 1, 0).bit_length())


def multiprocessors(like: Tensor) -> int:
    """Return how many multiprocessors the tensor's device has; two where kernels are interpreted."""
    if like.device.type != "cuda":
        return 2
    return torch.cuda.get_device_properties(like.device).multi_processor_count
