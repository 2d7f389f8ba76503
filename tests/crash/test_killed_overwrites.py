"""An ingestion dies at any storage call while it replaces rows or changes columns: it works once.

While it is down another writer adds a row to the same partition. Calls are met one in
``OVERWRITE_KILLS_APART`` (1: all of them).
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import ingest
from tests.crash.killed_process import killed_at
from tests.expired import missing
from tests.sampling import SEED, count

APART = count(9, 1, "OVERWRITE_KILLS_APART")
OLD, NEW, LATER = ("mon", 1), ("mon", 2), ("mon", 3)
KEPT = {"partitions": [("tue", 1)], "table": []}


def make_orders(place):
    catalog = lake.open_catalog(place / "warehouse")
    catalog.create_database("shop")
    orders = catalog.create_table(
        "shop.orders", [("dt", "STRING"), ("id", "BIGINT")], partition_by=["dt"]
    )
    add(orders, OLD, ("tue", 1))
    (place / "new.csv").write_text("dt,id\nmon,2\n")
    return orders


def add(orders, *rows):
    orders.write(pa.table({"dt": [day for day, _ in rows], "id": [number for _, number in rows]}))


def rows_of(orders):
    return sorted(
        (tuple(row.values()) for row in orders.scan().to_arrow().to_pylist()),
        key=lambda row: row[:2],
    )


@pytest.mark.parametrize("overwrite", ["partitions", "table"])
def test_a_retry_of_an_overwrite_that_died_anywhere_replaces_once(tmp_path, overwrite):
    number, was_killed = 1 + SEED % APART, True
    while was_killed:
        place = tmp_path / str(number)
        orders = make_orders(place)
        request = {
            "warehouse": place / "warehouse",
            "table": "shop.orders",
            "source": place / "new.csv",
            "overwrite": overwrite,
            "commit_user": "run",
            "commit_identifier": 1,
        }
        with killed_at(number) as came_so_far:
            ingest.run(request)
        was_killed = came_so_far()
        is_published = len(orders.snapshots()) == 2
        old, new = sorted([OLD, ("tue", 1)]), sorted([NEW, *KEPT[overwrite]])
        assert rows_of(orders) == (new if is_published else old), f"killed at {number}"

        add(orders, LATER)
        ingest.run(request)

        expected = sorted([*new, LATER]) if is_published else new
        assert rows_of(orders) == expected, f"killed at {number}"
        assert missing(orders) == set()
        number += APART


def test_a_retry_of_a_run_that_died_anywhere_while_it_changed_columns_adds_its_rows_once(tmp_path):
    number, was_killed = 1 + SEED % APART, True
    while was_killed:
        place = tmp_path / str(number)
        orders = make_orders(place)
        (place / "new.csv").write_text("dt,id,price\nmon,2,1.5\n")
        request = {
            "warehouse": place / "warehouse",
            "table": "shop.orders",
            "source": place / "new.csv",
            "on_schema_change": "widen",
            "commit_user": "run",
            "commit_identifier": 1,
        }
        with killed_at(number) as came_so_far:
            ingest.run(request)
        was_killed = came_so_far()
        add(orders, LATER)
        ingest.run(request)

        orders = lake.open_catalog(place / "warehouse").table("shop.orders")
        told = f"killed at {number}"
        expected = [(*OLD, None), (*NEW, 1.5), (*LATER, None), ("tue", 1, None)]
        assert rows_of(orders) == expected, told
        assert orders.schema.arrow_schema().names == ["dt", "id", "price"], told
        assert missing(orders) == set()
        number += APART
