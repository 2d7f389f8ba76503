"""Schemas, partition specs and sort orders are read from metadata as Iceberg writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec, spec_from_json
from lakeformat.iceberg.schema import Schema, schema_from_json
from lakeformat.iceberg.sort_order import SortField, SortOrder, order_from_json
from lakeformat.iceberg.type_json import type_from_json
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType

POINT = {
    "type": "struct",
    "fields": [
        {"id": 6, "name": "x", "required": True, "type": "double"},
        {"id": 7, "name": "y", "required": False, "type": "decimal(9,2)"},
    ],
}
LIST_OF_POINTS = {"type": "list", "element-id": 5, "element-required": True, "element": POINT}
MAP = {
    "type": "map",
    "key-id": 8,
    "key": "string",
    "value-id": 9,
    "value-required": False,
    "value": "timestamptz",
}


def a_schema(**members) -> Schema:
    fields = [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"},
        {"id": 2, "name": "path", "required": False, "type": LIST_OF_POINTS},
        {"id": 3, "name": "seen", "required": False, "type": MAP},
        {"id": 4, "name": "n", "required": False, "type": "int", "initial-default": 7},
    ]
    return schema_from_json({"type": "struct", "schema-id": 3, "fields": fields} | members)


def test_a_schema_keeps_ids_documentation_and_defaults():
    schema = a_schema(**{"identifier-field-ids": [1]})
    assert (schema.schema_id, schema.identifier_field_ids) == (3, (1,))
    assert schema.fields[0] == Field(1, "id", PrimitiveType("long"), True, "the key")
    assert schema.fields[3].initial_default == 7


def test_a_nested_field_is_found_by_its_id_and_by_its_dotted_name():
    schema = a_schema()
    named = {schema.name_of(each): each for each in range(1, 10)}
    assert named == {
        "id": 1,
        "path": 2,
        "path.element": 5,
        "path.element.x": 6,
        "path.element.y": 7,
        "seen": 3,
        "seen.key": 8,
        "seen.value": 9,
        "n": 4,
    }
    assert schema.named("path.element.y") == schema.field(7)
    assert schema.field(10) is None
    assert schema.named("y") is None


def test_a_schema_of_version_1_may_have_no_id():
    assert schema_from_json({"type": "struct", "fields": []}).schema_id == 0


def test_a_schema_that_uses_an_id_twice_is_refused():
    twice = [{"id": 1, "name": name, "required": False, "type": "int"} for name in "ab"]
    with pytest.raises(ValueError, match=r"schema 3 gives the field ids \[1\] more than once"):
        a_schema(fields=twice)


@pytest.mark.parametrize(
    ("written", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("decimal(38, 10)", pa.decimal128(38, 10)),
        ("decimal( 9 ,2 )", pa.decimal128(9, 2)),
        ("fixed[16]", pa.binary(16)),
        ("uuid", pa.binary(16)),
        ("time", pa.time64("us")),
        ("timestamptz", pa.timestamp("us", tz="UTC")),
        ("timestamp_ns", pa.timestamp("ns")),
        ("unknown", pa.null()),
        (
            LIST_OF_POINTS,
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [pa.field("x", pa.float64(), nullable=False), ("y", pa.decimal128(9, 2))]
                    ),
                    nullable=False,
                )
            ),
        ),
        (MAP, pa.map_(pa.string(), pa.timestamp("us", tz="UTC"))),
    ],
)
def test_each_type_has_an_arrow_type(written, arrow):
    assert to_arrow_type(type_from_json(written)) == arrow


def test_a_type_prints_as_metadata_writes_it():
    written = ["int", "decimal(9, 2)", "fixed[4]"]
    assert [str(type_from_json(each)) for each in written] == written


def test_lists_and_maps_keep_the_ids_of_their_parts():
    assert type_from_json(MAP) == MapType(
        8, PrimitiveType("string"), 9, PrimitiveType("timestamptz"), False
    )
    listed = type_from_json(LIST_OF_POINTS)
    assert isinstance(listed, ListType)
    assert (listed.element_id, listed.element_required) == (5, True)


def test_an_unknown_type_is_refused_with_the_field_that_has_it():
    fields = [{"id": 1, "name": "shape", "required": False, "type": "hyperlog"}]
    with pytest.raises(UnsupportedError, match=r"field 'shape': .*the type 'hyperlog'"):
        a_schema(fields=fields)


@pytest.mark.parametrize("name", ["variant", "geometry(OGC:CRS84)"])
def test_a_type_without_values_here_is_refused_only_when_its_column_is_used(name):
    schema = a_schema(fields=[{"id": 1, "name": "v", "required": False, "type": name}])
    with pytest.raises(UnsupportedError, match=r"column 'v': this version does not read"):
        schema.arrow_schema()


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"id": True, "name": "a", "required": False, "type": "int"}, "id is True, not an int"),
        ({"id": 1, "name": 5, "required": False, "type": "int"}, "name is 5, not a text"),
        ({"id": 1, "name": "a", "required": "no", "type": "int"}, "required is 'no', not true"),
        (
            {"id": 1, "name": "a", "required": False, "type": 5},
            "JSON string or object, got 5",
        ),
        ({"id": 1, "name": "a", "required": False, "type": "decimal(40, 2)"}, "must be 1 to 38"),
    ],
)
def test_a_damaged_field_is_refused_with_its_value(field, reason):
    with pytest.raises(ValueError, match=reason):
        a_schema(fields=[field])


def test_a_spec_keeps_its_transforms_as_text():
    fields = [
        {"source-id": 2, "field-id": 1003, "name": "day", "transform": "day"},
        {"source-ids": [1, 2], "field-id": 1004, "name": "b", "transform": "bucket[16]"},
    ]
    assert spec_from_json({"spec-id": 1, "fields": fields}) == PartitionSpec(
        1,
        (
            PartitionField((2,), 1003, "day", "day"),
            PartitionField((1, 2), 1004, "b", "bucket[16]"),
        ),
    )


def test_fields_of_a_spec_without_ids_are_numbered_from_1000():
    fields = [{"source-id": each, "name": f"p{each}", "transform": "identity"} for each in (1, 2)]
    spec = spec_from_json({"spec-id": 0, "fields": fields})
    assert [field.field_id for field in spec.fields] == [1000, 1001]


def test_a_sort_order_keeps_direction_and_nulls():
    field = {"source-id": 1, "transform": "identity", "direction": "desc"}
    written = {"order-id": 2, "fields": [field | {"null-order": "nulls-last"}]}
    expected = SortOrder(2, (SortField((1,), "identity", "desc", "nulls-last"),))
    assert order_from_json(written) == expected
    with pytest.raises(ValueError, match="null-order 'last'"):
        order_from_json({"order-id": 2, "fields": [field | {"null-order": "last"}]})
