"""Timestamps of more than 6 digits in Parquet files: INT96, as in Java, beside other columns."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.files.column_statistics import ColumnStatistics
from lakeformat.files.parquet.arrow_file import FooterStream
from lakeformat.files.parquet.int96_footer import with_int96
from lakeformat.files.parquet.thrift_compact import parse_struct
from lakeformat.paimon.datafile import rolling_writer
from lakeformat.paimon.datafile.reader import read_batches
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.options import TableOptions
from lakeformat.storage.memory import MemoryStorage
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from lakeformat.types.values import values_from_arrow, values_to_arrow
from tests import sampling

LONG = 2**63 - 1
DAY = 86_400 * 10**9
EDGES = [0, 1, -1, DAY, DAY - 1, -DAY, -DAY - 1, LONG, -LONG - 1]


def columns(*types):
    return tuple(DataField(n, f"c{n}", parse_type(text)) for n, text in enumerate(types))


def write(fields, values, *slices, **options):
    """One file with a row group for each slice of the rows, else with all of them."""
    storage = MemoryStorage()
    typed = TableOptions({key.replace("__", "."): text for key, text in options.items()})
    writer = RollingWriter(storage, "/t", fields, typed, lambda: "data-0.parquet")
    arrays = [values_to_arrow(v, field.type) for v, field in zip(values, fields, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields))
    for start, count in slices or [(0, batch.num_rows)]:
        writer.write(batch.slice(start, count))
    (file,) = writer.finish()
    return storage, file


def stored(storage, file):
    return pq.ParquetFile(pa.BufferReader(storage.read(file.path)), page_checksum_verification=True)


def read(storage, file, fields):
    return pa.Table.from_batches(
        read_batches(storage, file.path, file_fields=fields, wanted=fields)
    )


def footer_of(content):
    return parse_struct(content[-8 - int.from_bytes(content[-8:-4], "little") : -8])


def physical_types(found):
    return {
        found.schema.column(n).path: found.schema.column(n).physical_type
        for n in range(len(found.schema))
    }


def test_only_the_fine_ones_are_int96_wherever_they_are():
    fields = columns(
        "TIMESTAMP(9)",
        "TIMESTAMP(6)",
        "TIMESTAMP(7) WITH LOCAL TIME ZONE",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "DECIMAL(28, 0)",  # 12 bytes as well
        "ARRAY<TIMESTAMP(8)>",
        "MAP<TIMESTAMP(9), TIMESTAMP(0)>",
        "ROW<a TIMESTAMP(4), b ARRAY<ROW<c TIMESTAMP(9) NOT NULL>>>",
    )
    storage, file = write(fields, [[None]] * len(fields))
    expected = {
        "c0": "INT96",
        "c1": "INT64",
        "c2": "INT96",
        "c3": "INT64",
        "c4": "FIXED_LEN_BYTE_ARRAY",
        "c5.list.element": "INT96",
        "c6.key_value.key": "INT96",
        "c6.key_value.value": "INT64",
        "c7.a": "INT64",
        "c7.b.list.element.c": "INT96",
    }
    assert physical_types(stored(storage, file)) == expected
    # Other readers look at the column chunks and at lengths as well.
    footer = footer_of(storage.read(file.path))
    leaves = [element for element in footer[2][1].items if 1 in element]
    assert [2 in element for element in leaves] == [
        kind == "FIXED_LEN_BYTE_ARRAY" for kind in expected.values()
    ]
    chunks = footer[4][1].items[0][1][1].items
    assert [chunk[3][1][1] for chunk in chunks] == [element[1] for element in leaves]


@pytest.mark.parametrize("repeated", [1, 20])
def test_a_value_is_the_nanosecond_of_its_day_and_then_its_julian_day(repeated):
    """As they are, and in a dictionary."""
    storage, file = write(columns("TIMESTAMP(9)"), [EDGES * repeated], file__compression="none")
    chunk = stored(storage, file).metadata.row_group(0).column(0)
    assert ("RLE_DICTIONARY" in chunk.encodings) == (repeated > 1)
    kept = b""
    for value in EDGES:
        days, nanos = divmod(value, DAY)
        kept += nanos.to_bytes(8, "little") + (days + 2_440_588).to_bytes(4, "little")
    assert kept in storage.read(file.path)


def or_null(values):
    return st.none() | values


moments = st.integers(-LONG - 1, LONG) | st.sampled_from(EDGES)
coarse = st.integers(-(10**12), 10**12).map(lambda count: count * 1000)
KINDS = {
    "TIMESTAMP(9)": moments,
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": moments,
    "TIMESTAMP(6)": coarse,
    "ARRAY<TIMESTAMP(9)>": st.lists(or_null(moments), max_size=3),
    "MAP<TIMESTAMP(9), ROW<x TIMESTAMP(9), y TIMESTAMP(6)>>": st.lists(
        st.tuples(moments, or_null(st.tuples(or_null(moments), or_null(coarse)))),
        max_size=3,
        unique_by=lambda entry: entry[0],
    ),
    "ROW<a TIMESTAMP(9) NOT NULL, b ARRAY<ROW<c TIMESTAMP(7) NOT NULL>>>": st.tuples(
        moments, or_null(st.lists(or_null(st.tuples(moments)), max_size=2))
    ),
}


@settings(max_examples=sampling.count(8, whole=60))
@given(st.data())
def test_any_rows_come_back_from_any_slices(data):
    names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    count = data.draw(st.integers(1, 8))
    fields = columns(*names)
    values = [
        data.draw(st.lists(or_null(KINDS[name]), min_size=count, max_size=count)) for name in names
    ]
    start = data.draw(st.integers(0, count))
    slices = [(start, count - start), (0, start)]
    storage, file = write(fields, values, *slices)
    found = read(storage, file, fields)
    found.validate(full=True)
    for name, field, expected in zip(found.column_names, fields, values, strict=True):
        read_back = values_from_arrow(found[name].combine_chunks(), field.type)
        assert read_back == expected[start:] + expected[:start]


def test_they_have_a_null_count_and_no_bounds_and_others_keep_theirs():
    fields = columns("TIMESTAMP(9)", "BIGINT", "TIMESTAMP(3)")
    values = [[5, None, None, 7], [1, 2, None, 4], [None, 10**6, 0, 0]]
    storage, file = write(fields, values, (0, 2), (2, 2))
    assert file.statistics == (
        ColumnStatistics(null_count=2),
        ColumnStatistics(1, 4, 1),
        ColumnStatistics(0, 10**6, 1),
    )
    group = stored(storage, file).metadata.row_group(0)
    known = [group.column(n).statistics for n in range(3)]
    assert known[0] is None
    assert (known[1].min, known[1].max) == (1, 4)


def test_several_row_groups_and_checksums_survive_the_new_footer(monkeypatch):
    monkeypatch.setattr(rolling_writer, "ROW_GROUP_ROWS", 10_000)
    fields = columns("BIGINT", "TIMESTAMP(9)", "ARRAY<TIMESTAMP(9)>")
    count = 30_000
    numbers = list(range(count))
    moments = [n if n % 3 else None for n in numbers]
    storage, file = write(fields, [numbers, moments, [[n] for n in numbers]])
    found = stored(storage, file)
    assert found.metadata.num_row_groups > 1
    assert found.metadata.num_rows == count
    assert file.size == len(storage.read(file.path))
    assert file.statistics[1] == ColumnStatistics(null_count=count // 3)
    assert found.read()["c1"].cast(pa.int64()).to_pylist() == moments
    assert read(storage, file, fields)["c0"].to_pylist() == numbers


def test_what_is_written_before_the_footer_at_the_end_is_kept():
    stream, unchanged = io.BytesIO(), io.BytesIO()
    footer_stream = FooterStream(stream, lambda footer: with_int96(footer, [1]))
    rows = pa.table({"n": [1, 2], "t": pa.array([bytes(12), None], pa.binary(12))})
    pq.write_table(rows, unchanged, write_page_index=True, store_schema=False)
    writer = pq.ParquetWriter(footer_stream, rows.schema, write_page_index=True, store_schema=False)
    writer.write_table(rows)
    footer_stream.hold()
    writer.close()
    assert footer_stream.tell() > stream.tell()
    footer_stream.release()
    assert footer_stream.tell() == stream.tell()
    content = unchanged.getvalue()
    before = content[: -8 - int.from_bytes(content[-8:-4], "little")]
    assert stream.getvalue().startswith(before)
    found = pq.ParquetFile(stream)
    assert physical_types(found) == {"n": "INT64", "t": "INT96"}
    assert found.read()["n"].to_pylist() == [1, 2]


def test_a_file_of_no_other_columns_has_no_statistics_at_all():
    fields = columns("TIMESTAMP(9)")
    storage, file = write(fields, [[None, 3]])
    assert file.statistics == (ColumnStatistics(null_count=1),)
    assert read(storage, file, fields)["c0"].cast(pa.int64()).to_pylist() == [None, 3]
