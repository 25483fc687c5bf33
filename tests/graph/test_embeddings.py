"""Embeddings beside a node table: columns of lists."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pprop import Graph, read_edges
from pprop._errors import FormatError
from pprop.graph.features.recipe import Recipe

N = 12
EDGES = {"source": [f"n{k}" for k in range(N)], "target": [f"n{(k + 1) % N}" for k in range(N)]}
IDS = [f"n{k}" for k in range(N)]
ROWS = np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)
AGES = [20.0 + k for k in range(N)]


def fixed_size_list() -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 5)


def columns(emb: Any) -> Any:
    return pa.table({"id": IDS, "emb": emb, "age": AGES})


FORMS = {
    "list": lambda: columns(pa.array(ROWS.tolist(), pa.list_(pa.float32()))),
    "large list": lambda: columns(pa.array(ROWS.tolist(), pa.large_list(pa.float64()))),
    "fixed-size list": lambda: columns(fixed_size_list()),
    "a matrix in a dict": lambda: {"id": IDS, "emb": ROWS, "age": AGES},
    "pandas, lists": lambda: pd.DataFrame({"id": IDS, "emb": ROWS.tolist(), "age": AGES}),
    "pandas, arrays": lambda: pd.DataFrame({"id": IDS, "emb": list(ROWS), "age": AGES}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_lists_of_one_length_is_a_block_of_features(form: str) -> None:
    graph = Graph.from_pandas(EDGES, FORMS[form]())
    assert graph.feature_names == (*(f"emb[{at}]" for at in range(5)), "age")
    np.testing.assert_array_equal(graph.features, np.column_stack([ROWS, AGES]).astype(np.float32))
    assert graph.recipe is not None
    assert graph.recipe.used == {"emb": "embedding, 5 numbers", "age": "number"}
    scaled = graph.scaled().features
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)  # all of its numbers are standardised
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("form", ["list", "fixed-size list"])
def test_a_parquet_file_with_lists_is_read_and_its_recipe_applies_to_others(tmp_path: Path, form: str) -> None:
    pq.write_table(pa.table(EDGES), tmp_path / "edges.parquet")
    table = FORMS[form]()
    pq.write_table(table, tmp_path / "nodes.parquet")
    graph = read_edges(tmp_path / "edges.parquet", tmp_path / "nodes.parquet")
    np.testing.assert_array_equal(graph.features[:, :5], ROWS)  # type: ignore[index]
    assert graph.recipe is not None
    again = Recipe.from_json(json.loads(json.dumps(graph.recipe.to_json())))
    assert again == graph.recipe
    pq.write_table(table.select(["age", "emb", "id"]), tmp_path / "nodes.parquet")
    other = read_edges(tmp_path / "edges.parquet", tmp_path / "nodes.parquet", feature_columns=again)
    np.testing.assert_array_equal(other.features, graph.features)  # type: ignore[arg-type]
    short = columns(pa.array(ROWS[:, :4].tolist()))
    with pytest.raises(FormatError, match=r"a list of 5 numbers in every row of 'emb'\. Got a list of 4 in row 1"):
        Graph.from_pandas(EDGES, short, feature_columns=again)
    text = columns(pa.array(["x"] * N))
    with pytest.raises(FormatError, match=r"a list of 5 numbers in every row of 'emb'\. Got the type large_string"):
        Graph.from_pandas(EDGES, text, feature_columns=again)


def test_what_is_missing_is_filled_with_medians_and_marked() -> None:
    rows: list[Any] = ROWS.tolist()
    rows[3], rows[5][1] = None, None
    graph = Graph.from_pandas(EDGES, columns(pa.array(rows)), feature_columns=["emb"])
    assert graph.recipe is not None
    assert graph.recipe.used == {"emb": "embedding, 5 numbers, 2 missing filled with medians"}
    assert graph.feature_names == (*(f"emb[{at}]" for at in range(5)), "emb is missing")
    known = np.delete(ROWS, 3, axis=0)
    medians = np.median(known, axis=0)
    medians[1] = np.median(np.delete(ROWS, [3, 5], axis=0)[:, 1])
    features: Any = graph.features
    np.testing.assert_allclose(features[3], [*medians, 1], atol=1e-7)
    np.testing.assert_allclose(features[5, [1, 5]], [medians[1], 1], atol=1e-7)
    np.testing.assert_array_equal(np.flatnonzero(features[:, 5]), [3, 5])
    whole = Graph.from_pandas(EDGES, columns(fixed_size_list()), feature_columns=["emb"]).recipe
    assert whole is not None
    with pytest.warns(UserWarning, match=r"2 cells of 'emb' .* have missing numbers"):
        Graph.from_pandas(EDGES, columns(pa.array(rows)), feature_columns=whole)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([[1.0, 2.0]] * 3 + [[1.0]] * 9, r"has lists of different lengths \(2 in row 1, 1 in row 4\)"),
        ([[]] * 12, "has lists without numbers"),
        ([["a", "b"]] * 12, r"has the type list<.*string>"),
        ([[1.0, np.inf]] * 12, r"has numbers that float32 cannot hold \(inf in row 1\)"),
    ],
)
def test_other_lists_are_left_out_with_the_reason_also_in_python(cells: list[Any], reason: str) -> None:
    kind = pa.list_(pa.float64()) if cells == [[]] * 12 else None
    with pytest.warns(UserWarning, match=rf"The column 'emb' of the Table is left out: {reason}"):
        graph = Graph.from_pandas(EDGES, columns(pa.array(cells, kind)))
    assert graph.feature_names == ("age",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is said of what is left out on demand
        Graph.from_pandas(EDGES, columns(pa.array(cells, kind)), feature_columns={"emb": "unused"})
        Graph.from_pandas(EDGES, columns(pa.array(cells, kind)), feature_columns=["age"])
    with pytest.raises(FormatError, match=rf"'emb', a column of the Table that cannot be used \({reason}"):
        Graph.from_pandas(EDGES, columns(pa.array(cells, kind)), feature_columns=["emb"])


def test_lists_have_no_other_kind_and_other_columns_are_no_lists() -> None:
    with pytest.raises(FormatError, match=r"has lists, of which no category can be made"):
        Graph.from_pandas(EDGES, columns(fixed_size_list()), feature_columns={"emb": "category"})
    with pytest.raises(
        FormatError,
        match=r"lists of numbers, all of one length, in every row of 'age'\. Got a column that has the type",
    ):
        Graph.from_pandas(EDGES, columns(fixed_size_list()), feature_columns={"age": "embedding"})
    recipe = Graph.from_pandas(EDGES, columns(pa.array(AGES))).recipe
    with pytest.raises(
        FormatError, match=r"a table with a number in every row of 'emb'\. Got the type fixed_size_list"
    ):
        Graph.from_pandas(EDGES, columns(fixed_size_list()), feature_columns=recipe)  # type: ignore[arg-type]
