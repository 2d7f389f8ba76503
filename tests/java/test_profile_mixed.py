"""A table with the profile ``mixed``: Java knows its options, and both write it in turns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.publish.check.check import check_publication
from lakeformat.publish.check.readers import READERS
from tests.java.peer_process import JavaPeer
from tests.java.test_overwrites import delivered, in_order
from tests.java.wire import assert_same, json_rows

COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING")]
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
FEW_ROWS = {"dynamic-bucket.target-row-num": "200"}


def rows(names: dict[int, str]) -> pa.Table:
    return pa.table([[*names], [*names.values()]], schema=ROWS)


def new_table(catalog: lake.Catalog, peer: JavaPeer, creator: str) -> lake.Table:
    """A table of the profile that this library created, or Java with the same options."""
    how = {"primary_key": ["id"], "profile": "mixed", "options": FEW_ROWS}
    if creator == "ours":
        return catalog.create_table("shop.t", COLUMNS, **how)
    options = dict(catalog.create_table("shop.model", COLUMNS, **how).schema.options)
    peer.create_table("shop.t", COLUMNS, options, primary_keys=["id"])
    return catalog.table("shop.t")


def check(peer: JavaPeer, table: lake.Table, expected: dict[int, str]) -> None:
    """Java, this library and PyIceberg read the expected rows."""
    listed = [[id, name] for id, name in expected.items()]
    java = peer.read("shop.t")
    assert_same(java.columns, java.rows, listed)
    assert_same(java.columns, json_rows(table.scan().to_arrow()), listed)
    lake.publish_table(table)
    assert check_publication(table, READERS[:1]).failed == ()


def indexed_keys(peer: JavaPeer) -> list[int]:
    """The number of keys that the hash index of each bucket has, also of deleted rows."""
    found = peer.read("shop.t$table_indexes")
    listed = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    return sorted(each["row_count"] for each in listed if each["index_type"] == "HASH")


@pytest.mark.parametrize("creator", ["ours", "java"])
def test_both_write_the_table_in_turns_and_read_one_changelog(
    catalog: lake.Catalog, peer: JavaPeer, creator: str
):
    table = new_table(catalog, peer, creator)
    unknown = {*table.schema.options} - {*peer.call("known_options")}
    assert unknown == {"write.conflict"}
    expected = {number: f"first {number}" for number in range(500)}
    if creator == "ours":
        table.write(rows(expected))
        table.compact(strategy="minor")
    else:
        peer.write("shop.t", rows(expected))
    check(peer, table, expected)

    # Java's writer compacts by itself: it makes changelog and deletion vectors.
    changed = rows({3: "java", 900: "java", 4: "old"})
    peer.write("shop.t", changed, kinds=["+U", "+I", "-D"])
    expected |= {3: "java", 900: "java"}
    del expected[4]
    check(peer, table, expected)
    assert peer.call("vectors", table="shop.t")

    # The option write.conflict makes this the order of transactions.
    with table.begin() as position:
        peer.write("shop.t", rows({5: "stream", 901: "stream"}))
        table.write(rows({5: "batch", 6: "batch", 902: "batch"}), read_snapshot=position)
    table.compact(strategy="minor")
    expected |= {5: "stream", 901: "stream", 6: "batch", 902: "batch"}
    check(peer, table, expected)

    peer.write("shop.t", rows({6: "java", 902: "old"}), kinds=["+U", "-D"])
    table.write(rows({900: "ours"}))
    table.compact(strategy="full")
    expected |= {6: "java", 900: "ours"}
    del expected[902]
    check(peer, table, expected)
    peer.call("compact", table="shop.t")
    check(peer, table, expected)
    assert indexed_keys(peer) == [103, 200, 200]

    ours = in_order(delivered(table, 1))
    assert ours == in_order(peer.stream("shop.t", 1))
    assert applied(ours) == expected


def applied(snapshots: list[list[tuple[str, list[Any]]]]) -> dict[int, str]:
    """Apply each change to the rows that it names; fail if it does not fit to them."""
    found: dict[int, str] = {}
    for changes in snapshots:
        for kind, (id, name) in sorted(changes, key=lambda each: each[0] in ("+I", "+U")):
            if kind in ("+I", "+U"):
                assert id not in found
                found[id] = name
            else:
                assert found.pop(id) == name
    return found
