"""Partition values become directories the way Java names them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.partition import partition_name, partition_path, partition_values
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField

SECOND = 1_000_000_000


def schema_by(*type_texts: str, **options: str) -> TableSchema:
    fields = tuple(DataField(i, f"k{i}", parse_type(text)) for i, text in enumerate(type_texts))
    named = {key.replace("_", ".", 1).replace("_", "-"): text for key, text in options.items()}
    return TableSchema(0, fields, 0, tuple(field.name for field in fields), options=named)


def path_of(schema: TableSchema, *values: object) -> str:
    types = [field.type for field in schema.fields]
    return partition_path(schema, frame_row(encode_row(values, types), len(values)))


@pytest.mark.parametrize(
    ("type_text", "value", "legacy", "plain"),
    [
        ("STRING", "a b/c=d:e%é", "a b%2Fc%3Dd%3Ae%25é", "a b%2Fc%3Dd%3Ae%25é"),
        ("BOOLEAN", True, "true", "true"),
        ("BIGINT", -5, "-5", "-5"),
        ("DOUBLE", 1e10, "1.0E10", "1.0E10"),
        ("DOUBLE", 0.001, "0.001", "0.001"),
        ("DOUBLE", -0.5, "-0.5", "-0.5"),
        ("DOUBLE", 12345678.9, "1.23456789E7", "1.23456789E7"),
        ("DOUBLE", -0.0, "-0.0", "-0.0"),
        ("FLOAT", 0.10000000149011612, "0.1", "0.1"),
        ("DECIMAL(5, 2)", Decimal("1.50"), "1.50", "1.50"),
        ("DATE", 19000, "19000", "2022-01-08"),
        ("TIME(3)", 3723004, "3723004", "01%3A02%3A03.004"),
        ("TIMESTAMP(6)", 1700000000123456000, "2023-11-14T22%3A13%3A20.123456", None),
        ("TIMESTAMP(6)", 1700000000123456000, None, "2023-11-14 22%3A13%3A20.123456"),
        ("TIMESTAMP(3)", 1704067200 * SECOND, "2024-01-01T00%3A00", "2024-01-01 00%3A00%3A00.000"),
        ("TIMESTAMP(6)", 1_000_000, "1970-01-01T00%3A00%3A00.001", None),
        ("TIMESTAMP(0)", -SECOND, "1969-12-31T23%3A59%3A59", "1969-12-31 23%3A59%3A59"),
    ],
)
def test_a_value_is_spelled_as_java_spells_it(type_text, value, legacy, plain):
    if legacy is not None:
        assert path_of(schema_by(type_text), value) == f"k0={legacy}"
    if plain is not None:
        schema = schema_by(type_text, partition_legacy_name="false")
        assert path_of(schema, value) == f"k0={plain}"


@pytest.mark.parametrize("value", [None, "", "  ", "\t", "\x0b", "\x1c\x1f", "\u2003\u3000"])
def test_null_empty_and_blank_values_share_one_directory(value):
    assert path_of(schema_by("STRING"), value) == "k0=__DEFAULT_PARTITION__"
    named = schema_by("STRING", partition_default_name="none")
    assert path_of(named, value) == "k0=none"


@pytest.mark.parametrize("value", ["\u00a0", "\u2007", "\u202f", "\u0085", "\u180e", "\ufeff"])
def test_spaces_that_java_does_not_count_as_such_are_a_name(value):
    assert path_of(schema_by("STRING"), value) == f"k0={value}"


def test_every_character_that_has_a_meaning_in_a_path_is_escaped():
    special = "\x00\x1f\x7f\"#%'*/:=?\\{}[]^"
    escaped = "".join(f"%{ord(character):02X}" for character in special)
    assert path_of(schema_by("STRING"), f"a{special}") == f"k0=a{escaped}"
    harmless = "a ,&+~|<>;@$!()é"
    assert path_of(schema_by("STRING"), harmless) == f"k0={harmless}"


@pytest.mark.parametrize(
    ("seconds", "legacy", "plain"),
    [
        (253402300800, "+10000-01-01T00%3A00", "0000-01-01 00%3A00%3A00"),
        (253402300801, "+10000-01-01T00%3A00%3A01", "0000-01-01 00%3A00%3A01"),
        (-62135596801, "0000-12-31T23%3A59%3A59", "0000-12-31 23%3A59%3A59"),
        (-62167219201, "-0001-12-31T23%3A59%3A59", "000%2F-12-31 23%3A59%3A59"),
        (-62261827200, "-0003-01-01T00%3A00", "000--01-01 00%3A00%3A00"),
        (-86396544000, "-0768-03-15T00%3A00", "0)%2A(-03-15 00%3A00%3A00"),
    ],
)
def test_years_of_more_digits_or_before_the_first_are_spelled_as_java_does(seconds, legacy, plain):
    """Casts keep four digits of a year, and take those of a negative one for negative digits."""
    schema = schema_by("TIMESTAMP(0)")
    assert path_of(schema, seconds * SECOND) == f"k0={legacy}"
    schema = schema_by("TIMESTAMP(0)", partition_legacy_name="false")
    assert path_of(schema, seconds * SECOND) == f"k0={plain}"


def test_a_message_spells_a_date_as_a_condition_takes_it():
    schema = schema_by("DATE", "STRING")
    row = frame_row(encode_row([19_723, None], [each.type for each in schema.fields]), 2)
    assert partition_name(schema, row) == "k0=2024-01-01/k1=__DEFAULT_PARTITION__"
    assert partition_path(schema, row) == "k0=19723/k1=__DEFAULT_PARTITION__"


def test_several_keys_nest_in_their_order():
    assert path_of(schema_by("STRING", "INT"), "eu", 7) == "k0=eu/k1=7"


def test_a_table_without_partitions_has_no_directory_of_its_own():
    assert partition_path(schema_by(), EMPTY_ROW) == ""


def test_a_row_of_another_width_is_damage():
    with pytest.raises(CorruptTableError, match="has 0 values"):
        partition_values(schema_by("INT"), EMPTY_ROW)
