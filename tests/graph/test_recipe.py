from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pprop import InputError
from pprop._errors import ColumnError, FormatError
from pprop.graph.features.recipe import Recipe

PEOPLE = {
    "id": pa.array(["u1", "u2", "u3", "u4", "u5", "u6"]),
    "age": pa.array(["31", "27", "", "45", "38", "29"]),
    "country": pa.array(["DE", "FR", "DE", "US", "FR", "DE"]),
    "premium": pa.array(["true", "false", "true", "true", "false", "true"]),
    "signup": pa.array(["2020-01-01", "2021-01-01", "2022-01-01", "2020-06-01", "2021-06-01", "2022-06-01"]),
    "bio": pa.array(
        ["cats and tea", "maps, trains", "tea for cats", "chess, maps", "surf music here", "music and tea"]
    ),
    "phone": pa.array([f"030{k}" for k in range(123, 129)]),
    "note": pa.array(["", "", "", "NA", "", ""]),
}
OPTIONS: dict[str, Any] = {"typed": False, "exclude": ("id",), "title": "'nodes.csv'"}


def fit(table=PEOPLE, **options):
    return Recipe.fit(table, **(OPTIONS | options))


def encode(recipe, table=PEOPLE, **options) -> Any:
    return recipe.encode(table, **(OPTIONS | options))


def test_every_column_is_used_or_left_out_with_its_reason():
    recipe = fit()
    assert recipe.used == {
        "age": "number, 1 missing filled with 31",
        "country": "category, 3 values",
        "premium": "boolean",
        "signup": "date",
        "bio": "text, 5 words",
    }
    assert recipe.unused == {
        "phone": "left out: looks like an identifier",
        "note": "left out: all values are missing",
    }
    assert str(recipe).splitlines()[1] == "country  category, 3 values"
    assert len(str(recipe).splitlines()) == 7


def test_features_stand_in_the_order_of_the_table_under_their_names():
    recipe = fit()
    features, names = encode(recipe)
    assert isinstance(features, sparse.csr_array)
    assert features.dtype == np.float32
    assert features.shape == (6, len(names)) == (6, recipe.n_features)
    assert names[:7] == ("age", "age is missing", "country=DE", "country=FR", "country=US", "premium", "signup")
    assert names[7:] == tuple(f"bio: {word}" for word in ("and", "cats", "maps", "music", "tea"))
    assert recipe.numbers.tolist() == [name in ("age", "signup") for name in names]
    assert features.toarray()[2, :6].tolist() == [31, 1, 1, 0, 0, 1]


def test_a_table_of_numbers_is_dense_and_bit_for_bit_its_float32():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-30, 30, (50, 3))
    texts = {name: pa.array([repr(float(value)) for value in values[:, k]]) for k, name in enumerate("abc")}
    typed = {name: pa.chunked_array([values[:20, k], values[20:, k]]) for k, name in enumerate("abc")}
    for table, flag in ((texts, False), (typed, True)):
        for wanted in ("auto", "numbers", ["a", "b", "c"]):
            features, names = encode(fit(table, typed=flag, wanted=wanted), table, typed=flag)
            assert names == ("a", "b", "c")
            assert features.tobytes() == values.astype(np.float32).tobytes()


def test_more_than_a_hundred_flags_make_the_features_sparse():
    flags = [f"v{k % 50}" for k in range(150)]
    table = {name: pa.array(flags) for name in "ab"}
    assert isinstance(encode(fit(table), table)[0], np.ndarray)
    table["c"] = pa.array(flags)
    features, _ = encode(fit(table), table)
    assert isinstance(features, sparse.csr_array)
    assert features.sum() == 450


def test_columns_are_found_by_name_in_any_order():
    recipe = fit()
    turned = dict(reversed(PEOPLE.items()))
    assert (encode(recipe)[0] != encode(recipe, turned)[0]).nnz == 0


def test_a_renamed_column_is_an_error_that_names_it():
    recipe = fit({"age": PEOPLE["age"], "income": PEOPLE["age"]})
    with pytest.raises(
        FormatError, match=r"with the column 'age', .* Got 'nodes\.csv' without it .* does not know its 'years'"
    ):
        encode(recipe, {"years": PEOPLE["age"], "income": PEOPLE["age"]})
    with pytest.raises(FormatError, match="Did you mean 'Age'"):
        encode(recipe, {"Age": PEOPLE["age"], "income": PEOPLE["age"]})


def test_all_columns_that_are_missing_are_named_at_once():
    recipe = fit({"age": PEOPLE["age"], "income": PEOPLE["age"], "tax": PEOPLE["age"]})
    with pytest.raises(
        FormatError,
        match=r"with the columns 'age', 'tax', as in the training\. Got 'nodes\.csv' without them instead\. "
        r"The recipe does not know its 'years', 'hat'\.$",
    ):
        encode(recipe, {"years": PEOPLE["age"], "income": PEOPLE["age"], "hat": PEOPLE["age"]})
    with pytest.raises(ColumnError, match=r"has no columns 'agee' and 'size'\. .* Did you mean 'age'\?$"):
        fit({"age": PEOPLE["age"]}, wanted=["agee", "age", "size"])


