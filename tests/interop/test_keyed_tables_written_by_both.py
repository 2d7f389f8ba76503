"""Keyed and partitioned tables: pypaimon reads what is written here and agrees, and the reverse."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [
    ("dt", "DATE"),
    ("id", "BIGINT"),
    ("name", "STRING"),
    ("amount", "DECIMAL(12, 2)"),
    ("at", "INT"),
]
DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]


def create(catalog: lake.Catalog, **options: str) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "3", **options},
    )


def some_rows(table: lake.Table, seed: int, count: int = 300) -> pa.Table:
    """Keys of three days that come several times."""
    chance = random.Random(seed)
    rows = [
        {
            "dt": chance.choice(DAYS),
            "id": chance.randrange(100),
            "name": chance.choice(["", "é", None, f"n{seed}"]),
            "amount": Decimal(chance.randrange(10_000)) / 100,
            "at": chance.choice([None, *range(20)]),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=table.schema.arrow_schema())


def newest(*tables: pa.Table) -> list[dict]:
    found = {(row["dt"], row["id"]): row for table in tables for row in rows_of(table)}
    return list(found.values())


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_both_upsert_into_one_table_and_agree(catalog: lake.Catalog, peer: Peer, file_format: str):
    table = create(catalog, **{"file.format": file_format})
    written = [some_rows(table, seed) for seed in range(4)]
    for number, rows in enumerate(written):
        if number % 2:
            peer.write("shop.orders", rows)
        else:
            table.write(rows)
    expected = newest(*written)
    assert_same_rows(rows_of(peer.read("shop.orders")), expected)
    assert_same_rows(rows_of(table.scan().to_arrow()), expected)


def test_rows_deleted_here_are_gone_there(catalog: lake.Catalog, peer: Peer):
    table = create(catalog)
    rows = some_rows(table, 1)
    table.write(rows)
    gone = rows.slice(0, 100)
    table.write(gone, ["-D"] * 100)
    keys = {(row["dt"], row["id"]) for row in rows_of(gone)}
    left = [row for row in newest(rows) if (row["dt"], row["id"]) not in keys]
    assert_same_rows(rows_of(peer.read("shop.orders")), left)
    assert_same_rows(rows_of(table.scan().to_arrow()), left)


def test_the_users_sequence_decides_on_both_sides(catalog: lake.Catalog, peer: Peer):
    table = create(catalog, **{"sequence.field": "at"})
    written = [some_rows(table, seed) for seed in range(3)]
    table.write(written[0])
    peer.write("shop.orders", written[1])
    table.write(written[2])
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(table.scan().to_arrow()))


def test_an_overwritten_partition_is_read_by_both(catalog: lake.Catalog, peer: Peer):
    table = create(catalog)
    rows = some_rows(table, 1)
    table.write(rows)
    new = pa.Table.from_pylist([{"dt": DAYS[0], "id": 1}]).cast(
        pa.schema([("dt", pa.date32()), ("id", pa.int64())])
    )
    table.write(new, overwrite={"dt": DAYS[0]})
    kept = [row for row in newest(rows) if row["dt"] != DAYS[0]]
    added = {"dt": DAYS[0], "id": 1, "name": None, "amount": None, "at": None}
    assert_same_rows(rows_of(peer.read("shop.orders")), [*kept, added])
    assert_same_rows(rows_of(table.scan().to_arrow()), [*kept, added])


def test_what_was_spilled_and_merged_is_read_by_pypaimon(catalog: lake.Catalog, peer: Peer):
    table = create(catalog, **{"write-buffer-size": "4 kb"})
    written = [some_rows(table, seed) for seed in range(5)]
    table.write(written)
    assert_same_rows(rows_of(peer.read("shop.orders")), newest(*written))


def test_a_bucketed_queue_and_its_partitions_are_written_by_both(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table(
        "shop.orders",
        COLUMNS,
        partition_by=["dt"],
        options={"bucket": "3", "bucket-key": "id"},
    )
    first, second = some_rows(table, 1), some_rows(table, 2)
    table.write(first)
    peer.write("shop.orders", second)
    expected = rows_of(first) + rows_of(second)
    assert_same_rows(rows_of(peer.read("shop.orders")), expected)
    assert_same_rows(rows_of(table.scan().to_arrow()), expected)
