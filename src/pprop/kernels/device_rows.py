"""Dense features on a device: uploaded as they are stored, scaled and made float32 there, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import torch
from torch import Tensor

from pprop.graph.features.scaling import DenseRows

_BLOCK = 2**20  # numbers that are converted at a time, by way of float64


@final
class DeviceRows:
    """The rows of a matrix on a device, in the type in which they are stored; float32 as a network reads them, in blocks.

    With `keep` False they are uploaded block by block each time that they are read, and not kept there.

    Examples
    --------
    >>> import numpy as np
    >>> rows = DenseRows(np.array([[20, 1], [40, 3]], dtype=np.int8), by_column=np.array([[10.0, 1.0], [3.0, 2.0]]))
    >>> DeviceRows(rows, torch.device("cpu")).tensor()
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """

    def __init__(self, rows: DenseRows, device: torch.device, *, keep: bool = True) -> None:
        found, self.shape, self.device = rows.readable(), rows.shape, device
        self._stored, self._matrix = found.matrix, None
        if keep:
            kind = torch.from_numpy(found.matrix[:0].copy()).dtype
            self._matrix = torch.empty(self.shape, dtype=kind, device=device)
            for at in self._places():
                self._matrix[at] = torch.tensor(found.matrix[at])
        scales = (found.by_row, found.by_column)
        self._by_row, self._by_column = (None if one is None else torch.tensor(one, device=device) for one in scales)

    def _places(self) -> Iterator[slice]:
        step = max(1, _BLOCK // max(1, self.shape[1]))
        return (slice(first, first + step) for first in range(0, self.shape[0], step))

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Give all rows, some at a time: where they are, and the numbers, float32."""
        for at in self._places():
            part = torch.tensor(self._stored[at], device=self.device) if self._matrix is None else self._matrix[at]
            if self._by_row is not None:
                part = part.double() / self._by_row[at, :1] / self._by_row[at, 1:]
            if self._by_column is not None:
                part = part.double() / self._by_column[0] - self._by_column[1]
            yield at, part.float()

    def tensor(self) -> Tensor:
        """Return the whole matrix, (n, f), float32."""
        out = torch.empty(self.shape, device=self.device)
        for at, part in self.blocks():
            out[at] = part
        return out
