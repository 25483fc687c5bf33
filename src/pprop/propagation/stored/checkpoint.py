"""The state after a step in a folder, from which steps that were interrupted or killed go on.

Two files take turns, and a record, replaced as a whole, names the one that is complete: so a kill at any time leaves a state
that can be used. The state of a step is written while the next one is made.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop.graph.files import read_json, replaced_file

RECORD = "steps.json"


@final
class Checkpoint:
    """A state y of some step, for the work that `identity` describes.

    Examples
    --------
    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> Checkpoint(Path(place.name), {"alpha": 0.1}).save(3, np.ones((2, 1), np.float32))
    >>> kept, state = Checkpoint(Path(place.name), {"alpha": 0.1}), np.zeros((2, 1), np.float32)
    >>> kept.step, kept.load(state), state.ravel().tolist()
    (3, None, [1.0, 1.0])
    >>> Checkpoint(Path(place.name), {"alpha": 0.2})
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: ... is of other work: alpha was 0.1 and is 0.2. Remove it, or give another folder.
    >>> place.cleanup()
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self._folder, self._identity = folder, identity
        folder.mkdir(exist_ok=True)
        self.step = 0
        if (folder / RECORD).exists():
            self._read()

    def load(self, state: NDArray[np.float32]) -> None:
        """Fill the state with that after `step` steps."""
        file = self._file(self.step)
        try:
            kept = np.load(file, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise InputError(
                f"The state '{file}' cannot be read ({error}). Remove the folder to begin again."
            ) from None
        if kept.shape != state.shape or kept.dtype != state.dtype:
            raise InputError(f"The state '{file}' has the shape {kept.shape} and not {state.shape}. Remove the folder.")
        np.copyto(state, kept)

    def save(self, step: int, state: NDArray[np.float32]) -> None:
        """Write the state after `step` steps; it counts when all of it is on the disk."""
        with self._file(step).open("wb") as stream:
            np.lib.format.write_array(stream, state, allow_pickle=False)
            stream.flush()
            os.fsync(stream.fileno())
        with replaced_file(self._folder / RECORD) as stream:
            stream.write(json.dumps({"step": step, "work": self._identity}).encode())
        self.step = step

    def remove(self) -> None:
        """Remove what was written, and the folder if nothing else is in it."""
        for file in (self._folder / RECORD, self._file(0), self._file(1)):
            file.unlink(missing_ok=True)
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _file(self, step: int) -> Path:
        return self._folder / f"state-{step % 2}.npy"

    def _read(self) -> None:
        file = self._folder / RECORD
        try:
            record: Any = read_json(file)
            step, work = int(record["step"]), dict(record["work"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"The record '{file}' cannot be read ({error}). Remove the folder to begin again."
            ) from None
        now = json.loads(json.dumps(self._identity))
        for name in now.keys() | work.keys():
            if now.get(name) != work.get(name):
                raise InputError(
                    f"The state in '{self._folder}' is of other work: {name} was {work.get(name)} and is {now.get(name)}. "
                    "Remove it, or give another folder."
                )
        self.step = step
