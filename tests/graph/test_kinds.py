from __future__ import annotations

import datetime as dt
import random
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pprop.graph.features.columns import read_column
from pprop.graph.features.kinds import decide

RNG = random.Random(0)
N = 60


def kind_of(cells, name="x", typed=False):
    return decide(read_column(name, pa.array(cells), typed=typed)).kind


def reason_of(cells, name="x", typed=False):
    decision = decide(read_column(name, pa.array(cells), typed=typed))
    assert decision.kind == "unused"
    return decision.reason


@pytest.mark.parametrize("name", ["age", "income", "amount", "hour", "year", "score", "annual_income", "birthYear"])
@pytest.mark.parametrize(
    "cells",
    [
        [str(k) for k in range(N)],
        [str(k + 1) for k in range(N)],
        [str(10**9 + 7 * k) for k in range(N)],
        [f"{k:03}" for k in range(N)],
        [str(RNG.randrange(10_000, 99_999)) for _ in range(N)],
    ],
    ids=["0 to n-1", "1 to n", "ten digits", "padded", "five digits"],
)
def test_a_column_named_as_a_quantity_is_a_number_whatever_its_digits(name, cells):
    assert kind_of(cells, name) == "number"
    assert kind_of([int(cell) for cell in cells], name, typed=True) == "number"


@pytest.mark.parametrize(
    "name", ["zip", "Zip Code", "postal_code", "plz", "phone", "PhoneNumber", "tel", "user_id", "customerId", "ID"]
)
def test_a_whole_number_named_as_a_code_is_an_identifier_or_a_category_if_its_values_are_few(name):
    many = [RNG.randrange(10_000, 99_999) for _ in range(300)]
    few = [10_115 + k % 7 for k in range(300)]
    for typed in (False, True):
        write = int if typed else str
        assert reason_of([write(cell) for cell in many], name, typed) == "looks like an identifier"
        assert kind_of([write(cell) for cell in few], name, typed) == "category"


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("name", ["mcc{}", "A-{}", "{}B", "shop_{}x"])
def test_words_with_a_number_that_recur_are_codes(name, typed):
    assert kind_of([name.format(k % 120) for k in range(600)], "merchant_category", typed) == "category"
    assert kind_of([name.format(k % 120) for k in range(240)], "merchant_category", typed) == "category"
    assert kind_of([f"card {name.format(k % 120)}" for k in range(600)], "merchant_category", typed) == "text"
    assert (
        kind_of([f"{'abcdef'[k % 6]}{'uvwxyz'[k // 6 % 6]}o{'lmn'[k // 36 % 3]}" for k in range(600)], typed=typed)
        == "text"
    )


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("train", "val", "test"),
        ("train", "valid", "test"),
        ("Training", "validation", "TEST"),
        ("train", "dev", "test"),
        ("train", "test"),
        ("train", "holdout", ""),
        ("train", "unused", "test"),
        ("train", "Unlabeled", "test"),
        ("train", "none", "val"),
        ("tr", "va", "te"),
        ("train", "public_test", "private_test"),
        ("train1", "train2", "test-1"),
        ("Train Set", "Test Set", "hold-out"),
    ],
)
def test_a_column_whose_cells_say_train_and_test_is_a_split_whatever_its_name(words, typed):
    cells = [words[k % len(words)] for k in range(N)]
    assert reason_of(cells, "part", typed) == "holds the split into training, validation and test nodes"
    assert decide(read_column("part", pa.array(cells), typed=typed), wanted=True).kind == "category"


def test_under_a_name_for_a_split_any_two_parts_are_one():
    for words in (("train", "other"), ("test", "unused")):
        cells = [words[k % 2] for k in range(N)]
        assert reason_of(cells, "split") == "holds the split into training, validation and test nodes"
        assert kind_of(cells, "means_of_transport") == "category"


