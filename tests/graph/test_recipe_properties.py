"""Two hundred generated tables with odd columns: each column is used, or left out for a reason."""

from __future__ import annotations

import datetime as dt
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pprop.graph.features.recipe import Recipe

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The column .* is left out")]  # lists

many = settings(
    max_examples=200,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

some = settings(many, max_examples=100)

odd_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = st.lists(
    st.sampled_from(["the", "red", "fox", "has", "12", "hats", "änd", "é", "日本", "x"]), min_size=1, max_size=5
).map(" ".join)
markers = st.sampled_from(["", "NA", "nan", "?", " ", "None", "null"])
floats = st.floats(allow_nan=True, allow_infinity=True)
ordinary = st.floats(-1e6, 1e6, allow_nan=False)
dates = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
times = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
decimals = st.decimals(-(10**6), 10**6, places=2, allow_nan=False)
names = st.one_of(
    st.sampled_from(["age", "zip", "phone", "user_id", "Unnamed: 0", "", "year", "x=1", "x is missing", "a\0"]),
    odd_texts,
)

TYPED = {
    "text": (odd_texts, pa.string()),
    "words": (words, pa.large_string()),
    "markers": (st.one_of(markers, words), pa.string()),
    "numbers as text": (ordinary.map(str), pa.string()),
    "values": (st.sampled_from(["DE", "FR", "US"]), pa.string()),
    "many values": (st.integers(0, 80).map(str), pa.dictionary(pa.int32(), pa.string())),
    "categories of integers": (st.integers(0, 3), pa.dictionary(pa.int8(), pa.int64())),
    "float": (floats, pa.float64()),
    "half": (st.floats(width=16), pa.float16()),
    "integer": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "large": (st.integers(0, 2**64 - 1), pa.uint64()),
    "decimal": (decimals, pa.decimal128(20, 2)),
    "boolean": (st.booleans(), pa.bool_()),
    "date": (dates, pa.date32()),
    "time": (times, pa.timestamp("us", "UTC")),
    "duration": (st.timedeltas(dt.timedelta(-9), dt.timedelta(9)), pa.duration("us")),
    "list": (st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int64())),
    "embedding": (st.lists(st.floats(width=32), min_size=2, max_size=2), pa.list_(pa.float32())),
    "structure": (st.fixed_dictionaries({"a": st.integers(0, 3)}), pa.struct([("a", pa.int64())])),
    "binary": (st.binary(max_size=3), pa.binary()),
    "null": (st.none(), pa.null()),
}
SPELLED = st.one_of(
    odd_texts, words, markers, ordinary.map(str), st.integers(0, 99).map(str), dates.map(str), times.map(str)
)
KINDS_OF_CELLS = [
    odd_texts,
    words,
    markers,
    ordinary.map(str),
    floats.map(str),
    st.integers(-99, 99).map(str),
    st.integers(0, 10**6).map(lambda number: f"{number:07}"),
    st.sampled_from(["yes", "No", "NO"]),
    st.sampled_from(["T", "f", ""]),
    st.sampled_from(["DE", "FR", "US", "NA"]),
    dates.map(str),
    times.map(lambda time: time.isoformat()),
    dates.map(lambda date: f"{date.day}/{date.month}/{date.year:04}"),
    ordinary.map(lambda number: f"{number:.2f}".replace(".", ",")),
    SPELLED,
]


@st.composite
def columns_of(draw, cells, n):
    """Draw a column; half the time few distinct cells recur, and sometimes all are the same."""
    if draw(st.booleans()):
        pool = draw(st.lists(cells, min_size=1, max_size=3))
        return draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    return draw(st.lists(cells, min_size=n, max_size=n))


@st.composite
def tables(draw):
    n = draw(st.integers(0, 25))
    typed = draw(st.booleans())
    table = {}
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        if typed:
            cells, kind = TYPED[draw(st.sampled_from(sorted(TYPED)))]
            table[name] = _typed(draw(columns_of(st.one_of(cells, st.none()), n)), kind)
        else:
            table[name] = pa.chunked_array([draw(columns_of(draw(st.sampled_from(KINDS_OF_CELLS)), n))], pa.string())
    return table, typed


def _typed(cells, kind):
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.array(cells, kind.value_type).dictionary_encode()])
    if pa.types.is_float16(kind):
        return pa.chunked_array([pa.array([None if cell is None else np.float16(cell) for cell in cells], kind)])
    return pa.chunked_array([pa.array(cells, kind)])


