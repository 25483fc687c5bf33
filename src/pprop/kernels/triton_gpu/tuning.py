"""Launch shapes of the fused trainer. They change speed and the order of sums, never which entries are dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Tuning"]

_REGISTERS = 2**16  # of a multiprocessor


@final
@dataclass(frozen=True)
class Tuning:
    """How the trainer's kernels are laid out.

    Attributes
    ----------
    slice_width
        Hidden columns of one unit of the first layer, C. Every slice reads the entries of X again.
    feature_warps, feature_blocks, feature_unroll, feature_limit
        Warps of a program of the first layer, programs per multiprocessor (0: as many as run at a time), entries of a
        slot in flight, most iterations before a row is spread over more lanes.
    unit_a_program
        Whether the adjoint of the first layer has a program for every unit, instead of programs that take turns.
    tile_warps, step_tiles, step_unroll, step_limit
        The same for the steps: warps of a program, neighbouring tiles that it makes (0: 4 for 16 classes and more, else
        1), entries in flight, most iterations.
    feature_registers, step_registers
        Registers of a thread of the first layer and of the steps, at most; 0 leaves the number to the compiler, which
        then aims at many threads and waits for each pair of rows before it asks for the next.
    kept_only
        Whether the way back goes from one kept entry to the next; otherwise it passes over those that are dropped.
    load_ahead
        Whether entries are loaded one turn of the loop before the rows they point to.
    least_classes
        Classes are padded to a power of two of at least this.
    second_together
        Whether one program of the second layer's way back does all slices of its nodes.
    second_rows, second_warps, second_precision
        Nodes of one product there, warps of the program, and "ieee" or "tf32x3", the tensor cores' replacement.
    stream_policy, gather_policy
        Eviction policies of what is read once and of what is gathered: "", "evict_first" or "evict_last".
    """

    slice_width: int = 64
    feature_warps: int = 4
    feature_blocks: int = 0
    feature_unroll: int = 4
    feature_limit: int = 64
    step_unroll: int = 4
    step_limit: int = 32
    tile_warps: int = 4
    step_tiles: int = 0
    unit_a_program: bool = True
    feature_registers: int = 56
    step_registers: int = 40
    kept_only: bool = True
    load_ahead: bool = True
    least_classes: int = 4
    second_together: bool = True
    second_rows: int = 16
    second_warps: int = 4
    second_precision: str = "ieee"
    stream_policy: str = "evict_first"
    gather_policy: str = ""

    @staticmethod
    def registers(most: int, warps: int) -> dict[str, int]:
        """Return the launch option for at most so many registers of a thread.

        >>> Tuning.registers(72, 8), Tuning.registers(72, 32), Tuning.registers(0, 8)
        ({'maxnreg': 72}, {'maxnreg': 64}, {})
        """
        return {"maxnreg": min(most, _REGISTERS // (32 * warps))} if most > 0 else {}

    @property
    def programs(self) -> int:
        """Programs of the first layer per multiprocessor: as told, or as many as there are registers for.

        >>> Tuning(feature_warps=4, feature_registers=72).programs, Tuning(feature_blocks=3).programs
        (7, 3)
        """
        if self.feature_blocks > 0:
            return self.feature_blocks
        return max(1, _REGISTERS // (32 * self.feature_warps * (self.feature_registers or 64)))
