"""Ids of every kind survive, and CSV, Parquet and a data frame of the same table are the same graph."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pprop import Graph, read_edges

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=60, deadline=None)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
TEXTS = WORDS.filter(lambda text: text == text.strip())
DIGITS = st.from_regex(r"[+-]?0{0,2}[0-9]{1,20}(\.0)?", fullmatch=True)
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def first_appearance(pairs: list[tuple[Any, Any]]) -> list[Any]:
    return list(dict.fromkeys(end for pair in pairs for end in pair))


def as_ids(keys: list[str]) -> list[Any]:
    """The ids that texts become: integers where all are integers as Python prints them."""
    try:
        numbers = [int(key) for key in keys]
    except ValueError:
        return keys
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return numbers if fits and [str(number) for number in numbers] == keys else keys


def dense(pairs: list[tuple[Any, Any]], ids: list[Any]) -> Any:
    adjacency = np.zeros((len(ids), len(ids)))
    for source, target in pairs:
        adjacency[ids.index(source), ids.index(target)] = adjacency[ids.index(target), ids.index(source)] = 1
    return adjacency


@QUICK
@given(st.lists(st.tuples(TEXTS | DIGITS, TEXTS | DIGITS), min_size=1, max_size=6))
def test_ids_of_text_survive_a_csv_file_and_a_frame(pairs: list[tuple[str, str]]) -> None:
    keys = first_appearance(pairs)
    frame = pd.DataFrame(pairs, columns=["source", "target"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "edges.csv")
        frame.to_csv(file, index=False, quoting=csv.QUOTE_ALL)  # else pandas leaves a carriage return without quotes
        for graph in (read_edges(file), Graph.from_pandas(frame)):
            assert graph.ids is not None
            assert graph.ids.tolist() == as_ids(keys)
            np.testing.assert_array_equal(graph.adjacency.toarray(), dense(pairs, keys))


@QUICK
@given(st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=6))
def test_integer_ids_survive_a_csv_file_and_a_frame(pairs: list[tuple[int, int]]) -> None:
    keys = first_appearance(pairs)
    frame = pd.DataFrame(pairs, columns=["source", "target"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "edges.csv.gz")
        frame.to_csv(file, index=False)
        texts = frame.astype(str)
        for graph in (
            read_edges(file),
            Graph.from_pandas(frame),
            Graph.from_pandas(texts),
            Graph.from_edges(*zip(*pairs, strict=True)),
        ):
            assert graph.ids is not None
            assert graph.ids.dtype == np.int64
            assert graph.ids.tolist() == keys
            np.testing.assert_array_equal(graph.adjacency.toarray(), dense(pairs, keys))


NUMBERS = st.floats(-(2.0**90), 2.0**90, width=32) | st.none()


@pytest.mark.filterwarnings("ignore:Left out .* of weight zero")
@QUICK
@given(st.data(), st.sets(INTEGERS | st.integers(0, 9), min_size=2, max_size=8))
def test_csv_parquet_and_frames_of_one_table_are_the_same_graph(data: Any, keys: set[int]) -> None:
    ids = data.draw(st.permutations(sorted(keys)))
    kinds = data.draw(st.sets(st.sampled_from(["number", "whole", "flag", "word"])))
    cells: dict[str, Any] = {
        "number": NUMBERS,
        "whole": st.integers(-1000, 1000),
        "flag": st.booleans(),
        "word": st.sampled_from(["red", "blue", "a, b", 'say "no"', None]),
    }
    nodes = pd.DataFrame({"id": ids, **{kind: [data.draw(cells[kind]) for _ in ids] for kind in sorted(kinds)}})
    labels = data.draw(st.sampled_from([st.sampled_from(["x", "y", None]), st.booleans(), st.sampled_from([3, 5, 70])]))
    nodes["label"] = [data.draw(labels) for _ in ids]
    ends = st.sampled_from(ids)
    pairs = data.draw(st.lists(st.tuples(ends, ends), max_size=10))
    edges = pd.DataFrame(pairs, columns=["source", "target"], dtype=np.int64)
    edges["weight"] = [data.draw(st.floats(0, 100)) for _ in pairs]
    options: dict[str, Any] = {"label_column": "label", "weight": "weight", "directed": data.draw(st.booleans())}
    graph = Graph.from_pandas(edges, nodes, **options)
    with tempfile.TemporaryDirectory() as folder:
        for write, suffix in (("to_csv", "csv"), ("to_parquet", "parquet")):
            files = [Path(folder, f"{name}.{suffix}") for name in ("edges", "nodes")]
            for table, file in zip((edges, nodes), files, strict=True):
                getattr(table, write)(file, index=False)
            read = read_edges(*files, **options)
            assert read.feature_names == graph.feature_names
            assert read.fingerprint == graph.fingerprint
