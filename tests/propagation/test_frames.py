"""Frames and series of predictions: rows are found by their index, and what comes back has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import pprop
from pprop import Graph, InputError

IDS = list("abcde")
GRAPH = Graph.from_scipy(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)), ids=IDS)
FRAME = pd.DataFrame({"x": [1.0, 0, 0, 0, 0], "y": [0, 0.5, 0, 0, 3]}, index=pd.Index(IDS, name="who"))
MIXED = [3, 1, 0, 4, 2]


@pytest.mark.parametrize("function", [pprop.propagate, lambda *given: pprop.solve(*given).value])
@pytest.mark.parametrize("data", [FRAME, FRAME["y"], FRAME.astype("float32"), FRAME.reset_index(drop=True)])
def test_what_comes_back_has_the_index_that_was_given(function: Any, data: Any) -> None:
    expected = function(GRAPH, data.to_numpy())
    found = function(GRAPH, data)
    assert type(found) is type(data)
    assert found.index.equals(data.index)
    assert found.index.name == data.index.name
    assert np.array_equal(found.to_numpy(), expected)
    assert found.to_numpy().dtype == data.to_numpy().dtype
    if data.ndim == 2:
        assert found.columns.equals(data.columns)
    else:
        assert found.name == "y"


@pytest.mark.parametrize("function", [pprop.propagate, lambda *given: pprop.solve(*given).value])
@pytest.mark.parametrize("data", [FRAME, FRAME["y"]])
def test_rows_in_another_order_give_the_same_by_id(function: Any, data: Any) -> None:
    found = function(GRAPH, data.iloc[MIXED])
    assert found.index.tolist() == [IDS[k] for k in MIXED]
    assert found.loc[IDS].equals(function(GRAPH, data))


def test_a_live_graph_finds_predictions_by_id() -> None:
    expected = pprop.live(GRAPH, FRAME.to_numpy(), tol=1e-6).logits()
    assert np.array_equal(pprop.live(GRAPH, FRAME.iloc[MIXED], tol=1e-6).logits(), expected)


def test_new_predictions_of_a_live_graph_are_found_by_id() -> None:
    expected, live = (pprop.live(GRAPH, FRAME.to_numpy(), tol=1e-6) for _ in range(2))
    new = pd.DataFrame({"x": [5.0, 6.0], "y": [7.0, 8.0]}, index=["d", "b"])
    expected.set_predictions([1, 3], new.to_numpy()[::-1])
    live.set_predictions(["b", "d"], new)
    assert np.array_equal(live.logits(), expected.logits())
    with pytest.raises(InputError, match=r"'predictions' parameter of set_predictions .* \('a'\)"):
        live.set_predictions(["a", "b"], new)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (FRAME.set_axis(range(5, 10)), r"'H' parameter of propagate .*5 unknown ids \(5, 6, 7 and 2 more\)"),
        (FRAME.rename({"b": "a"}), r"'a' more than once"),
        (FRAME.iloc[1:], r"no row for 1 of 5 nodes \('a'\)"),
        (FRAME.rename({"e": "f"}), r"1 unknown id \('f'\) instead\. Leave out"),
    ],
)
def test_any_other_index_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pprop.propagate(GRAPH, data)
