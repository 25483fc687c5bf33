"""Columns of a node table that say which nodes are for training, validation and testing: recognised, and read.

The rules, on the cells that are not missing:

1.  Words: each cell means a part of a split (`part_of`: train, val, ``public_test``, ``tr``, unused ...), with training nodes and
    validation or test nodes among them. Under a name for a split, any two parts are enough.
2.  Folds: every cell is ``fold1`` and the like; or the name is one for a split (`SPLIT_NAMES`: split, partition, cv, set) and the
    cells are few small whole numbers.
3.  One part: the name is ``split``, or one for a part (`PART_NAMES`: ``is_train``, ``val_mask``, ``test_set``), and the cells are
    truth values, or 0 and 1. A name that only has such a word in it (``passed_test``, ``test_score``, ``is_valid``) is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pprop.graph.features.columns import FALSE_TRUE, MISSING_CELLS, Column, name_words

Part = Literal["train", "stopping", "test", "unused"]

# What a cell may say, in upper or lower case, and the nodes that it means.
WORDS: dict[str, Part] = {
    **dict.fromkeys(("train", "training", "tr"), "train"),
    **dict.fromkeys(("stopping", "stop", "val", "valid", "validation", "dev", "va"), "stopping"),
    **dict.fromkeys(("test", "testing", "te", "eval", "evaluation", "holdout"), "test"),
    **dict.fromkeys(("unused", "unlabeled", "unlabelled", "ignore", "ignored", "excluded", "none", "other"), "unused"),
}
# What may stand beside such a word in a cell, as may a number: ``public_test``, ``test set 2``.
BESIDE = frozenset(("public", "private", "hidden", "final", "labeled", "labelled", "set", "split", "data", "nodes"))
SPLIT_NAMES = re.compile(r"(.* )?(split|partition|k?fold|cv ?fold)s?|(data ?)?set|cv( (group|part|round|set))?")
PART_NAMES = re.compile(
    r"(.* )?((is|in) ?(train|test|val|validation|holdout)( (set|split|data))?|"
    r"(train|training|val|valid|validation|dev|test|testing|eval|evaluation|holdout|stopping) ?(mask|set|split|subset))"
)
NUMBER_ENDINGS = ("id", "index", "number", "no", "nr", "num")
FOLD = r"^(?i:(?:cv|k)?[ _-]?fold)[ _-]?\d+$"
MOST_FOLDS = 20
MOST_WORDS = 50  # different ones: public_test1, public_test2 ...
MOST_FOLDS_A_CELL = 2 / 3

HOLDS_SPLIT = "holds the split into training, validation and test nodes"
HOLDS_FOLDS = "holds the folds of a cross-validation"
HOLDS_PART = "marks the nodes of one part of a split"


def part_of(cell: str) -> Part | None:
    """Return the part of a split that a cell means; None if it means none. An empty or missing one is unused.

    >>> part_of("Train"), part_of("public_test"), part_of("unlabeled"), part_of(""), part_of("train station"), part_of("3")
    ('train', 'test', 'unused', 'unused', None, None)
    """
    if cell.strip() in MISSING_CELLS:
        return "unused"
    words = name_words(cell)
    if words == ["hold", "out"]:
        return "test"
    found = [word for word in words if word in WORDS]
    if len(found) != 1 or not all(word in WORDS or word in BESIDE or word.isdigit() for word in words):
        return None
    return WORDS[found[0]]


def split_reason(column: Column) -> str:
    """Return why a column holds a split, folds or a part of one; empty if it does not.

    >>> import pyarrow as pa
    >>> from pprop.graph.features.columns import read_column
    >>> cells = pa.array(["1", "0", "0", "1", "0"])
    >>> [split_reason(read_column(name, cells, typed=False)) for name in ("is_train", "passed_test")]
    ['marks the nodes of one part of a split', '']
    """
    if column.form not in ("text", "number", "boolean") or not 1 < column.n_distinct <= MOST_WORDS:
        return ""
    words = [word for word in name_words(column.name) if not word.isdigit() and word not in NUMBER_ENDINGS]
    name = " ".join(words)
    named = SPLIT_NAMES.fullmatch(name) is not None
    if column.form == "text":
        parts = {part_of(cell) for cell in column.counts()}
        if None not in parts and len(parts) > 1 and (named or ("train" in parts and parts & {"stopping", "test"})):
            return HOLDS_SPLIT
        if column.share(FOLD) == 1.0:
            return HOLDS_FOLDS
    if named and _numbers_folds(column):
        return HOLDS_FOLDS
    return HOLDS_PART if (name == "split" or PART_NAMES.fullmatch(name)) and _is_flag(column) else ""


def use_of_splits(columns: Sequence[tuple[Column, str]]) -> str:
    """Return how columns that hold a split are used in Python, as a sentence; each comes with its `split_reason`.

    >>> import pyarrow as pa
    >>> from pprop.graph.features.columns import read_column
    >>> column = read_column("set", pa.array(["train", "test", "val", "train"]), typed=False)
    >>> print(use_of_splits([(column, split_reason(column))]))
    Use it: fit(nodes['set'] == 'train', y, stopping=(nodes['set'] == 'val', y)), with the table as nodes and a label per node as y.
    """
    parts: dict[Part, str] = {}
    for column, reason in columns:
        found = _masks(column, reason)
        if "train" in parts and "train" in found:  # one split of several: the first is shown
            continue
        parts = {**found, **parts}
    train = parts.get("train") or (f"~({parts['test']})" if "test" in parts else "")
    if not train:
        return "Pass the training nodes to fit as X, and the validation nodes as stopping=(nodes, y)."
    stopping = f", stopping=({parts['stopping']}, y)" if "stopping" in parts else ""
    which = "it" if len(columns) == 1 else "them"
    return f"Use {which}: fit({train}, y{stopping}), with the table as nodes and a label per node as y."


def _masks(column: Column, reason: str) -> dict[Part, str]:
    """Return expressions of Python that mark the nodes of the parts of a split."""
    cells = f"nodes[{column.name!r}]"
    values: list[object] = [*dict.fromkeys(cell for cell in column.cells.to_pylist() if cell is not None)]
    if reason == HOLDS_FOLDS:
        return {"test": f"{cells} == {min(_as_read(value) for value in values)!r}"}
    if reason == HOLDS_SPLIT:
        of_part: dict[Part, list[object]] = {}
        for value in values:
            if (part := part_of(str(value))) is not None:
                of_part.setdefault(part, []).append(value)
        return {
            part: f"{cells} == {found[0]!r}" if len(found) == 1 else f"np.isin({cells}, {found!r})"
            for part, found in of_part.items()
            if part != "unused"
        }
    marked: Part | None = next((WORDS[word] for word in name_words(column.name) if word in WORDS), None)
    yes = ("1", *(pair[1] for pair in FALSE_TRUE))
    true = next((value for value in values if str(_as_read(value)).lower() in yes), None)
    if marked is None or true is None:  # of 'split' alone either value may be the training
        return {}
    flags = column.form == "boolean" or (not column.typed and str(true).lower() == "true")
    return {marked: cells if flags else f"{cells} == {_as_read(true)!r}"}


def _as_read(cell: Any) -> Any:
    """Return a cell as pandas and polars read it from a file: what spells a whole number is one."""
    return int(float(cell)) if re.fullmatch(r"\d+(\.0*)?", str(cell)) else cell


def _is_flag(column: Column) -> bool:
    """Whether the cells are truth values, or 0 and 1."""
    if column.form == "text" and {cell.lower() for cell in column.counts()} in [set(pair) for pair in FALSE_TRUE]:
        return True
    values, wrong = column.numbers()
    return not wrong.any() and set(np.unique(values[~column.missing])) == {0.0, 1.0}


def _numbers_folds(column: Column) -> bool:
    """Whether the cells are few small whole numbers, from 0 or from 1."""
    if column.form == "boolean":
        return False
    values, wrong = column.numbers()
    folds = np.unique(values[~column.missing])
    if wrong.any() or np.isnan(folds).any() or len(folds) > MOST_FOLDS_A_CELL * column.n_present:
        return False
    return folds[0] in (0, 1) and folds[-1] <= MOST_FOLDS and bool((folds == np.trunc(folds)).all())
