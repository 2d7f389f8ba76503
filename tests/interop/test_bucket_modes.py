"""Dynamic, postponed and rescaled buckets: pypaimon and this library write one table and agree."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]


def create(catalog: lake.Catalog, **options: str) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options=options,
    )


def some_rows(table: lake.Table, ids: Any, note: str) -> pa.Table:
    """The keys, half of them in another partition."""
    rows = [{"dt": f"d{number % 2}", "id": number, "note": note} for number in ids]
    return pa.Table.from_pylist(rows, schema=table.schema.arrow_schema())


def newest(*tables: pa.Table) -> list[dict[str, Any]]:
    found = {(row["dt"], row["id"]): row for table in tables for row in rows_of(table)}
    return list(found.values())


def index_of(table: lake.Table) -> list[tuple[Any, ...]]:
    columns = ["partition", "bucket", "row_count"]
    found = table.system_table("table_indexes").scan(columns).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_both_write_a_dynamic_table_by_one_index(catalog: lake.Catalog, peer: Peer):
    table = create(catalog, bucket="-1", **{"dynamic-bucket.target-row-num": "7"})
    ranges = (range(20), range(10, 30), range(0, 30, 3), range(25, 50), range(50))
    written = [some_rows(table, ids, f"n{n}") for n, ids in enumerate(ranges)]
    for number, rows in enumerate(written):
        if number % 2:
            peer.write("shop.orders", rows)
        else:
            table.write(rows)
        expected = newest(*written[: number + 1])
        assert_same_rows(rows_of(peer.read("shop.orders")), expected)
        assert_same_rows(rows_of(table.scan().to_arrow()), expected)
    assert sum(count for *_, count in index_of(table)) == 50, "each key is in one bucket"
    table.compact()
    assert_same_rows(rows_of(peer.read("shop.orders")), newest(*written))


def test_their_table_is_continued_by_their_index(catalog: lake.Catalog, peer: Peer):
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    peer.create_table("shop.orders", schema, options, primary_key=["id"])
    rows = pa.table({"id": range(10), "note": ["theirs"] * 10}, schema=schema)
    peer.write("shop.orders", rows)
    table = catalog.table("shop.orders")
    before = index_of(table)
    table.write(pa.table({"id": range(10), "note": ["ours"] * 10}))
    assert index_of(table) == before, "all keys are known"
    table.write(pa.table({"id": range(10, 14), "note": ["ours"] * 4}))
    assert sum(count for *_, count in index_of(table)) == 14
    assert {row["note"] for row in rows_of(peer.read("shop.orders"))} == {"ours"}


def test_rows_that_moved_between_partitions_are_read_once(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["id"], partition_by=["dt"], options={"bucket": "-1"}
    )
    for day in ("mon", "tue", "wed"):
        table.write(pa.table({"dt": [day] * 5, "id": range(5), "note": [day] * 5}))
    expected = [{"dt": "wed", "id": number, "note": "wed"} for number in range(5)]
    assert_same_rows(rows_of(table.scan().to_arrow()), expected)
    table.compact()
    assert_same_rows(rows_of(peer.read("shop.orders")), expected)


@pytest.mark.parametrize("ours_first", [True, False])
def test_postponed_rows_of_both_get_their_bucket_here(
    catalog: lake.Catalog, peer: Peer, ours_first: bool
):
    options = {"postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"}
    table = create(catalog, bucket="-2", **options)
    written = [some_rows(table, range(0, 20), "first"), some_rows(table, range(10, 30), "second")]
    for number, rows in enumerate(written):
        if (number == 0) == ours_first:
            table.write(rows)
        else:
            peer.write("shop.orders", rows)
    assert peer.read("shop.orders").num_rows == table.scan().to_arrow().num_rows == 0
    table.compact()
    assert_same_rows(rows_of(table.scan().to_arrow()), newest(*written))
    assert_same_rows(rows_of(peer.read("shop.orders")), newest(*written))


def test_a_rescaled_table_is_read_and_written_there(catalog: lake.Catalog, peer: Peer):
    table = create(catalog, bucket="2")
    rows = some_rows(table, range(30), "a")
    table.write(rows)
    catalog.alter_table("shop.orders", lake.set_option("bucket", "5"))
    table = catalog.table("shop.orders")
    table.rescale()
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(rows))
    more = some_rows(table, range(20, 40), "b")
    peer.write("shop.orders", more)
    assert_same_rows(rows_of(table.scan().to_arrow()), newest(rows, more))
