"""What every launch needs: the decorators of kernels, draws as kernels read them, sizes, and launch shapes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
import triton
import triton.language as tl
from torch import Tensor

from pprop.kernels.random_bits import Bernoulli, Draw, law_of

_REGISTERS = 2**16  # of a multiprocessor
_MANY_ROWS = 2**18  # keep any device busy, one lane each

# Most classes whose products leave registers for many nodes at a time.
FEW_CLASSES = 16

# Whether triton interprets kernels on CPU tensors. Fixed when triton is imported.
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"

# Slots of a tile of the operators that are launched one by one.
SLOTS = 32

# A function that kernels call.
device: Any = triton.jit


def kernel(*varying: str) -> Any:
    """Compile a kernel; the integers named `varying` (sizes that depend on R) get no variants of their own."""
    return triton.jit(do_not_specialize=varying)


class Masks(NamedTuple):
    """What kernels read of a draw; where its law has no digits nothing is dropped, and the seeds are not read."""

    epoch: Tensor
    seeds: Tensor
    law: Bernoulli

    @classmethod
    def of(cls, draw: Draw | None, runs: int, place: torch.device) -> Masks:
        """Put a draw where kernels on a device can read it."""
        epoch = 0 if draw is None else draw.epoch
        if not isinstance(epoch, Tensor):
            epoch = torch.full((1,), epoch, dtype=torch.int64, device=place)
        seeds = epoch.expand(runs) if draw is None else draw.seeds
        return cls(epoch, seeds.contiguous(), law_of(draw))


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


def accumulator(like: Tensor) -> Any:
    """Return the type in which kernels add up."""
    return tl.float64 if like.dtype == torch.float64 else tl.float32


@final
@dataclass(frozen=True)
class Tuning:
    """Launch shapes of the fused trainer. They change speed and the order of sums, never which entries are dropped.

    Attributes
    ----------
    slice_width
        Hidden columns of one unit of the first layer, C. Every slice reads the entries of X again.
    feature_warps, feature_unroll, feature_limit
        Warps of a program of the first layer, entries of a slot in flight, most iterations before a row is spread over
        more lanes.
    tile_warps, step_tiles, step_unroll, step_limit
        The same for the steps: warps of a program, neighbouring tiles that it makes (0: 4 for 16 classes and more, else
        1), entries in flight, most iterations.
    feature_registers, step_registers
        Registers of a thread of the first layer and of the steps, at most; 0 leaves the number to the compiler, which
        then aims at many threads and waits for each pair of rows before it asks for the next.
    least_classes
        Classes are padded to a power of two of at least this.
    second_rows, second_warps
        Nodes of one product of the second layer's way back, for few classes (else 16), and warps of its program.
    dense_rows, dense_inner, dense_warps, dense_stages
        Of a dense X on the way forth: nodes of a program, features at a time, warps, loads in flight.
    dense_columns, dense_nodes, back_warps, back_stages
        The same on the way back: features of a program, nodes at a time, warps, loads in flight.
    """

    slice_width: int = 64
    feature_warps: int = 4
    feature_unroll: int = 4
    feature_limit: int = 64
    step_unroll: int = 4
    step_limit: int = 32
    tile_warps: int = 4
    step_tiles: int = 0
    feature_registers: int = 56
    step_registers: int = 40
    least_classes: int = 4
    second_rows: int = 64
    second_warps: int = 4
    dense_rows: int = 128
    dense_inner: int = 64
    dense_columns: int = 64
    dense_nodes: int = 64
    dense_warps: int = 4
    dense_stages: int = 2
    back_warps: int = 4
    back_stages: int = 2

    @staticmethod
    def registers(most: int, warps: int) -> dict[str, int]:
        """Return the launch option for at most so many registers of a thread.

        >>> Tuning.registers(72, 8), Tuning.registers(72, 32), Tuning.registers(0, 8)
        ({'maxnreg': 72}, {'maxnreg': 64}, {})
        """
        return {"maxnreg": min(most, _REGISTERS // (32 * warps))} if most > 0 else {}

    def most_iterations(self, n: int, entries: int) -> int:
        """Return the most iterations of a row of the steps: on a large graph enough for a row of a common length.

        There, rows enough are in flight without lanes, and a lane that is hardly used takes a mask word all the same.

        >>> Tuning().most_iterations(20_000, 900_000), Tuning().most_iterations(2_450_000, 124_000_000)
        (32, 64)
        """
        return self.step_limit if n < _MANY_ROWS else max(self.step_limit, power_of_two(5 * entries // (4 * n)))

    def row(self, classes: int) -> int:
        """Return how many numbers a node has in the states of so many classes: 4, or as many multiples of 8 as they need.

        >>> Tuning().row(3), Tuning().row(7), Tuning().row(40)
        (4, 8, 40)
        """
        return min(power_of_two(classes, least=self.least_classes), -(-classes // 8) * 8)

    @property
    def programs(self) -> int:
        """Programs of the first layer per multiprocessor: as many as there are registers for.

        >>> Tuning(feature_warps=4, feature_registers=72).programs
        7
        """
        return max(1, _REGISTERS // (32 * self.feature_warps * (self.feature_registers or 64)))


@final
class Shape:
    """Sizes as the kernels see them.

    Hidden units come in slices of `width`. A product has `padded_classes` columns, a power of two; in the states, which take
    most of the memory and its bandwidth, a node has `row` numbers (see `Tuning.row`).
    """

    def __init__(self, n: int, f: int, hidden: int, classes: int, tuning: Tuning, *, dense: bool = False) -> None:
        self.n, self.f, self.hidden, self.classes = n, f, hidden, classes
        least = 16 if dense else 8  # a product on tensor cores has at least 16 columns
        self.width = max(least, min(tuning.slice_width, power_of_two(hidden, least=least)))
        self.slices = -(-hidden // self.width)
        self.units = self.slices * self.width
        self.padded_classes = power_of_two(classes, least=tuning.least_classes)
        self.row = tuning.row(classes)


@final
@dataclass(frozen=True)
class LargeTuning:
    """Launch shapes for rows of 64 bytes; wider rows get fewer at a time. They change speed and the order of sums.

    Attributes
    ----------
    short, short_rows, short_warps, short_unroll
        Most entries of a short row; rows and warps of a program; entries of a row in flight.
    middle_entries, middle_warps
        Entries of a row in flight, and warps of the program of a middle row.
    piece, piece_entries, piece_warps
        Most entries of a middle row, also those of one piece of a longer row; the same for the program of a piece.
    """

    short: int = 32
    short_rows: int = 64
    short_warps: int = 4
    short_unroll: int = 4
    middle_entries: int = 32
    middle_warps: int = 1
    piece: int = 2048
    piece_entries: int = 256
    piece_warps: int = 4
