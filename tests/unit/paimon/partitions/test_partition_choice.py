"""``check_partition_choice`` and ``explain_empty_choice``: choices that are wrong or empty."""

from __future__ import annotations

from datetime import date
from types import MappingProxyType

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.metadata.simple_stats import SimpleStats
from lakeformat.paimon.partition_filter import some_partitions
from lakeformat.types.type_text import parse_type


@pytest.fixture
def days(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("dt", "DATE")]
    return catalog.create_table("shop.days", columns, partition_by=["dt"])


def test_a_choice_by_partition_columns_is_accepted(days):
    days.check_partition_choice()
    days.check_partition_choice(where="dt >= '2024-01-01'", partitions={"dt": "2024-01-31"})


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ({"where": "id = 1"}, "the table is partitioned by dt"),
        ({"where": "dt >="}, "dt >="),
        ({"partitions": {"day": "2024-01-01"}}, "'day' is not a partition column"),
        ({"partitions": {"dt": "someday"}}, "'someday' is not a value"),
    ],
)
def test_another_choice_is_refused_with_its_reason(days, choice, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        days.check_partition_choice(**choice)


def test_a_choice_without_rows_is_explained_for_every_kind_of_mapping(days):
    days.write(pa.table({"id": [1], "dt": [date(2024, 1, 1)]}))
    empty = {"dt": "2024-01-02"}
    for choice in (empty, MappingProxyType(empty)):
        found = str(days.explain_empty_choice(partitions=choice))
        assert found.startswith("partition dt=2024-01-02 has no rows; the nearest is dt=")


@pytest.fixture
def codes(tmp_path) -> lake.Table:
    """A table partitioned by a CHAR column; some values are padded, as other engines write them."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("code", "CHAR(5)")]
    table = catalog.create_table("shop.codes", columns, partition_by=["code"])
    for number, code in enumerate(["ab", "ab   ", "a\t", "b", "abcde", "", None]):
        table.write(pa.table({"id": [number], "code": [code]}))
    return table


def ids(table: lake.Table, **choice) -> list[int]:
    return sorted(table.scan(**choice).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("code", "found"),
    [("ab", [0, 1]), ("ab ", [0, 1]), ("b", [3]), ("a", []), ("abcde", [4]), (None, [6])],
)
def test_blanks_at_the_end_of_a_char_value_choose_no_other_partition(codes, code, found):
    spec = {"code": code}
    assert ids(codes, partitions=spec) == found
    assert sum(codes.partition_rows(spec).rows.values()) == len(found)
    codes.compact(strategy="full")
    codes.compact_manifests()  # one manifest then has the bounds of all partitions
    assert ids(codes, partitions=spec) == found
    if found:
        codes.drop_partitions([spec])
    assert ids(codes) == [number for number in range(7) if number not in found]


def test_an_overwrite_of_a_char_partition_replaces_its_rows(codes):
    codes.write(pa.table({"id": [9], "code": ["ab"]}), overwrite={"code": "ab"})
    assert ids(codes) == [2, 3, 4, 5, 6, 9]


@pytest.mark.parametrize(("code", "may_hold"), [("ab", True), ("aa", False), ("b", False)])
def test_manifests_are_excluded_by_char_values_of_any_padding(codes, code, may_hold):
    padded = framed("ab  "), framed("ab   ")
    chosen = some_partitions(codes.schema, [{"code": code}])
    assert chosen.may_hold(SimpleStats(*padded, (0,))) is may_hold


def framed(code: str) -> bytes:
    kind = parse_type("CHAR(5)")
    return frame_row(encode_row([code], [kind]), 1)
