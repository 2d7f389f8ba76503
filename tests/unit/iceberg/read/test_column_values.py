"""Columns of files are found by id, at any depth, and have the newest type of their field."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.logical_arrays import PhysicalTypeError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.read.column_values import column_values, default_value
from lakeformat.iceberg.read.stored_fields import parse_name_mapping, stored_fields
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type

INT, LONG, STRING = (PrimitiveType(name) for name in ("int", "long", "string"))


def numbered(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    ids = {"PARQUET:field_id": str(field_id)}
    return pa.field(name, kind, nullable=name != "key", metadata=ids)


def evolved(array: pa.Array, wanted: Type) -> list[Any]:
    """The values of a column with id 1, read as ``wanted``."""
    [stored] = stored_fields(pa.schema([numbered("x", array.type, 1)]), None)
    found = column_values(array, stored, wanted)
    found.validate(full=True)
    assert found.type == to_arrow_type(wanted)
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (pa.array([1, None], pa.int32()), LONG, [1, None]),
        (pa.array([1.5], pa.float32()), PrimitiveType("double"), [1.5]),
        (
            pa.array([Decimal("1.25")], pa.decimal128(4, 2)),
            PrimitiveType("decimal", (20, 2)),
            [Decimal("1.25")],
        ),
        (pa.array([date(1969, 12, 31)]), PrimitiveType("timestamp"), [datetime(1969, 12, 31)]),
        (pa.array([b"\x04\xd2"]), PrimitiveType("decimal", (9, 2)), [Decimal("12.34")]),
        (pa.array([b"\x00\x01"], pa.binary(2)), PrimitiveType("fixed", (2,)), [b"\x00\x01"]),
        (pa.array([3], pa.int64()), PrimitiveType("time"), [time(0, 0, 0, 3)]),
        (
            pa.array([-1], pa.timestamp("ns")),
            PrimitiveType("timestamptz"),
            [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)],
        ),
        (pa.array(["a", "a", None]).dictionary_encode(), STRING, ["a", "a", None]),
        (pa.nulls(2), STRING, [None, None]),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_values_of_an_earlier_type_or_form_are_those_of_the_newest(stored, wanted, expected):
    assert evolved(stored, wanted) == expected


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array(["1"]), INT),
        (pa.array([1.5]), LONG),
        (pa.array([1]), STRING),
        (pa.array([[1]]), StructType((Field(2, "a", INT),))),
        (pa.array([1]), ListType(2, INT, False)),
        (pa.array([1]), MapType(2, INT, 3, INT, False)),
    ],
    ids=str,
)
def test_a_type_that_was_never_promoted_so_is_refused(stored, wanted):
    with pytest.raises(PhysicalTypeError, match="are stored as"):
        evolved(stored, wanted)


def test_a_date_that_its_promoted_type_cannot_hold_is_refused():
    far = r"promoted from date to timestamp_ns, and a date in the file is beyond the range"
    with pytest.raises(UnsupportedError, match=far):
        evolved(pa.array([date(2020, 1, 1), date(9999, 12, 31)]), PrimitiveType("timestamp_ns"))


def test_fields_of_a_struct_are_found_by_id_and_new_ones_have_their_default():
    inside = [numbered("old", pa.int32(), 2), numbered("gone", pa.string(), 3)]
    rows = [{"old": 1, "gone": "x"}, None, {"old": None, "gone": "y"}]
    wanted = StructType(
        (
            Field(4, "gone", STRING),  # the name of another, dropped field
            Field(2, "renamed", LONG),
            Field(5, "added", INT, initial_default=7),
        )
    )
    assert evolved(pa.array(rows, pa.struct(inside)), wanted) == [
        {"gone": None, "renamed": 1, "added": 7},
        None,
        {"gone": None, "renamed": None, "added": 7},
    ]


@pytest.mark.parametrize("form", [pa.large_list, lambda item: pa.list_(item, 1)])
def test_a_list_that_another_program_stored_in_another_form_of_arrow_is_a_list(form):
    """PyIceberg stores large lists of large texts."""
    for text in (pa.large_string(), pa.string_view()):
        lists = pa.array([["a"], None, ["b"]], form(numbered("element", text, 2)))
        for offset in (0, 1):
            wanted = ListType(2, STRING, False)
            assert evolved(lists.slice(offset), wanted) == [["a"], None, ["b"]][offset:]


@pytest.mark.parametrize("offset", [0, 1])
def test_elements_and_values_are_evolved_like_columns(offset):
    element = numbered("item", pa.struct([numbered("a", pa.int32(), 3)]), 2)
    lists = pa.array([[{"a": 1}, None], None, []], pa.list_(element)).slice(offset)
    wanted = ListType(2, StructType((Field(3, "b", LONG), Field(4, "c", STRING))), False)
    full = [[{"b": 1, "c": None}, None], None, []]
    assert evolved(lists, wanted) == full[offset:]

    pairs = pa.map_(numbered("key", pa.string(), 2), numbered("value", pa.int32(), 3))
    maps = pa.array([[("k", 1)], None, [("l", None)]], pairs).slice(offset)
    assert (
        evolved(maps, MapType(2, STRING, 3, LONG, False))
        == ([[("k", 1)], None, [("l", None)]][offset:])
    )


def test_a_map_that_avro_keeps_as_a_list_of_pairs_is_a_map():
    pair = pa.struct([numbered("key", pa.int32(), 2), numbered("value", pa.string(), 3)])
    lists = pa.array([[{"key": 1, "value": "a"}], [], None], pa.list_(pair))
    assert evolved(lists, MapType(2, INT, 3, STRING, False)) == [[(1, "a")], [], None]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (INT, 3, 3),
        (PrimitiveType("decimal", (4, 2)), "14.20", Decimal("14.20")),
        (PrimitiveType("date"), "2007-12-03", date(2007, 12, 3)),
        (PrimitiveType("time"), "22:31:08.123456", time(22, 31, 8, 123456)),
        (
            PrimitiveType("timestamp"),
            "2007-12-03T10:15:30.123456",
            datetime(2007, 12, 3, 10, 15, 30, 123456),
        ),
        (
            PrimitiveType("timestamptz"),
            "2007-12-03T10:15:30.123456+00:00",
            datetime(2007, 12, 3, 10, 15, 30, 123456, UTC),
        ),
        (
            PrimitiveType("uuid"),
            "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"),
        ),
        (PrimitiveType("binary"), "00ff", b"\x00\xff"),
        (ListType(2, INT, False), [1, 2], [1, 2]),
        (StructType((Field(2, "a", INT), Field(3, "b", STRING))), {"2": 1}, {"a": 1, "b": None}),
    ],
    ids=lambda each: str(each),
)
def test_a_default_in_the_metadata_is_the_value_of_every_row(kind, written, value):
    found = default_value(Field(1, "x", kind, initial_default=written), 2)
    assert found.type == to_arrow_type(kind)
    assert found.to_pylist() == [value, value]


def test_a_required_column_without_default_must_be_in_the_file():
    with pytest.raises(PhysicalTypeError, match="lacks the required column 'x'"):
        default_value(Field(1, "x", INT, required=True), 1)


MAPPING = parse_name_mapping(
    '[{"field-id": 1, "names": ["id", "record_id"]},'
    ' {"field-id": 2, "names": ["tags"], "fields": [{"field-id": 3, "names": ["element"]}]},'
    ' {"names": ["ignored"]}]'
)


def test_a_file_without_ids_gets_them_from_the_mapping_of_names():
    kind = pa.list_(pa.field("array", pa.string()))
    schema = pa.schema([("record_id", pa.int32()), ("tags", kind), ("other", pa.int32())])
    ids = [(each.id, [inner.id for inner in each.inner]) for each in stored_fields(schema, MAPPING)]
    assert ids == [(1, []), (2, [3]), (None, [])]


def test_the_mapping_is_not_used_for_a_file_with_ids():
    schema = pa.schema([numbered("id", pa.int32(), 9), ("tags", pa.int32())])
    assert [each.id for each in stored_fields(schema, MAPPING)] == [9, None]


def test_a_file_without_ids_and_a_table_without_mapping_are_an_error():
    with pytest.raises(ValueError, match=r"schema\.name-mapping\.default"):
        stored_fields(pa.schema([("id", pa.int32())]), None)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"field-id": 1}]'])
def test_a_damaged_mapping_is_named(text):
    with pytest.raises(CorruptTableError, match=r"schema\.name-mapping\.default cannot be read"):
        parse_name_mapping(text)
