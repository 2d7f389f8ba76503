"""``check_partition_choice`` and ``explain_empty_choice``: choices that are wrong or empty."""

from __future__ import annotations

from datetime import date
from types import MappingProxyType

import pyarrow as pa
import pytest

import lakeformat as lake


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
