from __future__ import annotations

import copy
import json
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pprop._errors import FormatError
from pprop.graph.features.recipe import Recipe

TABLE = {
    "age": pa.array(["31", "27", "", "45"]),
    "flag": pa.array(["yes", "no", "", "no"]),
    "team": pa.array(["a", "b", "a", "b"]),
    "day": pa.array(["31/12/2024", "1/2/2024", "", ""]),
    "bio": pa.array(["red fox", "red hat", "fox and hat", "red and blue"]),
    "same": pa.array(["1", "1", "1", "1"]),
}
RECIPE = Recipe.fit(TABLE, typed=False)
AGE, FLAG, TEAM, DAY, BIO, SAME = range(6)


def test_a_recipe_survives_json():
    again = Recipe.from_json(json.loads(json.dumps(RECIPE.to_json())))
    assert again == RECIPE
    assert hash(again) == hash(RECIPE)
    assert str(again) == str(RECIPE)
    first, second = (recipe.encode(TABLE, typed=False)[0] for recipe in (RECIPE, again))
    assert isinstance(first, sparse.csr_array)
    assert isinstance(second, sparse.csr_array)
    assert first.toarray().tobytes() == second.toarray().tobytes()


def test_the_entry_is_what_json_gives_back():
    assert json.loads(json.dumps(RECIPE.to_json(), allow_nan=False)) == RECIPE.to_json()


def test_a_recipe_with_another_parameter_is_another_recipe():
    entry = RECIPE.to_json()
    entry["columns"][AGE]["parameters"]["fill"] = 32.0
    assert Recipe.from_json(entry) != RECIPE


def test_a_recipe_that_does_not_know_flags_takes_truth_values_for_numbers_as_it_did():
    entry = RECIPE.to_json()
    del entry["columns"][AGE]["parameters"]["flags"]
    earlier = Recipe((Recipe.from_json(entry).columns[AGE],))
    features, _ = earlier.encode({"age": pa.array([True, False])}, typed=True)
    np.testing.assert_array_equal(cast("Any", features), [[1, 0], [0, 0]])


def change(path, value):
    def apply(entry):
        for step in path[:-1]:
            entry = entry[step]
        if value is DELETE:
            del entry[path[-1]]
        else:
            entry[path[-1]] = value

    return apply


DELETE = object()
COLUMN = "columns"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["version"], 2, r"at the recipe\.version\. Got 2"),
        (["version"], DELETE, r"members version, columns, others at the recipe"),
        (["extra"], 1, r"members version, columns"),
        ([COLUMN], {}, r"a list at the recipe\.columns"),
        ([COLUMN, AGE], [], r"the member 'kind' at the recipe\.columns\[0\]"),
        ([COLUMN, AGE, "kind"], "numbr", r"one of number, .* at the recipe\.columns\[0\]\.kind. Got 'numbr'"),
        ([COLUMN, AGE, "kind"], "date", r"members fill, missing, order"),
        ([COLUMN, AGE, "name"], 3, r"a text at the recipe\.columns\[0\]\.name"),
        ([COLUMN, AGE, "name"], "\ud800", r"a text at .*name. Got '.ud800'"),
        ([COLUMN, AGE, "name"], "flag", r"distinct columns at the recipe\.columns. Got 'flag' twice"),
        ([COLUMN, AGE, "parameters"], None, r"members fill, missing, comma"),
        ([COLUMN, AGE, "parameters", "fill"], float("nan"), r"a finite number at .*fill. Got nan"),
        ([COLUMN, AGE, "parameters", "fill"], 1e39, r"a finite number"),
        ([COLUMN, AGE, "parameters", "fill"], "1", r"a finite number"),
        ([COLUMN, AGE, "parameters", "fill"], True, r"a finite number"),
        ([COLUMN, AGE, "parameters", "fill"], None, r"a number, as some were missing"),
        ([COLUMN, AGE, "parameters", "missing"], -1, r"an integer of at least 0"),
        ([COLUMN, AGE, "parameters", "missing"], 1.5, r"an integer of at least 0"),
        ([COLUMN, AGE, "parameters", "comma"], 0, r"true or false"),
        ([COLUMN, AGE, "parameters", "flags"], 0, r"true or false"),
        ([COLUMN, FLAG, "parameters", "missing"], True, r"an integer of at least 0"),
        ([COLUMN, TEAM, "parameters", "values"], [], r"values at"),
        ([COLUMN, TEAM, "parameters", "values"], ["a", "a"], r"distinct texts at .*values"),
        ([COLUMN, TEAM, "parameters", "values"], ["a", 3], r"a text at .*values\[1\]"),
        ([COLUMN, TEAM, "parameters", "values"], "ab", r"a list at"),
        ([COLUMN, DAY, "parameters", "order"], "first", r"one of year first, day first, month first"),
        ([COLUMN, BIO, "parameters", "words"], ["a"], r"one number for each of 1 words at .*idf"),
        ([COLUMN, BIO, "parameters", "idf", 0], float("inf"), r"at .*idf\[0\]"),
        ([COLUMN, BIO, "parameters", "idf", 0], 0.5, r"a number of at least 1"),
        ([COLUMN, SAME, "reason"], 5, r"a text at .*reason"),
        ([COLUMN, SAME, "reason"], "", r"a reason at"),
        ([COLUMN, SAME, "parameters"], {}, r"members name, kind, reason"),
    ],
)
def test_a_damaged_recipe_is_refused_with_the_place(path, value, message):
    entry = copy.deepcopy(RECIPE.to_json())
    change(path, value)(entry)
    with pytest.raises(FormatError, match=message):
        Recipe.from_json(entry)


@pytest.mark.parametrize("entry", [None, [], "recipe", 3, {}])
def test_what_is_no_recipe_is_refused(entry):
    with pytest.raises(FormatError, match="A recipe must have"):
        Recipe.from_json(entry)
