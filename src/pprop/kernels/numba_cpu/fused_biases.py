"""The biases of one run's network: their gradients are sums over nodes, made in blocks, and step by Adam."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.fused_network import SUM_ROWS, adam_row
from pprop.kernels.numba_cpu.vectors import address, lanes

_SOME = lanes(4)  # every block of units and of classes is made of fours


@serial
def _sums(first, last, source, partial):
    """partial (node blocks, all lanes) = the sums of source (blocks, n, lanes) over blocks `first` to `last` of nodes."""
    blocks, n, width = source.shape
    for node_block in range(first, last):
        partial[node_block] = 0
        for block in range(blocks):
            for i in range(node_block * SUM_ROWS, min(n, (node_block + 1) * SUM_ROWS)):
                for q in range(width):
                    partial[node_block, block * width + q] += source[block, i, q]


@serial
def _step(partial, factor, bias, moments, step, correction, some):
    """One Adam step, by `factor` times the sum of the terms in their order."""
    gradient, squares = np.zeros_like(bias), np.zeros_like(bias)
    for node_block in range(len(partial)):
        gradient += partial[node_block]
    gradient *= factor
    own, mean, square = address(gradient), address(moments[0]), address(moments[1])
    adam_row(address(bias), mean, square, own, 0, len(bias), 0.0, step, correction, address(squares), some)


@final
class Biases:
    """Both biases, padded to whole blocks of lanes; empty arrays for a network without."""

    def __init__(self, given: tuple[NDArray[np.float32], ...], padded: tuple[int, int], nodes: int) -> None:
        self.values = tuple(np.zeros(width if given else 0, np.float32) for width in padded)
        for value, bias in zip(self.values, given, strict=bool(given)):
            value[: bias.shape[1]] = bias[0]
        self._moments = [np.zeros((2, len(value)), np.float32) for value in self.values]
        self._partial = [np.empty((-(-nodes // SUM_ROWS), len(value)), np.float32) for value in self.values]

    def add_up(self, first: int, last: int, below: NDArray[Any], above: NDArray[Any]) -> None:
        """Make the terms of blocks of nodes from the gradients of the hidden layer and of the predictions."""
        if len(self.values[0]):
            _sums(first, last, below, self._partial[0])
            _sums(first, last, above, self._partial[1])

    def step(self, scale: np.float32, rates: tuple[np.float32, np.float32]) -> None:
        """Make one Adam step; the gradient of the hidden layer has the `scale` of kept features, which biases have not."""
        if len(self.values[0]):
            for layer, factor in enumerate((np.float32(1) / scale, np.float32(1))):
                _step(self._partial[layer], factor, self.values[layer], self._moments[layer], *rates, _SOME)
