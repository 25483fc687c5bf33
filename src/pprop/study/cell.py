"""A cell of a study, which is everything that decides a run's result except its seeds and the graph's content; the seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, final

import numpy as np

from pprop._validate import check_choice, check_int
from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS

Splits = Literal["test", "validation"]

MOST_SPLITS = 1000
"""Splits of one kind that an experiment may have."""

_PAPER: dict[Splits, tuple[int, ...]] = {"test": TEST_SEEDS, "validation": VALIDATION_SEEDS}


@final
@dataclass(frozen=True, order=True)
class Seeds:
    """Which run of a cell: the seed of its split and that of its initialisation.

    Examples
    --------
    >>> Seeds(2144199730, 0) < Seeds(2144199730, 1)
    True
    """

    split: int
    init: int


@final
@dataclass(frozen=True)
class Cell:
    """One model with its settings on one dataset, with one kind of split.

    Attributes
    ----------
    model
        Name of the model in `pprop.study.zoo`, or ``"module:function"`` for one's own.
    settings
        The model's own settings: plain numbers, strings, booleans, or lists of numbers. Defaults are filled in before a
        cell is made, so that a setting left out and the same setting written out are the same cell.
    dataset
        Name for `load_dataset`.
    splits
        ``"test"`` evaluates on the test nodes; ``"validation"`` on the validation nodes, without test labels in reach.
    per_class
        Training nodes of each class.

    Examples
    --------
    >>> cell = Cell("mlp", {"hidden": [64]}, "citeseer")
    >>> cell.text
    '{"dataset":"citeseer","model":"mlp","per_class":20,"settings":{"hidden":[64]},"splits":"test"}'
    >>> cell == Cell.parse(cell.text), cell.config == Cell.parse(cell.text).config
    (True, True)
    """

    model: str
    settings: Mapping[str, Any] = field(hash=False)
    dataset: str
    splits: Splits = "test"
    per_class: int = 20

    @property
    def text(self) -> str:
        """The cell as one line of JSON with sorted keys: what the store keeps."""
        return json.dumps({**asdict(self), "settings": dict(self.settings)}, sort_keys=True, separators=(",", ":"))

    @property
    def config(self) -> str:
        """Hash of that line: the first 16 hexadecimal digits of sha256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @staticmethod
    def parse(text: str) -> Cell:
        """Return the cell of a line."""
        return Cell(**json.loads(text))


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