def features_of(recipe, table, typed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the table it was fitted on has nothing new
        features, names = recipe.encode(table, typed=typed)
    assert features.dtype == np.float32
    dense = features.toarray() if isinstance(features, sparse.csr_array) else features
    return dense, names


def summaries(recipe):
    """Return the kind and parameters of each column; a reason may name the first row that shows it."""
    return {column.name: (column.kind, column.encoder) for column in recipe.columns}


@many
@given(tables())
def test_every_column_is_used_or_left_out_for_a_reason_and_the_features_are_sound(drawn):
    table, typed = drawn
    recipe = Recipe.fit(table, typed=typed)
    assert not set(recipe.used) & set(recipe.unused)
    assert [column.name for column in recipe.columns] == list(table)
    assert set(recipe.used) | set(recipe.unused) == set(table)
    assert all(len(text) > len("left out: ") for text in recipe.unused.values())
    assert len(str(recipe).splitlines()) == len(table)
    assert all(name in str(recipe) or repr(name) in str(recipe) for name in table)
    features, names = features_of(recipe, table, typed)
    rows = len(next(iter(table.values())))
    assert features.shape == (rows, len(names)) == (rows, recipe.n_features) == (rows, len(recipe.numbers))
    assert np.isfinite(features).all()

    again = Recipe.from_json(json.loads(json.dumps(recipe.to_json(), allow_nan=False)))
    assert again == recipe
    assert features_of(again, table, typed)[0].tobytes() == features.tobytes()


@some
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_rows_does_not_matter(drawn, random):
    table, typed = drawn
    recipe = Recipe.fit(table, typed=typed)
    features, _ = features_of(recipe, table, typed)

    turned_names = random.sample(list(table), len(table))
    turned = {name: table[name] for name in turned_names}
    assert summaries(Recipe.fit(turned, typed=typed)) == summaries(recipe)
    assert features_of(recipe, turned, typed)[0].tobytes() == features.tobytes()

    rows = random.sample(range(len(features)), len(features))
    mixed = {
        name: pa.chunked_array([cells.combine_chunks().take(pa.array(rows, pa.int64()))])
        for name, cells in table.items()
    }
    assert summaries(Recipe.fit(mixed, typed=typed)) == summaries(recipe)
    assert features_of(recipe, mixed, typed)[0].tobytes() == features[rows].tobytes()


AGREEING = {
    "number": (st.floats(allow_infinity=True), pa.float64(), repr),
    "integer": (st.integers(-(2**53), 2**53), pa.int64(), str),
    "small integer": (st.integers(0, 3), pa.int64(), str),
    "boolean": (st.booleans(), pa.bool_(), str),
    "date": (dates, pa.date32(), str),
    "time": (times, pa.timestamp("us"), str),
    "category": (st.sampled_from(["DE", "FR", "Ü", "yes", "no"]), pa.string(), str),
}


@some
@given(st.data())
def test_a_csv_and_a_typed_table_of_the_same_values_have_the_same_features(data):
    n = data.draw(st.integers(1, 25))
    typed, texts = {}, {}
    for name in data.draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        cells, kind, write = AGREEING[data.draw(st.sampled_from(sorted(AGREEING)))]
        drawn = data.draw(columns_of(st.one_of(cells, st.none()), n))
        typed[name] = pa.array(drawn, kind)
        texts[name] = pa.array(["" if cell is None else write(cell) for cell in drawn], pa.string())
    first, second = Recipe.fit(typed, typed=True), Recipe.fit(texts, typed=False)
    assert summaries(first) == summaries(second)
    features, feature_names = features_of(first, typed, True)
    for recipe, table, flag in ((second, texts, False), (first, texts, False), (second, typed, True)):
        others, names_again = features_of(recipe, table, flag)
        assert names_again == feature_names
        assert others.tobytes() == features.tobytes()


@pytest.mark.parametrize("n_values", [51, 1000])
def test_a_huge_set_of_categories_has_fifty_flags_and_one_for_the_others(n_values):
    cells = pa.array([f"v{k % n_values}" for k in range(3 * n_values)]).dictionary_encode()
    recipe = Recipe.fit({"x": cells}, typed=True)
    assert recipe.used == {"x": f"category, 50 values and {n_values - 50} rarer together"}
    features, names = recipe.encode({"x": cells}, typed=True)
    assert features.shape == (3 * n_values, 51)
    assert features.sum(axis=1).tolist() == [1] * (3 * n_values)
    assert features[:, names.index("x=other values")].sum() == 3 * (n_values - 50)
