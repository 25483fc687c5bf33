"""What a torch module of one run draws at random: a function of the run's seed and the epoch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor

from pprop.kernels.random_bits import MODULE, derive_seed

# Of one generator after another.
States = tuple[Tensor, ...]


@final
class ModuleRandomness:
    """torch's generators of the CPU and of a device, lent to a run and left as they were found.

    A moment is 0 for the initialisation, epoch + 1 for an epoch; see ``docs/randomness.md``.

    Examples
    --------
    >>> randomness = ModuleRandomness(5, torch.device("cpu"))
    >>> randomness.begin(1)
    >>> with randomness.lent():
    ...     first = torch.rand(2)
    >>> randomness.begin(1)
    >>> with randomness.lent():
    ...     bool((torch.rand(2) == first).all())
    True
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed, self._moment = seed, 0
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            torch.cuda.init()
            self._generators.append(torch.cuda.default_generators[device.index or 0])
        self._states: States | None = None

    def begin(self, moment: int) -> None:
        """Begin a moment."""
        self._moment, self._states = moment, None

    @contextmanager
    def lent(self) -> Generator[None]:
        """Let the run draw in a block; it goes on where its last block of the moment ended."""
        outside = self._now()
        try:
            if self._states is None:
                seed = derive_seed(self._seed, MODULE, self._moment)
                for generator in self._generators:
                    generator.manual_seed(seed)
            else:
                self._set(self._states)
            yield
            self._states = self._now()
        finally:
            self._set(outside)

    def noted(self) -> States | None:
        """Return where the run is."""
        return self._states

    def back_to(self, noted: States | None) -> None:
        """Let the run draw again what it drew after `noted`."""
        self._states = noted

    def _now(self) -> States:
        return tuple(generator.get_state() for generator in self._generators)

    def _set(self, states: States) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)
