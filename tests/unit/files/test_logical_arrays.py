"""Columns of files as columns of a table, also in other forms of Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.files.logical_arrays import PhysicalTypeError, to_logical
from lakeformat.types.type_text import parse_type


@pytest.mark.parametrize(
    "stored", [pa.large_list(pa.large_string()), pa.list_(pa.string_view(), 1)], ids=str
)
def test_a_list_may_be_stored_in_another_form(stored):
    lists = to_logical(pa.array([["a"], None], stored), parse_type("ARRAY<STRING>"))
    assert lists.equals(pa.array([["a"], None], pa.list_(pa.string())).cast(lists.type))


def test_a_list_is_no_number():
    with pytest.raises(PhysicalTypeError, match="is stored as large_list"):
        to_logical(pa.array([[1]], pa.large_list(pa.int32())), parse_type("INT"))
