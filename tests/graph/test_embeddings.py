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
from scipy import sparse

from pprop import Graph, read_edges
from pprop._errors import FormatError, InputError, SeveralErrors
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
    scaled: Any = graph.scaled().features
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)  # all of its numbers are standardised
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("form", ["list", "fixed-size list"])
def test_a_parquet_file_with_lists_is_read_and_its_recipe_applies_to_others(tmp_path: Path, form: str) -> None:
    pq.write_table(pa.table(EDGES), tmp_path / "edges.parquet")
    table: Any = FORMS[form]()
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


# files of features


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """An edge list and a node table as CSV files, and ``emb.npy`` beside them."""
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{k},n{(k + 1) % N}\n" for k in range(N)))
    rows = (f"{key},{'ab'[k % 2]},{AGES[k]}\n" for k, key in enumerate(IDS))
    (tmp_path / "nodes.csv").write_text("id,team,age\n" + "".join(rows))
    np.save(tmp_path / "emb.npy", ROWS)
    return tmp_path / "edges.csv", tmp_path / "nodes.csv"


def test_a_file_is_used_beside_all_columns_or_those_that_are_named(tables: tuple[Path, Path], tmp_path: Path) -> None:
    file, names = tmp_path / "emb.npy", tuple(f"emb.npy[{at}]" for at in range(5))
    every = read_edges(*tables, label_column="team", features=file)
    assert every.feature_names == ("age", *names)
    np.testing.assert_array_equal(every.features, np.column_stack([AGES, ROWS]).astype(np.float32))
    assert every.recipe is not None
    assert every.recipe.used == {"age": "number", "emb.npy": "embedding, 5 numbers"}
    some = read_edges(*tables, feature_columns=["team"], features=[str(file)])
    assert some.feature_names == ("team=a", "team=b", *names)
    kinds = read_edges(*tables, feature_columns={"age": "unused", "team": "unused"}, features=file)
    assert kinds.feature_names == names
    frame = pd.DataFrame({"id": IDS, "age": AGES})
    assert Graph.from_pandas(EDGES, frame, features=file).feature_names == ("age", *names)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "bool", ">f4", "int64"])
def test_numbers_of_every_type_are_read(tables: tuple[Path, Path], tmp_path: Path, dtype: str) -> None:
    rows = (4 * ROWS).astype(dtype)
    np.save(tmp_path / "emb.npy", rows)
    alone = read_edges(*tables, feature_columns=[], features=tmp_path / "emb.npy")
    np.testing.assert_array_equal(np.asarray(alone.features, np.float32), rows.astype(np.float32))
    beside = read_edges(*tables, feature_columns=["age"], features=tmp_path / "emb.npy")
    np.testing.assert_array_equal(beside.features[:, 1:], rows.astype(np.float32))  # type: ignore[index]


def test_a_file_alone_stays_mapped(tables: tuple[Path, Path], tmp_path: Path) -> None:
    graph = read_edges(*tables, feature_columns=[], features=tmp_path / "emb.npy")
    assert graph.features is not None
    assert not graph.features.flags.owndata  # type: ignore[union-attr]
    assert graph.feature_names == tuple(f"emb.npy[{at}]" for at in range(5))
    assert graph.scaled().scaling.kind == "standard"  # type: ignore[union-attr]


