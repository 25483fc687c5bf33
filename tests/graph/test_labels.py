"""Labels as people write them: marks of the unknown, numbers and words, and columns that hold no classes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from pprop import Graph, LabelPropagationClassifier, read_edges
from pprop._errors import FormatError, InputError


def labelled(cells: Any, **options: Any) -> Graph:
    ids = [f"n{row}" for row in range(len(cells))]
    return Graph.from_pandas(
        {"source": ids[:1], "target": ids[-1:]}, {"id": ids, "y": cells}, label_column="y", **options
    )


@pytest.mark.filterwarnings("ignore:.na. under .* is taken for a class")
@pytest.mark.parametrize(
    ("cells", "names", "codes"),
    [
        (["b", "", "NA", "N/A", "nan", "NaN", "None", "null", "?", "-1", None, "a"], ("a", "b"), [1] + 10 * [-1] + [0]),
        (["none", "na", "No"], ("No", "na", "none"), [2, 1, 0]),  # words that differ from a mark by a letter's case
        ([3, 1, -1, 7], ("1", "3", "7"), [1, 0, -1, 2]),
        ([3, 1, None, 7], ("1", "3", "7"), [1, 0, -1, 2]),  # as pandas and Arrow have integers with gaps
        ([3.0, 1.0, np.nan, 10.0], ("1", "3", "10"), [1, 0, -1, 2]),
        (["3.0", "1.0", "", "10"], ("1", "3", "10"), [1, 0, -1, 2]),  # as pandas writes them
        (["10", "9", "-1", "x"], ("10", "9", "x"), [0, 1, -1, 2]),
        ([True, False, None], ("false", "true"), [1, 0, -1]),
        (pd.Categorical(["b", "a", None]), ("a", "b"), [1, 0, -1]),
        ([-1, -1], (), [-1, -1]),
        ([None, None], (), [-1, -1]),
        ([-1, 0, 1], ("0", "1"), [-1, 0, 1]),
    ],
)
def test_classes_and_marks(cells: Any, names: tuple[str, ...], codes: list[int]) -> None:
    graph = labelled(cells)
    assert graph.class_names == names
    np.testing.assert_array_equal(graph.labels, codes)  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [[-1, 1, 1, -1], ["-1", "1", "1", "-1"], [-1.0, 1.0, 1.0, -1.0]])
def test_minus_one_beside_one_other_number_is_a_class_and_a_warning_says_so(cells: Any) -> None:
    with pytest.warns(UserWarning, match=r"are -1 and one other number: -1 is taken for a class\. If it means unknown"):
        graph = labelled(cells)
    assert graph.class_names == ("-1", "1")
    np.testing.assert_array_equal(graph.labels, [0, 1, 1, 0])  # type: ignore[arg-type]
    assert labelled(cells, missing_labels=["-1"]).class_names == ("1",)
    assert labelled(cells, missing_labels=[]).class_names == ("-1", "1")


def test_the_list_of_marks_can_be_changed() -> None:
    graph = labelled(["NA", "unknown", "", "a"], missing_labels=["unknown"])
    assert graph.class_names == ("NA", "a")
    np.testing.assert_array_equal(graph.labels, [0, -1, -1, 1])  # type: ignore[arg-type]
    assert labelled([5, 9, 7], missing_labels=[9]).class_names == ("5", "7")


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (
            [0.25, 1.0, 2.0],
            r"such as 0\.25, under 'y' of the dict instead\. pprop predicts classes, not quantities: divide",
        ),
        (["0.25", "1", "?"], r"numbers that are not whole, such as 0\.25,"),
        (list(range(60)), r"60 different numbers for 60 labels under 'y'"),
        ([f"{number}.0" for number in range(60)], r"60 different numbers for 60 labels"),
        ([number % 60 for number in range(600)], r"60 different numbers for 600 labels"),
        ([row % 47 for row in range(120)], r"47 different numbers for 120 labels"),  # scores
        ([1990 + row % 31 for row in range(100)], r"31 different numbers for 100 labels"),
        (
            list(range(2002)) * 3,
            r"2,002 different numbers for 6,006 labels .* if you say so\. Pass label_kind='category'\.",
        ),
        ([f"person {number}" for number in range(60)], r"60 different texts for 60 labels"),
        (["a|b", "b|c", "a", "c|a|b"], r"several tags in a cell, such as 'a\|b', .* one column of each tag"),
        (["a; b", "b", "c"], r"several tags in a cell, such as 'a; b',"),
        (["a, b", "b, c", "d"], r"several tags in a cell, such as 'a, b',"),
        ([["a"], ["a", "b"]], r"lists, such as \['a'\], under 'y'"),
        (
            pd.to_datetime(["2020-01-01", "2021-01-01"]),
            r"timestamp.* under 'y' .* Write the classes as text or integers",
        ),
    ],
)
def test_columns_without_classes_are_refused_in_one_sentence(cells: Any, sentence: str) -> None:
    expected = r"'label_column' parameter of Graph\.from_pandas must be a column with one class for each node\. Got "
    with pytest.raises(FormatError, match=expected + ".*" + sentence):
        labelled(cells)


@pytest.mark.parametrize(
    "cells",
    [
        ["churn", "stay, maybe", "Größe"],
        ["yes, probably", "yes", "no, probably", "no"],
        ["rock|pop", "jazz", "rock|pop"],  # always together
        ["a;", "b;", ";"],
        [f"class {row % 60}" for row in range(180)],  # many classes, each with several nodes
        [0, 1] * 3,
        [*range(1, 8)] * 3,
        [row % 10 for row in range(20)],
        [row % 20 for row in range(100)],
        [f"{row % 40:03}" for row in range(120)],  # padded, as no quantity is
        ["Washington, DC", "Portland, OR", "Portland, ME"],
    ],
)
def test_names_of_classes_may_look_a_little_like_lists(cells: list[Any]) -> None:
    assert labelled(cells).n_classes == len(set(cells))


@pytest.mark.parametrize(
    ("cells", "few"),
    [
        ([18 + row % 50 for row in range(2000)], False),  # ages
        ([f"{row % 21}.0" for row in range(210)], False),
        ([row % 11 for row in range(44)], True),
        ([1] * 500 + [*range(1, 12)] * 4 + [None] * 9, True),  # the median class counts
    ],
)
def test_whole_numbers_that_may_measure_something_are_classes_and_a_warning_says_so(cells: Any, few: bool) -> None:
    values = len({cell for cell in cells if cell is not None})
    rare = ", and most have fewer than 5 labels" if few else ""
    told = (
        f"The {values} different numbers under 'y' of the dict are read as classes{rare}. If they measure something, "
    )
    with pytest.warns(UserWarning, match=rf"^{told}.* If they are codes of classes, pass label_kind='category'\.$"):
        assert labelled(cells).n_classes == values
    assert labelled(cells, label_kind="category").n_classes == values


BARE = sparse.csr_array((3000, 3000))
MANY = {
    "from_scipy": (lambda y: Graph.from_scipy(BARE, labels=y), "labels"),
    "from_scipy, with gaps": (lambda y: Graph.from_scipy(BARE, labels=np.append(y[1:], [np.nan])), "labels"),
    "from_edges": (lambda y: Graph.from_edges([0], [1], nodes=range(3000), labels=y), "labels"),
    "replace": (lambda y: Graph.from_scipy(BARE).replace(labels=y), "labels"),
    "replace, directed": (lambda y: Graph.from_scipy(BARE).replace(labels=y, directed=True), "labels"),
    "fit": (lambda y: LabelPropagationClassifier(Graph.from_scipy(BARE)).fit(np.arange(3000), y), "y"),
    "fit, floats": (lambda y: LabelPropagationClassifier(Graph.from_scipy(BARE)).fit(y=y.astype(float)), "y"),
    "fit, a list": (lambda y: LabelPropagationClassifier(Graph.from_scipy(BARE)).fit(y=y.tolist()), "y"),
}


@pytest.mark.parametrize(("make", "name"), MANY.values(), ids=MANY)
def test_arrays_of_nearly_as_many_numbers_as_labels_are_refused(make: Any, name: str) -> None:
    got = rf"'{name}' .* must be one class per node\. Got (3,000|2,999) different numbers for (3,000|2,999) labels instead\."
    insist = rf"{name}\.astype\(str\)" if name == "labels" else r"pd\.Categorical\(y\)"  # as text, fit refuses them
    with pytest.raises(InputError, match=rf"{got} .*divide the numbers .* pass {insist}\."):
        make(np.arange(3000))
    make(np.arange(3000) % 50)


def test_classes_of_an_array_are_as_many_as_their_labels_show_or_their_names_say() -> None:
    many = np.arange(3000) // 2
    graph = Graph.from_scipy(BARE, labels=many)  # two nodes of each
    assert graph.n_classes == 1500
    half = graph.subgraph(np.arange(0, 3000, 2))  # of a graph, classes stay what they are
    assert pickle.loads(pickle.dumps(half)) == half  # noqa: S301 - made one line ago
    assert half.replace(name="half").replace(directed=True).n_classes == 1500
    assert Graph.from_scipy(BARE, labels=np.arange(3000), class_names=[f"c{k}" for k in range(3000)]).n_classes == 3000
    assert Graph.from_scipy(BARE, labels=np.arange(3000).astype(str)).n_classes == 3000


def test_integers_that_may_be_scores_are_warned_of_where_they_train() -> None:
    graph = Graph.from_scipy(sparse.csr_array((120, 120)))
    scores = np.arange(120) % 47
    told = r"^The 47 different numbers among 120 labels are read as classes, and most have fewer than 5 labels\. "
    with pytest.warns(UserWarning, match=rf"{told}If they measure .* codes of classes, pass y\.astype\(str\)\."):
        model = LabelPropagationClassifier(graph).fit(y=scores)
    assert len(model.classes_) == 47
    for silent in (scores.astype(str), np.arange(120) % 24, np.arange(120) % 7, [0, 1, 2, 3, 4, 5, 6] + [-1] * 113):
        LabelPropagationClassifier(graph).fit(y=silent)


SCORES = np.arange(3000) % 494


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (pd.Series(SCORES), (pd.Series(SCORES).astype(str), pd.Series(SCORES, dtype="category"))),
        (pd.Series(SCORES, dtype="Int64"), (pd.Categorical(SCORES),)),
        (pd.Series(SCORES.astype(float)), (pd.Series(SCORES).astype(str),)),
        (pl.Series(SCORES), (pl.Series(SCORES).cast(pl.String),)),
    ],
    ids=["pandas", "pandas with gaps", "floats", "polars"],
)
def test_a_series_of_many_numbers_is_refused_as_the_column_of_a_table_is(column: Any, classes: tuple[Any, ...]) -> None:
    model = LabelPropagationClassifier(Graph.from_scipy(BARE))
    insist = r"y\.cast\(pl\.String\)" if isinstance(column, pl.Series) else r"y\.astype\(str\)"
    with pytest.raises(InputError, match=rf"Got 494 different numbers for 3,000 labels .* classes, pass {insist}\.$"):
        model.fit(y=column)
    for confirmed in classes:
        assert len(model.fit(y=confirmed).classes_) == 494


def test_a_series_of_twelve_numbers_with_a_few_labels_each_is_warned_of_as_a_column_is() -> None:
    model = LabelPropagationClassifier(Graph.from_scipy(sparse.csr_array((44, 44))))
    with pytest.warns(
        UserWarning, match=r"^The 12 different numbers among 44 labels are read as classes, and most have"
    ):
        model.fit(y=pd.Series(np.arange(44) % 12))
    model.fit(y=np.arange(44) % 12)


def test_an_array_of_more_than_fifty_numbers_is_read_with_a_warning() -> None:
    model = LabelPropagationClassifier(Graph.from_scipy(BARE))
    with pytest.warns(
        UserWarning, match=r"^The 494 different numbers among 3,000 labels are read as classes\. If they"
    ):
        model.fit(y=SCORES)
    model.fit(y=np.arange(3000) % 50)


@pytest.mark.parametrize(
    ("labels", "insist"),
    [
        (np.arange(300).astype(str), r"pd\.Categorical\(y\)"),
        ([f"person {number % 160}" for number in range(300)], r"pd\.Categorical\(y\)"),
        (pd.Series(np.arange(300).astype(str)), r"y\.astype\('category'\)"),
        (pl.Series(np.arange(300).astype(str)), r"y\.cast\(pl\.String\)\.cast\(pl\.Categorical\)"),
    ],
    ids=["numbers", "names", "pandas", "polars"],
)
def test_nearly_as_many_texts_as_labels_are_refused_where_they_train(labels: Any, insist: str) -> None:
    model = LabelPropagationClassifier(Graph.from_scipy(sparse.csr_array((300, 300))))
    with pytest.raises(InputError, match=rf"Got \d+ different texts for 300 labels .* is a class, pass {insist}\.$"):
        model.fit(y=labels)
    categories = pl.Series(labels).cast(pl.Categorical) if isinstance(labels, pl.Series) else pd.Categorical(labels)
    assert len(model.fit(y=categories).classes_) > 150
    assert len(model.fit(y=[*map(str, range(20))] * 15).classes_) == 20


def test_labels_that_a_table_confirmed_train_without_a_further_question() -> None:
    scores = pd.Series(SCORES)
    graph = labelled(scores, label_kind="category")
    assert graph.class_names is not None
    names = np.array(graph.class_names)[graph.labels]
    for labels in (scores, names):
        assert len(LabelPropagationClassifier(graph).fit(y=labels).classes_) == 494


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        ([row % 60 for row in range(600)], [str(number) for number in range(60)]),
        ([0.5, 1.0, None, 0.5], ["0.5", "1"]),
        ([f"person {row}" for row in range(30)], sorted(f"person {row}" for row in range(30))),
        (["a|b", "b|c", "a"], ["a", "a|b", "b|c"]),
    ],
)
def test_a_column_that_looks_like_no_classes_is_one_of_classes_where_the_caller_says_so(
    tmp_path: Path, cells: list[Any], names: list[str]
) -> None:
    with pytest.raises(FormatError):
        labelled(cells)
    graph = labelled(cells, label_kind="category")
    assert graph.class_names == tuple(names)
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\n")
    text = ["" if cell is None else str(cell) for cell in cells]
    (tmp_path / "nodes.csv").write_text("id,y\n" + "".join(f"n{row},{cell}\n" for row, cell in enumerate(text)))
    read = read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv", label_column="y", label_kind="category")
    assert read.class_names == graph.class_names
    np.testing.assert_array_equal(read.labels, graph.labels)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'label_kind' .* must be one of 'auto' or 'category'"):
        labelled(cells, label_kind="class")


def test_a_class_whose_name_may_mean_unknown_is_cautioned_about_unless_the_marks_are_ones_own() -> None:
    with pytest.warns(UserWarning, match=r"'Unknown' under 'y' of the dict is taken for a class\. If it means unknown"):
        labelled(["a", "Unknown", "b", "a"])
    assert labelled(["a", "Unknown", "b", "a"], missing_labels=["?"]).class_names == ("Unknown", "a", "b")


def test_classes_that_differ_only_in_case_or_blanks_are_cautioned_about_and_kept() -> None:
    told = r"'Red', 'red', 'red ' under 'y' of the dict differ only in case or blanks: each is a class"
    with pytest.warns(UserWarning, match=f"^{told}") as caught:
        graph = labelled(["red", "Red", "blue", "red ", "blue"])
    assert len(caught) == 1
    assert graph.class_names == ("Red", "blue", "red", "red ")
    with pytest.warns(UserWarning, match="differ only"):
        labelled(["red", "Red", "x"], missing_labels=["x"])
    assert labelled(["red", "Red"], missing_labels=()).class_names == ("Red", "red")  # as to_pandas says it


@pytest.mark.parametrize(
    ("cells", "text", "names"),
    [
        ([True, False, None], ["True", "False", "NA"], ("false", "true")),  # as pandas writes them
        ([True, False, None], ["TRUE", "FALSE", ""], ("false", "true")),
        ([True, None, True], ["true", "", "True"], ("true",)),
        ([1, 0, None], ["1", "0", ""], ("0", "1")),
        ([1.0, 0.0, None], ["1.0", "0.0", "nan"], ("0", "1")),
    ],
)
def test_classes_are_the_same_texts_in_a_frame_and_in_a_csv_file(
    tmp_path: Path, cells: list[Any], text: list[str], names: tuple[str, ...]
) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nn0,n2\n")
    (tmp_path / "nodes.csv").write_text("id,y\n" + "".join(f"n{row},{cell}\n" for row, cell in enumerate(text)))
    read, frame = read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv", label_column="y"), labelled(cells)
    assert read.class_names == frame.class_names == names
    np.testing.assert_array_equal(read.labels, frame.labels)  # type: ignore[arg-type]
