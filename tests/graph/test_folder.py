"""Graphs as folders: what is written is what is read, mapped; and every damage is one sentence."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop.graph import folder as folder_module
from pprop.graph.attributes import frozen
from pprop.graph.folder_arrays import BLOCK, ArrayWriter, Digest, Texts
from pprop.graph.folder_manifest import write_manifest


def random_graph(*, directed: bool = False, weighted: bool = False, n: int = 60, **fields: Any) -> pprop.Graph:
    rng = np.random.default_rng(3)
    matrix: Any = sparse.random_array((n, n), density=0.1, rng=rng, format="csr")
    matrix.data = rng.random(matrix.nnz) if weighted else np.ones(matrix.nnz)
    matrix = matrix if directed else matrix.maximum(matrix.T)
    return pprop.Graph.from_scipy(matrix, directed=directed, **fields)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_comes_back_from_its_folder(tmp_path: Path, directed: bool, weighted: bool):
    graph = random_graph(
        directed=directed, weighted=weighted, ids=[f"nœud {k}" for k in range(60)], labels=[0, 1, -1] * 20
    )
    folder = pprop.write_folder(graph, tmp_path / "g")
    again = folder.graph()
    assert again == graph
    assert again.ids is not None
    assert graph.ids is not None
    assert again.ids.tolist() == graph.ids.tolist()
    assert (folder.n_nodes, folder.n_entries, folder.n_edges) == (graph.n_nodes, graph.n_entries, graph.n_edges)
    assert isinstance(folder.indices, np.memmap)
    assert np.shares_memory(again.indices, folder.indices)
    assert pprop.read_graph(tmp_path / "g", name="mine").name == "mine"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8"])
def test_dense_features_stay_on_the_disk_in_their_type(tmp_path: Path, dtype: str):
    features = np.random.default_rng(0).integers(0, 100, (60, 7)).astype(dtype)
    graph = random_graph(features=features, feature_names=list("abcdefg"), class_names=["x", "y"], labels=[0] * 60)
    again = pprop.write_folder(graph, tmp_path / "g").graph()
    assert isinstance(again.features, np.ndarray)
    assert again == graph
    assert again.features.dtype == dtype
    assert frozen(again.features)
    assert isinstance(again.features.base, np.memmap)
    assert (again.feature_names, again.class_names) == (graph.feature_names, graph.class_names)


def test_sparse_features_stay_on_the_disk(tmp_path: Path):
    features = sparse.random_array(
        (60, 1000), density=0.02, rng=np.random.default_rng(1), dtype=np.float32, format="csr"
    )
    graph = random_graph(features=features)
    folder = pprop.write_folder(graph, tmp_path / "g")
    again = folder.graph()
    assert again == graph
    assert again.features is not None
    assert not isinstance(again.features, np.ndarray)
    assert again.features.indices.dtype == np.int32
    assert np.shares_memory(again.features.data, folder.arrays["features.data"])


def test_a_classifier_trains_on_a_folder_as_on_the_graph(tmp_path: Path):
    features = np.random.default_rng(0).random((60, 7)).astype(np.float32)
    graph = random_graph(features=features)
    again = pprop.write_folder(graph, tmp_path / "g").graph()
    fitted = [
        pprop.APPNPClassifier(one, max_epochs=5, random_state=0).fit(range(20), [0, 1] * 10) for one in (graph, again)
    ]
    assert np.array_equal(fitted[0].predict_proba(range(60)), fitted[1].predict_proba(range(60)))


def test_weights_are_narrow_where_that_loses_nothing(tmp_path: Path):
    pair = sparse.csr_array([[0, 0.5], [0.5, 0]])
    half, third = pprop.Graph.from_scipy(pair), pprop.Graph.from_scipy(pair / 1.5)
    assert pprop.write_folder(half, tmp_path / "half").arrays["weights"].dtype == np.float32
    assert pprop.write_folder(third, tmp_path / "third").arrays["weights"].dtype == np.float64
    for name, graph in (("half", half), ("third", third)):
        assert pprop.read_graph(tmp_path / name) == graph


def test_the_fingerprint_tells_of_the_content_alone(tmp_path: Path):
    graph = random_graph()
    one = pprop.write_folder(graph, tmp_path / "one")
    assert pprop.write_folder(graph.replace(name="other"), tmp_path / "two").fingerprint == one.fingerprint
    for change in ({"labels": [0] * 60}, {"ids": range(60)}, {"directed": True}, {"features": np.ones((60, 1))}):
        other = pprop.write_folder(graph.replace(**change), tmp_path / "other", replace=True)
        assert other.fingerprint != one.fingerprint


def test_the_digest_sees_one_number_and_the_order():
    numbers = np.arange(BLOCK // 4, dtype=np.int64)

    def digest(*parts: np.ndarray[Any, Any]) -> str:
        made = Digest()
        for part in parts:
            made.update(part)
        return made.hexdigest()

    whole = digest(numbers)
    assert digest(*np.split(numbers, [1, 7, BLOCK // 8, BLOCK // 8 + 3])) == whole
    changed = numbers.copy()
    changed[-1] += 2**62
    swapped = numbers.copy()
    swapped[[0, BLOCK // 8]] = swapped[[BLOCK // 8, 0]]
    assert (
        len(
            {
                whole,
                digest(changed),
                digest(swapped),
                digest(numbers[:-1]),
                digest(numbers, numbers[:0] + 0, numbers[:1]),
            }
        )
        == 5
    )


def test_a_writer_goes_on_where_it_was(tmp_path: Path):
    whole, parts = ArrayWriter(tmp_path / "a.npy", np.int32, (3,)), ArrayWriter(tmp_path / "b.npy", np.int32, (3,))
    numbers = np.arange(30).reshape(10, 3)
    whole.write(numbers)
    parts.write(numbers[:7])
    parts.write(numbers[:2])
    parts.abandon()
    again = ArrayWriter(tmp_path / "b.npy", np.int32, (3,), rows=7)
    again.write(numbers[7:])
    assert whole.close() == again.close()
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    assert np.array_equal(np.load(tmp_path / "b.npy"), numbers)


def test_texts_keep_every_character():
    texts = ["", "a\0b", "日本", "\ud800", "x" * 100]
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.cumsum([0, *map(len, data)])
    held = Texts(offsets, np.frombuffer(b"".join(data), dtype=np.uint8))
    assert held.array().tolist() == texts
    assert held[np.array([2, 0])].tolist() == ["日本", ""]


def test_a_graph_without_entries_has_a_folder(tmp_path: Path):
    graph = pprop.Graph.from_scipy(sparse.csr_array((3, 3)), features=np.empty((3, 0), dtype=np.float32))
    assert pprop.write_folder(graph, tmp_path / "g").graph() == graph


def change_manifest(folder: Path, **changes: Any) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def arrays_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())["arrays"]


def cut(folder: Path, name: str) -> None:
    file = folder / name
    file.write_bytes(file.read_bytes()[:-4])


def rewrite(folder: Path, name: str, array: np.ndarray[Any, Any]) -> None:
    writer = ArrayWriter(folder / name, array.dtype)
    writer.write(array)
    writer.close()


BROKEN = {
    "cut short": (lambda folder: cut(folder, "indices.npy"), "'indices.npy' cut short to"),
    "longer": (lambda folder: rewrite(folder, "indptr.npy", np.zeros(99, np.int64)), "where .* belong"),
    "of another type": (lambda folder: rewrite(folder, "labels.npy", np.zeros(60, np.uint64)), "of another type"),
    "gone": (lambda folder: (folder / "labels.npy").unlink(), "without 'labels.npy'"),
    "half built": (lambda folder: change_manifest(folder, complete=False), "half built"),
    "without a manifest": (lambda folder: (folder / "manifest.json").unlink(), "without 'manifest.json', half built"),
    "of another version": (lambda folder: change_manifest(folder, version=2), "of version 2"),
    "something else": (lambda folder: change_manifest(folder, format="x"), "something else"),
    "of other sizes": (lambda folder: change_manifest(folder, nodes=61), r"'indptr' of shape \[61\] where \[62\]"),
    "no numbers": (lambda folder: change_manifest(folder, nodes="60"), "damaged 'manifest.json' \\('nodes'\\)"),
    "without nodes": (lambda folder: change_manifest(folder, nodes=-1), "'indptr' of shape"),
    "without columns": (
        lambda folder: change_manifest(
            folder, arrays=arrays_of(folder) | {"features.data": {"dtype": "<f4", "shape": [0]}}
        ),
        "does not fit the rest",
    ),
    "no JSON": (lambda folder: (folder / "manifest.json").write_text("{"), "damaged 'manifest.json'"),
    "strange arrays": (lambda folder: change_manifest(folder, arrays={"../x": {}}), "damaged 'manifest.json'"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_damaged_folder_is_refused_in_one_sentence(tmp_path: Path, what: str):
    pprop.write_folder(random_graph(labels=[0] * 60), tmp_path / "g")
    damage, message = BROKEN[what]
    damage(tmp_path / "g")
    with pytest.raises(pprop.FormatError, match=message) as caught:
        pprop.GraphFolder.open(tmp_path / "g")
    assert str(caught.value).startswith("The 'path' parameter of GraphFolder.open must be a sound graph folder. Got ")
    with pytest.raises(pprop.FormatError, match=message):
        pprop.read_graph(tmp_path / "g")


def test_indices_out_of_range_are_refused_before_a_loop_reads_them(tmp_path: Path):
    folder = pprop.write_folder(random_graph(), tmp_path / "g")
    rewrite(folder.path, "indices.npy", np.full(folder.n_entries, 60, np.int32))
    with pytest.raises(pprop.FormatError, match=r"'indices.npy' out of range"):
        pprop.GraphFolder.open(folder.path).graph()


@pytest.mark.parametrize("offsets", ["beyond", "falling", "short"])
def test_offsets_of_texts_out_of_range_are_refused(tmp_path: Path, offsets: str):
    folder = pprop.write_folder(random_graph(ids=[f"n{k}" for k in range(60)]), tmp_path / "g")
    wrong = np.array(folder.arrays["ids.offsets"])
    wrong[30] = {"beyond": 2**53, "falling": wrong[29] - 1, "short": wrong[30]}[offsets]
    wrong[60] -= offsets == "short"
    rewrite(folder.path, "ids.offsets.npy", wrong)
    with pytest.raises(pprop.FormatError, match=r"a sound graph folder. Got '.*' with 'ids.offsets.npy' out of range"):
        pprop.GraphFolder.open(folder.path).graph()


def test_labels_out_of_range_are_refused(tmp_path: Path):
    folder = pprop.write_folder(random_graph(labels=[0, 1] * 30, class_names=["a", "b"]), tmp_path / "g")
    rewrite(folder.path, "labels.npy", np.full(60, 2))
    with pytest.raises(pprop.FormatError, match=r"'labels.npy' out of range"):
        pprop.GraphFolder.open(folder.path).graph()


def test_other_numbers_of_the_same_size_are_found_by_verify(tmp_path: Path):
    folder = pprop.write_folder(random_graph(), tmp_path / "g")
    folder.verify()
    numbers = folder.indices.copy()
    numbers[-1] -= 1
    rewrite(folder.path, "indices.npy", numbers)
    with pytest.raises(pprop.FormatError, match=re.escape("other numbers in 'indices.npy'")):
        pprop.GraphFolder.open(folder.path).verify()


def test_a_folder_that_changes_while_it_is_open_is_noticed(tmp_path: Path):
    folder = pprop.write_folder(random_graph(), tmp_path / "g")
    folder.check_unchanged()
    with (folder.path / "indices.npy").open("r+b") as stream:
        stream.seek(200)
        stream.write(b"\1")
    with pytest.raises(pprop.FormatError, match="changed since it was opened"):
        folder.graph()


def test_a_folder_that_is_replaced_while_it_is_open_stays_usable(tmp_path: Path):
    graph = random_graph()
    folder = pprop.write_folder(graph, tmp_path / "g")
    pprop.write_folder(random_graph(directed=True), tmp_path / "g", replace=True)
    assert folder.graph() == graph


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path):
    graph = random_graph()
    pprop.write_folder(graph, tmp_path / "g")
    with pytest.raises(pprop.InputError, match="which is already there"):
        pprop.write_folder(graph, tmp_path / "g")
    (tmp_path / "g" / "notes.txt").write_text("mine")
    with pytest.raises(pprop.InputError, match="with other content"):
        pprop.write_folder(graph, tmp_path / "g", replace=True)
    with pytest.raises(pprop.InputError, match="in an existing folder"):
        pprop.write_folder(graph, tmp_path / "no" / "g")
    with pytest.raises(pprop.InputError, match="before scaled"):
        pprop.write_folder(random_graph(features=np.eye(60)).scaled(), tmp_path / "h")


def test_more_entries_than_scipy_takes_are_refused_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = pprop.write_folder(random_graph(), tmp_path / "g")
    monkeypatch.setattr(folder_module, "MOST_ENTRIES", 10)
    with pytest.raises(
        pprop.CapacityError, match=rf"{folder.n_entries} entries, and scipy takes at most 10 without a copy"
    ):
        folder.graph()


def test_a_folder_of_more_than_2_to_31_entries_opens_and_its_rows_are_read(tmp_path: Path):
    entries = 2**31 + 10
    writer = ArrayWriter(tmp_path / "indices.npy", np.int32)
    writer.rows = entries
    writer.close()
    os.truncate(tmp_path / "indices.npy", 128 + 4 * entries)  # zeros that take no room on the disk
    with (tmp_path / "indices.npy").open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(np.int32(1).tobytes())
    about = {"dtype": "<i4", "shape": [entries], "digest": ""}
    indptr = np.array([0, 5, entries], dtype=np.int64)
    rewrite(tmp_path, "indptr.npy", indptr)
    arrays = {"indptr": {"dtype": "<i8", "shape": [3], "digest": ""}, "indices": about}
    write_manifest(tmp_path, arrays, directed=True)
    folder = pprop.GraphFolder.open(tmp_path)
    assert folder.n_entries == folder.n_edges == entries
    assert folder.indices[folder.indptr[2] - 2 : folder.indptr[2]].tolist() == [0, 1]
    with pytest.raises(
        pprop.CapacityError, match=r"2,147,483,658 entries, and scipy takes at most 2,147,483,647 .* 17\.2 GB"
    ):
        folder.graph()


def test_edges_are_counted_where_the_writer_does_not_know_them(tmp_path: Path):
    graph = pprop.Graph.from_scipy(sparse.csr_array([[1, 1, 0], [1, 0, 1], [0, 1, 1.0]]))
    folder = pprop.write_folder(graph, tmp_path / "g")
    write_manifest(folder.path, folder.manifest["arrays"], directed=False)
    assert pprop.GraphFolder.open(folder.path).n_edges == graph.n_edges == 4
