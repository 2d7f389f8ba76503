"""pypaimon reads a table after an expiry, with its tags, and continues to write it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.metadata.tag import Tag, create_tag
from tests.expired import missing
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT NOT NULL"), ("n", "INT")]
ALL = {"retain_max": 1, "retain_min": 1}


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_a_table_written_by_both_expires_and_both_go_on(catalog, peer: Peer, keyed: bool):
    options = {"bucket": "1"} if keyed else {"bucket": "-1", "compaction.min.file-num": "2"}
    key = ["id"] if keyed else []
    table = catalog.create_table("shop.orders", COLUMNS, primary_key=key, options=options)
    schema = table.schema.arrow_schema()
    for number in range(3):
        peer.write("shop.orders", pa.Table.from_pylist([{"id": 1, "n": number}], schema))
    handle = table._handle
    kept = read_snapshot(handle.storage, handle.layout, 2)
    create_tag(handle.storage, handle.layout, Tag("two", kept))
    tagged = rows_of(table.scan(tag="two").to_arrow())
    table.compact()
    before = rows_of(table.scan().to_arrow())

    assert table.expire_snapshots(**ALL).is_complete

    assert_same_rows(rows_of(peer.read("shop.orders")), before)
    assert_same_rows(rows_of(table.scan(tag="two").to_arrow()), tagged)
    peer.write("shop.orders", pa.Table.from_pylist([{"id": 2, "n": 9}], schema))
    assert_same_rows(rows_of(peer.read("shop.orders")), rows_of(table.scan().to_arrow()))
    table.expire_snapshots(**ALL)
    assert not missing(table)
