"""Java reads changelogs and deletion vectors of our compactions, and writes on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer

ROWS = 200
CHANGELOG = {"incremental-between-scan-mode": "changelog"}


def new_table(catalog: lake.Catalog, options: dict[str, str]) -> lake.Table:
    return catalog.create_table(
        "shop.t",
        [("k", "INT"), ("v", "INT")],
        primary_key=["k"],
        options={"bucket": "1", "write-only": "true", **options},
    )


def write(table: lake.Table, *rows: tuple[str, int, int]) -> None:
    kinds, keys, values = zip(*rows, strict=True)
    columns = {"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())}
    table.write(pa.table(columns), kinds)


def compact(table: lake.Table, strategy: str = "minor") -> None:
    assert table.compact(strategy=strategy).snapshot_ids


def told_by_java(peer: JavaPeer, upto: int) -> list[list[Any]]:
    options = {"incremental-between": f"0,{upto}", **CHANGELOG}
    found = peer.call("read", table="shop.t", where=None, options=options)
    return sorted([kind, *row] for kind, row in zip(found["kinds"], found["rows"], strict=True))


def told_by_us(table: lake.Table, upto: int) -> list[list[Any]]:
    rows = table.changes(0, upto, "changelog").to_arrow().to_pylist()
    return sorted([*row.values()] for row in rows)


def rows_of(peer: JavaPeer) -> dict[int, int]:
    return {k: v for k, v in peer.read("shop.t").rows}


def newest(table: lake.Table) -> int:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return snapshot.id


OPTIONS: dict[str, dict[str, str]] = {
    "lookup": {"changelog-producer": "lookup"},
    "lookup and vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "lookup of sums": {
        "changelog-producer": "lookup",
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "sum",
    },
    "full": {"changelog-producer": "full-compaction"},
    "vectors": {"deletion-vectors.enabled": "true"},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_java_reads_our_changelog_and_goes_on_with_it(
    catalog: lake.Catalog, peer: JavaPeer, case: str
):
    table = new_table(catalog, OPTIONS[case])
    strategy = "full" if case == "full" else "minor"
    write(table, *(("+I", key, key) for key in range(ROWS)))
    compact(table, "full")
    write(table, ("+U", 5, 50), ("-D", 7, 7), ("+I", ROWS, 1))
    compact(table, strategy)
    write(table, ("+U", 5, 51), ("+I", 7, 70))
    compact(table, strategy)
    seen = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert rows_of(peer) == seen
    if case != "vectors":
        assert told_by_java(peer, newest(table)) == told_by_us(table, newest(table))
    before = newest(table)
    more = pa.table({"k": pa.array([5, 8], pa.int32()), "v": pa.array([1, 1], pa.int32())})
    peer.write("shop.t", more, kinds=["+U", "+U"], options={"write-only": "false"})
    peer.call("compact", table="shop.t", options={"write-only": "false"})
    table = catalog.table("shop.t")
    after = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert rows_of(peer) == after
    wanted = {5: seen[5] + 1, 8: seen[8] + 1} if case == "lookup of sums" else {5: 1, 8: 1}
    assert after == seen | wanted
    if case != "vectors":
        told = table.changes(before, None, "changelog").to_arrow().to_pylist()
        pairs = [
            [kind, key, value[key]]
            for key in (5, 8)
            for kind, value in (("-U", seen), ("+U", wanted))
        ]
        assert sorted([*row.values()] for row in told) == sorted(pairs)