def test_a_new_column_is_refused_and_a_column_that_was_left_out_may_be_absent():
    recipe = fit()
    table = {name: cells for name, cells in PEOPLE.items() if name not in ("phone", "note")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(recipe, table)
    with pytest.raises(
        FormatError, match=r"Got 'nodes\.csv' with 'mood', 'hat' instead\. Leave them out, or train again"
    ):
        encode(recipe, table | {"mood": PEOPLE["age"], "hat": PEOPLE["age"]})


def test_an_index_that_pandas_wrote_is_no_new_column():
    recipe = fit()
    with_index = {**PEOPLE, "__index_level_0__": PEOPLE["age"], "Unnamed: 0": PEOPLE["age"]}
    assert (encode(recipe, with_index)[0] != encode(recipe)[0]).nnz == 0


def test_columns_of_ids_and_labels_are_known_to_a_recipe_wherever_it_is_applied():
    recipe = Recipe.fit({**PEOPLE, "id": PEOPLE["age"]}, typed=False, exclude=("id", "label"))
    assert recipe.others == ("id",)
    features, _ = Recipe.from_json(recipe.to_json()).encode({**PEOPLE, "id": PEOPLE["age"]}, typed=False)
    again: Any = recipe.encode(PEOPLE, typed=False)[0]
    np.testing.assert_array_equal(cast("Any", features).toarray(), again.toarray())


def test_another_type_of_the_same_values_gives_the_same_features():
    recipe = fit({"age": pa.array(["1", "2", "4"]), "zip": pa.array(["10", "20", "10"])}, wanted={"zip": "category"})
    expected = [[1, 1, 0], [2, 0, 1], [4, 1, 0]]
    for age, code in (([1, 2, 4], [10, 20, 10]), ([1.0, 2.0, 4.0], [10.0, 20.0, 10.0])):
        assert encode(recipe, {"age": pa.array(age), "zip": pa.array(code)}, typed=True)[0].tolist() == expected


def test_text_where_numbers_were_is_an_error_that_names_the_row():
    recipe = fit({"age": PEOPLE["age"]})
    with pytest.raises(FormatError, match=r"Got 'old' in row 2 of 'nodes\.csv'"):
        encode(recipe, {"age": pa.array(["1", "old"])})
    with pytest.raises(FormatError, match=r"number in every row of 'age'\. Got the type list<item: int64>"):
        encode(recipe, {"age": pa.array([[1], [2]])}, typed=True)


def test_truth_values_where_numbers_were_are_an_error_that_names_both():
    recipe = fit({"visits": pa.array([0, 1, 3])}, typed=True)
    expected = r"with a number, as in the training, in every row of 'visits'\. Got the type bool"
    for again in (recipe, fit({"visits": pa.array([0, 1, 3])}, typed=True, wanted="numbers")):
        with pytest.raises(FormatError, match=expected):
            encode(again, {"visits": pa.array([False, True, True])}, typed=True)
        assert encode(again, {"visits": pa.array([0, 1, 1])}, typed=True)[0].tolist() == [[0], [1], [1]]


def test_numbers_where_truth_values_were_are_an_error_unless_they_are_0_and_1():
    recipe = fit({"paid": pa.array([True, False, True])}, typed=True)
    with pytest.raises(FormatError, match=r"a truth value in every row of 'paid'\. Got 3 in row 2"):
        encode(recipe, {"paid": pa.array([0, 3, 1])}, typed=True)
    assert encode(recipe, {"paid": pa.array([0, 1, 1])}, typed=True)[0].tolist() == [[0], [1], [1]]


@pytest.mark.parametrize(
    ("cells", "wanted"), [([0, 1, 1], "auto"), ([True, False], {"paid": "number"}), ([True, False], "numbers")]
)
def test_0_and_1_may_become_truth_values_and_stay_the_same_numbers(cells, wanted):
    recipe = fit({"paid": pa.array(cells)}, typed=True, wanted=wanted)
    assert recipe.columns[0].kind == "number"
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert encode(again, {"paid": pa.array([True, False])}, typed=True)[0].tolist() == [[1], [0]]


def test_named_columns_are_used_in_their_order_and_others_are_not():
    recipe = fit(wanted=["phone", "age"])
    assert list(recipe.used) == ["phone", "age"]
    assert recipe.used["phone"] == "number"
    assert set(recipe.unused.values()) == {"left out: not asked for"}
    assert encode(recipe)[0][:, 0].tolist() == list(range(30123, 30129))


def test_a_mapping_says_the_kind_of_some_columns_and_leaves_the_others_to_the_rules():
    recipe = fit(wanted={"age": "category", "phone": "text", "signup": "unused", "country": "text", "id": "unused"})
    assert recipe.used == {
        "age": "category, 5 values, 1 missing",
        "country": "text, 2 words",
        "premium": "boolean",
        "bio": "text, 5 words",
        "phone": "text, 6 words",
    }
    assert recipe.unused == {"signup": "left out: as asked for", "note": "left out: all values are missing"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            ["agee"],
            r"'nodes\.csv' has no column 'agee'\. Its columns: age",
        ),
        ([3], r"Got 3 instead"),
        ({"age": "numbr"}, r"kinds of columns .* Got 'numbr' for 'age' instead. Did you mean 'number'\?"),
        ({"age": 3}, r"Got 3 for 'age'"),
        (["age", "age"], r"must be distinct column names. Got 'age' more than once"),
        (["id"], r"Got 'id', which holds ids, labels or a split,"),
        ("all", r"Got 'all' instead"),
        (7, r"Got 7 instead"),
        (["note"], r"Got 'note', a column of 'nodes\.csv' that cannot be used \(all values are missing\)"),
        ({"bio": "number"}, r"a number in every row of 'bio'. Got 'cats and tea' in row 1"),
        ({"age": "boolean"}, r"a truth value in every row of 'age'. Got '31' in row 1"),
        ({"country": "date"}, r"a date in every row of 'country'. Got 'DE' in row 1"),
        ({"note": "text"}, r"all values are missing"),
    ],
)
def test_what_is_wanted_but_impossible_is_refused_in_one_sentence(wanted, message):
    with pytest.raises(InputError, match=message) as caught:
        fit(wanted=wanted)
    assert "\n" not in str(caught.value)