@pytest.mark.parametrize("name", ["is_train", "isTest", "train_mask", "val_mask_3", "in_train", "test_set", "trainset"])
@pytest.mark.parametrize(
    ("words", "typed"),
    [
        *((pair, False) for pair in (("True", "False"), ("yes", "no"), ("t", "f"), ("1", "0"), ("1.0", "0.0"))),
        *((pair, True) for pair in ((True, False), (1, 0), (1.0, 0.0))),
    ],
)
def test_truth_values_under_the_name_of_a_part_mark_its_nodes(name, words, typed):
    cells = [None if k % 7 == 0 else words[k % 2] for k in range(N)]
    assert reason_of(cells, name, typed) == "marks the nodes of one part of a split"
    assert decide(read_column(name, pa.array(cells), typed=typed), wanted=True).kind in ("boolean", "number")
    if isinstance(words[0], bool) or words[0] in ("True", "yes", "t"):
        assert reason_of(cells, "split", typed) == "marks the nodes of one part of a split"


@pytest.mark.parametrize(
    "name", ["member", "passed_test", "test", "train", "is_valid", "is_dev", "is_stop", "in_training"]
)
def test_truth_values_under_other_names_are_features(name):
    assert kind_of([k % 2 == 0 for k in range(N)], name, typed=True) == "boolean"
    assert kind_of([("no", "yes")[k % 2] for k in range(N)], name) == "boolean"
    assert kind_of([str(k % 2) for k in range(N)], name) == "number"


@pytest.mark.parametrize(
    "name",
    [
        "fold",
        "split",
        "set",
        "cv_fold",
        "kFold",
        "Fold ID",
        "dataset",
        "test_split",
        "partition",
        "data_partition",
        "cv",
    ],
)
def test_a_column_of_few_small_numbers_named_as_a_split_or_folds_holds_folds(name):
    for typed in (False, True):
        write = int if typed else str
        for low in (0, 1):
            cells = [write(low + k % 5) for k in range(N)]
            assert reason_of(cells, name, typed) == "holds the folds of a cross-validation"
    for cell in ("fold {}", "fold{}", "Fold-{}", "cv_fold_{}"):  # which say so under any name
        assert reason_of([cell.format(k % 5) for k in range(N)], "part") == "holds the folds of a cross-validation"
    assert reason_of([None if k % 7 == 0 else k % 5 for k in range(N)], name, True).startswith("holds the folds")


@pytest.mark.parametrize(
    ("cells", "name", "kind"),
    [
        (["train" if k % 2 else "bus" for k in range(N)], "way", "category"),  # a means of transport
        (["stop" if k % 2 else "dev" for k in range(N)], "word", "category"),  # no training nodes
        ([str(k % 5) for k in range(N)], "rooms", "number"),
        ([str(k % 5) for k in range(N)], "skill_set", "number"),
        ([str(k % 5) for k in range(N)], "test_score", "number"),
        ([("true", "false")[k % 2] for k in range(N)], "bill_split", "boolean"),
        ([("TR", "VA", "DE")[k % 3] for k in range(N)], "country", "category"),
        ([("train", "bus", "other")[k % 3] for k in range(N)], "way", "category"),
        ([("train station", "test drive")[k % 2] for k in range(N)], "event", "category"),
        ([str(0.1 + k % 5) for k in range(N)], "split", "number"),
        ([str(k % 40) for k in range(N)], "fold", "number"),
        (["a" if k % 2 else "b" for k in range(N)], "set", "category"),
    ],
)
def test_other_columns_are_no_splits(cells, name, kind):
    assert kind_of(cells, name) == kind


@pytest.mark.parametrize("name", ["paid", "humid", "grid", "bid", "covid", "hotel", "zipper", "phones"])
def test_a_name_that_only_contains_a_code_name_stays_a_number(name):
    assert kind_of([str(RNG.randrange(10_000, 99_999)) for _ in range(N)], name) == "number"


IDENTIFIERS = {
    "phone": [f"0{RNG.randrange(10**9, 10**10)}" for _ in range(N)],
    "plus": [f"+49{RNG.randrange(10**9, 10**10)}" for _ in range(N)],
    "spaced phone": [f"(030) {RNG.randrange(100, 999)} {RNG.randrange(1000, 9999)}-{k}" for k in range(N)],
    "uuid": [str(uuid.UUID(int=RNG.getrandbits(128))) for _ in range(N)],
    "mail": [f"name{k}@example.org" for k in range(N)],
    "url": [f"https://example.org/a/{k}?b=c" for k in range(N)],
    "user name": [f"user_{k}" for k in range(N)],
    "account": [str(RNG.randrange(10**11, 10**12)) for _ in range(N)],
    "padded": [f"{k:05}" for k in range(N)],
}


