"""Java reads, compacts and writes tables to which batches were committed in transaction order."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.test_overwrites import delivered, in_order
from tests.java.wire import assert_same, json_rows
from tests.sampling import SEED

Key = tuple[str, int]
COLUMNS = [("p", "STRING"), ("id", "BIGINT"), ("note", "STRING")]
TABLES = {
    "fixed": {"bucket": "2"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "3"},
    "changelog": {"bucket": "1", "changelog-producer": "lookup"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
}
BATCHES = ["write", "table", "partitions", "one partition", "delete", "update"]


class Turns:
    """A table, and the rows that it has in the order of transactions."""

    def __init__(self, catalog: lake.Catalog, peer: JavaPeer, options: dict[str, str]) -> None:
        self.peer, self.random, self.written = peer, Random(f"{SEED} {options}"), 0
        self.table = catalog.create_table(
            "shop.t", COLUMNS, primary_key=["p", "id"], partition_by=["p"], options=options
        )
        self.rows: dict[Key, str] = {}
        self.since: dict[Key, str | None] = {}
        """The newest values that the stream has written since the batch began."""

    def some_rows(self, *, deletes: bool = True) -> dict[Key, str | None]:
        """Rows of a few keys, None for a delete."""
        self.written += 1
        keys = self.random.sample([(p, n) for p in "ab" for n in range(8)], 5)
        gone = {key for key in keys[1:] if deletes and self.random.random() < 0.3}
        return {key: None if key in gone else f"{self.written}" for key in keys}

    def arrow(self, rows: dict[Key, str | None]) -> tuple[pa.Table, list[str]]:
        listed = [(*key, note) for key, note in rows.items()]
        schema = self.table.schema.arrow_schema()
        values = zip(*listed, strict=True)
        columns = [pa.array(*each) for each in zip(values, schema.types, strict=True)]
        kinds = ["-D" if note is None else "+U" for note in rows.values()]
        return pa.table(columns, schema=schema), kinds

    def stream(self) -> None:
        """Java writes, or this library does, or either compacts."""
        rows = self.some_rows()
        written, kinds = self.arrow(rows)
        match self.random.choice(["java", "java", "ours", "java compacts", "ours compacts"]):
            case "java":
                self.peer.write("shop.t", written, kinds=kinds)
            case "ours":
                self.table.write(written, kinds)
            case "java compacts":
                self.peer.call("compact", table="shop.t")
                return
            case _:
                self.table.compact(strategy="minor")
                return
        self.since |= rows

    def batch(self, how: str, position: Any) -> dict[Key, str]:
        """Commit one batch as of a position; return the rows as without the stream."""
        order = {"read_snapshot": position, "conflict": "transaction-order"}
        before = dict(self.rows)
        if how == "delete":
            self.table.delete("id >= 5", **order)
            return {key: note for key, note in before.items() if key[1] < 5}
        if how == "update":
            self.table.update("id < 3", {"note": "updated"}, **order)
            return {key: "updated" if key[1] < 3 else note for key, note in before.items()}
        rows = self.some_rows(deletes=how == "write")
        if how == "one partition":
            rows = {("a", number): note for (_, number), note in rows.items()}
        replaced = {
            "write": set(),
            "table": {"a", "b"},
            "partitions": {key[0] for key in rows},
            "one partition": {"a"},
        }[how]
        written, kinds = self.arrow(rows)
        if how == "write":
            self.table.write(written, kinds, **order)
        else:
            overwrite = {"p": "a"} if how == "one partition" else how
            self.table.write(written, overwrite=overwrite, **order)
        kept = {key: note for key, note in before.items() if key[0] not in replaced}
        return merged(kept, rows)

    def check(self) -> None:
        """Java and this library read the expected rows."""
        if "deletion-vectors.enabled" in self.table.schema.options:
            self.table.compact(strategy="minor")  # until then reads lack the newest rows
        expected = [[*key, note] for key, note in self.rows.items()]
        names = [name for name, _ in COLUMNS]
        assert_same(names, json_rows(self.table.scan().to_arrow()), expected)
        assert_same(names, self.peer.read("shop.t").rows, expected)


def merged(rows: dict[Key, str], changes: dict[Key, str | None]) -> dict[Key, str]:
    return {key: note for key, note in (rows | changes).items() if note is not None}


@pytest.mark.parametrize("kind", TABLES)
def test_java_reads_compacts_and_streams_batches_as_of_an_earlier_snapshot(
    catalog: lake.Catalog, peer: JavaPeer, kind: str
):
    turns = Turns(catalog, peer, {**TABLES[kind], "num-sorted-run.compaction-trigger": "3"})
    table, done = turns.table, list[str]()
    for how in ["write", *turns.random.sample(BATCHES, len(BATCHES))]:
        done.append(how)
        with table.begin() as position:
            for _ in range(3):
                turns.stream()
            turns.rows = merged(turns.batch(how, position), turns.since)
        turns.since = {}
        turns.check()
    for snapshot in table.snapshots():
        ours = json_rows(table.scan(snapshot=snapshot.id).to_arrow())
        java = peer.read("shop.t", options={"scan.snapshot-id": f"{snapshot.id}"})
        assert_same(java.columns, java.rows, ours)
    assert in_order(delivered(table, 1)) == in_order(peer.stream("shop.t", 1)), done
    peer.call("compact", table="shop.t")
    turns.check()
    turns.stream()
    turns.rows = merged(turns.rows, turns.since)
    turns.check()
