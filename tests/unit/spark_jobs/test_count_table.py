"""Rows of a system table are counted, with the arguments that such a table takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.frames.count import count_table

NO_SPARK: Any = "no Spark is needed"


@pytest.fixture
def orders(tmp_path):
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(3):
        table.write(pa.table({"id": [number]}))
    return table


def test_the_rows_of_a_system_table_are_counted(orders):
    assert count_table(NO_SPARK, orders.system_table("snapshots")) == 3
    assert count_table(NO_SPARK, orders.system_table("files"), snapshot=2) == 2


def test_a_system_table_of_an_iceberg_table_is_counted(tmp_path):
    catalog = lake.open_catalog(tmp_path, options={"format": "iceberg"})
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))

    assert count_table(NO_SPARK, table.system_table("snapshots")) == 1


def test_a_condition_on_a_system_table_is_refused(orders):
    with pytest.raises(lake.InvalidRequestError, match="no argument 'where'"):
        count_table(NO_SPARK, orders.system_table("files"), where="true")
