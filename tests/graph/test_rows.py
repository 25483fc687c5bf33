"""Rows of a frame beside nodes that were given: found by the index where it names them, refused where that is unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pprop import InputError
from pprop.graph.rows import NodeNames, rows_beside

TEXT = NodeNames.of_ids(["a", "b", "c", "d"], 4)
LARGE = NodeNames.of_ids([30, 10, 40, 20], 4)
SMALL = NodeNames.of_ids([3, 1, 0, 2], 4)
NONE = NodeNames.of_ids(None, 4)
INDEX = pd.Index(["u", "v"])


@pytest.mark.parametrize(
    ("names", "nodes", "index", "beside", "rows"),
    [
        (TEXT, [2, 1], ["c", "b"], None, [0, 1]),
        (TEXT, [2, 1], ["b", "c"], None, [1, 0]),
        (TEXT, [2, 1], ["a", "b", "c"], None, [2, 1]),  # more than these nodes
        (TEXT, [2, 1], [0, 1], None, [0, 1]),  # numbers of the rows
        (TEXT, [2, 1], [2, 1], None, [0, 1]),  # positions
        (TEXT, [2, 1], [17, 5], None, [0, 1]),  # rows of a table that text ids were taken from
        (TEXT, [2, 1], ["u", "v"], INDEX, [0, 1]),
        (TEXT, [2, 1], ["v", "u"], INDEX, [1, 0]),
        (TEXT, [2, 1], ["b", "c"], INDEX, [1, 0]),
        (TEXT, [2, 2], ["u", "u"], pd.Index(["u", "u"]), [0, 1]),  # a node drawn twice
        (LARGE, [2, 1], [10, 40], None, [1, 0]),
        (LARGE, [2, 1], [0, 1], None, [0, 1]),
        (SMALL, [1, 0], [1, 3], None, [0, 1]),
        (SMALL, [2, 1], [0, 1], None, [0, 1]),  # both readings agree
        (SMALL, [1, 0], [3, 1], pd.Index([8, 9]), [1, 0]),
        (NONE, [3, 1], [3, 1], None, [0, 1]),
        (NONE, [3, 1], [0, 1], None, [0, 1]),
        (NONE, [3, 1], [0, 2], None, [0, 1]),  # as cross-validation takes rows of a series
    ],
)
def test_rows_are_found(names: NodeNames, nodes: Any, index: Any, beside: Any, rows: Any) -> None:
    data = pd.Series(range(len(index)), index=index)
    found = rows_beside(data, np.array(nodes), names, "y", "fit", [(beside, None)])
    assert (list(range(len(index))) if found is None else found.tolist()) == rows


@pytest.mark.parametrize(
    ("names", "nodes", "index", "beside", "message"),
    [
        (TEXT, [2, 1], ["b", "x"], None, r"1 unknown id \('x'\)"),
        (TEXT, [2, 1], ["b", "b"], None, r"'b' more than once"),
        (TEXT, [2, 1], ["b", "c", "c"], None, r"'c' more than once"),
        (TEXT, [2, 1], ["a", "b"], None, r"without 1 of these 2 nodes \('c'\)"),
        (TEXT, [0, 1, 2], ["c", "b", "a"], pd.Index(["b", "a", "c"]), "in two ways"),
        (TEXT, [2, 1], ["v", "w"], INDEX, r"indexed as what was given with it \('u', 'v'\).* another index \('w'\)"),
        (TEXT, [2, 1], [4, 5], INDEX, r"another index \(4, 5\)"),
        (LARGE, [2, 1], [10, 30], None, r"without 1 of these 2 nodes \(40\)"),
        (LARGE, [2, 1], [10, 30], None, r"Pass graph\.positions\(y\.index\) as the nodes, .* or y\.to_numpy\(\) if"),
        (SMALL, [1, 2], [0, 1], None, r"which are rows, and also ids"),
        (SMALL, [1, 0], [3, 1], None, r"y\.loc\[nodes\].*y\.to_numpy\(\)"),
        (NONE, [3, 1], [1, 3], None, r"y\.loc\[nodes\].*y\.to_numpy\(\)"),
    ],
)
def test_an_index_that_cannot_be_matched_is_refused(
    names: NodeNames, nodes: Any, index: Any, beside: Any, message: str
) -> None:
    data = pd.Series(range(len(index)), index=index)
    with pytest.raises(InputError, match=message):
        rows_beside(data, np.array(nodes), names, "y", "fit", [(beside, None)])
