"""The improvement by distance: rings, counts, pooling over splits, and the paper's graphs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop.datasets import TEST_SEEDS
from pprop.study.figures.distance import Distance, Ring, distance_data, draw_distance, hops_from
from pprop.study.stats.estimate import Estimate

pytestmark = pytest.mark.slow


def chain(n: int, labels: Any = None) -> pprop.Graph:
    return pprop.Graph.from_scipy(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)), labels=labels)


def split(train: list[int], evaluation: list[int]) -> pprop.Split:
    return pprop.Split(np.array(train), np.array([], dtype=np.int64), np.array(evaluation))


def row(seed: int, predictions: Any, init: int = 0) -> Any:
    key = SimpleNamespace(seeds=SimpleNamespace(split=seed, init=init))
    return SimpleNamespace(key=key, predictions=np.asarray(predictions, dtype=np.uint8))


def test_hops_agree_with_all_shortest_paths():
    rng = np.random.default_rng(1)
    upper = sparse.csr_array(np.triu(rng.random((60, 60)) < 0.04, 1).astype(float))
    graph = pprop.Graph.from_scipy(upper + upper.T)
    lengths = sparse.csgraph.shortest_path(graph.adjacency, unweighted=True)[[3, 17, 40]].min(axis=0)
    assert np.isinf(lengths).any()  # a node that cannot be reached
    assert hops_from(graph, [3, 17, 40]).tolist() == np.where(np.isinf(lengths), -1, lengths).astype(int).tolist()


def test_hops_go_the_way_predictions_travel():
    graph = pprop.Graph.from_scipy(sparse.csr_array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), directed=True)
    assert hops_from(graph, [2]).tolist() == [2, 1, 0]
    assert hops_from(graph, [0]).tolist() == [0, -1, -1]


def test_nodes_of_all_splits_count_alike_and_initialisations_are_averaged():
    graph = chain(6, labels=[0] * 6)
    splits = {1: split([0], [1, 2, 3]), 2: split([1], [0, 2, 3])}
    # right at hops 1, 2, 3 of split 1: better 1, 1/2, 1 (two initialisations), baseline 0, 0, 1
    # right at hops 1, 1, 2 of split 2: better 2 of 2, 0, baseline 1 of 2, 1
    better = [row(1, [1, 0, 0, 0, 1, 1], 0), row(1, [1, 0, 1, 0, 1, 1], 1), row(2, [0, 1, 0, 1, 1, 1])]
    baseline = [row(1, [1, 1, 1, 0, 1, 1]), row(2, [0, 1, 1, 0, 1, 1])]
    rings = distance_data("chain", graph, splits, better, baseline, fewest=1).rings
    assert [(ring.first, ring.last, ring.nodes) for ring in rings] == [(1, 1, 1.5), (2, 3, 1.5)]
    assert rings[0].improvement.mean == pytest.approx(100 * (1 + 1) / 3)
    assert rings[1].improvement.mean == pytest.approx(100 * (0.5 + 0 - 1) / 3)
    # two splits: a resample is one of them twice or both, and the ends of the interval are those of the single ones
    assert (rings[0].improvement.low, rings[0].improvement.high) == (pytest.approx(50), pytest.approx(100))
    assert rings[0].improvement.runs == 2


def test_a_split_that_one_model_lacks_does_not_count():
    graph = chain(3, labels=[0, 0, 0])
    splits = {1: split([0], [1]), 2: split([0], [1, 2])}
    distance = distance_data("chain", graph, splits, [row(1, [0, 0, 0]), row(2, [0, 0, 0])], [row(1, [0, 1, 0])])
    assert distance.runs == (1, 1)
    assert [(ring.nodes, ring.improvement.mean) for ring in distance.rings] == [(1, 100)]


def test_models_without_a_split_in_common_are_refused():
    with pytest.raises(pprop.InputError, match="a split that 'baseline' has too"):
        distance_data("chain", chain(3, labels=[0, 0, 0]), {}, [row(1, [0, 0, 0])], [row(2, [0, 0, 0])])


def test_a_ring_that_is_empty_in_some_splits_has_an_interval():
    graph = chain(5, labels=[0] * 5)
    splits = {seed: split([0], [1, 2, 3, 4] if seed == 1 else [1]) for seed in (1, 2)}
    rows = [row(seed, [0] * 5) for seed in splits], [row(seed, [1] * 5) for seed in splits]
    far = distance_data("chain", graph, splits, *rows, fewest=1).rings[-1]
    assert (far.first, far.last, far.nodes) == (3, 4, 1)  # half a node each at 3 and at 4 hops
    assert (far.improvement.low, far.improvement.high) == (100, 100)


def test_the_drawing_has_the_improvements_with_the_counts_below():
    rings = (Ring(1, 1, 1556.2, Estimate(1, 0.5, 2, 20)), Ring(2, 4, 2.4, Estimate(-3, -6, 1, 20)))
    axes: Any = draw_distance([Distance("MS Academic", rings, (100, 100))]).axes[0]
    points = axes.containers[0].lines[0]
    assert points.get_ydata() == pytest.approx([1, -3])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1\n1556", "2+\n2"]
    bars = axes.containers[0].lines[2][0].get_segments()
    assert [segment[:, 1].tolist() for segment in bars] == [pytest.approx([0.5, 2]), pytest.approx([-6, 1])]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora_ml", [286, 682, 253, 62, 21, 4]),
        ("citeseer", [102, 213, 154, 77, 34, 15, 8]),
        ("pubmed", [233, 2235, 6080, 6984, 2007, 528, 114, 28]),
        ("ms_academic", [1556, 6076, 4470, 1009, 175, 36, 9]),
    ],
)
def test_the_mean_node_counts_of_the_papers_splits(name: str, counts: list[int], data_folder: Path):
    graph = pprop.load_dataset(name)
    splits = {seed: pprop.paper_split(graph, seed) for seed in TEST_SEEDS}
    rows = [row(seed, np.zeros(graph.n_nodes)) for seed in TEST_SEEDS]
    rings = distance_data(name, graph, splits, rows, rows, fewest=1).rings
    assert [round(ring.nodes) for ring in rings[: len(counts)]] == counts
    assert sum(ring.nodes for ring in rings) == pytest.approx(len(splits[TEST_SEEDS[0]].evaluation))
    assert all(ring.nodes >= 1 for ring in rings)
    shown = distance_data(name, graph, splits, rows, rows).rings  # the same, but for a last ring that is not so small
    assert shown[:-1] == rings[: len(shown) - 1]
    assert shown[-1].nodes == pytest.approx(sum(ring.nodes for ring in rings[len(shown) - 1 :]))
    assert shown[-1].nodes >= 10
    assert {ring.improvement.mean for ring in rings} == {0}
