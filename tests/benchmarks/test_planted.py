"""Planted graphs: the same whatever the pieces and threads, with the degrees, homophily and classes of their formulas."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from pprop import APPNPClassifier, CapacityError, InputError, MLPNodeClassifier

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from _planted import Planted, planted_graph
from _planted_features import NormalFeatures, WordFeatures, step_through
from _planted_files import write_planted

pytestmark = pytest.mark.usefixtures("every_kernel_threaded")

N = 40_000


def all_edges(planted: Planted) -> np.ndarray[Any, Any]:
    return np.stack(planted.edges(0, planted.n_edges))


@pytest.mark.parametrize("size", [1, 4095, 4097, 100_000])
def test_edges_do_not_depend_on_the_pieces(size: int):
    planted = Planted(3000, 6.0, seed=4)
    pieces = np.concatenate([np.stack(pair) for pair in planted.edge_chunks(size)], axis=1)
    assert np.array_equal(pieces, all_edges(planted))


def test_nothing_depends_on_the_number_of_threads():
    def everything() -> list[Any]:
        words = Planted(500, features=WordFeatures(100, 7))
        dense = Planted(3000)
        sparse_rows: Any = words.feature_rows(0, 500)
        return [all_edges(dense), dense.feature_rows(0, 3000), sparse_rows.toarray()]

    before, many = numba.get_num_threads(), everything()
    numba.set_num_threads(1)
    try:
        assert all(np.array_equal(one, other) for one, other in zip(many, everything(), strict=True))
    finally:
        numba.set_num_threads(before)


def test_a_seed_gives_another_graph_with_the_same_classes_sizes():
    one, other = Planted(2000, seed=1), Planted(2000, seed=2)
    assert not np.array_equal(one.edges(0, 100), other.edges(0, 100))
    rows: list[Any] = [one.feature_rows(0, 5), other.feature_rows(0, 5)]
    assert not np.array_equal(*rows)
    assert np.array_equal(np.bincount(one.labels(0, 2000)), np.bincount(other.labels(0, 2000)))


def test_features_do_not_depend_on_the_pieces():
    for features in (NormalFeatures(7, 2.0), WordFeatures(300, 9)):
        planted = Planted(1000, features=features)
        rows: list[Any] = [planted.feature_rows(0, 1000), planted.feature_rows(313, 400)]
        whole, part = (sparse.csr_array(one).toarray() for one in rows)
        assert np.array_equal(whole[313:400], part)


def test_every_node_has_one_place_and_classes_their_shares():
    planted = Planted(1003, classes=(0.5, 0.3, 0.2))
    assert np.array_equal(np.sort(planted.places(0, 1003)), np.arange(1003))
    assert np.bincount(planted.labels(0, 1003)).tolist() == [502, 300, 201]
    assert np.bincount(np.bincount(Planted(1003, classes=10).labels(0, 1003))).tolist() == [0] * 100 + [7, 3]


@pytest.mark.parametrize("tail", [2.3, 2.5, 3.0, math.inf])
def test_degrees_are_those_of_the_formula(tail: float):
    planted = Planted(N, 20.0, tail=tail, classes=8, features=None, seed=7)
    degrees = np.bincount(all_edges(planted).ravel(), minlength=N)
    expected = planted.expected_degrees(0, N)
    assert degrees.sum() == 2 * planted.n_edges
    # sums over groups of nodes of similar degree are Poisson: within five deviations
    order = np.argsort(-expected, kind="stable")
    for group in np.split(order, [8, 80, 800, 8000]):
        deviation = math.sqrt(expected[group].sum())
        assert abs(degrees[group].sum() - expected[group].sum()) < 5 * deviation
    # single degrees, too: their squared distance in deviations is 1 on average
    assert ((degrees - expected) ** 2 / expected).mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("tail", [2.5, 3.0])
def test_the_tail_falls_with_the_exponent_asked_for(tail: float):
    expected = np.sort(Planted(1_000_000, tail=tail, features=None).expected_degrees(0, 1_000_000))[::-1]
    # P(degree > d) ~ d^(1 - tail), so the degree of rank r falls as r^(-1 / (tail - 1))
    slope = np.log(expected[99_999] / expected[999]) / np.log(100)
    assert slope == pytest.approx(-1 / (tail - 1), abs=0.01)


@pytest.mark.parametrize(("homophily", "classes"), [(0.0, 5), (0.4, 10), (1.0, 3), (0.7, (0.6, 0.3, 0.1))])
def test_the_share_of_edges_inside_classes_is_the_homophily(homophily: float, classes: Any):
    planted = Planted(N, homophily=homophily, classes=classes, features=None)
    labels, (source, target) = planted.labels(0, N), all_edges(planted)
    inside = labels[source] == labels[target]
    deviation = math.sqrt(homophily * (1 - homophily) / len(inside))
    assert abs(inside.mean() - homophily) <= 5 * deviation
    if isinstance(classes, int):  # of every class
        for k in range(classes):
            ends = (labels[source] == k).astype(int) + (labels[target] == k)
            assert np.average(inside, weights=ends) == pytest.approx(homophily, abs=0.02)
    assert (source != target).all()
    if homophily == 0.0:  # the other classes are hit alike
        others = np.bincount(labels[target[labels[source] == 0]], minlength=5)[1:]
        assert others.std() < 5 * math.sqrt(others.mean())


def test_normal_features_have_the_means_and_the_noise_of_their_class():
    features = NormalFeatures(6, 3.0)
    planted = Planted(N, classes=4, features=features)
    rows, labels, means = planted.feature_rows(0, N), planted.labels(0, N), features.means(0, 4)
    assert isinstance(rows, np.ndarray)
    noise = rows - means[labels]
    for k in range(4):
        np.testing.assert_allclose(noise[labels == k].mean(axis=0), 0, atol=5 / math.sqrt(N / 4))
    np.testing.assert_allclose(np.cov(noise.T), np.eye(6), atol=6 * math.sqrt(2 / N))
    # the fourth moment of a normal number is 3
    np.testing.assert_allclose((noise**4).mean(), 3.0, atol=5 * math.sqrt(96 / noise.size))


def test_words_come_from_the_class_as_often_as_asked():
    columns, draws, classes = 1000, 30, 5
    planted = Planted(N, classes=classes, features=WordFeatures(columns, draws, 0.4))
    rows, labels = planted.feature_rows(0, N), planted.labels(0, N)
    assert isinstance(rows, sparse.csr_array)
    assert np.array_equal(rows.sum(axis=1), np.full(N, draws))
    assert rows.has_sorted_indices
    by_class = np.stack([np.asarray(rows[labels == k].sum(axis=0)).ravel() for k in range(classes)])
    ranks = np.arange(columns)
    of_all = (np.sqrt(ranks + 2) - np.sqrt(ranks + 1)) / (math.sqrt(columns + 1) - 1)
    own = columns // classes
    of_class = (np.sqrt(ranks[:own] + 2) - np.sqrt(ranks[:own] + 1)) / (math.sqrt(own + 1) - 1)
    column = ranks * step_through(columns) % columns  # of every word
    for k in range(classes):
        expected = 0.6 * of_all
        expected[np.arange(own) * classes + k] += 0.4 * of_class
        expected *= draws * (labels == k).sum()
        assert (((by_class[k, column] - expected) ** 2) / expected).mean() == pytest.approx(1.0, abs=0.3)


def test_a_graph_has_every_drawn_pair_once():
    graph = planted_graph(2000, mean_degree=8, classes=4, seed=3)
    planted = Planted(2000, 8, classes=4, seed=3)
    pairs = np.unique(np.sort(all_edges(planted), axis=0), axis=1)
    assert graph.n_edges == pairs.shape[1]
    assert graph.weights is None
    assert (graph.adjacency[pairs[0], pairs[1]] == 1).all()
    assert graph.labels is not None
    assert np.array_equal(graph.labels, planted.labels(0, 2000))


@pytest.mark.slow
def test_the_network_alone_is_mediocre_and_propagation_good_by_default():
    graph = planted_graph(20_000, seed=5)
    labels, rng = graph.labels, np.random.default_rng(5)
    assert labels is not None
    known = np.concatenate([rng.choice(np.flatnonzero(labels == k), 70, replace=False) for k in range(10)])
    training, stopping = known.reshape(10, 70)[:, :20].ravel(), known.reshape(10, 70)[:, 20:].ravel()
    rest = np.setdiff1d(np.arange(20_000), known)
    scores = [
        kind(graph, max_epochs=300, random_state=0)
        .fit(training, labels[training], stopping=(stopping, labels[stopping]))
        .score(rest, labels[rest])
        for kind in (MLPNodeClassifier, APPNPClassifier)
    ]
    assert 0.5 <= scores[0] <= 0.7
    assert 0.75 <= scores[1] <= 0.9


@pytest.mark.parametrize("features", [None, NormalFeatures(5, 2.0), WordFeatures(60, 6)])
def test_files_hold_the_graph(tmp_path: Path, features: Any):
    planted = Planted(3000, 6.0, classes=3, features=features, seed=9)
    seen: list[tuple[str, float]] = []
    files = write_planted(planted, tmp_path / "g", edges_a_file=4000, progress=lambda *told: seen.append(told))
    tables = [pq.read_table(file) for file in files.edges]
    assert [table.num_rows for table in tables] == [4000, 4000, 1000]
    ends = [np.concatenate([table[name].to_numpy() for table in tables]) for name in ("source", "target")]
    assert np.array_equal(ends, all_edges(planted))
    assert np.array_equal(np.load(files.labels), planted.labels(0, 3000))
    assert seen[-1] == ("nodes", 1.0)
    rows = planted.feature_rows(0, 3000)
    if isinstance(rows, sparse.csr_array):
        data, indices, indptr = (np.load(file, mmap_mode="r") for file in files.features)
        written = sparse.csr_array((data, indices, indptr), shape=rows.shape)
        assert np.array_equal(written.toarray(), rows.toarray())
        assert (data.dtype, indices.dtype, indptr.dtype) == (np.float32, np.int32, np.int64)
    elif rows is not None:
        assert np.array_equal(np.load(files.features[0], mmap_mode="r"), rows)
    assert len(files.features) == {type(None): 0, NormalFeatures: 1, WordFeatures: 3}[type(features)]


def test_sparse_features_written_in_blocks_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("_planted_files._ROW_BYTES", 24 * 6 * 700)
    planted = Planted(3000, features=WordFeatures(60, 6))
    data, indices, indptr = (np.load(file) for file in write_planted(planted, tmp_path / "g").features)
    rows: Any = planted.feature_rows(0, 3000)
    written = sparse.csr_array((data, indices, indptr), shape=rows.shape)
    assert np.array_equal(written.toarray(), rows.toarray())


def test_files_that_do_not_fit_are_refused_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(CapacityError, match=r"take 0.0 GB of disk, and 0.0 GB are free"):
        write_planted(Planted(1000), tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_too_large_for_memory_is_refused():
    with pytest.raises(CapacityError, match=r"write_planted"):
        Planted(1_000_000_000, 30.0).graph()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tail": 2.0}, r"'tail' parameter of Planted must be a float in \(2, inf\)"),
        ({"homophily": 1.2}, r"'homophily' parameter of Planted must be a float in \[0, 1\]"),
        ({"mean_degree": 0}, r"'mean_degree'"),
        ({"classes": 80}, r"'classes' parameter of Planted must be classes of at least two nodes"),
        ({"classes": (1.0, -1.0)}, r"'classes'"),
        ({"features": "dense"}, r"'features' parameter of Planted must be NormalFeatures, WordFeatures or None"),
        ({"features": WordFeatures(10)}, r"two for each of 10 classes"),
        ({"seed": -1}, r"'seed'"),
    ],
)
def test_arguments_that_describe_no_graph_are_refused(arguments: Any, message: str):
    with pytest.raises(InputError, match=message):
        Planted(**{"nodes": 100} | arguments)


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path):
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "thesis.tex").write_text("mine")
    for folder in (tmp_path / "g", tmp_path / "no" / "g"):
        with pytest.raises(InputError, match=r"must be a new folder in an existing one"):
            write_planted(Planted(100), folder)
    assert (tmp_path / "g" / "thesis.tex").read_text() == "mine"
