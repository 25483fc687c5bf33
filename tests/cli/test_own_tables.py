"""Ordinary tables through the command line: a right answer or one clear sentence, never a silent wrong one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from tests.cli.own_tables import CLASSES, NUMBERS, PEOPLE, QUICK, on, project, read_rows, sentence, write_rows

import pprop
from pprop.cli.splits import own_split

pytestmark = pytest.mark.usefixtures("without_drawing")

SEEDS = (0, 1, 2)


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in record.items()
        if name not in ("graph", "seconds", "compile_seconds", "ms_per_epoch", "out")
    }


# two numbers of very different size


@pytest.mark.slow
def test_two_numbers_are_scaled_and_the_report_says_that_label_propagation_is_better(pprop_here, folder: Path):
    records = [pprop_here(*on(folder, "numbers.csv"), "--seed", seed, "--json").record for seed in SEEDS]
    assert np.mean([record["test_accuracy"] for record in records]) >= 0.75
    for record in records:
        assert record["scaling"] == "standard"
        assert record["baselines"]["label_propagation"] > 0.9
        (caution,) = [text for text in record["cautions"] if "label propagation" in text.lower()]
        lead = record["leads"]["over"]["label_propagation"]
        if lead["interval"][1] < 0:
            assert caution.startswith("Label propagation has a better accuracy than appnp on these")
            assert "--model auto" in caution
        else:
            assert "no difference that" in caution
        assert "--model label-propagation" not in caution  # nobody is told to choose by the labels of the test nodes
        assert record["columns"]["used"] == {"age": "number, standardised", "income": "number, standardised"}
        assert list(record["columns"]["unused"]) == ["weight"]


@pytest.mark.slow
def test_the_automatic_choice_finds_what_is_best(pprop_here, folder: Path):
    command = (*on(folder, "numbers.csv"), "--model", "auto", "--no-baselines", "--json")
    records = [pprop_here(*command, "--seed", seed).record for seed in SEEDS]
    assert np.mean([record["test_accuracy"] for record in records]) >= 0.97
    for record in records:
        assert record["chosen"][0] == max(record["scores"], key=record["scores"].get)
        assert {row["name"] for row in record["candidates"] if not row["left_out"]} == set(record["scores"])


@pytest.mark.slow
def test_more_columns_do_no_harm(pprop_here, folder: Path):
    settings = ("--max-epochs", 300, "--no-baselines", "--json")
    numbers, everything = (
        [pprop_here(*on(folder, nodes), *settings, "--seed", seed).record["test_accuracy"] for seed in SEEDS]
        for nodes in ("numbers.csv", "people.csv")
    )
    assert np.mean(everything) >= np.mean(numbers)


# columns


def test_every_column_is_in_the_report_used_or_with_the_reason_why_not(pprop_here, folder: Path):
    answer = pprop_here(*on(folder, "people.csv"), *QUICK, "--json")
    columns = answer.record["columns"]
    assert columns["used"] == {
        "age": "number, standardised",
        "income": "number, standardised",
        "country": "category, 3 values",
        "premium": "boolean",
        "signup": "date, standardised",
        "bio": "text, 9 words",
    }
    assert list(columns["unused"]) == ["phone", "weight"]
    assert "identifier" in columns["unused"]["phone"]
    assert "--weight weight" in columns["unused"]["weight"]
    printed = [line.split(maxsplit=1) for line in answer.err.splitlines() if line.startswith("  ")]
    assert [tuple(pair) for pair in printed] == [*columns["used"].items(), *columns["unused"].items()]


def test_long_lists_of_columns_end_after_ten_lines_unless_all_are_asked_for(pprop_here, folder: Path, tmp_path: Path):
    rows = [[row["id"], row["label"], *range(k, k + 13)] for k, row in enumerate(read_rows(folder / "numbers.csv"))]
    names = [f"x{k}" for k in range(13)]
    write_rows(tmp_path / "nodes.csv", ["id", "label", *names], rows)
    kinds = [word for name in names for word in ("--column", f"{name}=number")]
    command = ("data", "check", *on(folder, tmp_path / "nodes.csv")[1:], *kinds)
    short, long = (pprop_here(*command, *more).out for more in ((), ("--columns",)))
    assert "and 3 more used (--columns shows all)" in short
    assert "x10" not in short
    assert all(f"  {name} " in long for name in names)
    assert "more used" not in long


def test_columns_mean_the_same_in_csv_and_parquet(pprop_here, folder: Path, tmp_path: Path):
    table = pc.read_csv(folder / "people.csv", convert_options=pc.ConvertOptions(column_types={"phone": pa.string()}))
    assert pa.types.is_boolean(table.schema.field("premium").type)
    pq.write_table(table, tmp_path / "people.parquet")
    records = [
        pprop_here(*on(folder, nodes), *QUICK, "--json").record for nodes in ("people.csv", tmp_path / "people.parquet")
    ]
    assert records[0]["columns"] == records[1]["columns"]
    assert records[0]["test_accuracy"] == records[1]["test_accuracy"]


def test_an_index_a_phone_number_and_a_zip_code_are_no_features(pprop_here, folder: Path, tmp_path: Path):
    rows = [{"": k, **row, "zip": f"{k:05d}"} for k, row in enumerate(read_rows(folder / "people.csv"), 1067)]
    names = ["", *NUMBERS, "phone", "zip"]
    write_rows(tmp_path / "nodes.csv", names, project(rows, names))
    columns = pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK, "--json").record["columns"]
    assert set(columns["used"]) == {"age", "income"}
    unused = columns["unused"]
    assert len(unused) == 4  # the index, whose name is empty or made up, phone number, zip code and weight
    assert {unused["phone"], unused["zip"]} == {"left out: looks like an identifier"}


def test_columns_are_chosen_and_their_kinds_given(pprop_here, folder: Path):
    named = pprop_here(*on(folder, "people.csv"), *QUICK, "--features", "age,country", "--json").record["columns"]
    assert named["used"] == {"age": "number, standardised", "country": "category, 3 values"}
    assert set(named["unused"]) == {"income", "premium", "signup", "bio", "phone", "weight"}
    kinds = ("--column", "age=unused", "--column", "premium=category", "--column", "phone=number")
    given = pprop_here(*on(folder, "people.csv"), *QUICK, *kinds, "--json").record["columns"]
    assert given["used"]["premium"] == "category, 2 values"
    assert given["used"]["phone"] == "number, standardised"
    assert given["unused"]["age"] == "left out: as asked for"


def test_names_with_spaces_commas_and_umlauts_are_columns_like_others(pprop_here, folder: Path, tmp_path: Path):
    names = ["der Knoten", "Klasse, bekannt", "Größe = x", "income (€)"]
    write_rows(tmp_path / "nodes.csv", names, project(read_rows(folder / "numbers.csv"), NUMBERS))
    options = ("--id-column", names[0], "--label-column", names[1], "--column", f"{names[2]}=number")
    answer = pprop_here("train", folder / "edges.csv", "--nodes", "nodes.csv", *options, *QUICK, "--json")
    assert answer.record["columns"]["used"] == {names[2]: "number, standardised", names[3]: "number, standardised"}


def test_a_structure_takes_the_place_of_columns(pprop_here, folder: Path):
    record = pprop_here(*on(folder, "numbers.csv"), *QUICK, "--structure", "degree", "--json", "--out", "model").record
    assert record["columns"]["used"] == {}
    assert set(record["columns"]["unused"]) == {"age", "income", "weight"}
    assert pprop_here("predict", "model").code == 0


def test_embeddings_in_a_file_are_used_beside_columns_and_a_model_knows_its_files(
    pprop_here, folder: Path, tmp_path: Path
):
    people = len(read_rows(folder / "numbers.csv"))
    np.save(tmp_path / "emb.npy", np.random.default_rng(0).normal(size=(people, 7)).astype(np.float32))
    command = (*on(folder, "numbers.csv"), *QUICK, "--json")
    answer = pprop_here(*command, "--features", "emb.npy", "--degree", "--out", "model")
    assert answer.record["columns"]["used"] == {
        "age": "number, standardised",
        "income": "number, standardised",
        "emb.npy": "embedding, 7 numbers, standardised",
        "log degree": "number, standardised",
    }
    assert "  emb.npy     embedding, 7 numbers" in answer.err
    source = json.loads((tmp_path / "model" / "manifest.json").read_text())["graph"]["source"]
    assert (source["features"], source["degree"]) == ([str(tmp_path / "emb.npy")], True)
    named = pprop_here(*command, "--features", "income,emb.npy").record["columns"]["used"]
    assert [*named] == ["income", "emb.npy"]
    kinds = pprop_here(*command, "--features", "emb.npy", "--column", "age=unused").record["columns"]["used"]
    assert [*kinds] == ["income", "emb.npy"]
    assert pprop_here("predict", "model", "--out", "p.csv").code == 0
    other = ("predict", "model", "--graph", folder / "edges.csv", "--nodes", folder / "numbers.csv", "--out", "q.csv")
    refused = pprop_here(*other)
    assert (refused.code, "The model reads emb.npy" in refused.err) == (2, True)
    np.save(tmp_path / "other.npy", np.ones((people, 7), dtype=np.float32))
    seen = pprop_here(*other, "--features", "other.npy")
    assert (seen.code, "--features has other.npy, which the model does not know" in seen.err) == (2, True)
    assert pprop_here(*other, "--features", "emb.npy").code == 0
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    assert "knows its columns" in pprop_here(*other, "--features", "age,emb.npy").err
    (tmp_path / "emb.npy").rename(tmp_path / "gone.npy")
    lost = pprop_here("predict", "model", "--out", "r.csv")
    assert (lost.code, "emb.npy" in lost.err) == (3, True)
    np.save(tmp_path / "short.npy", np.zeros((people - 1, 2)))
    assert "with 600 rows, one for each of" in sentence(pprop_here(*command, "--features", "short.npy"))
    assert pprop_here(*command, "--features", "none.npy").err.endswith("There is no file 'none.npy'.\n")
    np.save(tmp_path / "empty.npy", np.full((people, 2), np.nan))
    for file, told in {  # what is wrong with a file does not wait for the names of columns
        "short.npy": "--features must be a matrix of numbers with 600 rows, one for each of ",
        "empty.npy": "--features must be a matrix with numbers. Got 'empty.npy', in which all are missing (NaN).",
    }.items():
        both = pprop_here(*command, "--id-column", "key", "--features", file)
        assert (both.code, "has no column 'key'" in both.err) == (3, True)
        assert told in both.err


def test_ids_and_labels_alone_train_label_propagation_or_a_structure(pprop_here, folder: Path, tmp_path: Path):
    write_rows(tmp_path / "nodes.csv", NUMBERS[:2], project(read_rows(folder / "numbers.csv"), NUMBERS[:2]))
    refused = sentence(pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK))
    assert "features" in refused
    spread = pprop_here(*on(folder, tmp_path / "nodes.csv"), "--model", "label-propagation", "--json").record
    assert spread["test_accuracy"] > 0.9
    assert spread["baselines"]["network"] is None
    assert pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK, "--structure", "identity").code == 0


# labels


@pytest.mark.parametrize("marker", ["NA", "?", "-1", "nan"])
def test_a_marker_of_unknown_labels_is_as_an_empty_cell(pprop_here, folder: Path, tmp_path: Path, marker: str):
    rows = [{**row, "label": row["label"] or marker} for row in read_rows(folder / "numbers.csv")]
    write_rows(tmp_path / "nodes.csv", NUMBERS, project(rows, NUMBERS))
    expected, found = (
        pprop_here(*on(folder, nodes), *QUICK, "--json").record for nodes in ("numbers.csv", tmp_path / "nodes.csv")
    )
    assert without_times(found) == without_times(expected)
    assert set(found["classes"]) == set(CLASSES)


def test_the_markers_of_unknown_labels_can_be_named(pprop_here, folder: Path, tmp_path: Path):
    rows = [
        {**row, "label": row["label"] or ("later" if k % 2 else "NA")}
        for k, row in enumerate(read_rows(folder / "numbers.csv"))
    ]
    write_rows(tmp_path / "nodes.csv", NUMBERS, project(rows, NUMBERS))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--json", "--missing-labels")
    assert set(pprop_here(*command, "NA, later").record["classes"]) == set(CLASSES)
    assert set(pprop_here(*command, "later").record["classes"]) == {"NA", *CLASSES}


@pytest.mark.parametrize(
    ("column", "why"), [("score", "divide the numbers into a few ranges"), ("tags", "several tags in a cell")]
)
def test_a_score_or_tags_are_refused_in_one_sentence(pprop_here, folder: Path, column: str, why: str):
    answer = pprop_here("train", folder / "edges.csv", "--nodes", folder / f"{column}.csv", "--label-column", column)
    assert why in sentence(answer)
    assert answer.err.count("\n") == 1


def test_many_numbers_are_classes_only_where_an_option_says_so(pprop_here, tmp_path: Path):
    people = 260
    write_rows(tmp_path / "edges.csv", ("source", "target"), [(k, (k + 52) % people) for k in range(people)])
    write_rows(tmp_path / "nodes.csv", ("id", "age", "stars"), [(k, k % 7, k % 52) for k in range(people)])
    command = ("edges.csv", "--nodes", "nodes.csv", "--label-column", "stars")
    refused = pprop_here("train", *command, *QUICK, "--out", "model")
    assert "52 different numbers for 260 labels" in sentence(refused)
    assert "--label-kind category" in refused.err
    assert not (tmp_path / "model").exists()
    assert "52 different numbers" in pprop_here("data", "check", *command).out
    insisted = pprop_here("train", *command, *QUICK, "--label-kind", "category", "--out", "model", "--json")
    assert len(insisted.record["classes"]) == 52
    assert pprop_here("predict", "model", "--out", "p.csv").code == 0  # the option is in the model
    again = pprop_here("predict", "model", "--graph", "edges.csv", "--nodes", "nodes.csv", "--out", "q.csv")
    assert again.code == 0
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    manifest = tmp_path / "model" / "manifest.json"
    saved = json.loads(manifest.read_text())
    del saved["graph"]["source"]["label_kind"]  # as models were saved before there was the option
    manifest.write_text(json.dumps(saved))
    assert pprop_here("predict", "model", "--out", "r.csv").code == 0


@pytest.mark.parametrize("model", ["label-propagation", "appnp"])
def test_scores_of_a_few_labels_each_are_classes_only_where_an_option_says_so(pprop_here, tmp_path: Path, model: str):
    write_rows(tmp_path / "edges.csv", ("source", "target"), [(k, (k + 47) % 120) for k in range(120)])
    write_rows(tmp_path / "nodes.csv", ("id", "points", "age"), [(k, 3 * (k % 47), k % 7) for k in range(120)])
    tables = ("edges.csv", "--nodes", "nodes.csv", "--label-column", "points")
    refused = pprop_here("train", *tables, "--model", model, *QUICK[2:], "--out", "model")
    assert refused.code == 3
    told = (
        "--label-column must be a column with one class for each node. Got 47 different numbers for 120 labels under 'points' "
        "of 'nodes.csv'. pprop predicts classes, not quantities: divide the numbers into a few ranges, or name another "
        "column. Each value is a class nevertheless if you say so. Add: --label-kind category"
    )
    assert sentence(refused) == f"pprop train: {told}"
    assert not (tmp_path / "model").exists()
    assert told in pprop_here("data", "check", *tables).out
    assert sentence(pprop_here("build", *tables, "--out", "graph")) == f"pprop build: {told}"
    assert sentence(pprop_here("tune", *tables, "--out", "tuned")) == f"pprop tune: {told}"
    insisted = pprop_here("train", *tables, *QUICK, "--no-baselines", "--label-kind", "category", "--json")
    assert len(insisted.record["classes"]) == 47
    assert "are read as classes" not in insisted.err


def test_numbers_that_may_measure_something_are_classes_and_a_line_says_so(pprop_here, tmp_path: Path):
    write_rows(tmp_path / "edges.csv", ("source", "target"), [(k, (k + 47) % 120) for k in range(120)])
    rows = [(k, k % 12, k % 47 % 7) if k < 48 else (k, "", k % 7) for k in range(120)]
    write_rows(tmp_path / "nodes.csv", ("id", "month", "floor"), rows)
    train = ("train", "edges.csv", "--nodes", "nodes.csv", *QUICK, "--no-baselines", "--label-column")
    told = (
        "The 12 different numbers under 'month' of 'nodes.csv' are read as classes, and most have fewer than 5 labels. "
        "If they measure something, divide them into a few ranges, or name another column. "
        "If they are codes of classes, add: --label-kind category\n"
    )
    assert f"Warning: {told}" in pprop_here(*train, "month").err
    assert (
        told.rstrip() in pprop_here("data", "check", "edges.csv", "--nodes", "nodes.csv", "--label-column", "month").out
    )
    assert "are read as classes" not in pprop_here(*train, "month", "--label-kind", "category").err
    assert "are read as classes" not in pprop_here(*train, "floor").err


def test_one_class_alone_is_refused_or_warned_of(pprop_here, folder: Path, tmp_path: Path):
    rows = [{**row, "label": row["label"] and "same"} for row in read_rows(folder / "numbers.csv")]
    write_rows(tmp_path / "nodes.csv", NUMBERS, project(rows, NUMBERS))
    assert "class" in sentence(pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK))


def test_three_labels_a_class_train_with_cautions_and_an_honest_interval(pprop_here, folder: Path):
    answer = pprop_here(*on(folder, "few.csv"), *QUICK, "--json")
    record = answer.record
    assert "Warning: 3 of 3 classes have fewer than 5 labelled nodes" in answer.err
    assert record["test_nodes"] == 2
    low, high = record["test_interval"]
    assert high - low > 0.6
    assert any("Only 2 test nodes" in text for text in record["cautions"])
    assert any("early stopping may end" in text for text in record["cautions"])
    assert any("--max-epochs" in text for text in record["cautions"])
    printed = pprop_here(*on(folder, "few.csv"), *QUICK).out
    assert "interval" in printed
    assert printed.count("Caution: ") == len(record["cautions"])


# a rare class


def test_a_class_that_is_never_predicted_is_told(pprop_here, folder: Path):
    quick = ("--max-epochs", 12, "--hidden", 8)
    record = pprop_here(*on(folder, "accounts.csv", "links.csv"), *quick, "--json").record
    assert record["test_accuracy"] > 0.9
    assert record["balanced_accuracy"] < 0.6
    assert 0 < record["macro_f1"] < 0.6
    assert set(record["baselines"]) == {"majority", "label_propagation", "network"}
    assert record["baselines"]["majority"] == pytest.approx(0.925, abs=0.02)
    assert any("never predicted: 'fraud'" in text for text in record["cautions"])
    assert any("look at the average precision of 'fraud', not at the accuracy" in text for text in record["cautions"])
    assert not any("--class-weight" in text for text in record["cautions"])  # its precision can be 3 %


@pytest.mark.slow
def test_balanced_class_weights_do_as_well_as_a_balanced_logistic_regression(pprop_here, folder: Path):
    graph = pprop.read_edges(folder / "links.csv", folder / "accounts.csv", label_column="label")
    assert graph.labels is not None
    assert isinstance(graph.features, np.ndarray)
    values = StandardScaler().fit_transform(graph.features)
    ours, theirs = [], []
    for seed in SEEDS:
        command = (*on(folder, "accounts.csv", "links.csv"), "--class-weight", "balanced", "--no-baselines", "--json")
        ours.append(pprop_here(*command, "--seed", seed).record["balanced_accuracy"])
        split = own_split(graph, 0.2, 0.2, seed)
        given = np.concatenate([split.train, split.stopping])
        plain = LogisticRegression(class_weight="balanced").fit(values[given], graph.labels[given])
        found = plain.predict(values[split.evaluation])
        theirs.append(balanced_accuracy_score(graph.labels[split.evaluation], found))
    assert np.mean(ours) >= np.mean(theirs)


def test_the_weight_of_a_class_whose_name_has_a_comma_can_be_given(pprop_here, folder: Path):
    weights = f"{CLASSES[1]}=5,{CLASSES[2]}=0.5"
    record = pprop_here(
        *on(folder, "numbers.csv"), *QUICK, "--class-weight", weights, "--out", "model", "--json"
    ).record
    assert record["test_accuracy"] > 0
    saved = json.loads(Path("model/manifest.json").read_text())["settings"]["class_weight"]
    assert dict(saved) == {CLASSES[1]: 5.0, CLASSES[2]: 0.5}
    refused = pprop_here(*on(folder, "numbers.csv"), *QUICK, "--class-weight", f"{CLASSES[1]}=5,others=2")
    assert refused.code == 3
    assert "Got 'others=2'" in refused.err


# the split and the training


def test_a_column_with_a_split_or_folds_is_no_feature_and_the_report_says_how_to_use_it(
    pprop_here, folder: Path, tmp_path: Path
):
    names = (*NUMBERS, "part", "fold")
    rows = [
        {**row, "part": ("train", "train", "val", "test")[k % 4], "fold": k // 7 % 5}
        for k, row in enumerate(read_rows(folder / "numbers.csv"))
    ]
    write_rows(tmp_path / "nodes.csv", names, project(rows, names))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--json")
    answer = pprop_here(*command)
    columns = answer.record["columns"]
    assert "of the features" not in answer.err  # as Python warns of it
    assert [*columns["used"]] == ["age", "income"]
    assert columns["unused"] == {
        "part": "left out: holds the split into training, validation and test nodes; --split-column part uses it",
        "fold": "left out: holds the folds of a cross-validation; --split-column fold --test-fold FOLD tests on one of them",
        "weight": "left out: beside the edges; --weight weight would take it for weights",
    }
    checked = pprop_here("data", "check", *command[1:6]).out
    assert "--split-column part uses it" in checked
    assert "of the features" not in checked
    insisted = pprop_here(*command, "--column", "part=category", "--column", "fold=number").record["columns"]
    assert [*insisted["used"]] == ["age", "income", "part", "fold"]
    named = pprop_here(*command, "--features", "age,part").record["columns"]
    assert [*named["used"]] == ["age", "part"]
    given = pprop_here(*command, "--split-column", "part").record["columns"]
    assert "part" not in {**given["used"], **given["unused"]}


def test_one_fold_of_a_column_tests_and_the_others_train(pprop_here, folder: Path, tmp_path: Path):
    names = (*NUMBERS, "fold")
    rows = [{**row, "fold": k // 7 % 5} for k, row in enumerate(read_rows(folder / "numbers.csv"))]
    write_rows(tmp_path / "nodes.csv", names, project(rows, names))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--json", "--split-column", "fold")
    labelled = [row["fold"] for row in rows if row["label"]]
    found = pprop_here(*command, "--test-fold", "3").record
    assert found["test_nodes"] == labelled.count(3)
    assert found["train_nodes"] + found["stopping_nodes"] == len(labelled) - labelled.count(3)
    assert "fold" not in found["columns"]["used"]
    assert "--test-fold 0 tests on the nodes with that value and trains on the others" in sentence(pprop_here(*command))
    assert "'0', '1', '2', '3', '4'. Got '5'" in sentence(pprop_here(*command, "--test-fold", "5"))
    alone = pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK, "--test-fold", "1")
    assert (alone.code, "--split-column names" in alone.err) == (2, True)


def test_a_column_says_which_nodes_train_and_test(pprop_here, folder: Path, tmp_path: Path):
    parts = ("train", "Train", "val", "public_test", "", "unused", "unlabeled", "NA")
    rows = [{**row, "part": parts[k % 8]} for k, row in enumerate(read_rows(folder / "numbers.csv"))]
    names = [*NUMBERS, "part"]
    write_rows(tmp_path / "nodes.csv", names, project(rows, names))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--split-column", "part", "--out", "model", "--json")
    record = pprop_here(*command).record
    counts = {part: sum(row["part"] == part for row in rows if row["label"]) for part in parts}
    assert record["train_nodes"] == counts["train"] + counts["Train"]
    assert (record["stopping_nodes"], record["test_nodes"]) == (counts["val"], counts["public_test"])
    assert "part" not in {**record["columns"]["used"], **record["columns"]["unused"]}
    for nodes in (tmp_path / "nodes.csv", folder / "numbers.csv"):  # a later table needs no such column
        options = ("--graph", folder / "edges.csv", "--nodes", nodes, *PEOPLE)
        assert pprop_here("predict", "model", *options).out == (tmp_path / "model" / "predictions.csv").read_text()


@pytest.mark.parametrize("words", [("True", "False"), ("1", "0")])
def test_a_column_that_marks_the_training_nodes_is_no_feature_and_can_divide_them(
    pprop_here, folder: Path, tmp_path: Path, words: tuple[str, str]
):
    rows = [{**row, "is_train": words[k % 3 == 0]} for k, row in enumerate(read_rows(folder / "numbers.csv"))]
    names = [*NUMBERS, "is_train"]
    write_rows(tmp_path / "nodes.csv", names, project(rows, names))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--json")
    columns = pprop_here(*command).record["columns"]
    assert [*columns["used"]] == ["age", "income"]
    use = "--split-column is_train --test-fold VALUE tests on the nodes with that value and trains on the others"
    assert columns["unused"]["is_train"] == f"left out: marks the nodes of one part of a split; {use}"
    divided = (*command, "--split-column", "is_train")
    hint = f"Got {words[1]!r} in row 1. --test-fold {words[1]} tests on the nodes with that value"
    assert hint in sentence(pprop_here(*divided))
    found = pprop_here(*divided, "--test-fold", words[1]).record
    assert found["test_nodes"] == sum(row["is_train"] == words[1] and row["label"] != "" for row in rows)


def test_without_stopping_nodes_every_epoch_is_made(pprop_here, folder: Path):
    record = pprop_here(*on(folder, "numbers.csv"), *QUICK[:-1], "--stopping", 0, "--json").record
    assert (record["epochs"], record["best_epoch"], record["stopping_nodes"]) == (12, 11, 0)
    assert record["baselines"]["network"] > record["baselines"]["majority"]  # which is trained alike
    assert not any("max-epochs" in text for text in record["cautions"])


@pytest.mark.parametrize("scaling", ["auto", "l1", "standard", "none"])
def test_the_scaling_is_chosen_and_reported(pprop_here, folder: Path, scaling: str):
    record = pprop_here(*on(folder, "numbers.csv"), *QUICK, "--scaling", scaling, "--json").record
    assert record["scaling"] == ("standard" if scaling == "auto" else scaling)


# files


def test_compressed_tabbed_and_columnar_files_are_the_same_graph(pprop_here, folder: Path, tmp_path: Path):
    rows = project(read_rows(folder / "edges.csv"), ("source", "target"))
    write_rows(tmp_path / "edges.tsv", ("source", "target"), rows)
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress((folder / "edges.csv").read_bytes()))
    pq.write_table(pc.read_csv(folder / "edges.csv"), tmp_path / "edges.parquet")
    pq.write_table(pc.read_csv(folder / "numbers.csv"), tmp_path / "numbers.parquet")
    prints = {
        pprop_here("data", "check", edges, "--nodes", nodes, *PEOPLE, "--json").record["fingerprint"]
        for edges in (folder / "edges.csv", "edges.tsv", "edges.csv.gz", "edges.parquet")
        for nodes in (folder / "numbers.csv", "numbers.parquet")
    }
    assert len(prints) == 1


def test_a_matrix_market_file_without_labels_is_refused_in_one_sentence(pprop_here, tmp_path: Path):
    mmwrite(tmp_path / "graph.mtx", sp.random_array((20, 20), density=0.2, rng=0))
    assert "needs the classes of some nodes" in sentence(pprop_here("train", "graph.mtx"))
    assert pprop_here("data", "check", "graph.mtx").code == 0


def test_a_graphml_file_trains_with_the_attributes_of_its_nodes(pprop_here, tmp_path: Path):
    networkx = pytest.importorskip("networkx")
    made = networkx.planted_partition_graph(2, 20, 0.4, 0.02, seed=0)
    for node in made:
        made.nodes[node].update(side="left" if node < 20 else "right", size=float(node % 7))
        del made.nodes[node]["block"]
    made.graph.clear()
    networkx.write_graphml(made, tmp_path / "graph.graphml")
    answer = pprop_here("train", "graph.graphml", "--label-column", "side", "--model", "label-propagation", "--json")
    assert answer.code == 0, answer.err
    assert answer.record["classes"] == ["left", "right"]