def test_numbers_that_are_missing_in_a_file_are_filled(tables: tuple[Path, Path], tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[2, 3] = np.nan
    np.save(tmp_path / "emb.npy", rows)
    graph = read_edges(*tables, feature_columns=[], features=tmp_path / "emb.npy")
    assert graph.recipe is not None
    assert graph.recipe.used == {"emb.npy": "embedding, 5 numbers, 1 missing filled with medians"}
    assert graph.features[2, 3] == np.float32(np.median(np.delete(ROWS[:, 3], 2)))  # type: ignore[index]
    with (tmp_path / "edges.csv").open("a") as stream:
        stream.write("n0,stranger\n")
    with pytest.warns(UserWarning, match="Added 1 node"):
        added = read_edges(*tables, feature_columns=[], features=tmp_path / "emb.npy", unknown_nodes="add")
    assert added.features[N, 5] == 1  # type: ignore[index]


def test_a_file_is_found_by_its_name_when_the_recipe_is_applied(tables: tuple[Path, Path], tmp_path: Path) -> None:
    recipe: Any = read_edges(*tables, label_column="team", features=tmp_path / "emb.npy").recipe
    options: dict[str, Any] = {"label_column": "team", "feature_columns": recipe}
    with pytest.raises(
        FormatError, match=r"the column 'emb\.npy', as in the training.* Pass features='\.\.\./emb\.npy'"
    ):
        read_edges(*tables, **options)
    (tmp_path / "newer").mkdir()
    np.save(tmp_path / "newer" / "emb.npy", -ROWS)
    newer = read_edges(*tables, **options, features=tmp_path / "newer" / "emb.npy")
    np.testing.assert_array_equal(newer.features[:, 1:], -ROWS)  # type: ignore[index]
    np.save(tmp_path / "other.npy", ROWS)
    with pytest.raises(FormatError, match=r"with the columns of the training\. Got .* with 'other\.npy'"):
        read_edges(*tables, **options, features=[tmp_path / "emb.npy", tmp_path / "other.npy"])


def test_a_file_of_another_name_is_seen(tables: tuple[Path, Path], tmp_path: Path) -> None:
    recipe: Any = read_edges(*tables, label_column="team", features=tmp_path / "emb.npy").recipe
    np.save(tmp_path / "other.npy", ROWS)
    options: dict[str, Any] = {"label_column": "team", "feature_columns": recipe}
    with pytest.raises(
        FormatError,
        match=r"Got '.*nodes\.csv' without it, and with the file 'other\.npy', instead\..* "
        r"rename 'other\.npy' if the content is the same\. Pass features='\.\.\./emb\.npy'",
    ):
        read_edges(*tables, **options, features=tmp_path / "other.npy")


def test_numbers_that_are_all_missing_are_refused(tables: tuple[Path, Path], tmp_path: Path) -> None:
    recipe: Any = read_edges(*tables, label_column="team", features=tmp_path / "emb.npy").recipe
    np.save(tmp_path / "emb.npy", np.full_like(ROWS, np.nan))
    for known in ("auto", [], recipe):
        with pytest.raises(
            FormatError, match=r"'features' .* with numbers\. Got '.*emb\.npy', in which all are missing"
        ):
            read_edges(*tables, label_column="team", features=tmp_path / "emb.npy", feature_columns=known)
    with pytest.raises(FormatError, match=r"'emb', a column of .* cannot be used \(all values are missing\)"):
        Graph.from_pandas(EDGES, columns(pa.array([[np.nan] * 3] * N)), feature_columns={"emb": "embedding"})


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (ROWS[:-1], r"a matrix of numbers with 12 rows, one for each of '.*nodes\.csv'\. Got .* of shape \(11, 5\)"),
        (ROWS[:, 0], r"Got .* of shape \(12,\)"),
        (ROWS.astype(complex), "complex64|complex128"),
        (ROWS[:, :0], r"of shape \(12, 0\)"),
        (np.array([["a"]] * N), "dtype <U1"),
        (np.array([[None]] * N), "a sound npy file.*damaged or other content"),
        (np.where(ROWS[4, 2] == ROWS, np.inf, ROWS), r"in every row of 'emb\.npy'\. Got inf in row 5"),
    ],
)
def test_files_with_something_else_are_refused(
    tables: tuple[Path, Path], tmp_path: Path, array: Any, sentence: str
) -> None:
    np.save(tmp_path / "emb.npy", array, allow_pickle=True)
    with pytest.raises(FormatError, match=sentence):
        read_edges(*tables, features=tmp_path / "emb.npy")


def test_all_files_that_are_wrong_are_named(tables: tuple[Path, Path], tmp_path: Path) -> None:
    np.save(tmp_path / "short.npy", ROWS[:-1])
    np.save(tmp_path / "flat.npy", ROWS[:, 0])
    files = [tmp_path / f"{name}.npy" for name in ("short", "emb", "flat")]
    with pytest.raises(SeveralErrors, match=r"of shape \(11, 5\) .*short\.npy") as caught:
        read_edges(*tables, features=files)
    assert len(caught.value.errors) == 2
    assert "of shape (12,)" in str(caught.value)


