from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pprop import InputError
from pprop._errors import FormatError
from pprop.graph.features.columns import read_column
from pprop.graph.features.encoders import BooleanEncoder, CategoryEncoder, DateEncoder, NumberEncoder, TextEncoder


def column(cells, typed=False):
    return read_column("x", pa.array(cells), typed=typed, title="'t.csv'", function="read_edges")


def dense(block: Any) -> Any:
    return block.toarray() if isinstance(block, sparse.csr_array) else block


def test_a_missing_number_is_the_median_and_has_a_flag():
    cells = column(["1", "", "4", "10", "NA"])
    encoder = NumberEncoder.fit(cells)
    assert encoder == NumberEncoder(4.0, 2)
    assert dense(encoder.encode(cells)).tolist() == [[1, 0], [4, 1], [4, 0], [10, 0], [4, 1]]
    assert encoder.feature_names("x") == ["x", "x is missing"]
    assert encoder.summary == "number, 2 missing filled with 4"


def test_numbers_without_a_gap_are_their_float32():
    values = np.random.default_rng(0).normal(size=100)
    cells = column(values, typed=True)
    assert dense(NumberEncoder.fit(cells).encode(cells)).tobytes() == values.astype(np.float32).tobytes()


def test_a_number_missing_later_is_filled_with_a_warning_that_counts():
    encoder = NumberEncoder.fit(column(["1", "2", "9"]))
    with pytest.warns(UserWarning, match=r"2 cells of 'x' in 't\.csv' are missing; .* They are filled with 2\."):
        assert dense(encoder.encode(column(["5", "", "NA"]))).tolist() == [[5], [2], [2]]


def test_a_number_column_that_may_not_be_filled_refuses_a_gap():
    with pytest.raises(FormatError, match=r"a number in every row of 'x'. Got a missing value in row 2 of 't\.csv'"):
        NumberEncoder(None).encode(column(["5", ""]))


@pytest.mark.parametrize(("cell", "shown"), [("old", "'old'"), ("inf", "'inf'"), ("-1e39", "'-1e39'")])
def test_what_is_no_number_of_float32_is_refused_with_its_row(cell, shown):
    with pytest.raises(FormatError, match=rf"in every row of 'x'. Got {shown} in row 3 of 't\.csv'"):
        NumberEncoder.fit(column(["1", "", cell]))


def test_a_missing_truth_value_is_one_half_and_has_a_flag():
    cells = column([True, None, False], typed=True)
    assert BooleanEncoder.fit(cells) == BooleanEncoder.fit(column(["Yes", "", "no"])) == BooleanEncoder(1)
    assert dense(BooleanEncoder(1).encode(cells)).tolist() == [[1, 0], [0.5, 1], [0, 0]]


def test_a_date_is_its_days_since_1970_and_a_missing_one_their_median():
    cells = column(["1970-01-02", "", "1970-01-04 12:00", "1970-01-11"])
    encoder = DateEncoder.fit(cells)
    assert encoder == DateEncoder(3.5, 1)
    assert dense(encoder.encode(cells)).tolist() == [[1, 0], [3.5, 1], [3.5, 0], [10, 0]]
    assert encoder.summary == "date, 1 missing filled with 1970-01-04"


def test_a_date_in_another_form_is_refused_with_its_row():
    encoder = DateEncoder.fit(column(["31/12/2024", "30/12/2024"]))
    assert encoder.order == "day first"
    with pytest.raises(FormatError, match=r"a date in every row of 'x'. Got '12/31/2024' in row 2"):
        encoder.encode(column(["01/12/2024", "12/31/2024"]))


def test_a_category_is_a_flag_for_each_value_sorted():
    cells = column(["b", "a", "", "b", "ä"])
    encoder = CategoryEncoder.fit(cells)
    assert encoder.feature_names("x") == ["x=a", "x=b", "x=ä", "x is missing"]
    expected = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert dense(encoder.encode(cells)).tolist() == expected
    assert encoder.summary == "category, 3 values, 1 missing"


def test_rare_values_share_a_flag():
    cells = column([f"v{k:02}" for k in range(60)] + ["v59", "v00"])
    encoder = CategoryEncoder.fit(cells)
    assert encoder.values == tuple(sorted([*(f"v{k:02}" for k in range(49)), "v59"]))
    assert encoder.others == 10
    block = dense(encoder.encode(column(["v59", "v55", "unheard of"])))
    assert encoder.feature_names("x")[49:] == ["x=v59", "x=other values"]
    assert np.argwhere(block).tolist() == [[0, 49], [1, 50], [2, 50]]


def test_of_many_values_the_frequent_ones_have_a_flag_each():
    encoder = CategoryEncoder.fit(column([f"mcc{k % 120}" for k in range(1260)]))  # 60 of them eleven times
    assert (len(encoder.values), encoder.others) == (120, 0)
    encoder = CategoryEncoder.fit(column([f"mcc{k % 120}" for k in range(1140)]))  # 60 of them ten times, 60 nine times
    assert (encoder.values, encoder.others) == (tuple(sorted(f"mcc{k}" for k in range(60))), 60)
    encoder = CategoryEncoder.fit(column([f"mcc{k % 600}" for k in range(6000)]))
    assert (len(encoder.values), encoder.others) == (500, 100)


def test_a_new_value_and_a_new_gap_have_no_flag_and_are_counted_in_a_warning():
    encoder = CategoryEncoder.fit(column(["a", "b", "a"]))
    with (
        pytest.warns(UserWarning, match=r"3 cells of 'x' .* hold values that were not there .* \('d', 'c'\)\."),
        pytest.warns(UserWarning, match=r"1 cell of 'x' .* missing; none was"),
    ):
        assert dense(encoder.encode(column(["d", "b", "c", "", "d"]))).tolist() == [
            [0, 0],
            [0, 1],
            [0, 0],
            [0, 0],
            [0, 0],
        ]


def test_text_is_tf_idf_of_rows_of_length_one():
    cells = column(["Red fox, red hat", "red FOX", "", "blue sky"])
    encoder = TextEncoder.fit(cells, 2)
    assert encoder.words == ("fox", "red")
    idf = 1 + math.log((1 + 3) / (1 + 2))  # three cells, two with each word
    assert encoder.idf == pytest.approx((idf, idf), rel=1e-12)
    expected = np.array([[1, 2], [1, 1], [0, 0], [0, 0]]) / np.sqrt([[5], [2], [1], [1]])
    np.testing.assert_allclose(dense(encoder.encode(cells)), expected, rtol=1e-6)
    assert encoder.summary == "text, 2 words, 1 missing"
    assert encoder.feature_names("bio") == ["bio: fox", "bio: red"]


def test_a_rarer_word_weighs_more_by_the_logarithm_of_the_cells_with_it():
    cells = column(["red fox", "red", "red hat"])
    encoder = TextEncoder.fit(cells)
    fox, red = 1 + math.log(4 / 2), 1 + math.log(4 / 4)
    norm = math.hypot(fox, red)
    np.testing.assert_allclose(
        dense(encoder.encode(cells)), [[fox / norm, 0, red / norm], [0, 0, 1], [0, fox / norm, red / norm]], rtol=1e-6
    )


def test_text_without_a_word_is_refused():
    with pytest.raises(InputError, match="must be a table with words in every row of 'x'"):
        TextEncoder.fit(column(["!!", "--"]))
