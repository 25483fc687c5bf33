"""A GPU whose memory runs out in the middle of a training: one sentence that says what helps, and the memory given back."""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Generator
from contextlib import contextmanager

import torch

from pprop._errors import CapacityError, Remedy


@contextmanager
def explain_exhaustion(device: torch.device, runs: int, *, own_module: bool) -> Generator[None]:
    """Turn torch's error of exhausted memory in a block into CapacityError.

    What the failed training held is freed first, so that the process can go on.

    >>> with explain_exhaustion(torch.device("cuda:0"), 1, own_module=False):
    ...     raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    Traceback (most recent call last):
        ...
    pprop._errors.CapacityError: The memory of cuda:0 ran out during the training (tried to allocate 2.00 GiB). Use a \
smaller hidden, or the CPU (device), or free what else is on the GPU.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        wanted = re.search(r"[Tt]ried to allocate [\d.]+ \w+", str(error))
        traceback.clear_frames(error.__traceback__)  # which hold the tensors of the training
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        asked = "" if wanted is None else f" (t{wanted[0][1:]})"
        fewer = "fewer runs in one call, " if runs > 1 and not own_module else ""  # modules go one after another
        name = "block_nodes" if own_module else "hidden"
        less = f"{fewer}a smaller {{}}{', mixed_precision=True' if own_module else ''}"
        remedy = Remedy(f"Use {less}, or the CPU ({{}}), or free what else is on the GPU.", (name, "device"))
        raise CapacityError(f"The memory of {device} ran out during the training{asked}.", remedies=[remedy]) from None
