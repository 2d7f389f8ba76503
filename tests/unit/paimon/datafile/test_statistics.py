"""Statistics of data files: what is kept of each column, how it is cut, and how it is read back."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.files.column_statistics import (
    NO_STATISTICS,
    ColumnStatistics,
    Detail,
    StatisticsMode,
    reduce_statistics,
)
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.paimon.datafile.file_statistics import column_modes, file_statistics
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from lakeformat.types.values import values_to_arrow

FORMATS = ["parquet", "orc", "avro"]
in_every_format = pytest.mark.parametrize("file_format", FORMATS)
ORIGIN = FileOrigin(0, datetime(2024, 1, 1))
CUT = StatisticsMode(Detail.BOUNDS, 4)
LAST_CODE_POINT = chr(0x10FFFF)


def columns(*named_types):
    return tuple(DataField(n, name, parse_type(t)) for n, (name, t) in enumerate(named_types))


def describe(values_by_column, fields, options=None, *, dense=True):
    """The statistics in the manifest of a file with these values."""
    options = TableOptions(options or {})
    arrays = [
        values_to_arrow(values, field.type)
        for values, field in zip(values_by_column, fields, strict=True)
    ]
    writer = RollingWriter(
        MemoryStorage(), "/t", fields, options, lambda: f"data-0.{options.file_format}"
    )
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields)))
    (file,) = writer.finish()
    return describe_append_file(file, fields, ORIGIN, first_sequence_number=0, dense=dense)


def known(values, type_text, **options):
    """The statistics of one column, written and read."""
    fields = columns(("c", type_text))
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    (found,) = file_statistics(describe([values], fields, texts), fields, fields)
    return found


@pytest.mark.parametrize(
    ("highest", "kept"),
    [
        ("abcd", "abcd"),
        ("abcde", "abce"),
        ("中文中文x", "中文中斈"),
        (f"ab{LAST_CODE_POINT * 2}x", "ac"),
        (f"a\ud7ff{LAST_CODE_POINT * 2}x", "a\ue000"),
        (b"\x01\xff\xff\xff\x00", b"\x02"),
        (b"\x01\x02\x03\xfe\x00", b"\x01\x02\x03\xff"),
    ],
)
def test_an_upper_bound_is_cut_and_the_last_unit_that_can_be_is_raised(highest, kept):
    found = reduce_statistics(ColumnStatistics(highest[:1], highest, 0), CUT)
    assert found.maximum == kept


@pytest.mark.parametrize("highest", [LAST_CODE_POINT * 5, b"\xff" * 5])
def test_where_nothing_can_be_raised_both_bounds_are_dropped(highest):
    found = reduce_statistics(ColumnStatistics(highest[:1], highest, 3), CUT)
    assert found == ColumnStatistics(null_count=3)


@given(st.lists(st.text() | st.text("ab\ud7ff\U0010ffff", max_size=8), min_size=1))
def test_cut_bounds_of_texts_lie_outside_of_them(texts):
    found = reduce_statistics(ColumnStatistics(min(texts), max(texts), 0), CUT)
    if found.minimum is not None:
        assert all(found.minimum <= text <= found.maximum for text in texts)
        assert max(len(found.minimum), len(found.maximum)) <= 4


@given(st.lists(st.binary() | st.binary(max_size=8).map(lambda b: b + b"\xff" * 5), min_size=1))
def test_cut_bounds_of_bytes_lie_outside_of_them(values):
    found = reduce_statistics(ColumnStatistics(min(values), max(values), 0), CUT)
    if found.minimum is not None:
        assert all(found.minimum <= value <= found.maximum for value in values)


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("none", NO_STATISTICS),
        ("counts", ColumnStatistics(null_count=1)),
        ("truncate(2)", ColumnStatistics("ab", "xz", 1)),
        ("full", ColumnStatistics("abc", "xyz", 1)),
    ],
)
@in_every_format
def test_a_mode_says_what_is_kept(file_format, mode, kept):
    options = {"file__format": file_format, "metadata__stats_mode": mode}
    assert known(["abc", None, "xyz"], "STRING", **options) == kept


def test_the_mode_is_set_by_column_then_by_place_then_for_the_table():
    options = TableOptions(
        {
            "metadata.stats-mode": "full",
            "metadata.stats-keep-first-n-columns": "2",
            "fields.d.stats-mode": "counts",
            "fields.a.stats-mode": "truncate(5)",
        }
    )
    modes = column_modes(["_KEY_a", "_SEQUENCE_NUMBER", "a", "b", "c", "d"], options)
    key, none = StatisticsMode(Detail.BOUNDS, 128), StatisticsMode(Detail.NONE)
    assert modes == [
        key,
        key,
        StatisticsMode(Detail.BOUNDS, 5),
        StatisticsMode(Detail.BOUNDS),
        none,
        StatisticsMode(Detail.COUNTS),
    ]


def test_in_thin_files_the_table_s_key_columns_keep_what_keys_are_compared_by():
    options = TableOptions({"metadata.stats-mode": "none"})
    modes = column_modes(["k", "v"], options, key_columns=["k"])
    assert modes == [StatisticsMode(Detail.BOUNDS, 128), StatisticsMode(Detail.NONE)]


@pytest.mark.parametrize("mode", ["some", "truncate", "truncate(0)", "truncate(x)", ""])
def test_a_mode_that_does_not_exist_is_refused_by_its_option(mode):
    with pytest.raises(InvalidRequestError, match=r"'metadata.stats-mode' is"):
        TableOptions({"metadata.stats-mode": mode}).validate()
    with pytest.raises(InvalidRequestError, match=r"option 'fields\.x\.stats-mode' is"):
        TableOptions({"fields.x.stats-mode": mode}).validate()


def test_options_of_columns_are_known_options():
    options = TableOptions({"fields.a b.c.stats-mode": "full"})
    assert options.unknown() == []
    assert TableOptions({"fields..stats-mode": "full"}).unknown() == ["fields..stats-mode"]


@in_every_format
def test_columns_without_statistics_are_left_out_or_keep_an_empty_place(file_format):
    fields = columns(("a", "INT"), ("b", "INT"))
    options = {"file.format": file_format, "fields.a.stats-mode": "none"}
    dense = describe([[1], [2]], fields, options)
    assert dense.value_stats_cols == ("b",)
    sparse = describe([[1], [2]], fields, options, dense=False)
    assert sparse.value_stats_cols is None
    assert sparse.value_stats.null_counts == (None, 0)
    for meta in (dense, sparse):
        found = file_statistics(meta, fields, fields)
        assert found == [NO_STATISTICS, ColumnStatistics(2, 2, 0)]


def test_a_file_that_covers_no_column_has_empty_statistics_and_an_empty_list():
    fields = columns(("a", "INT"))
    meta = describe([[1]], fields, {"metadata.stats-mode": "none"})
    assert (meta.value_stats, meta.value_stats_cols) == (EMPTY_STATS, ())
    assert file_statistics(meta, fields, fields) == [NO_STATISTICS]


@in_every_format
def test_a_column_of_nulls_has_their_number_and_no_bounds(file_format):
    assert known([None, None], "INT", file__format=file_format) == ColumnStatistics(null_count=2)


@in_every_format
@pytest.mark.parametrize("values", [[1.0, math.nan], [math.nan], [None, math.nan]])
def test_a_column_with_nan_has_no_bounds(file_format, values):
    found = known(values, "DOUBLE", file__format=file_format)
    assert found == ColumnStatistics(null_count=values.count(None))


@in_every_format
def test_zeros_of_either_sign_lie_within_the_bounds_of_each_other(file_format):
    found = known([0.0], "FLOAT", file__format=file_format)
    assert repr((found.minimum, found.maximum)) == "(-0.0, 0.0)"


def test_nested_columns_have_no_statistics_in_parquet_and_a_null_count_elsewhere():
    for type_text in ("ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT>"):
        assert known([None], type_text) == NO_STATISTICS
        for file_format in ("orc", "avro"):
            found = known([None], type_text, file__format=file_format)
            assert found == ColumnStatistics(null_count=1)


def test_nanoseconds_have_a_null_count_only_in_parquet_and_bytes_in_orc():
    assert known([1, None], "TIMESTAMP(9)") == ColumnStatistics(null_count=1)
    assert known([1, None], "TIMESTAMP(9)", file__format="orc") == ColumnStatistics(1, 1, 1)
    assert known([b"a", None], "BYTES", file__format="orc") == ColumnStatistics(null_count=1)


@in_every_format
def test_very_long_values_have_cut_bounds_too(file_format):
    low, high = "a" * 10_000, "b" * 10_000
    found = known([high, low], "STRING", file__format=file_format)
    assert found == ColumnStatistics("a" * 16, "b" * 15 + "c", 0)


def test_bounds_are_those_of_all_row_groups(monkeypatch):
    monkeypatch.setattr("lakeformat.paimon.datafile.rolling_writer.ROW_GROUP_ROWS", 2)
    values = ["b", "x" * 5000, None, None, "a" * 5000, "c"]
    found = known(values, "STRING", metadata__stats_mode="full")
    assert found == ColumnStatistics("a" * 5000, "x" * 5000, 2)


def test_columns_after_nested_ones_have_their_own_statistics():
    fields = columns(("r", "ROW<a INT, b ARRAY<STRING>>"), ("m", "MAP<INT, INT>"), ("n", "INT"))
    meta = describe([[(5, ["x"])], [[(6, 7)]], [1]], fields)
    assert file_statistics(meta, fields, fields)[2] == ColumnStatistics(1, 1, 0)
    assert meta.value_stats_cols == ("n",)


OLD = columns(("a", "INT"), ("b", "BIGINT"), ("c", "STRING"))
NEW = (
    DataField(2, "c", parse_type("VARCHAR(2)")),
    DataField(7, "added", parse_type("INT")),
    DataField(0, "renamed", parse_type("DECIMAL(12, 1)")),
    DataField(1, "b", parse_type("INT")),
)


def test_statistics_follow_columns_through_changes_of_the_schema():
    meta = describe([[1, 2], [2**40, None], ["abc", "xyz"]], OLD)
    c, added, renamed, narrowed = file_statistics(meta, OLD, NEW)
    assert c == ColumnStatistics("ab", "xy", 0)
    assert added == ColumnStatistics(null_count=2)
    assert [str(renamed.minimum), str(renamed.maximum)] == ["1.0", "2.0"]
    assert narrowed == NO_STATISTICS  # what wraps has other bounds


def test_bounds_that_the_new_type_has_no_place_for_are_unknown():
    fields, wanted = columns(("a", "DATE")), columns(("a", "TIMESTAMP(6)"))
    meta = describe([[None, 0, 2**31 - 1]], fields)
    assert file_statistics(meta, fields, wanted) == [ColumnStatistics(null_count=1)]


def test_a_column_that_a_partial_file_lacks_is_unknown_not_null():
    meta = replace(describe([[1]], OLD[:1]), write_cols=("a",), value_stats_cols=None)
    assert file_statistics(meta, OLD, OLD)[1] == NO_STATISTICS


def test_null_counts_may_be_missing():
    meta = describe([[1], [2], ["x"]], OLD)
    meta = replace(meta, value_stats=replace(meta.value_stats, null_counts=None))
    assert file_statistics(meta, OLD, OLD)[0] == ColumnStatistics(1, 1, None)


@pytest.mark.parametrize("cover", [("a",), ("a", "b", "c", "a"), ("a", "b", "x")])
def test_statistics_of_other_columns_than_the_list_names_are_damage(cover):
    meta = replace(describe([[1], [2], ["x"]], OLD), value_stats_cols=cover)
    with pytest.raises(CorruptTableError, match=r"data-0\.parquet"):
        file_statistics(meta, OLD, OLD)


@in_every_format
def test_an_append_table_keeps_statistics_by_default(file_format, tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    schema = [("id", "BIGINT"), ("name", "STRING")]
    options = {"file.format": file_format}
    table = catalog.create_table("shop.t", schema, options=options)
    writer = table.new_writer()
    writer.write(pa.table({"id": [3, 1, None], "name": ["n" * 20, "a", "b"]}))
    (message,) = writer.prepare()
    (meta,) = message.new_files
    fields = columns(*schema)
    assert meta.value_stats_cols is None
    assert file_statistics(meta, fields, fields) == [
        ColumnStatistics(1, 3, 1),
        ColumnStatistics("a", "n" * 15 + "o", 0),
    ]
