"""How much device memory the fused trainer takes, for planning how many runs fit."""

from __future__ import annotations

from pprop.kernels.trainer import TrainerBytes, TrainerSizes
from pprop.kernels.triton_gpu._jit import power_of_two
from pprop.kernels.triton_gpu.planes import ring_size
from pprop.kernels.triton_gpu.tuning import Tuning


def trainer_bytes(sizes: TrainerSizes, tuning: Tuning | None = None) -> TrainerBytes:
    """Return the bytes of the buffers of `TritonTrainer`, those of mask planes from above.

    `keep` needs the first layer's bytes once more for a moment.

    Examples
    --------
    >>> found = trainer_bytes(TrainerSizes(2810, 2879, 64, 7, feature_entries=142286, entries=18772, steps=10))
    >>> round(sum(found.run.values()) / 2**20), round(sum(found.shared.values()) / 2**20)
    (9, 5)
    """
    tuning = tuning or Tuning()
    n, f, nonzeros, entries = sizes.nodes, sizes.features, sizes.feature_entries, sizes.entries
    width = min(tuning.slice_width, power_of_two(sizes.hidden, least=8))
    units = -(-sizes.hidden // width) * width
    columns = power_of_two(sizes.classes, least=tuning.least_classes)
    first, second, steps = (f + 1) * units, units * columns, sizes.steps > 0
    feature_masks = edge_masks = 0
    if sizes.dropout:
        slots = 128 * tuning.feature_warps // width
        words = [_words(rows, nonzeros, slots, tuning.feature_limit) for rows in (n, f)]
        feature_masks = 32 * (4 * sum(words) + words[1] // slots)
        if steps:
            slots = 128 * tuning.tile_warps // min(2 * columns, 128)
            step_words = _words(n, entries, slots, tuning.step_limit)
            edge_masks = 32 * ring_size(sizes.steps) * (2 * 4 * step_words + step_words // slots)
    labelled = 0 if not sizes.ppr_rows else sizes.train_nodes + sizes.stopping_nodes  # else labels are kept by node
    run = {
        "weights": 4 * (first + second),
        "best weights": 4 * (first + second),
        "moments": 4 * 2 * (first + second),
        "hidden layer": 4 * 2 * (n + 1) * units + 4 * n * -(-units // 32) * sizes.dropout,
        "states": 4 * (n + 1) * 3 * columns * (3 if steps else 1),
        "feature masks": feature_masks,
        "edge masks": edge_masks,
        "sums": 4 * second * -(-n // 512) + 8 * columns * labelled + 16 * (labelled or 2 * (n + 1)),
    }
    features = 2 * (8 + 4) * 3 * nonzeros // 2
    graph = 2 * (4 + 4 * sizes.weighted) * 3 * entries // 2 + 16 * n if steps else 0
    return TrainerBytes({"features": features, "graph": graph, "PPR rows": 4 * sizes.ppr_rows * n}, run)


def _words(rows: int, entries: int, slots: int, limit: int) -> int:
    """About how many words a plane has: one a row, more for those over the limit, and four unfilled tiles.

    On the paper's graphs 1.1 to 1.6 times as many as there are.
    """
    return rows + 2 * entries // limit + 4 * slots
