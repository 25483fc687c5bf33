"""Launch shapes of the fused trainer. They change speed and the order of sums, never which entries are dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Tuning"]


@final
@dataclass(frozen=True)
class Tuning:
    """How the trainer's kernels are laid out.

    Attributes
    ----------
    slice_width
        Hidden columns of one unit of the first layer, C. Small slices stay in a multiprocessor's L1 cache, but every
        slice reads the entries of X again.
    feature_warps, feature_blocks, feature_unroll, feature_limit
        Warps of a program of the first layer, programs per multiprocessor, entries of a slot in flight, most
        iterations before a row is spread over more lanes.
    l1_bytes
        A slice of at most this many bytes is left to one multiprocessor and its L1 cache; larger ones are read by all
        multiprocessors at a time, from the L2 cache.
    persistent
        Whether one program makes all power steps of a run; None: if there are 32 runs or more and a run's state is at
        most 512 KB.
    step_warps, step_unroll, step_limit
        The same for a program that makes all steps of a run.
    tile_warps
        Warps of a program that makes one tile of one step.
    stream_policy, gather_policy
        Eviction policies of what is read once and of what is gathered: "", "evict_first" or "evict_last".
    step_cache
        Cache modifier of the gathered states: "" (through L1) or ".cg" (L2 only).
    """

    slice_width: int = 16
    feature_warps: int = 32
    feature_blocks: int = 1
    feature_unroll: int = 4
    feature_limit: int = 32
    l1_bytes: int = 200_000
    persistent: bool | None = None
    step_warps: int = 32
    step_unroll: int = 2
    step_limit: int = 8
    tile_warps: int = 4
    stream_policy: str = "evict_first"
    gather_policy: str = ""
    step_cache: str = ""
