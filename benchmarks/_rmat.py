"""RMAT graphs with Graph500's parameters: undirected, no self-loops, no double edges, about 32 entries a node.

A graph of 2^s nodes has about 2^(s + 5) entries; node ids are shuffled, as Graph500 asks for, so that no method is
given the locality of the generator for nothing (``shuffle=False`` leaves the generator's order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from pprop.graph import Transition

A, B, C = 0.57, 0.19, 0.19
ENTRIES_A_NODE = 32
_CHUNK = 1 << 24


@final
@dataclass(frozen=True)
class Rmat:
    """CSR structure of an undirected graph on the device it was made on: int64 ``indptr``, int32 ``indices``."""

    indptr: Tensor
    indices: Tensor

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Number of entries; an edge between two nodes has two."""
        return len(self.indices)


def rmat(entries: int, *, seed: int = 0, shuffle: bool = True, self_loops: bool = True, device: str = "cpu") -> Rmat:
    """Return an RMAT graph of about `entries` entries (within a percent), self-loops of all nodes included if asked.

    The number of nodes is the power of two nearest to ``entries / 32``. The same seed gives the same graph on one
    kind of device.
    """
    scale = max(1, round(np.log2(entries / ENTRIES_A_NODE)))
    n = 1 << scale
    generator = torch.Generator(device).manual_seed(seed)
    wanted = (entries - n * self_loops) // 2
    keys = torch.empty(0, dtype=torch.int64, device=device)
    share = 1.0  # of the drawn edges that are new
    while len(keys) < 0.995 * wanted:
        missing = int((wanted - len(keys)) / share)
        drawn = _edges(missing, scale, generator)
        before = len(keys)
        keys = _distinct(torch.cat([keys, drawn]))
        share = max(0.05, (len(keys) - before) / missing)
    low, high = keys // n, keys % n
    del keys
    if shuffle:
        names = torch.randperm(n, generator=generator, device=device)
        low, high = names[low], names[high]
    return _csr(low, high, n, self_loops=self_loops)


def _edges(count: int, scale: int, generator: torch.Generator) -> Tensor:
    """Return `count` keys low * n + high, low < high up to chance: the four quadrants chosen bit by bit."""
    device = generator.device
    parts: list[Tensor] = []
    for first in range(0, count, _CHUNK):
        size = min(_CHUNK, count - first)
        row = torch.zeros(size, dtype=torch.int64, device=device)
        column = torch.zeros(size, dtype=torch.int64, device=device)
        draw = torch.empty(size, device=device)
        for _ in range(scale):
            draw.uniform_(generator=generator)
            down = draw >= A + B
            right = ((draw >= A) & ~down) | (draw >= A + B + C)
            row.mul_(2).add_(down)
            column.mul_(2).add_(right)
        low, high = torch.minimum(row, column), torch.maximum(row, column)
        parts.append((low * (1 << scale) + high)[low != high])
    return torch.cat(parts)


def _distinct(keys: Tensor) -> Tensor:
    """Return the sorted distinct keys; numpy's sort is several times faster than torch's on a CPU."""
    if keys.device.type == "cpu":
        keys.numpy().sort()
    else:
        keys = keys.sort().values
    fresh = torch.ones(len(keys), dtype=torch.bool, device=keys.device)
    torch.ne(keys[1:], keys[:-1], out=fresh[1:])
    return keys[fresh]


def _csr(low: Tensor, high: Tensor, n: int, *, self_loops: bool) -> Rmat:
    """Return both directions of every edge, and the self-loops, by rows with sorted columns."""
    loops = torch.arange(n if self_loops else 0, device=low.device) * (n + 1)
    keys = torch.cat([low * n + high, high * n + low, loops])
    del low, high
    if keys.device.type == "cpu":
        keys.numpy().sort()
    else:
        keys = keys.sort().values
    indptr = torch.searchsorted(keys, torch.arange(n + 1, device=keys.device) * n)
    return Rmat(indptr, keys.remainder_(n).to(torch.int32))


def sym_transition(graph: Rmat) -> Transition:
    """Return D^-1/2 A D^-1/2 of a graph that has its self-loops, without a copy of its entries."""
    scale = 1.0 / np.sqrt(np.diff(graph.indptr.cpu().numpy()).astype(np.float64))
    return Transition(graph.indptr.cpu().numpy(), graph.indices.cpu().numpy(), None, scale, scale, symmetric=True)
