"""The seeds of splits: the paper's 20 of each kind, and as many more by a rule."""

from __future__ import annotations

from functools import cache

import numpy as np

from pprop._validate import check_choice, check_int
from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS
from pprop.study.cell import Splits

__all__ = ["MOST_SPLITS", "split_seeds"]

MOST_SPLITS = 1000
"""Splits of one kind that an experiment may have."""

_PAPER: dict[Splits, tuple[int, ...]] = {"test": TEST_SEEDS, "validation": VALIDATION_SEEDS}


@cache
def split_seeds(kind: Splits, count: int) -> tuple[int, ...]:
    """Return the seeds of the first `count` splits of a kind: the paper's, then those of a rule.

    The rule: ``numpy.random.RandomState`` is seeded with the first of the paper's seeds of the kind, and its 32-bit
    outputs are the further seeds, in their order, without those of the paper (of either kind) and without repeats.
    NumPy has promised never to change that stream. The first seeds are the same for every `count`. All splits have the
    known nodes, and hence the test nodes, in common: `paper_split` draws those from another seed.

    Parameters
    ----------
    kind
        ``"test"`` or ``"validation"``.
    count
        At most `MOST_SPLITS`.

    Examples
    --------
    >>> split_seeds("test", 22)[19:]
    (1694925034, 1808494577, 2360825087)
    """
    check_choice(kind, "kind", "split_seeds", tuple(_PAPER))
    check_int(count, "count", "split_seeds", low=1, high=MOST_SPLITS)
    seeds = list(_PAPER[kind])
    taken = {seed for paper in _PAPER.values() for seed in paper}
    random = np.random.RandomState(seeds[0])
    while len(seeds) < count:
        seed = int(random.randint(0, 2**32, size=1, dtype=np.uint32)[0])
        if seed not in taken:
            taken.add(seed)
            seeds.append(seed)
    return tuple(seeds[:count])
