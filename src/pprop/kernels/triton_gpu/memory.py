"""How much device memory the fused trainer takes, for planning how many runs fit."""

from __future__ import annotations

from pprop.kernels.triton_gpu._jit import power_of_two
from pprop.kernels.triton_gpu.planes import ring_size
from pprop.kernels.triton_gpu.tuning import Tuning

__all__ = ["trainer_bytes"]


def trainer_bytes(
    *,
    n: int,
    f: int,
    hidden: int,
    classes: int,
    nonzeros: int,
    entries: int = 0,
    steps: int = 0,
    set_sizes: tuple[int, int] = (0, 0),
    dropout: bool = True,
    matrix_dropout: bool = True,
    tuning: Tuning | None = None,
) -> tuple[int, int]:
    """Return the bytes of one run and the bytes that do not depend on the number of runs.

    Counted per run: both layers' weights with two moments each and a copy of the best; the hidden layer of both
    passes; predictions, states and gradients of the propagation; mask planes, from above; labels. Counted once: the
    entries of X and X^T, of T and T^T. The block of PPR rows is the caller's. `keep` needs the first layer's bytes
    once more for a moment.

    Parameters
    ----------
    nonzeros, entries
        Of X, and of the transition matrix (0 without steps).
    set_sizes
        Training and stopping nodes, for PPNP; labels are kept by node otherwise.
    dropout, matrix_dropout
        Whether there is any.

    Examples
    --------
    >>> run, once = trainer_bytes(n=2810, f=2879, hidden=64, classes=7, nonzeros=142286, entries=18772, steps=10)
    >>> round(run / 2**20), round(once / 2**20)
    (9, 5)
    """
    tuning = tuning or Tuning()
    width = min(tuning.slice_width, power_of_two(hidden, least=8))
    units = -(-hidden // width) * width
    columns = power_of_two(classes, least=tuning.least_classes)
    slots = 128 * tuning.feature_warps // width

    run = 4 * 4 * ((f + 1) * units + units * columns)
    run += 2 * 4 * (n + 1) * units + 4 * units * columns * -(-n // 512)
    run += 4 * (n + 1) * (2 * columns + columns)
    if dropout:
        words = [_words(rows, nonzeros, slots, tuning.feature_limit) for rows in (n, f)]
        run += 32 * (4 * sum(words) + words[1] // slots)
        run += 4 * n * -(-units // 32)
    once = 2 * (8 + 4) * 3 * nonzeros // 2
    if steps:
        run += 4 * (n + 1) * 2 * (2 * columns + columns)
        once += 2 * 4 * 3 * entries // 2 + 16 * n
        if matrix_dropout:
            step_slots = 128 * tuning.tile_warps // min(2 * columns, 128)
            words = [_words(n, entries, step_slots, tuning.step_limit)]
            run += 32 * ring_size(steps) * (2 * 4 * words[0] + words[0] // step_slots)
    run += 4 * columns * sum(2 * size for size in set_sizes) + 16 * (sum(set_sizes) or 2 * (n + 1))
    return run, once


def _words(rows: int, entries: int, slots: int, limit: int) -> int:
    """About how many words a plane has: one a row, more for those over the limit, and four unfilled tiles.

    On the paper's graphs 1.1 to 1.6 times as many as there are.
    """
    return rows + 2 * entries // limit + 4 * slots