@pytest.mark.parametrize("cells", IDENTIFIERS.values(), ids=IDENTIFIERS.keys())
@pytest.mark.parametrize("typed", [False, True])
def test_what_looks_like_an_identifier_is_left_out(cells, typed):
    assert reason_of(cells, "column", typed) == "looks like an identifier"


def test_numbers_of_things_are_identifiers_if_they_are_distinct():
    numbers = [17 * k + 3 for k in range(N)]
    assert reason_of(numbers, "invoice_number", typed=True) == "looks like an identifier"
    assert kind_of([number % 80 for number in numbers * 3], "house number", typed=True) == "number"
    assert kind_of([1_600_000_000 + number for number in numbers], "created_at", typed=True) == "number"


@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_are_left_out_in_any_order(start):
    numbers = list(range(start, start + N))
    RNG.shuffle(numbers)
    for typed in (False, True):
        cells = numbers if typed else [str(number) for number in numbers]
        assert reason_of(cells, "column", typed) == "looks like the number of the row"


@pytest.mark.parametrize("name", ["Unnamed: 0", "__index_level_0__", "", "index", "row_number"])
def test_a_column_named_as_an_index_is_left_out_if_its_whole_numbers_are_distinct(name):
    assert reason_of([7, 3, 12], name, typed=True) == "looks like the number of the row"
    assert kind_of([7, 3, 7], name, typed=True) == "number"


def test_a_few_rows_that_happen_to_count_are_numbers():
    assert kind_of(["1", "2", "3", "4", "5"]) == "number"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "-2e3", "", ".5", "7."], "number"),
        (["31,5", "27", "1,234", "4,0"], "number"),
        (["27", "30", "31,5", "40", "45"], "number"),
        (["5 %", "10 %", "5 %"], "category"),
        (["1.0.2", "1.2.10", "1.0.2"], "category"),
        (["true", "FALSE", "True", ""], "boolean"),
        (["Yes", "no", "no"], "boolean"),
        (["t", "f", "f"], "boolean"),
        (["y", "N", "?"], "boolean"),
        (["f", "", "f"], "category"),
        (["t", "n", "t"], "category"),
        (["yes", "false", "yes", "yes"], "category"),
        (["red", "blue", "red", "NA"], "category"),
        (["a", "", "a"], "category"),
        (["2024-01-31", "1969-12-01"], "date"),
        (["2024-01-31T12:30:00Z", "2024-02-01 08:15", "2024/3/1"], "date"),
        (["2024-01", "2024-02"], "date"),
        (["31.12.2024", "1.2.2024"], "date"),
        (["31/12/2024", "01/02/2024"], "date"),
        (["12/31/2024", "01/02/2024"], "date"),
        (["the red fox", "a red hat", "no colour at all"], "text"),
        (["drama|comedy", "comedy|crime", "crime", "drama"], "text"),
    ],
)
def test_the_kind_is_read_off_the_cells_of_a_csv(cells, kind):
    assert kind_of(cells) == kind


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pa.array([1, None, 3]), "number"),
        (pa.array([1.5, float("nan"), 3], pa.float16()), "number"),
        (pa.array([Decimal("1.50"), Decimal("2.25")]), "number"),
        (pa.array([2**63, 5], pa.uint64()), "number"),
        (pa.array([True, None, False]), "boolean"),
        (pa.array([dt.date(2024, 1, 31), dt.date(2024, 2, 1)]), "date"),
        (pa.array([dt.datetime(2024, 1, 31, 5), None]), "date"),
        (pa.array([0, 86_400_000], pa.date64()), "date"),
        (pa.array(["2024-01-31", "2024-02-01"]), "date"),
        (pa.array(["yes", "no"]), "boolean"),
        (pa.array(["1", "2", "1", "2"]), "category"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "category"),
        (pa.array([3, 4, 3]).dictionary_encode(), "category"),
        (pa.array(["a", "b", "a"], pa.string_view()), "category"),
    ],
    ids=str,
)
def test_the_kind_of_a_typed_column_follows_its_type(cells, kind):
    assert decide(read_column("x", cells, typed=True)).kind == kind


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["", "NA", "nan"], "all values are missing"),
        ([], "has no rows"),
        (["5", "5.0", "5"], "every value is '5'"),
        (["TRUE", "true"], "every value is 'TRUE'"),
        (["a", "a"], "every value is 'a'"),
        (["31", "27", "old", "45"], "mixes numbers and text ('old' in row 3)"),
        (["1", "inf", "2"], "has numbers that float32 cannot hold ('inf' in row 2)"),
        (["1", "1e39", "2"], "has numbers that float32 cannot hold ('1e39' in row 2)"),
        (["", "01/02/2024", "03/04/2024"], "dates of which day and month cannot be told apart ('01/02/2024' in row 2)"),
        (
            ["1,234", "5,678"],
            "numbers that are written with signs, or with commas of unclear meaning ('1,234' in row 1)",
        ),
        (
            ["31/12/24", "1/2/23", ""],
            "dates with years of two digits ('31/12/24' in row 1): write them with four",
        ),
        (["31.12.24", "01.02.23"], "dates with years of two digits ('31.12.24' in row 1): write them with four"),
        (["12 km", "5"], "mixes numbers and text ('12 km' in row 1)"),
        (
            ["12 %", "5 %", "7%"],
            "numbers that are written with signs, or with commas of unclear meaning ('12 %' in row 1)",
        ),
    ],
)
def test_a_csv_column_is_left_out_with_its_reason(cells, reason):
    assert reason_of(pa.array(cells, pa.string())) == reason


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (pa.array([[1], [2, 3]]), "has lists of different lengths (1 in row 1, 2 in row 2)"),
        (pa.array([["a"], ["b"]]), "has the type list<item: string>"),
        (pa.array([b"a", b"b"]), "has the type binary"),
        (pa.array([dt.timedelta(1), dt.timedelta(2)]), "has the type duration[us]"),
        (pa.array([{"a": 1}, {"a": 2}]), "has the type struct<a: int64>"),
        (pa.nulls(3), "all values are missing"),
        (pa.array([True, True]), "every value is True"),
        (pa.array([1.0, float("-inf")]), "has numbers that float32 cannot hold (-inf in row 2)"),
        (pa.array(["1.5", "2.5", "3.5"]), "text that spells numbers"),
    ],
    ids=str,
)
def test_a_typed_column_is_left_out_with_its_reason(cells, reason):
    assert reason_of(cells, typed=True) == reason