def test_files_that_cannot_be_used_are_refused(tables: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "emb.npy"
    with pytest.raises(InputError, match=r"must be an existing file\. Got '.*none\.npy'"):
        read_edges(*tables, features=tmp_path / "none.npy")
    with pytest.raises(FormatError, match=r"'features' .* must be an \.npy file\. Got '.*nodes\.csv'"):
        read_edges(*tables, features=tables[1])
    with pytest.raises(InputError, match=r"'features' .* left out when there is no node table"):
        read_edges(tables[0], features=file)
    with pytest.raises(InputError, match=r"'features' .* left out with feature_columns='numbers'"):
        read_edges(*tables, feature_columns="numbers", features=file)
    with pytest.raises(InputError, match=r"files whose names .* does not have\. Got 'emb\.npy'"):
        read_edges(*tables, features=[file, file])


# degrees beside columns


def test_the_degree_is_a_column_beside_others_and_the_recipe_finds_it_in_other_graphs() -> None:
    nodes = pd.DataFrame({"id": [*IDS, "alone"], "age": [*AGES, 1.0]})
    edges = pd.DataFrame({**EDGES, "w": np.arange(1.0, N + 1)})
    graph = Graph.from_pandas(edges, nodes, weight="w", degree=True)
    assert graph.feature_names == ("age", "log degree")
    degrees: Any = np.asarray(graph.adjacency.sum(axis=1)).ravel()
    np.testing.assert_allclose(graph.features[:, 1], np.log1p(degrees), rtol=1e-6)  # type: ignore[index]
    again = Graph.from_pandas(edges, nodes, weight="w", feature_columns=graph.recipe)  # type: ignore[arg-type]
    assert again == graph
    assert Graph.from_pandas(edges, nodes, feature_columns=["age"], degree=True).feature_names == ("age", "log degree")
    ways = Graph.from_pandas(edges, nodes, directed=True, degree=True)
    assert ways.feature_names == ("age", "log in-degree", "log out-degree")
    np.testing.assert_allclose(ways.features[-1, 1:], [0, 0])  # type: ignore[index]
    with pytest.raises(InputError, match=r"'degree' .* left out when there is no node table"):
        Graph.from_pandas(edges, degree=True)
    with pytest.raises(InputError, match=r"'degree' .* left out where .* has the column 'log degree'"):
        Graph.from_pandas(edges, nodes.rename(columns={"age": "log degree"}), degree=True)


@pytest.mark.parametrize("directed", [False, True])
def test_the_degree_is_added_to_the_features_of_a_graph(directed: bool) -> None:
    nodes = pd.DataFrame({"id": IDS, "age": AGES, "city": ["Oslo", "Rome"] * 6})
    options: dict[str, Any] = {"directed": directed}
    read = Graph.from_pandas(EDGES, nodes, degree=True, **options)
    added = Graph.from_pandas(EDGES, nodes, **options).with_degree()
    assert added == read
    assert added.recipe == read.recipe
    assert added.feature_names == read.feature_names
    names = ("log in-degree", "log out-degree") if directed else ("log degree",)
    matrix = sparse.csr_array(np.eye(N))
    for features in (matrix, matrix.toarray()):
        graph = Graph.from_pandas(EDGES, nodes, feature_columns=[], **options).replace(features=features)
        joined: Any = graph.with_degree().features
        assert sparse.issparse(joined) == sparse.issparse(features)
        dense: Any = sparse.csr_array(joined).toarray()
        np.testing.assert_allclose(dense[:, :N], np.eye(N))
        np.testing.assert_allclose(dense[:, N:], read.features[:, -len(names) :], rtol=1e-6)  # type: ignore[index]
    bare = Graph.from_pandas(EDGES, nodes, feature_columns=[], **options).with_degree()
    assert bare.feature_names == names
    with pytest.raises(InputError, match="without the degree among its features"):
        bare.with_degree()
    with pytest.raises(InputError, match="scaled features"):
        read.scaled().with_degree()
