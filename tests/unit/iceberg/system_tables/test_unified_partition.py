"""The partitions of all specs become one struct with a field for each id."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.table_metadata import metadata_from_json
from lakeformat.iceberg.system_tables.unified_partition import unified_type
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.types import Field, PrimitiveType
from tests.unit.iceberg.metadata.test_table_metadata import OF_VERSION_2
from tests.unit.iceberg.write.made_tables import edited, made_table


def spec(number: int, *fields: tuple[int, str, str]) -> dict[str, Any]:
    listed = [
        {"source-id": 1, "field-id": field_id, "name": name, "transform": transform}
        for field_id, name, transform in fields
    ]
    return {"spec-id": number, "fields": listed}


def with_spec(handle: TableHandle, *fields: tuple[int, str, str]) -> IcebergTable:
    """The table after another engine gave it one more partition spec."""
    specs = metadata_to_json(handle.load().metadata)["partition-specs"]
    new = spec(1, *fields)
    return edited(handle, partition_specs=[*specs, new], default_spec_id=1, last_partition_id=1001)


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


def test_an_older_field_with_the_name_of_a_newer_one_gets_its_id_in_the_name():
    found = unified(
        spec(0, (1000, "p", "bucket[4]")),
        spec(1, (1001, "p", "bucket[8]")),
        spec(2, (1002, "p", "bucket[16]")),
    )
    assert [field.name for field in found] == ["p_1000", "p_1001", "p"]


def test_partitions_and_files_of_a_replaced_field_are_listed(storage):
    """Another engine replaced the partition field by one of another column, with its name."""
    handle = made_table(storage, partition={"k": "identity"})
    IcebergTable(handle).write(pa.table({"id": [1], "k": ["a"]}))
    table = with_spec(handle, (1001, "k_part", "identity"))
    table.write(pa.table({"id": [2], "k": ["b"]}))
    rows = table.system_table("partitions").scan().to_arrow().to_pylist()
    found = sorted((row["spec_id"], row["partition"]) for row in rows)
    assert found == [
        (0, {"k_part_1000": "a", "k_part": None}),
        (1, {"k_part_1000": None, "k_part": 2}),
    ]
    for name in ("files", "entries"):
        assert len(table.system_table(name).scan().to_arrow().to_pylist()) == 2
    assert table.analyze_partitions().partitions == 2


def test_a_field_that_became_void_is_that_of_its_column_alone():
    fields = [(1000, "old", "bucket[4]"), (1000, "other", "bucket[8]"), (1000, "new", "void")]
    found = unified(*(spec(number, each) for number, each in enumerate(fields)))
    assert [(field.id, field.name) for field in found] == [(1000, "new"), (1000, "new_1000")]


def test_fields_of_two_columns_with_the_same_id_are_listed_apart(storage):
    """Writers of version 1 gave ids from 1000 on in each spec."""
    handle = made_table(storage, 1, partition={"k": "identity"})
    IcebergTable(handle).write(pa.table({"id": [1], "k": ["1"]}))
    table = with_spec(handle, (1000, "number", "identity"))
    table.write(pa.table({"id": [2], "k": ["b"]}))
    rows = table.system_table("partitions").scan().to_arrow().to_pylist()
    found = {row["spec_id"]: row["partition"] for row in rows}
    assert found == {0: {"number": None, "k_part": "1"}, 1: {"number": 2, "k_part": None}}
    for name in ("files", "entries"):
        assert len(table.system_table(name).scan().to_arrow().to_pylist()) == 2
    same = r"'k_part' and 'number' of .* have the same field id 1000"
    with pytest.raises(UnsupportedError, match=same):
        table.analyze_partitions()
