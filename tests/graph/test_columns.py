from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from pprop.graph.features.columns import MISSING_CELLS, read_column


def column(cells, typed=False):
    return read_column("x", cells if isinstance(cells, pa.Array | pa.ChunkedArray) else pa.array(cells), typed=typed)


def test_blanks_do_not_count_and_every_marker_is_missing():
    cells = column([*MISSING_CELLS, " NA ", " ", None, " a "])
    assert cells.missing.tolist() == [True] * (len(MISSING_CELLS) + 3) + [False]
    assert cells.texts().to_pylist()[-1] == "a"


def test_numbers_are_those_that_python_reads_bit_for_bit():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-300, 300, 1000)
    parsed, wrong = column([repr(float(value)) for value in values]).numbers()
    assert not wrong.any()
    assert parsed.tobytes() == values.tobytes()


@pytest.mark.parametrize("cell", ["1_000", "0x10", "1d5", "--1", "1e", ".", "five", "1,5"])
def test_what_is_no_number_is_marked_and_leaves_the_others(cell):
    values, wrong = column(["1", cell, "", "2e1"]).numbers()
    assert wrong.tolist() == [False, True, False, False]
    assert np.array_equal(values, [1.0, np.nan, np.nan, 20.0], equal_nan=True)


def test_a_decimal_comma_is_read_where_it_is_expected():
    values, wrong = column(["31,5", "-,25", "7", "1.5", "1,2,3"]).numbers(comma=True)
    assert wrong.tolist() == [False] * 4 + [True]
    assert values[:4].tolist() == [31.5, -0.25, 7.0, 1.5]


def test_truth_is_said_in_many_ways():
    values, wrong = column(["TRUE", "no", "T", "n", "1", "0", "", "maybe"]).truths()
    assert np.array_equal(values, [1, 0, 1, 0, 1, 0, np.nan, np.nan], equal_nan=True)
    assert wrong.tolist() == [False] * 7 + [True]
    assert column([1.0, 0.0, 2.0], typed=True).truths()[1].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("cell", "moment"),
    [
        ("1970-01-01", dt.datetime(1970, 1, 1)),
        ("1969-12-31", dt.datetime(1969, 12, 31)),
        ("2024-02-29", dt.datetime(2024, 2, 29)),
        ("2024/2/9", dt.datetime(2024, 2, 9)),
        ("2024-02", dt.datetime(2024, 2, 1)),
        ("2024-02-29 18:00", dt.datetime(2024, 2, 29, 18)),
        ("2024-02-29T18:00:30.25", dt.datetime(2024, 2, 29, 18, 0, 30, 250_000)),
        ("2024-02-29T18:00:30Z", dt.datetime(2024, 2, 29, 18, 0, 30)),
        ("2024-02-29T00:30+01:00", dt.datetime(2024, 2, 28, 23, 30)),
        ("2024-02-29T23:30-0130", dt.datetime(2024, 3, 1, 1, 0)),
        ("9.2.2024", dt.datetime(2024, 2, 9)),
        ("0001-01-01", dt.datetime(1, 1, 1)),
    ],
)
def test_a_date_becomes_days_since_1970(cell, moment):
    expected = (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)
    assert column([cell]).days()[0].tolist() == [expected]


@pytest.mark.parametrize(
    "cell",
    ["2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-01-01 24:00", "31/12/2024", "12:30", "20240101"],
)
def test_what_is_no_date_is_marked(cell):
    values, wrong = column([cell, "2024-01-01", ""]).days()
    assert wrong.tolist() == [True, False, False]
    assert np.isnan(values[[0, 2]]).all()


def test_day_and_month_stand_as_the_order_says():
    cells = column(["03/04/2024", "03-04-2024", "2024-04-03", "3.4.2024"])
    april = (dt.date(2024, 4, 3) - dt.date(1970, 1, 1)).days
    march = (dt.date(2024, 3, 4) - dt.date(1970, 1, 1)).days
    assert cells.days("day first")[0].tolist() == [april] * 4
    assert cells.days("month first")[0].tolist() == [march, march, april, april]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_typed_times_are_the_days_that_their_text_spells(unit, zone):
    moments = [dt.datetime(1965, 3, 4, 5, 6, 7), None, dt.datetime(2024, 2, 29, 23, 59, 59)]
    texts = [None if moment is None else f"{moment}{'Z' if zone else ''}" for moment in moments]
    typed = pa.array(moments, pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
    days, wrong = column(typed, typed=True).days()
    assert not wrong.any()
    assert days.tobytes() == column(pa.array(texts, pa.string())).days()[0].tobytes()


def test_chunks_views_and_dictionaries_are_the_same_cells():
    chunked = pa.chunked_array([["a", "b"], [], ["NA"]])
    for cells in (
        chunked,
        chunked.cast(pa.large_string()),
        chunked.dictionary_encode(),
        chunked.cast(pa.string_view()),
    ):
        assert column(cells, typed=True).texts().to_pylist() == ["a", "b", None]
    views = pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["b", "a"], pa.string_view()))]
    )
    assert column(views, typed=True).texts().to_pylist() == ["a", "b", None]


def test_a_whole_number_is_the_same_text_from_every_type():
    for cells, typed in [
        (["3", "", "12"], False),
        (["3.0", "", "12.0"], False),
        ([3, None, 12], True),
        ([3.0, None, 12.0], True),
    ]:
        assert column(cells, typed=typed).texts().to_pylist() == ["3", None, "12"]
    assert column([2**62, 5], typed=True).texts().to_pylist() == [str(2**62), "5"]
    assert column(["007", "3.50"]).texts().to_pylist() == ["007", "3.50"]
