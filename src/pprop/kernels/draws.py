"""Tensors of random numbers: initial weights, and the seeds of a model's branches. See `pprop.kernels.random_bits`."""

from __future__ import annotations

import torch
from torch import Tensor

from pprop.kernels.random_bits import BRANCHES, sequence_word


def uniform(seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
    """Return float32 numbers uniform in [-limit, limit), (R, rows, columns): 24 bits of the first word of site (i, j).

    Examples
    --------
    >>> bool((uniform(torch.tensor([7]), 4, 2, 3, 0.5).abs() <= 0.5).all())
    True
    """
    first = torch.arange(rows, device=seeds.device)[:, None].expand(rows, columns)
    second = torch.arange(columns, device=seeds.device).expand(rows, columns)
    words = sequence_word(seeds[:, None, None], stream, first, second, torch.zeros_like(first))
    unit = (words >> 8).to(torch.float64) * 2.0**-24
    return ((2.0 * unit - 1.0) * limit).to(torch.float32)


def branch_seeds(seeds: Tensor, branches: int, layer: int = 0) -> Tensor:
    """Return one seed for every branch (head, tower) of every run, (R * branches,), runs first: see `BRANCHES`.

    Examples
    --------
    >>> from pprop.kernels.random_bits import derive_seed
    >>> seeds = branch_seeds(torch.tensor([5, 6]), 3)
    >>> seeds.shape, int(seeds[4]) == derive_seed(6, BRANCHES, 1)
    (torch.Size([6]), True)
    """
    at = torch.arange(branches, device=seeds.device).expand(len(seeds), branches)
    layers, zeros = torch.full_like(at, layer), torch.zeros_like(at)
    low, high = (sequence_word(seeds[:, None], BRANCHES, at, layers, zeros + index) for index in (0, 1))
    return (high << 32 | low).flatten()
