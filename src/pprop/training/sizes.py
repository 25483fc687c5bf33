"""What a training holds in memory, item by item, in bytes.

The tables follow the fused trainers of the backends (`pprop.kernels.trainer`): the CPU's for ``"cpu"``, the GPU's for any
other device. They are the one place to edit when a trainer's buffers change. What is small and does not grow with the
graph, the features or the runs is left out; the share of memory that the planner leaves free is there for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Items", "Sizes", "kept_items", "result_items", "shared_items", "training_items"]

Items = dict[str, int]
"""Bytes by name."""

_FLOAT, _INT, _WORD, _LONG = 4, 4, 4, 8  # bytes of a float32, an int32, a word of mask bits, an int64 or float64
_UNITS, _CLASSES = (16, 64), (4, 8, 16)  # lanes of a block of hidden units and of classes, CPU
_SUM_ROWS = 128  # nodes of one partial sum of the second layer's gradient, CPU
_GPU_SUM_ROWS = 512  # the same, GPU
_GPU_SLICE = 16  # hidden columns that the GPU computes together
_GPU_FILL = 1.25  # how much longer a matrix gets by filling up tiles


@final
@dataclass(frozen=True)
class Sizes:
    """The numbers that decide how much memory a training needs.

    Attributes
    ----------
    nodes, features, hidden, classes
        n, f, h (of all hidden layers together) and c.
    feature_entries
        Nonzeros of the feature matrix.
    entries
        Entries of the transition matrix, self-loops included; 0 for a model without power steps.
    steps
        Power steps K; 0 without.
    ppr_rows
        Rows of the PPR block of an exact propagation; 0 without.
    heads
        Attention heads, or towers, that draw masks of their own; 0 for a model without.
    weighted
        Whether the transition matrix has stored weights.
    dropout
        Whether masks are drawn.
    train_nodes, stopping_nodes
        Of one run.
    max_epochs
        Length of the longest curve.
    units, weights
        Floats per node and weights of one run of a model that is trained by single operations; 0 for the fused ones.

    Examples
    --------
    >>> Sizes(nodes=2810, features=2879, hidden=64, classes=7, feature_entries=142286, entries=18772).heads
    0
    """

    nodes: int
    features: int
    hidden: int
    classes: int
    feature_entries: int
    entries: int = 0
    steps: int = 10
    ppr_rows: int = 0
    heads: int = 0
    weighted: bool = False
    dropout: bool = True
    train_nodes: int = 0
    stopping_nodes: int = 0
    max_epochs: int = 10000
    units: int = 0
    weights: int = 0

    @property
    def weight_count(self) -> int:
        """Weights of one run: f h + h c, or f c of a network without a hidden layer."""
        if self.weights:
            return self.weights
        if self.hidden == 0:
            return self.features * self.classes
        return self.hidden * (self.features + self.classes)


def shared_items(sizes: Sizes, device: str) -> Items:
    """Return what all runs read.

    >>> shared_items(Sizes(5, 4, 8, 2, feature_entries=10, entries=13), "cpu")
    {'features': 328, 'graph': 464, 'PPR rows': 0}
    """
    n, f = sizes.nodes, sizes.features
    if device == "cpu":
        # by rows and by columns: index and value, pointers; where an entry is on the other side, and its row
        features = sizes.feature_entries * (2 * (_INT + _FLOAT) + 2 * _INT) + _LONG * (n + f + 2)
        edge, node = 2 * _INT + 2 * _INT + 2 * _FLOAT * sizes.weighted, 2 * _LONG + 8 * _FLOAT
        graph = (edge * sizes.entries + node * n + 2 * _LONG) if sizes.entries else 0
    else:
        features = int(_GPU_FILL * sizes.feature_entries * 2 * (2 * _INT + _FLOAT))
        graph = int(_GPU_FILL * sizes.entries * 2 * (_INT + _FLOAT * sizes.weighted)) + 4 * _FLOAT * n
    return {"features": features, "graph": graph, "PPR rows": _FLOAT * sizes.ppr_rows * n}


def training_items(sizes: Sizes, device: str) -> Items:
    """Return what one run holds while it is in training: live weights, optimiser, activations, masks.

    >>> training_items(Sizes(5, 4, 8, 2, feature_entries=10, entries=13), "cpu")["moments"]  # 8 x (4 x 16 + 16 x 4)
    1024
    """
    cpu = device == "cpu"
    n, f = sizes.nodes, sizes.features
    if sizes.units:
        weights = _FLOAT * sizes.weight_count
        words = 2 * _WORD * max(1, sizes.heads) * sizes.dropout if cpu else 0  # kept for 32 epochs, by rows and columns
        return {
            "weights": weights,
            "moments": 2 * weights,
            "gradients": weights,
            "states": _FLOAT * n * sizes.units,
            "feature masks": words * sizes.feature_entries,
            "edge masks": words * sizes.entries,
        }
    units = _block(sizes.hidden, _UNITS)[1] if cpu else _padded(sizes.hidden, 8, 64)
    lanes, classes = _block(sizes.classes, _CLASSES) if cpu else (0, _padded(sizes.classes, 8, 1 << 30))
    first = f * units if units else f * classes
    second = units * classes
    # the training pass and the evaluation side by side, and the gradient; for the steps two states, of one block each
    widths = 3 * classes + 4 * lanes * (sizes.entries > 0) if cpu else (9 + 2 * -(-units // _GPU_SLICE)) * classes
    partial = -(-n // (_SUM_ROWS if cpu else _GPU_SUM_ROWS)) * second
    planes, edge_planes = (4, 4 * _ring_groups(sizes.steps)) if cpu else (_GPU_FILL, _GPU_FILL * _ring(sizes.steps))
    on = sizes.dropout
    return {
        "weights": _FLOAT * (first + (2 if cpu else 1) * second),
        "moments": _FLOAT * 2 * (first + second),
        "hidden layer": _FLOAT * 2 * n * units + (0 if cpu else _WORD * on * n * -(-units // 32)),
        "states": _FLOAT * n * widths,
        "feature masks": int(2 * _WORD * (planes if on else 1) * sizes.feature_entries) if on or cpu else 0,
        "edge masks": int(2 * _WORD * (edge_planes if on else 1) * sizes.entries) if on or cpu else 0,
        "attention": 2 * _FLOAT * sizes.heads * sizes.entries,
        "sums": _FLOAT * (partial + (2 * sizes.train_nodes + sizes.stopping_nodes) * classes)
        + (0 if cpu else 2 * (_INT + _FLOAT) * n),
    }


def kept_items(sizes: Sizes, device: str) -> Items:
    """Return what one run of a chunk holds from the chunk's begin to its end, in training or not.

    The predictions of all nodes are made once, after the training, for all runs of a chunk together.

    >>> kept_items(Sizes(5, 4, 8, 2, feature_entries=10), "cpu")
    {'initial weights': 192, 'best weights': 192, 'predictions': 240}
    """
    weights = _FLOAT * sizes.weight_count
    predictions = _FLOAT * sizes.nodes * (sizes.hidden + 2 * sizes.classes)
    return {"initial weights": weights, "best weights": weights, "predictions": predictions}


def result_items(sizes: Sizes) -> Items:
    """Return what one run leaves behind in main memory: weights, logits of all nodes, curves at their longest.

    >>> result_items(Sizes(5, 4, 8, 2, feature_entries=10, max_epochs=100))
    {'weights': 192, 'logits': 40, 'curves': 4800}
    """
    return {
        "weights": _FLOAT * sizes.weight_count,
        "logits": _FLOAT * sizes.nodes * sizes.classes,
        "curves": 2 * 3 * _LONG * sizes.max_epochs,  # as recorded and as handed out
    }


def _block(width: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the lanes of one block, the smallest of `sizes` that holds `width` or else the largest, and of all blocks.

    >>> _block(7, (4, 8, 16)), _block(20, (4, 8, 16)), _block(20, (16, 64)), _block(0, (16, 64))
    ((8, 8), (16, 32), (64, 64), (16, 0))
    """
    block = next((size for size in sizes if size >= width), sizes[-1])
    return block, -(-width // block) * block


def _padded(width: int, least: int, most: int) -> int:
    """Return `width` filled up to whole blocks of a power of two of lanes, from `least` to `most`.

    >>> _padded(7, 8, 64), _padded(100, 8, 64), _padded(0, 8, 64)
    (8, 128, 0)
    """
    block = least
    while block < min(width, most):
        block *= 2
    return -(-width // block) * block


def _ring(steps: int) -> int:
    """Return how many blocks of 32 mask positions one epoch may touch."""
    return (steps + 30) // 32 + 1


def _ring_groups(steps: int) -> int:
    """Return how many groups of four blocks the CPU keeps for them."""
    return 1 if steps <= 1 else ((steps - 1) // 32 + 4) // 4 + 1
