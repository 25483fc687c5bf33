"""Damaged and hostile npz files: one sentence each, nothing unpickled, no memory taken on a header's word."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop._errors import CapacityError, FormatError, InputError, PpropError
from pprop.graph import Graph, files, read_npz, write_npz

PATH = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
RAN: list[str] = []


def spring(trace: str) -> None:
    RAN.append(trace)


class Trap:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return spring, ("unpickled",)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def claim(dtype: str, shape: str, content: bytes = b"", *, order: str = "False") -> bytes:
    """An npy file whose header claims what it likes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def members(**changes: bytes | None) -> dict[str, bytes]:
    """The path on five nodes with features, labels and names; `changes` name keys with __ for the point."""
    content: dict[str, bytes | None] = {
        "adj_matrix.data": npy(np.ones(8, dtype=np.float32)),
        "adj_matrix.indices": npy(np.array([1, 0, 2, 1, 3, 2, 4, 3], dtype=np.int32)),
        "adj_matrix.indptr": npy(np.array([0, 1, 3, 5, 7, 8], dtype=np.int32)),
        "adj_matrix.shape": npy(np.array([5, 5])),
        "attr_matrix.data": npy(np.ones(2, dtype=np.float32)),
        "attr_matrix.indices": npy(np.array([0, 2])),
        "attr_matrix.indptr": npy(np.array([0, 1, 1, 1, 2, 2])),
        "attr_matrix.shape": npy(np.array([5, 3])),
        "labels": npy(np.array([0, 1, 1, 0, -1])),
        "node_names": npy(np.array(list("abcde"))),
        "class_names": npy(np.array(["no", "yes"])),
    }
    content |= {key.replace("__", "."): value for key, value in changes.items()}
    return {key: value for key, value in content.items() if value is not None}


