"""pypaimon reads what is left once orphan files and references to lost files are removed here."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
THREE_DAYS = 3 * 24 * 60 * 60


@pytest.mark.parametrize("how", [{}, {"primary_key": ["id"], "options": {"bucket": "2"}}])
def test_both_read_the_same_after_a_removal(catalog, peer: Peer, how: dict):
    table = catalog.create_table("shop.orders", COLUMNS, **how)
    for number in range(3):
        rows = pa.table({"id": [number, 9], "note": [f"{number}"] * 2}, table.schema.arrow_schema())
        peer.write("shop.orders", rows)
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [7], "note": ["lost"]}, table.schema.arrow_schema()))
        writer.prepare()
    before = rows_of(peer.read("shop.orders"))
    root = Path(table.location.removeprefix("file://"))
    moment = time.time() - THREE_DAYS
    for path in (*root.glob("bucket-*/*"), *root.glob("manifest/*")):
        os.utime(path, (moment, moment))
    assert table.remove_orphans(dry_run=False).removed_files == 1
    assert_same_rows(rows_of(peer.read("shop.orders")), before)
    assert_same_rows(rows_of(table.scan().to_arrow()), before)


def test_both_read_what_is_left_when_a_file_is_lost(catalog, peer: Peer):
    table: lake.Table = catalog.create_table("shop.orders", COLUMNS)
    for number in range(3):
        rows = pa.table({"id": [number], "note": ["x"]}, table.schema.arrow_schema())
        peer.write("shop.orders", rows)
    next(Path(table.location.removeprefix("file://")).glob("bucket-0/*")).unlink()
    assert table.remove_missing_files(dry_run=False).missing_rows == 1
    left = rows_of(table.scan().to_arrow())
    assert len(left) == 2
    assert_same_rows(rows_of(peer.read("shop.orders")), left)
