"""Distinct combinations of values: each row gets the number of its combination."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.rows.distinct import number_distinct


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_rows_have_the_same_number_if_all_their_values_are_equal(rows):
    random = np.random.default_rng(7)
    days = [None if day == 3 else f"d{day}" for day in random.integers(0, 4, rows)]
    numbers = random.integers(0, 200, rows).tolist()
    columns = [pa.array(days, pa.string()), pa.array(numbers, pa.int64())]

    codes, first_of = number_distinct(columns)

    rows_of = list(zip(days, numbers, strict=True))
    assert len(codes) == rows
    assert len(set(rows_of)) == len(first_of)
    assert [rows_of[first_of[code]] for code in codes] == rows_of
