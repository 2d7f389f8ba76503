"""Schemas: numbering of fields, and what schema files hold and forgive."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.schema import TableSchema, new_schema
from lakeformat.tables.json_file import decode_json_file


def schema_of(columns, **more) -> TableSchema:
    return new_schema(columns, time_millis=1, **more)


def members(schema: TableSchema) -> dict:
    return json.loads(schema.to_json())


def test_nested_fields_are_numbered_after_the_columns_depth_first():
    schema = schema_of([("a", "ROW<x INT, y ROW<z INT>, w INT>"), ("b", "ARRAY<ROW<u INT>>")])
    a, b = members(schema)["fields"]
    x, y, w = a["type"]["fields"]
    assert (a["id"], b["id"]) == (0, 1)
    assert (x["id"], y["id"], y["type"]["fields"][0]["id"], w["id"]) == (2, 3, 4, 5)
    assert b["type"]["element"]["fields"][0]["id"] == 6
    assert schema.highest_field_id == 6


def test_a_schema_file_says_everything_and_nothing_null():
    schema = schema_of([("id", "INT NOT NULL")], options={"file.compression": "lz4"})
    assert members(schema) == {
        "version": 3,
        "id": 0,
        "fields": [{"id": 0, "name": "id", "type": "INT NOT NULL"}],
        "highestFieldId": 0,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {"file.compression": "lz4"},
        "timeMillis": 1,
    }


def test_a_schema_file_leads_back_to_the_same_schema():
    schema = schema_of(pa.schema([("id", pa.int64()), ("m", pa.map_("string", "int32"))]))
    assert TableSchema.from_json(members(schema)) == schema


def test_a_comment_is_kept_and_its_absence_too():
    assert members(schema_of([("id", "INT")], comment="orders"))["comment"] == "orders"
    with_null = {**members(schema_of([("id", "INT")])), "comment": None}
    assert TableSchema.from_json(with_null).comment is None


def test_what_old_writers_left_out_reads_as_it_was_then():
    old = members(schema_of([("id", "INT")]))
    del old["version"], old["timeMillis"]
    schema = TableSchema.from_json(old)
    assert (schema.version, schema.time_millis) == (1, 0)
    assert schema.table_options.to_dict() == {"bucket": "1", "file.format": "orc"}


def test_option_values_that_are_not_text_become_text():
    foreign = {**members(schema_of([("id", "INT")])), "options": {"bucket": 3, "x": True}}
    assert TableSchema.from_json(foreign).options == {"bucket": "3", "x": "true"}


def test_unknown_members_are_ignored():
    foreign = {**members(schema_of([("id", "INT")])), "owner": "flink"}
    assert TableSchema.from_json(foreign).column_names == ["id"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([], "at least one column"),
        ([("a", "INT"), ("a", "INT")], "columns appear twice: a"),
        ([("_KEY_a", "INT")], "reserved"),
        ([("rowkind", "INT")], "reserved"),
        ([("", "INT")], "empty"),
        ([("a", "NUMBER")], "unknown type"),
        ("id INT", "list of \\(name, type\\) pairs"),
        ([("a", "BLOB")], "column 'a': this version does not read or write values of type BLOB"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(columns, reason):
    with pytest.raises(InvalidRequestError, match=reason):
        schema_of(columns)


def test_a_column_without_a_type_in_paimon_is_named():
    columns = pa.schema([pa.field("id", pa.int64()), pa.field("for", pa.duration("s"))])
    with pytest.raises(
        InvalidRequestError, match=r"column 'for': Arrow type duration.* has no matching"
    ):
        schema_of(columns)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON"),
        (b'{"id": 0', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "holds a list instead of a JSON object"),
        (b'"x"', "holds a string instead of a JSON object"),
        (b"{}", "lacks the member"),
        (b'{"fields": 3, "id": 0}', "a value that is not allowed"),
    ],
)
def test_a_damaged_schema_file_is_named_in_the_error(content, reason):
    with pytest.raises(CorruptTableError, match=f"file:///t/schema/schema-0.*{reason}"):
        decode_json_file(content, "file:///t/schema/schema-0", TableSchema.from_json)