def save(path: Path, content: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for key, value in content.items():
            archive.writestr(f"{key}.npy", value)
    return path


def test_untouched_file_is_read(tmp_path: Path) -> None:
    graph = read_npz(save(tmp_path / "a.npz", members()))
    assert repr(graph) == "Graph(5 nodes, 4 edges, undirected, 3 features, 2 classes)"


@pytest.mark.parametrize("key", [key.replace(".", "__") for key in members()])
def test_pickled_arrays_are_never_unpickled(key: str, tmp_path: Path) -> None:
    RAN.clear()
    trap = np.empty(5, dtype=object)
    trap[:] = [Trap() for _ in range(5)]
    file = save(tmp_path / "a.npz", members(**{key: npy(trap)}))
    if key.endswith("names"):
        graph = read_npz(file)  # names can be done without
        assert (graph.ids is None, graph.class_names is None) == (key == "node_names", key == "class_names")
    else:
        with pytest.raises(FormatError, match=rf"pickled objects under '{key.replace('__', '.')}', which are never"):
            read_npz(file)
    assert RAN == []


def test_trap_works(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    RAN.clear()
    file = save(tmp_path / "a.npz", {"trap": npy(np.array([Trap()], dtype=object))})
    with np.load(file, allow_pickle=True) as arrays:
        assert arrays["trap"].shape == (1,)
    assert RAN == ["unpickled"]


BOMBS = {
    "values": {"adj_matrix__data": claim("<f8", "(1000000000000,)")},
    "pointers": {"adj_matrix__indptr": claim("<i8", "(1000000000001,)")},
    "consistent": {
        "adj_matrix__data": claim("<f4", "(1000000000000,)"),
        "adj_matrix__indices": claim("<i4", "(1000000000000,)"),
        "adj_matrix__indptr": claim("<i4", "(2000000001,)"),
        "adj_matrix__shape": npy(np.array([2 * 10**9, 2 * 10**9])),
        "attr_matrix__data": None,
        "attr_matrix__indices": None,
        "attr_matrix__indptr": None,
        "attr_matrix__shape": None,
        "labels": None,
        "node_names": None,
    },
    "nodes": {"adj_matrix__shape": npy(np.array([10**12, 10**12]))},
    "negative": {"adj_matrix__shape": npy(np.array([-5, -5]))},
    "overflow": {"adj_matrix__shape": npy(np.array([2**63, 2**63], dtype=np.uint64))},
    "shape": {"adj_matrix__shape": claim("<i8", "(100000000000,)")},
    "labels": {"labels": claim("<i8", "(1000000000000,)")},
    "features": {
        "attr_matrix": claim("<f8", "(5, 1000000000000)"),
        "attr_matrix__data": None,
        "attr_matrix__indices": None,
        "attr_matrix__indptr": None,
        "attr_matrix__shape": None,
    },
    "wide names": {"class_names": claim("<U100000000", "(1000000,)")},
    "many names": {"class_names": claim("<U4", "(1000000000000,)")},
    "many axes": {"labels": claim("<i8", "(" + "99999999999999999999, " * 40 + ")")},
    "long header": {"labels": b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 100},
    "deep header": {"labels": claim("<i8", "(" * 5000)},
}


@pytest.mark.parametrize("name", BOMBS)
def test_header_bombs_are_refused_without_taking_memory(name: str, tmp_path: Path) -> None:
    file = save(tmp_path / "a.npz", members(**BOMBS[name]))
    tracemalloc.start()
    try:
        with pytest.raises((FormatError, CapacityError)) as caught:
            read_npz(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_archive_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    """Header and zip directory agree on 8 GB of labels for as many nodes; the archive has a few bytes of them."""
    file = save(tmp_path / "a.npz", members(labels=claim("<i8", "(5,)", bytes(40))))
    content = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        true = archive.getinfo("labels.npy").file_size
    lie = (true + 2**31).to_bytes(4, "little")
    at = content.rindex(true.to_bytes(4, "little"), 0, content.rindex(b"labels.npy"))
    file.write_bytes(content[:at] + lie + content[at + 4 :])
    with pytest.raises(FormatError, match=r"header under 'labels' that claims 40 bytes where the archive has 214748"):
        read_npz(file)


def test_true_bomb_beyond_memory_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save(tmp_path / "a.npz", members(class_names=claim("<U1000000", "(10,)", bytes(40_000_000))))
    assert file.stat().st_size < 100_000
    monkeypatch.setattr(files, "usable_memory", lambda: 4_096_000)
    tracemalloc.start()
    try:
        with pytest.raises(CapacityError, match=r"takes 0\.1 GB, and this process may use 0\.0 GB"):
            read_npz(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_file_cut_short_anywhere_is_refused(compression: int, tmp_path: Path) -> None:
    content = save(tmp_path / "whole.npz", members(), compression).read_bytes()
    file = tmp_path / "cut.npz"
    offsets = [0, 1, 4, 30, *range(50, len(content), 97), len(content) - 22, len(content) - 1]
    for offset in offsets:
        file.write_bytes(content[:offset])
        with pytest.raises(FormatError, match=r"must be an npz file \(a zip archive of arrays\)\. Got .*cut\.npz"):
            read_npz(file)


def test_no_damaged_byte_raises_anything_but_our_errors(tmp_path: Path) -> None:
    """Every fifth byte of the file in turn: the graph stays as it was, or there is one of our sentences."""
    content = save(tmp_path / "whole.npz", members()).read_bytes()
    whole = read_npz(tmp_path / "whole.npz")
    file = tmp_path / "whole.npz"
    refused = 0
    for offset in range(0, len(content), 5):
        flip = 0x01 if offset % 4 else 0xFF
        file.write_bytes(content[:offset] + bytes([content[offset] ^ flip]) + content[offset + 1 :])
        try:
            graph = read_npz(file)
        except PpropError:
            refused += 1
        else:
            # what a changed name in the directory hides is optional; nothing that is there may differ
            assert graph.indptr.tobytes() == whole.indptr.tobytes()
            assert graph.indices.tobytes() == whole.indices.tobytes()
            assert graph.labels is None or np.array_equal(graph.labels, whole.labels)  # type: ignore[arg-type]
    assert refused > len(content) / 10


def test_damaged_data_inside_a_member_is_caught_by_its_checksum(tmp_path: Path) -> None:
    file = save(tmp_path / "a.npz", members(), zipfile.ZIP_STORED)
    content = file.read_bytes()
    labels = np.array([0, 1, 1, 0, -1]).tobytes()
    assert content.count(labels) == 1
    file.write_bytes(content.replace(labels, np.array([1, 1, 1, 0, -1]).tobytes()))
    with pytest.raises(FormatError, match="damaged data under 'labels'"):
        read_npz(file)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"adj_matrix__indptr": None}, r"no array under 'adj_matrix\.indptr'"),
    ({"attr_matrix__shape": None}, r"no array under 'attr_matrix\.shape'"),
    ({"adj_matrix__shape": npy([5, 5, 5])}, r"'adj_matrix\.shape' of length 3 where two numbers belong"),
    ({"adj_matrix__shape": npy([5, 4])}, r"'adj_matrix' of shape \(5, 4\), not square"),
    ({"adj_matrix__shape": npy([4, 4])}, r"6 pointers in 'adj_matrix\.indptr' for 4 rows"),
    ({"adj_matrix__shape": npy([5.0, 5.0])}, r"'adj_matrix\.shape' of shape \(2,\) and dtype float64"),
    ({"adj_matrix__data": npy(np.ones(7))}, r"8 indices but 7 values in 'adj_matrix'"),
    ({"adj_matrix__data": npy(np.ones(8, dtype=complex))}, r"no plain array under 'adj_matrix\.data'"),
    ({"adj_matrix__data": npy(np.ones((8, 1)))}, r"'adj_matrix\.data' of shape \(8, 1\)"),
    (
        {"adj_matrix__indptr": npy([0, 1, 3, 2, 7, 8])},
        r"inconsistent 'adj_matrix\.indptr', which must rise from 0 to 8",
    ),
    ({"adj_matrix__indptr": npy([1, 1, 3, 5, 7, 8])}, r"inconsistent 'adj_matrix\.indptr'"),
    ({"adj_matrix__indptr": npy([0, 1, 3, 5, 7, 9])}, r"inconsistent 'adj_matrix\.indptr'"),
    ({"adj_matrix__indptr": npy(np.array([0, 2**63, 3, 5, 7, 8], dtype=np.uint64))}, r"inconsistent 'adj_matrix"),
    ({"adj_matrix__indices": npy([1, 0, 2, 1, 3, 2, 5, 3])}, r"the index 5 in 'adj_matrix\.indices', outside 0 to 4"),
    ({"adj_matrix__indices": npy([1, 0, 2, -1, 3, 2, 4, 3])}, r"the index -1 in 'adj_matrix\.indices'"),
    ({"attr_matrix__indices": npy([0, 3])}, r"the index 3 in 'attr_matrix\.indices', outside 0 to 2"),
    ({"attr_matrix__shape": npy([6, 3]), "attr_matrix__indptr": npy([0, 1, 1, 1, 2, 2, 2])}, r"6 rows for 5 nodes"),
    ({"attr_matrix": npy(np.ones(5))}, r"'attr_matrix' of shape \(5,\) and dtype float64"),
    ({"attr_matrix": npy(np.ones((4, 2)))}, r"'attr_matrix' of 4 rows for 5 nodes"),
    ({"labels": npy([0, 1, 1, 0])}, r"4 'labels' where 5 belong"),
    ({"labels": npy([0.0, 1, 1, 0, 0])}, r"'labels' of shape \(5,\) and dtype float64"),
    ({"labels": npy([0, 1, 2, 0, 1])}, r"holds no valid graph\. The 'labels' .* from 0 to 1, or -1\. Got the label 2"),
    ({"labels": npy([0, 1, -2, 0, 1])}, r"Got the label -2"),
    ({"node_names": npy(np.array(list("abcd")))}, r"4 'node_names' where 5 belong"),
    ({"node_names": npy(np.array(list("abcda")))}, r"the id 'a' more than once"),
    ({"node_names": npy(np.arange(5.0))}, r"'node_names' of shape \(5,\) and dtype float64"),
    ({"attr_names": npy(np.array(list("abcd")))}, r"4 'attr_names' where 3 belong"),
    ({"class_names": npy(np.array([["no", "yes"]]))}, r"'class_names' of shape \(1, 2\)"),
    ({"adj_matrix__data": npy([1, 1, 1, 1, np.nan, 1, 1, 1])}, r"holds no valid graph\. .* finite weights"),
    ({"adj_matrix__data": npy([1, 1, 1, 1, -2, 1, 1, 1])}, r"holds no valid graph\. .* a weight of -2"),
    ({"attr_matrix__data": npy([1, np.inf])}, r"holds no valid graph\. .*'features' .* free of NaN and infinity"),
    ({"labels": b""}, r"damaged data under 'labels'"),
    ({"labels": b"hello, world"}, r"damaged data under 'labels'"),
    ({"labels": claim("<i8", "(5,)", bytes(39))}, r"header under 'labels' that claims 40 bytes where .* has 39"),
    ({"labels": claim("<i8", "(5,)", bytes(41))}, r"claims 40 bytes where the archive has 41"),
    ({"labels": claim("<i8", "(-5,)", bytes(40))}, r"no plain array under 'labels'"),
    ({"labels": claim("<i8", "(5,)", bytes(40), order="__import__('os')")}, r"no plain array under 'labels'"),
    ({"labels": npy(np.zeros(5, dtype=[("a", "i8")]))}, r"no plain array under 'labels'"),
    ({"labels": claim("<i3", "(5,)", bytes(15))}, r"no plain array under 'labels'"),
]


@pytest.mark.parametrize(("changes", "sentence"), FAULTS)
def test_inconsistent_files_get_one_sentence(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    if "attr_matrix" in changes:
        changes = changes | {f"attr_matrix__{part}": None for part in ("data", "indices", "indptr", "shape")}
    file = save(tmp_path / "a.npz", members(**changes))
    before = file.read_bytes()
    with pytest.raises(FormatError, match=sentence) as caught:
        read_npz(file)
    assert str(file) in str(caught.value)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_files_that_are_no_graph_get_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    for content in (b"", b"source,target\n1,2\n", b"PAR1" * 100, npy(np.ones(3)), zlib.compress(bytes(100))):
        file.write_bytes(content)
        with pytest.raises(FormatError, match=r"must be an npz file .* Got .* cut short or something else"):
            read_npz(file)
    save(file, {"weights": npy(np.ones(3))})
    with pytest.raises(FormatError, match=r"no array under 'adj_matrix\.data'"):
        read_npz(file)
    save(file, members(adj_matrix__shape=npy([0, 0])))
    with pytest.raises(FormatError, match=r"6 pointers in 'adj_matrix\.indptr' for 0 rows"):
        read_npz(file)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_numpy_never_writes_is_refused(compression: int, tmp_path: Path) -> None:
    file = save(tmp_path / "a.npz", members(), compression)
    with pytest.raises(FormatError, match=r"unusual compression of 'adj_matrix\.data'"):
        read_npz(file)


def test_encrypted_member_is_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "a.npz", members())
    content = bytearray(file.read_bytes())
    at = content.index(b"PK\x01\x02")
    while at >= 0:
        content[at + 8] |= 1
        at = content.find(b"PK\x01\x02", at + 4)
    file.write_bytes(content)
    with pytest.raises(FormatError, match="damaged data"):
        read_npz(file)


def test_missing_files_and_folders_get_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none.npz", tmp_path, "x" * 5000):
        with pytest.raises(InputError, match=r"'path' parameter of read_npz must be an existing file\. Got"):
            read_npz(path)
    for path in (3, None, b"bytes", "", "null\0character"):
        with pytest.raises(InputError, match=r"'path' parameter of read_npz must be a path\. Got"):
            read_npz(path)  # type: ignore[arg-type]


def test_written_files_are_not_suspicious(tmp_path: Path) -> None:
    """An extremely compressible but honest file stays readable."""
    n = 100_000
    graph = Graph.from_scipy(sparse.csr_array((n, n)), labels=np.zeros(n, dtype=np.int64))
    write_npz(graph, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").stat().st_size < 5000
    assert read_npz(tmp_path / "a.npz") == graph
