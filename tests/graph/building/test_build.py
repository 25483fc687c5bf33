"""Building graph folders in streams: the same graph as `read_edges` reads at once, whatever the memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import pprop
from pprop.graph.building import id_keys, plan, sparse_rows

TINY = 2e-4  # GiB: 0.2 MB, so that nothing fits at once
ROWS = 3000


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "BUCKET_BYTES", 2**10)


def edge_columns(ids: str, seed: int = 0) -> dict[str, Any]:
    """Random edges with duplicates, reciprocal edges and self-loops."""
    rng = np.random.default_rng(seed)
    source, target = rng.zipf(1.3, (2, ROWS)) % 200
    if ids == "range":
        ends: Any = source, target
    elif ids == "sparse":
        wide = rng.integers(-(2**62), 2**62, 200)
        ends = wide[source], wide[target]
    elif ids == "text":
        names = np.array([f"é{'x' * (k % 13)}{k}" for k in range(200)], dtype=object)
        ends = names[source], names[target]
    else:  # integers in text, and one that is none
        names = np.array([*(str(k) for k in range(199)), "007"], dtype=object)
        ends = names[source], names[target]
    weight = rng.integers(0, 5, ROWS) / 7 if seed == 0 else rng.integers(1, 5, ROWS) / 4
    return {"source": ends[0], "target": ends[1], "w": weight}


def write(folder: Path, columns: dict[str, Any], form: str, name: str = "edges") -> Path:
    file = folder / f"{name}.{form}"
    table = pa.table({key: pa.array(list(value)) for key, value in columns.items()})
    if form == "parquet":
        pq.write_table(table, file, row_group_size=211)
    else:
        table.to_pandas().to_csv(file, index=False)
    return file


def compare(
    tmp_path: Path, file: Path, nodes: Path | None = None, memory: float = TINY, **options: Any
) -> pprop.GraphFolder:
    """Build a folder, and compare it with what is read at once; and so the warnings."""
    told: list[list[str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = pprop.build_graph(file, tmp_path / "g", nodes=nodes, memory=memory, replace=True, **options)
        told.append(sorted(str(one.message) for one in caught))
        caught.clear()
        expected = pprop.read_edges(file, nodes, **options)
        told.append(sorted(str(one.message) for one in caught))
    graph = folder.graph()
    assert graph == expected
    assert told[0] == told[1]
    assert (graph.name, graph.class_names, graph.feature_names) == (
        expected.name,
        expected.class_names,
        expected.feature_names,
    )
    assert repr(graph.recipe) == repr(expected.recipe)
    assert folder.n_edges == expected.n_edges
    folder.verify()
    assert not list(tmp_path.glob(".*"))
    return folder


@pytest.mark.parametrize("ids", ["range", "sparse", "text", "mixed"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.usefixtures("many_buckets")
def test_a_folder_has_the_graph_that_is_read_at_once(tmp_path: Path, ids: str, directed: bool, weight: str | None):
    file = write(tmp_path, edge_columns(ids), "parquet")
    compare(tmp_path, file, directed=directed, weight=weight)


@pytest.mark.parametrize("ids", ["range", "text"])
def test_csv_is_read_as_at_once(tmp_path: Path, ids: str):
    columns = edge_columns(ids)
    columns: dict[str, Any] = {key: np.tile(value, 5) for key, value in columns.items()}  # several blocks
    columns["note"] = [f'say "{k}",\nor not' for k in range(len(columns["w"]))]
    file = write(tmp_path, columns, "csv")
    assert file.stat().st_size > 3 * 2**17
    compare(tmp_path, file, memory=4e-3, weight="w")


@pytest.mark.parametrize("seed", [0, 1])
def test_weights_take_the_room_that_they_need(tmp_path: Path, seed: int):
    folder = compare(tmp_path, write(tmp_path, edge_columns("range", seed), "parquet"), weight="w")
    assert folder.arrays["weights"].dtype == (np.float64 if seed == 0 else np.float32)


def test_weights_that_are_all_one_are_none(tmp_path: Path):
    columns = {"source": [0, 1, 2], "target": [1, 2, 0], "w": [1.0, 0.5, 1.0]}
    columns = {key: [*value, value[1]] for key, value in columns.items()}  # two halves make one
    assert compare(tmp_path, write(tmp_path, columns, "parquet"), weight="w").weights is None


def test_several_files_are_one_list(tmp_path: Path):
    columns = edge_columns("range")
    parts = [{key: value[start::2] for key, value in columns.items()} for start in (0, 1)]
    files = [write(tmp_path, parts[0], "parquet", "one"), write(tmp_path, parts[1], "csv", "two")]
    whole = write(tmp_path, {key: np.concatenate([part[key] for part in parts]) for key in columns}, "parquet")
    folder = pprop.build_graph(files, tmp_path / "g", memory=TINY, name="edges")
    assert folder.graph() == pprop.read_edges(whole)


@pytest.mark.usefixtures("many_buckets")
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_bucket_beyond_memory_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: str | None):
    monkeypatch.setattr(plan, "LEAST_ROWS", 60)
    rng = np.random.default_rng(8)
    source, target = rng.integers(0, 400, (2, 900))
    target[::3] = 7  # a hub
    columns = {"source": source, "target": target, "w": rng.random(900)}
    compare(tmp_path, write(tmp_path, columns, "parquet"), memory=2e-5, weight=weight)


def test_an_edge_that_is_listed_too_often_to_be_summed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "LEAST_ROWS", 60)
    columns = {"source": [3] * 500, "target": [4] * 500, "w": [1.0] * 500}
    file = write(tmp_path, columns, "parquet")
    compare(tmp_path, file, memory=1e-6)
    with pytest.raises(pprop.CapacityError, match="listed more than 60 times"):
        pprop.build_graph(file, tmp_path / "h", memory=1e-6, weight="w")


NODES = {"range": list(range(220, -1, -1)), "text": [f"é{'x' * (k % 13)}{k}" for k in range(220)]}


def node_columns(ids: str) -> dict[str, Any]:
    n = len(NODES[ids])
    rng = np.random.default_rng(5)
    return {
        "id": NODES[ids],
        "topic": [["red", "blue", "?", ""][k % 4] for k in range(n)],
        "age": rng.integers(0, 90, n),
        "height": rng.random(n),
    }


@pytest.mark.parametrize("ids", ["range", "text"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("feature_columns", ["numbers", "auto", ["age"]])
def test_a_node_table_gives_order_features_labels_and_isolated_nodes(
    tmp_path: Path, ids: str, form: str, feature_columns: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plan, "LEAST_ROWS", 16)
    columns = node_columns(ids)
    if feature_columns != "numbers":
        columns["team"] = [["a", "b", None][k % 3] for k in range(len(columns["id"]))]
    nodes = write(tmp_path, columns, form, "nodes")
    file = write(tmp_path, edge_columns(ids), "parquet")
    memory = TINY if feature_columns == "numbers" else 0.01
    folder = compare(tmp_path, file, nodes, memory, label_column="topic", feature_columns=feature_columns)
    assert (np.diff(folder.indptr) == 0).any()
    assert isinstance(folder.features, np.memmap)


@pytest.mark.parametrize("ids", ["range", "text"])
@pytest.mark.parametrize("unknown_nodes", ["drop", "add"])
def test_unknown_nodes_are_dropped_or_added_as_at_once(tmp_path: Path, ids: str, unknown_nodes: str):
    columns = {key: value[:150] for key, value in node_columns(ids).items() if key in ("id", "topic")}
    columns["team"] = ["a", "b", "b"] * 50
    nodes = write(tmp_path, columns, "parquet", "nodes")
    file = write(tmp_path, edge_columns(ids), "parquet")
    compare(tmp_path, file, nodes, 0.01, unknown_nodes=unknown_nodes, label_column="topic")


def test_integers_in_the_node_table_and_text_in_the_edges_meet(tmp_path: Path):
    nodes = write(tmp_path, {"id": list(range(199))}, "parquet", "nodes")
    file = write(tmp_path, edge_columns("mixed"), "parquet")
    folder = compare(tmp_path, file, nodes, unknown_nodes="drop")
    assert isinstance(folder.ids, np.memmap)
    ids: Any = compare(tmp_path, file, nodes, unknown_nodes="add").ids
    assert ids[-1:].tolist() == ["007"]


def test_positions_need_no_table(tmp_path: Path):
    columns = edge_columns("range")
    file = write(tmp_path, columns, "parquet")
    features = np.random.default_rng(0).random((250, 3)).astype(np.float16)
    labels = np.arange(250) % 3 - 1
    np.save(tmp_path / "x.npy", features)
    np.save(tmp_path / "y.npy", labels)
    folder = pprop.build_graph(
        file, tmp_path / "g", nodes=250, features=tmp_path / "x.npy", labels=tmp_path / "y.npy", memory=TINY
    )
    expected = pprop.Graph.from_edges(
        columns["source"], columns["target"], nodes=np.arange(250), features=features, labels=labels
    )
    assert folder.graph() == expected.replace(ids=None)
    assert isinstance(folder.features, np.memmap)


@pytest.mark.usefixtures("many_buckets")
def test_files_beside_the_columns_of_a_recipe_are_read_some_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plan, "LEAST_ROWS", 16)
    file = write(tmp_path, edge_columns("range"), "parquet")
    rng = np.random.default_rng(0)
    nodes = write(
        tmp_path, {"id": range(200), "age": rng.normal(size=200), "team": ["a", "b"] * 100}, "parquet", "nodes"
    )
    files = [tmp_path / "x.npy", tmp_path / "y.npy"]
    for one in files:
        np.save(one, rng.normal(size=(200, 3)).astype(np.float32))
    recipe = compare(tmp_path, file, nodes, memory=1.0, features=files).graph().recipe
    compare(tmp_path, file, nodes, features=files, feature_columns=recipe)
    with pytest.raises(pprop.CapacityError, match=r"features='.*x\.npy' uses the file in place of the columns"):
        pprop.build_graph(file, tmp_path / "h", nodes=nodes, features=files, memory=TINY / 10)


def test_a_list_of_files_is_checked(tmp_path: Path):
    file = write(tmp_path, edge_columns("range"), "parquet")
    np.save(tmp_path / "x.npy", np.ones((200, 2)))
    with pytest.raises(pprop.InputError, match=r"'features' .* left out where the order of the nodes is not given"):
        pprop.build_graph(file, tmp_path / "g", features=[tmp_path / "x.npy"])
    with pytest.raises(pprop.InputError, match=r"'features' .* one file where nodes is a number"):
        pprop.build_graph(file, tmp_path / "g", nodes=200, features=[tmp_path / "x.npy"] * 2)


def test_sparse_features_of_a_file_are_kept(tmp_path: Path):
    matrix: Any = sparse.random_array(
        (250, 400), density=0.01, rng=np.random.default_rng(2), format="csr", dtype=np.float32
    )
    sparse.save_npz(tmp_path / "x.npz", matrix)
    file = write(tmp_path, edge_columns("range"), "parquet")
    graph = pprop.build_graph(file, tmp_path / "g", nodes=250, features=tmp_path / "x.npz").graph()
    assert graph == pprop.read_edges(file, write(tmp_path, {"id": range(250)}, "parquet", "n")).replace(
        features=matrix, ids=None
    )


def test_sparse_features_in_three_files_are_copied_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_rows, "_ENTRIES", 50)
    matrix: Any = sparse.random_array(
        (250, 400), density=0.01, rng=np.random.default_rng(2), format="csr", dtype=np.float32
    )
    matrix = matrix[:, np.sort(np.unique(matrix.indices))]  # the last column is used
    matrix.sort_indices()
    for part in ("data", "indices", "indptr"):
        np.save(tmp_path / f"x.{part}.npy", getattr(matrix, part))
    file = write(tmp_path, edge_columns("range"), "parquet")
    graph = pprop.build_graph(file, tmp_path / "g", nodes=250, features=tmp_path / "x.data.npy").graph()
    assert graph == pprop.read_edges(file, write(tmp_path, {"id": range(250)}, "parquet", "n")).replace(
        features=matrix, ids=None
    )
    np.save(tmp_path / "x.shape.npy", [250, 400])
    assert (
        pprop.build_graph(file, tmp_path / "wide", nodes=250, features=tmp_path / "x.data.npy").manifest[
            "feature_columns"
        ]
        == 400
    )
    np.save(tmp_path / "x.shape.npy", [250, 3])
    with pytest.raises(pprop.FormatError, match="as many columns as its shape says"):
        pprop.build_graph(file, tmp_path / "h", nodes=250, features=tmp_path / "x.data.npy")
    (tmp_path / "x.shape.npy").unlink()
    damages: dict[str, Any] = {
        "distinct columns in order": ("indices", matrix.indices[::-1]),
        "columns from 0": ("indices", matrix.indices - 500),
        "finite numbers": ("data", matrix.data * np.nan),
        "250 rows, and as many": ("indptr", matrix.indptr[:-1]),
        "row pointers from 0": ("indptr", matrix.indptr + 1),
    }
    for message, (part, wrong) in damages.items():
        np.save(tmp_path / f"x.{part}.npy", wrong)
        with pytest.raises(pprop.FormatError, match=message):
            pprop.build_graph(file, tmp_path / "h", nodes=250, features=tmp_path / "x.data.npy")
        np.save(tmp_path / f"x.{part}.npy", getattr(matrix, part))


def test_a_recipe_is_applied_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "LEAST_ROWS", 16)
    columns = node_columns("range") | {"note": [f"word{k % 7} and word{k % 11}" for k in range(221)]}
    nodes = write(tmp_path, columns, "parquet", "nodes")
    file = write(tmp_path, edge_columns("range"), "parquet")
    recipe = pprop.read_edges(file, nodes, label_column="topic").recipe
    assert recipe is not None
    folder = compare(tmp_path, file, nodes, label_column="topic", feature_columns=recipe)
    assert isinstance(folder.features, sparse.csr_array)


def test_a_collision_of_hashes_is_found_and_another_seed_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    true = id_keys.TextBlock.keys
    seeds: list[int] = []

    def weak(self: id_keys.TextBlock, seed: int) -> Any:
        seeds.append(seed)
        return true(self, seed) % 50 if seed < 3 else true(self, seed)

    monkeypatch.setattr(id_keys.TextBlock, "keys", weak)
    compare(tmp_path, write(tmp_path, edge_columns("text"), "parquet"))
    assert sorted(set(seeds)) == [1, 2, 3]


def test_an_unknown_text_of_the_hash_of_another_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def weak(self: id_keys.TextBlock, seed: int) -> Any:
        return np.diff(self.offsets)  # the length

    monkeypatch.setattr(id_keys.TextBlock, "keys", weak)
    nodes = write(tmp_path, {"id": ["a", "bb", "ccc"]}, "parquet", "nodes")
    file = write(tmp_path, {"source": ["a", "x", "ccc"], "target": ["bb", "bb", "ccc"]}, "parquet")
    compare(tmp_path, file, nodes, unknown_nodes="drop")


def test_columns_beside_the_edges_that_nobody_named_are_named(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target,strength\na,b,0.5\n")
    said = list[str]()
    pprop.build_graph(tmp_path / "edges.csv", tmp_path / "graph", say=said.append)
    assert any(one.startswith("Left out: 'strength' of ") for one in said)


def test_a_model_of_a_folder_with_a_recipe_reads_that_folder_again(tmp_path: Path):
    rows = [f"n{i},{'ab'[i % 2]},{i % 7},{'xyz'[i % 3]}" for i in range(40)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,topic,size,kind", *rows]) + "\n")
    edges = [f"n{i},n{(i + 2) % 40}" for i in range(40)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    table = tmp_path / "nodes.csv"
    pprop.build_graph(tmp_path / "edges.csv", tmp_path / "graph", nodes=table, label_column="topic")
    source = pprop.GraphSource("file", {"path": str(tmp_path / "graph")})
    graph = source.read()
    assert graph.recipe is not None
    assert source.read(graph.recipe) == graph