def test_two_digits_may_be_padded():
    assert kind_of([f"{k % 24:02}" for k in range(N)], "at") == "number"


def test_a_padded_code_of_few_values_is_a_category_of_the_codes_as_written():
    column = read_column("where", pa.array(["01067", "10115", "01067"] * 20), typed=False)
    assert decide(column).kind == "category"
    assert column.counts() == {"01067": 40, "10115": 20}


def test_a_number_here_and_there_in_text_leaves_it_text():
    cells = [f"words that recur {k}" for k in range(20)] + ["42", "43"]
    assert kind_of(cells) == "text"


def test_what_is_wanted_by_name_is_left_out_only_where_there_is_no_way():
    def wanted(cells, name="x", typed=False):
        return decide(read_column(name, pa.array(cells), typed=typed), wanted=True).kind

    assert wanted([f"0{k}" for k in range(100, 160)], "phone") == "number"
    assert wanted([10115, 10115, 20095] * 9, "zip", typed=True) == "number"
    assert wanted(["1.5", "2.5", "3.5"], typed=True) == "number"
    assert wanted(["5", "5"]) == "number"
    assert wanted(list(range(N)), typed=True) == "number"
    assert wanted(["a", "a"]) == "category"
    assert wanted([f"user_{k}" for k in range(N)]) == "text"
    for impossible in (["31", "old", "45"], ["1", "inf"], ["", ""], ["01/02/2024", "03/04/2024"]):
        assert wanted(impossible) == "unused"


def test_deciding_does_not_depend_on_the_order_of_the_rows():
    for cells in [
        *IDENTIFIERS.values(),
        [str(k) for k in range(N)],
        ["1", "x", "2", "3"],
        ["31/12/2024", "01/02/2024"],
    ]:
        turned = [cells[k] for k in np.random.default_rng(1).permutation(len(cells))]
        assert kind_of(turned) == kind_of(cells)
