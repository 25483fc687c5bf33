"""Splits: the published digests, the structure of the draw, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop.datasets import TEST_SEEDS, VALIDATION_SEEDS, VISIBLE_SEED, load_dataset, paper_split
from pprop.graph import Graph, Recommended

DIGESTS: dict[str, Any] = json.loads((Path(__file__).parent / "split_digests.json").read_text())


def digest(nodes: NDArray[np.int64]) -> list[object]:
    return [len(nodes), hashlib.sha256(np.sort(nodes).astype("<i8").tobytes()).hexdigest()[:16]]


def assert_digests_match(name: str) -> None:
    graph = load_dataset(name)
    expected = DIGESTS[name]
    assert graph.n_nodes == expected["nodes"]
    assert len(expected["splits"]) == 6
    for key, sets in expected["splits"].items():
        kind, seed = key.split(":")
        split = paper_split(graph, int(seed), test=kind == "test")
        assert int(seed) in (TEST_SEEDS if kind == "test" else VALIDATION_SEEDS)[:3]
        for field in ("train", "stopping", "evaluation"):
            assert digest(getattr(split, field)) == sets[field], (name, key, field)
        assert split.train[:5].tolist() == sets["first_train"]


@pytest.mark.data
@pytest.mark.parametrize("name", DIGESTS)
def test_splits_match_the_published_digests(name: str) -> None:
    assert_digests_match(name)


@pytest.mark.usefixtures("only_bundled")
def test_splits_of_the_bundled_citeseer_match_the_published_digests() -> None:
    assert_digests_match("citeseer")


def labelled(counts: list[int], **fields: Any) -> Graph:
    labels = np.repeat(np.arange(len(counts)), counts)
    return Graph.from_scipy(sparse.csr_array((len(labels), len(labels))), labels=labels, **fields)


def test_seeds_are_the_papers() -> None:
    assert len(set(TEST_SEEDS)) == len(set(VALIDATION_SEEDS)) == 20
    assert not set(TEST_SEEDS) & set(VALIDATION_SEEDS)
    assert (TEST_SEEDS[0], TEST_SEEDS[-1]) == (2144199730, 1694925034)
    assert (VALIDATION_SEEDS[0], VALIDATION_SEEDS[-1]) == (2413340114, 1628837138)
    assert VISIBLE_SEED == 4143496719


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_test_and_validation_split_divide_the_whole_graph(seed: int) -> None:
    graph = labelled([40, 30, 30])
    test = paper_split(graph, seed, known=60, per_class=4, stopping=10)
    validation = paper_split(graph, seed, test=False, known=60, per_class=4, stopping=10)
    np.testing.assert_array_equal(test.train, validation.train)
    np.testing.assert_array_equal(test.stopping, validation.stopping)
    parts = np.concatenate([test.train, test.stopping, test.evaluation, validation.evaluation])
    np.testing.assert_array_equal(np.sort(parts), np.arange(100))
    assert [len(test.train), len(test.stopping), len(test.evaluation), len(validation.evaluation)] == [12, 10, 40, 38]
    assert graph.labels is not None
    np.testing.assert_array_equal(graph.labels[test.train], np.repeat([0, 1, 2], 4))
    np.testing.assert_array_equal(test.evaluation, np.sort(test.evaluation))


def test_training_sets_of_growing_size_are_nested_within_each_class() -> None:
    graph = labelled([40, 60])
    small, large = (paper_split(graph, 5, known=80, per_class=k, stopping=1).train for k in (3, 9))
    np.testing.assert_array_equal(small[:3], large[:3])
    assert set(small[:3]) <= set(large[:9])


def test_test_nodes_do_not_depend_on_the_seed() -> None:
    graph = labelled([40, 60])
    first, second = (paper_split(graph, seed, known=50, per_class=5, stopping=5) for seed in (1, 2))
    np.testing.assert_array_equal(first.evaluation, second.evaluation)
    assert not np.array_equal(first.train, second.train)


def test_global_random_state_is_left_alone() -> None:
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    paper_split(labelled([40, 60]), 1, known=50, per_class=5, stopping=5)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], before)  # noqa: NPY002


def test_known_defaults_to_the_recommendation() -> None:
    graph = labelled([40, 60], recommended=Recommended(alpha=0.1, known=70))
    assert len(paper_split(graph, 1, per_class=5, stopping=5).evaluation) == 30
    large = labelled([1000, 1000])
    assert len(paper_split(large, 1).evaluation) == 500


def test_split_is_frozen() -> None:
    split = paper_split(labelled([40, 60]), 1, known=50, per_class=5, stopping=5)
    for field in ("train", "stopping", "evaluation"):
        nodes = getattr(split, field)
        assert nodes.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            nodes[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.seed = 2  # type: ignore[misc]
    assert repr(split) == "Split(10 train, 5 stopping, 50 test, seed=1)"


def test_all_left_over_nodes_may_be_used_for_stopping_in_a_test_split() -> None:
    split = paper_split(labelled([40, 60]), 1, known=50, per_class=5, stopping=40)
    assert len(split.stopping) == 40


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"known": 101}, r"'known' parameter of paper_split must be an integer from 1 to 99\. Got 101 instead"),
        ({"known": 100}, r"'known' .* from 1 to 99\. Got 100"),
        ({"known": 101, "test": False}, r"'known' .* from 1 to 100\. Got 101"),
        ({"known": 0}, r"'known' .* Got 0"),
        ({"known": 5.0}, r"'known' .* Got 5\.0"),
        ({"known": None}, r"'known' .* from 1 to 99\. Got None, which stands for 1500, instead"),
        ({"per_class": 11}, r"'per_class' .* at most \d+, the number of known nodes of class 1 \('rare'\)\. Got 11"),
        ({"per_class": 0}, r"'per_class' .* at least 1\. Got 0"),
        ({"per_class": True}, r"'per_class' .* Got True"),
        ({"stopping": 41}, r"'stopping' .* at most 40, the known nodes left after training\. Got 41"),
        ({"stopping": 40, "test": False}, r"'stopping' .* at most 39, .* and one to evaluate\. Got 40"),
        ({"stopping": -1}, r"'stopping' .* at least 0\. Got -1"),
        ({"seed": -1}, r"'seed' .* from 0 to 4294967295\. Got -1"),
        ({"seed": 2**32}, r"'seed' .* from 0 to 4294967295\. Got 4294967296"),
        ({"seed": 1.5}, r"'seed' .* Got 1\.5"),
        ({"seed": "one"}, r"'seed' .* Got 'one'"),
        ({"test": "yes"}, r"'test' .* must be True or False\. Got 'yes'"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    graph = labelled([80, 20], class_names=["common", "rare"])
    good: dict[str, Any] = {"seed": 1, "known": 50, "per_class": 5, "stopping": 5}
    with pytest.raises(InputError, match=sentence):
        paper_split(graph, **(good | arguments))


def test_a_class_without_known_nodes_is_named_with_its_count() -> None:
    graph = labelled([50, 0, 50])
    with pytest.raises(InputError, match=r"at most 0, the number of known nodes of class 1\. Got 5"):
        paper_split(graph, 1, known=50, per_class=5, stopping=5)


def test_validation_splits_do_without_the_test_nodes_labels() -> None:
    graph = labelled([9, 8, 7])
    test = paper_split(graph, 1, known=18, per_class=2, stopping=3).evaluation
    assert graph.labels is not None
    hidden = graph.labels.copy()
    hidden[test] = -1
    kept, drawn = (
        paper_split(each, 1, test=False, known=18, per_class=2, stopping=3)
        for each in (graph, graph.replace(labels=hidden))
    )
    for name in ("train", "stopping", "evaluation"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(drawn, name))
    hidden[kept.stopping[0]] = -1
    with pytest.raises(InputError, match="1 nodes of unknown class"):
        paper_split(graph.replace(labels=hidden), 1, test=False, known=18, per_class=2, stopping=3)


def test_graphs_without_full_labels_are_refused() -> None:
    with pytest.raises(InputError, match="must be a graph with labels"):
        paper_split(Graph.from_scipy(sparse.csr_array((9, 9))), 1)
    with pytest.raises(InputError, match="2 nodes of unknown class"):
        paper_split(Graph.from_scipy(sparse.csr_array((4, 4)), labels=[0, -1, 1, -1]), 1, known=2)
    with pytest.raises(InputError, match="must be a Graph"):
        paper_split("citeseer", 1)  # type: ignore[arg-type]
