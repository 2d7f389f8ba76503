"""Type strings, JSON types and Arrow types lead to one another."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.arrow_types import from_arrow_type, to_arrow_type
from lakeformat.types.type_text import parse_type, type_from_json, type_to_json, type_to_sql
from lakeformat.types.types import (
    STRING,
    ArrayType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    VectorType,
    atomic,
)

CANONICAL = [
    "CHAR(5)",
    "VARCHAR(20)",
    "STRING",
    "BOOLEAN",
    "BINARY(4)",
    "VARBINARY(8)",
    "BYTES",
    "DECIMAL(10, 2)",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME(0)",
    "TIMESTAMP(6)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "VARIANT",
    "BLOB",
    "GEOMETRY(OGC:CRS84)",
    "GEOGRAPHY(OGC:CRS84, spherical)",
]


@pytest.mark.parametrize("text", [*CANONICAL, *(f"{text} NOT NULL" for text in CANONICAL)])
def test_a_canonical_type_string_is_written_as_it_was_read(text):
    assert type_to_json(parse_type(text)) == text


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("VARCHAR", "VARCHAR(1)"),
        ("CHAR", "CHAR(1)"),
        ("BINARY", "BINARY(1)"),
        ("VARBINARY", "VARBINARY(1)"),
        ("VARCHAR(2147483647)", "STRING"),
        ("VARBINARY(2147483647)", "BYTES"),
        ("INTEGER", "INT"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("DEC(5,2)", "DECIMAL(5, 2)"),
        ("decimal", "DECIMAL(10, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("timestamp ( 3 ) without time zone", "TIMESTAMP(3)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("int not null", "INT NOT NULL"),
        ("INT NULL", "INT"),
    ],
)
def test_aliases_and_defaults_mean_the_canonical_type(alias, canonical):
    assert type_to_json(parse_type(alias)) == canonical


def test_constructed_types_are_objects_with_their_nullability_in_the_type_string():
    nested = {
        "type": "ROW NOT NULL",
        "fields": [
            {"id": 3, "name": "tags", "type": {"type": "ARRAY", "element": "STRING NOT NULL"}},
            {
                "id": 4,
                "name": "sizes",
                "type": {"type": "MAP NOT NULL", "key": "STRING NOT NULL", "value": "INT"},
                "description": "in cm",
            },
            {"id": 5, "name": "bag", "type": {"type": "MULTISET", "element": "DATE"}},
            {"id": 6, "name": "v", "type": {"type": "VECTOR", "element": "FLOAT", "length": 3}},
        ],
    }
    assert type_to_json(type_from_json(nested)) == nested


def test_members_other_writers_add_to_a_type_are_ignored():
    assert type_from_json({"type": "ARRAY", "element": "INT", "nullable": False}).nullable


@pytest.mark.parametrize(
    "text", ["BIGINT NOT NULL", "ARRAY<MAP<STRING NOT NULL, ROW<a INT, b STRING>>> NOT NULL"]
)
def test_people_read_types_as_in_sql(text):
    assert type_to_sql(parse_type(text)) == text


def test_people_may_write_constructed_types_as_in_sql():
    fields = (DataField(0, "a", atomic(TypeName.INT)), DataField(1, "b c", STRING))
    assert parse_type("ARRAY<MAP<STRING NOT NULL, ROW<a INT, `b c` STRING>>> NOT NULL") == (
        ArrayType(
            MapType(atomic(TypeName.VARCHAR, 2147483647, nullable=False), RowType(fields)),
            nullable=False,
        )
    )
    assert parse_type("MULTISET<INT>") == MultisetType(atomic(TypeName.INT))
    assert parse_type("VECTOR<FLOAT, 3>") == VectorType(atomic(TypeName.FLOAT), 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text ends too early"),
        ("INTT", "unknown type 'INTT'; did you mean 'INT'[?]$"),
        ("WORD", "unknown type 'WORD'; the types are ARRAY, BIGINT, .* TINYINT"),
        ("INT INT", "unexpected 'INT'"),
        ("DECIMAL(39)", "precision of DECIMAL must be from 1 to 38"),
        ("DECIMAL(5, 6)", "scale of DECIMAL must be from 0 to 5"),
        ("TIMESTAMP(10)", "precision of TIMESTAMP must be from 0 to 9"),
        ("CHAR(0)", "length of CHAR must be from 1"),
        ("INT(3)", "takes no parameter"),
        ("ARRAY", "expected '<'"),
        ("ROW<>", "expected the name of a field, found '>'"),
        ("ROW<id INT, >", "expected the name of a field, found '>'"),
        ("DECIMAL(10", r"expected '\)', found the end"),
        ("INT NOT", "expected 'NULL'"),
        ("INT; DROP", "unexpected ';'"),
    ],
)
def test_a_wrong_type_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidRequestError, match=reason) as refused:
        parse_type(text)
    assert refused.type is InvalidRequestError, "users see the name of the class"


@pytest.mark.parametrize("value", [None, 3, [], {}, {"type": "INT"}, {"type": "ARRAY"}])
def test_a_wrong_json_type_is_refused(value):
    with pytest.raises(InvalidRequestError):
        type_from_json(value)


@given(st.text(alphabet="AINT VRCHDECML(),<>019`'\"", max_size=30))
def test_any_text_is_a_type_or_our_error(text):
    try:
        parsed = parse_type(text)
    except InvalidRequestError:
        return
    assert type_from_json(type_to_json(parsed)) == parsed


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.uint8(), "SMALLINT"),
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.float16(), "FLOAT"),
        (pa.large_string(), "STRING"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.binary(3), "BINARY(3)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("us", "Europe/Berlin"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        (pa.decimal256(38, 3), "DECIMAL(38, 3)"),
        (pa.date32(), "DATE"),
    ],
)
def test_arrow_types_without_a_twin_become_the_narrowest_type_that_holds_them(arrow, text):
    assert type_to_json(from_arrow_type(arrow)) == text


@pytest.mark.parametrize("arrow", [pa.null(), pa.duration("s"), pa.time64("us"), pa.date64()])
def test_arrow_types_that_cannot_be_kept_exactly_are_refused(arrow):
    with pytest.raises(InvalidRequestError, match="has no matching column type"):
        from_arrow_type(arrow)


@pytest.mark.parametrize("text", [*CANONICAL[:18], "ARRAY<INT>", "MAP<STRING NOT NULL, DATE>"])
def test_an_arrow_type_leads_back_to_the_same_storage_form(text):
    arrow = to_arrow_type(parse_type(text))
    assert to_arrow_type(from_arrow_type(arrow)) == arrow


@pytest.mark.parametrize("text", ["BLOB", "GEOMETRY", "VECTOR<FLOAT, 3>"])
def test_types_without_an_arrow_form_are_refused_by_name(text):
    with pytest.raises(UnsupportedError, match=text.split("<")[0]):
        to_arrow_type(parse_type(text))


@pytest.mark.parametrize("length", ["x", None, 2.5, True])
def test_a_length_of_a_vector_that_is_no_number_is_refused_with_its_value(length):
    with pytest.raises(InvalidRequestError, match=f"VECTOR must be a whole number, got {length!r}"):
        type_from_json({"type": "VECTOR", "element": "FLOAT", "length": length})
