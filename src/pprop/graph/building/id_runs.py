"""Many ids to one table of distinct ids, sorted, within bounded memory: sorted runs on the disk, merged range by range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.building.id_keys import Collision, TextBlock
from pprop.graph.building.sorting import stable_order
from pprop.graph.folder_arrays import ArrayWriter, map_array, write_array

SAMPLES = 4096  # keys of a run that are looked at to divide all of them into ranges


@final
@dataclass(frozen=True, eq=False)
class Part:
    """Ids by their keys, each with its slot: where it came, counted over all tables; texts where they are no integers."""

    keys: NDArray[np.int64]
    slots: NDArray[np.int64]
    texts: TextBlock | None

    @property
    def n_bytes(self) -> int:
        """Of all arrays."""
        return 16 * len(self.keys) + (0 if self.texts is None else 8 * len(self.texts) + len(self.texts.data))

    @classmethod
    def joined(cls, parts: list[Part]) -> Part:
        """Return parts below each other."""
        keys, slots = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "slots"))
        blocks = [part.texts for part in parts if part.texts is not None]
        if not blocks:
            return cls(keys, slots, None)
        lengths = np.concatenate([np.diff(block.offsets) for block in blocks])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(keys, slots, TextBlock(offsets, np.concatenate([block.data for block in blocks])))

    def distinct(self, known: int, repeated: Callable[[int, Part, int], None]) -> Part:
        """Return the distinct ids sorted by key, each with its first slot.

        `repeated` is called with the row, and where it is in this part, for an id that two slots below `known` have.
        """
        order = stable_order(self.keys)
        keys = self.keys[order]
        again = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        if not len(again):
            return Part(keys, self.slots[order], None if self.texts is None else self.texts.taken(order))
        if self.texts is not None:
            one, other = self.texts.taken(order[again - 1]), self.texts.taken(order[again])
            if not one.same(other).all():
                raise Collision
        new = np.ones(len(keys), dtype=bool)
        new[again] = False
        starts = np.flatnonzero(new)
        slots = self.slots[order]
        if known:
            twice = again[
                (np.minimum(slots[again - 1], slots[again]) < known)
                & (np.maximum(slots[again - 1], slots[again]) < known)
            ]
            if len(twice):
                rows = np.maximum(slots[twice], slots[twice - 1])
                at = int(np.argmin(rows))
                repeated(int(rows[at]), self, int(order[twice[at]]))
        first = np.minimum.reduceat(slots, starts)
        return Part(keys[starts], first, None if self.texts is None else self.texts.taken(order[starts]))


@final
class IdRuns:
    """Collects ids in memory, and as sorted runs on the disk where they are more than `budget` bytes."""

    def __init__(self, folder: Path, budget: int, known: int, repeated: Callable[[int, Part, int], None]) -> None:
        self._folder, self._budget, self._known, self._repeated = folder, budget, known, repeated
        self._pending: list[Part] = []
        self._size = 0
        self._runs: list[Part] = []

    def add(self, part: Part) -> None:
        """Take distinct ids with their first slots."""
        self._pending.append(part)
        self._size += part.n_bytes
        if self._size > self._budget:
            self._flush()

    def _flush(self) -> None:
        whole = Part.joined(self._pending).distinct(self._known, self._repeated)
        self._pending, self._size = [], 0
        name = f"run{len(self._runs)}"
        arrays = {"keys": whole.keys, "slots": whole.slots}
        if whole.texts is not None:
            arrays |= {"offsets": whole.texts.offsets, "bytes": whole.texts.data}
        mapped: dict[str, NDArray[Any]] = {}
        for array, values in arrays.items():
            file = self._folder / f"{name}.{array}.npy"
            about = write_array(file, values)
            mapped[array] = map_array(file, about["dtype"], about["shape"])
        texts = None if whole.texts is None else TextBlock(mapped["offsets"], mapped["bytes"])
        self._runs.append(Part(mapped["keys"], mapped["slots"], texts))

    def merged(self) -> Iterator[Part]:
        """Give all distinct ids in the order of their keys, a range of keys at a time."""
        if not self._runs:
            if self._pending:
                yield Part.joined(self._pending).distinct(self._known, self._repeated)
            return
        if self._pending:
            self._flush()
        total = sum(run.n_bytes for run in self._runs)
        count = max(2 * total // self._budget, 1)
        samples = np.sort(np.concatenate([run.keys[:: max(len(run.keys) // SAMPLES, 1)] for run in self._runs]))
        cuts = np.unique(samples[np.linspace(0, len(samples) - 1, int(count) + 1).astype(np.int64)[1:-1]])
        ends = [np.concatenate([[0], np.searchsorted(run.keys, cuts), [len(run.keys)]]) for run in self._runs]
        for at in range(len(cuts) + 1):
            pieces = [_piece(run, int(end[at]), int(end[at + 1])) for run, end in zip(self._runs, ends, strict=True)]
            whole = Part.joined(pieces)
            if len(whole.keys):
                yield whole.distinct(self._known, self._repeated)

    def remove(self) -> None:
        """Remove the runs' files."""
        self._runs = []
        for file in self._folder.glob("run*.npy"):
            file.unlink()


def _piece(run: Part, first: int, last: int) -> Part:
    texts = run.texts
    if texts is not None:
        offsets = np.asarray(texts.offsets[first : last + 1])
        texts = TextBlock(offsets - offsets[0], np.asarray(texts.data[int(offsets[0]) : int(offsets[-1])]))
    return Part(np.asarray(run.keys[first:last]), np.asarray(run.slots[first:last]), texts)


@final
class SortedWriter:
    """Writes parts in the order of their keys as one table: ``keys``, ``slots`` and, of texts, ``offsets`` and ``bytes``."""

    def __init__(self, folder: Path, *, text: bool) -> None:
        kinds: dict[str, Any] = {"keys": np.int64, "slots": np.int64}
        kinds |= {"offsets": np.int64, "bytes": np.uint8} if text else {}
        self._writers = {name: ArrayWriter(folder / f"sorted.{name}.npy", kind) for name, kind in kinds.items()}
        self._end = 0
        if text:
            self._writers["offsets"].write(np.zeros(1, dtype=np.int64))

    def write(self, part: Part) -> None:
        """Add a part."""
        self._writers["keys"].write(part.keys)
        self._writers["slots"].write(part.slots)
        if part.texts is not None:
            self._writers["offsets"].write(part.texts.offsets[1:] + self._end)
            self._writers["bytes"].write(part.texts.data)
            self._end += len(part.texts.data)

    def close(self) -> dict[str, dict[str, Any]]:
        """Return what is known of each array."""
        return {name: writer.close() for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            writer.abandon()