def test_wanted_columns_that_mix_numbers_and_text_or_are_infinite_are_refused_with_the_row():
    for cells, shown in ((["1", "old", "2"], "'old' in row 2"), (["1", "2", "inf"], "'inf' in row 3")):
        with pytest.raises(FormatError, match=shown):
            fit({"x": pa.array(cells)}, wanted=["x"])


def test_only_numbers_means_those_of_version_0_1():
    table = {
        "n": pa.array([1, 2, 3]),
        "b": pa.array([True, False, True]),
        "t": pa.array(["1", "2", "3"]),
        "same": pa.array([5, 5, 5]),
        "day": pa.array([0, 1, 2], pa.date32()),
    }
    recipe = fit(table, typed=True, wanted="numbers")
    assert list(recipe.used) == ["n", "b", "same"]
    assert set(recipe.unused.values()) == {"left out: not a column of numbers"}
    with pytest.raises(FormatError, match=r"Got a missing value in row 2"):
        fit({"n": pa.array(["1", "", "3"])}, wanted="numbers")
    with pytest.raises(FormatError, match=r"Got 'x' in row 2"):
        fit({"n": pa.array(["1", "x", "3"])}, wanted="numbers")


def test_a_table_without_rows_or_columns_has_no_features():
    assert encode(fit({}), {})[0].shape == (0, 0)
    recipe = fit({"a": pa.array([], pa.string())})
    assert recipe.unused == {"a": "left out: has no rows"}
    empty = {name: cells[:0] for name, cells in PEOPLE.items()}
    features, names = encode(fit(), empty)
    assert features.shape == (0, len(names))


def test_a_null_character_at_the_end_of_a_value_is_written_out_in_its_name():
    table = {"a": pa.array(["x\0", "y", "x\0"])}
    assert fit(table, typed=True).feature_names == ("a=x\\0", "a=y")


MONEY = {
    "height": pa.array(["1,75", "1,8", "", "1,62"]),
    "pay": pa.array(["980", "4.343", "12.100", "1.050"]),
    "pi": pa.array(["3.14", "3.142", "2", "0.001"]),
}


def test_points_before_three_digits_beside_decimal_commas_are_left_out_or_decimal_as_asked():
    recipe = fit(MONEY)
    assert set(recipe.used) == {"height", "pi"}
    assert recipe.unused["pay"].startswith(
        "left out: points of unclear meaning ('4.343' in row 2) beside decimal commas"
    )
    asked = encode(fit(MONEY, wanted={"pay": "number"}), MONEY)[0][:, 2]
    np.testing.assert_array_equal(asked, np.array([980, 4.343, 12.1, 1.05], dtype=np.float32))
    with pytest.raises(FormatError, match=r"'pay', a column of 'nodes\.csv' that cannot be used \(points of unclear"):
        fit(MONEY, wanted=["height", "pay"])
    assert "pay" in fit({name: MONEY[name] for name in ("pay", "pi")}).used


def test_points_before_three_digits_in_a_column_of_decimal_commas_are_never_decimal():
    height = {"height": MONEY["height"]}
    mixed = {"height": pa.array(["1,75", "1.800", "1,9", "1,62"])}
    assert fit(mixed).unused["height"].endswith("with points of unclear meaning ('1.800' in row 2)")
    with pytest.raises(FormatError, match=r"a number in every row of 'height'\. Got '1\.800' in row 2"):
        encode(fit(height), mixed)
