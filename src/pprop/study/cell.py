"""A cell of a study: everything that decides a run's result except its two seeds and the graph's content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, final

__all__ = ["Cell", "Seeds"]

Splits = Literal["test", "validation"]


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
