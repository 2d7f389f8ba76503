"""Defaults of columns, which other engines set: rows written here get them as Java gives them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.schema import new_schema
from lakeformat.paimon.write.input_columns import InputColumns


def conformer(type_text: str, default: str) -> InputColumns:
    number, column = new_schema([("n", "INT"), ("c", type_text)], time_millis=0).fields
    return InputColumns((number, replace(column, default_value=default)))


@pytest.mark.parametrize(
    ("type_text", "default", "value"),
    [
        ("INT", "5", 5),
        ("INT NOT NULL", "5", 5),
        ("STRING", "a", "a"),
        ("STRING", "'a'", "a"),
        ("STRING", '"a"', '"a"'),
        ("STRING", "", ""),
        ("STRING", "null", "null"),
        ("INT", "'5'", 5),
        ("VARCHAR(3)", "abcdef", "abc"),
        ("CHAR(3)", "a", "a  "),
        ("BOOLEAN", "TRUE", True),
        ("DOUBLE", "1e3", 1000.0),
        ("DECIMAL(5, 2)", "1.234", Decimal("1.23")),
        ("DATE", "2020-01-02", date(2020, 1, 2)),
        ("TIMESTAMP(3)", "2020-01-02 03:04:05", datetime(2020, 1, 2, 3, 4, 5)),
        ("BYTES", "ab", b"ab"),
    ],
)
def test_an_absent_column_has_its_default_in_every_row(type_text, default, value):
    rows = conformer(type_text, default)(pa.record_batch({"n": pa.array([1, 2])}))
    assert rows["c"].to_pylist() == [value, value]


def test_a_null_that_is_given_becomes_the_default_and_nothing_else_does():
    given = pa.record_batch({"c": pa.array(["", None, "x"])})
    assert conformer("STRING", "d")(given)["c"].to_pylist() == ["", "d", "x"]


def test_a_null_is_refused_where_none_may_be_although_there_is_a_default():
    given = pa.record_batch({"c": pa.array([None], pa.string())})
    with pytest.raises(lake.InvalidRequestError, match="column 'c' is NOT NULL"):
        conformer("STRING NOT NULL", "d")(given)


@pytest.mark.parametrize(
    ("type_text", "default"), [("INT", "x"), ("INT", ""), ("ARRAY<INT>", "[1]"), ("VARIANT", "1")]
)
def test_a_default_that_is_no_value_here_is_refused_by_name(type_text, default):
    with pytest.raises(lake.UnsupportedError, match="column 'c' has the default value"):
        conformer(type_text, default)
