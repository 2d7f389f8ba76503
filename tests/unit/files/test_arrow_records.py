"""Arrow columns as Avro records: the bytes equal those of fastavro, which writes one by one."""

from __future__ import annotations

import io
from decimal import Decimal
from itertools import pairwise

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.files.avro.arrow_records import encode_records

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "small", "type": "int"},
        {"name": "large", "type": ["null", "long"]},
        {"name": "last_null", "type": ["long", "null"]},
        {"name": "flag", "type": ["null", "boolean"]},
        {"name": "half", "type": ["null", "float"]},
        {"name": "whole", "type": ["null", "double"]},
        {"name": "text", "type": ["null", "string"]},
        {"name": "content", "type": "bytes"},
        {"name": "key", "type": ["null", {"type": "fixed", "name": "f16", "size": 16}]},
        {"name": "other_key", "type": ["null", "f16"]},
        {"name": "numbers", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
        {
            "name": "counts",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "k1_v2",
                        "fields": [
                            {"name": "key", "type": "int"},
                            {"name": "value", "type": "bytes"},
                        ],
                    },
                },
            ],
        },
        {
            "name": "inner",
            "type": {
                "type": "record",
                "name": "i",
                "fields": [{"name": "a", "type": ["null", "long"]}],
            },
        },
    ],
}
ARROW = pa.struct(
    [
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("last_null", pa.int64()),
        ("flag", pa.bool_()),
        ("half", pa.float32()),
        ("whole", pa.float64()),
        ("text", pa.string()),
        ("content", pa.binary()),
        ("key", pa.binary(16)),
        ("other_key", pa.binary(16)),
        ("numbers", pa.list_(pa.int64())),
        ("counts", pa.map_(pa.int32(), pa.binary())),
        ("inner", pa.struct([("a", pa.int64())])),
    ]
)
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
ROWS = st.fixed_dictionaries(
    {
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.none() | LONGS,
        "last_null": st.none() | LONGS,
        "flag": st.none() | st.booleans(),
        "half": st.none() | st.floats(width=32, allow_nan=False),
        "whole": st.none() | st.floats(allow_nan=False),
        "text": st.none() | st.text(max_size=40),
        "content": st.binary(max_size=20),
        "key": st.none() | st.binary(min_size=16, max_size=16),
        "other_key": st.none() | st.binary(min_size=16, max_size=16),
        "numbers": st.none() | st.lists(st.none() | LONGS, max_size=4),
        "counts": st.none() | st.dictionaries(st.integers(0, 9), st.binary(max_size=9), max_size=3),
        "inner": st.fixed_dictionaries({"a": st.none() | LONGS}),
    }
)


def by_fastavro(schema, records) -> list[bytes]:
    parsed, found = fastavro.parse_schema(schema), []
    for record in records:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, record)
        found.append(stream.getvalue())
    return found


def encoded(schema, rows: pa.StructArray) -> list[bytes]:
    data, ends = encode_records(schema, rows)
    starts = [0, *ends.tolist()]
    return [bytes(data[a:b]) for a, b in pairwise(starts)]


def as_record(row):
    counts = row["counts"]
    pairs = None if counts is None else [{"key": k, "value": v} for k, v in counts.items()]
    return {**row, "counts": pairs}


@settings(max_examples=40)
@given(st.lists(ROWS, max_size=8), st.integers(0, 3))
def test_records_equal_those_of_fastavro(rows, skipped):
    """Also those of a slice, whose arrays begin elsewhere in their buffers."""
    plain = [
        {**row, "counts": None if (c := row["counts"]) is None else [*c.items()]} for row in rows
    ]
    array = pa.array(plain, ARROW)[skipped:]
    assert encoded(SCHEMA, array) == by_fastavro(SCHEMA, map(as_record, rows[skipped:]))


def test_more_records_than_one_group_are_written():
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
    numbers = [*range(9000)]
    rows = pa.StructArray.from_arrays([pa.array(numbers)], ["n"])
    assert encoded(schema, rows) == by_fastavro(schema, [{"n": each} for each in numbers])


@pytest.mark.parametrize("text", ["0.00", "1.28", "-1.29", "99999.99", None])
def test_a_decimal_takes_the_bytes_of_its_precision(text):
    kind = {"type": "fixed", "name": "d", "size": 4, "logicalType": "decimal"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "d", "type": ["null", kind]}]}
    value = None if text is None else Decimal(text)
    rows = pa.StructArray.from_arrays([pa.array([value], pa.decimal128(7, 2))], ["d"])
    stored = None if value is None else int(value * 100).to_bytes(4, "big", signed=True)
    del kind["logicalType"]
    assert encoded(schema, rows) == by_fastavro(schema, [{"d": stored}])


def test_a_null_in_a_required_field_is_an_error():
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
    rows = pa.StructArray.from_arrays([pa.array([1, None])], ["n"])
    with pytest.raises(ValueError, match="a required field of the type long has nulls"):
        encode_records(schema, rows)


def test_a_null_record_is_an_error():
    inner = {"type": "record", "name": "i", "fields": [{"name": "a", "type": ["null", "long"]}]}
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", inner]}]}
    records = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())]))
    rows = pa.StructArray.from_arrays([records], ["n"])
    with pytest.raises(ValueError, match="a field of the type i has null records"):
        encode_records(schema, rows)
