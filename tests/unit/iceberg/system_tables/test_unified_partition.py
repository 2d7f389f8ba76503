"""The partitions of all specs become one struct with a field for each id."""

from __future__ import annotations

from typing import Any

from lakeformat.iceberg.metadata.table_metadata import metadata_from_json
from lakeformat.iceberg.system_tables.unified_partition import unified_type
from lakeformat.iceberg.types import Field, PrimitiveType
from tests.unit.iceberg.metadata.test_table_metadata import OF_VERSION_2


def spec(number: int, *fields: tuple[int, str, str]) -> dict[str, Any]:
    listed = [
        {"source-id": 1, "field-id": field_id, "name": name, "transform": transform}
        for field_id, name, transform in fields
    ]
    return {"spec-id": number, "fields": listed}


def unified(*specs: dict[str, Any]) -> tuple[Field, ...]:
    return unified_type(metadata_from_json(OF_VERSION_2 | {"partition-specs": [*specs]})).fields


def test_a_field_has_the_name_of_its_newest_spec():
    found = unified(spec(0, (1000, "old", "identity")), spec(1, (1000, "new", "identity")))
    assert found == (Field(1000, "new", PrimitiveType("int")),)


def test_a_field_that_became_void_keeps_the_type_of_its_values():
    found = unified(spec(0, (1000, "day", "day")), spec(1, (1000, "gone", "void")))
    assert found == (Field(1000, "gone", PrimitiveType("date")),)


def test_fields_are_in_the_order_of_their_ids():
    found = unified(spec(0, (1001, "b", "bucket[4]")), spec(1, (1000, "a", "identity")))
    assert [field.id for field in found] == [1000, 1001]
