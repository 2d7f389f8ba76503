"""Streams of tables that ask for overwrites: Java's and ours deliver the same rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.wire import json_rows

ASKED = {
    True: {"bucket": "2", "streaming-read-overwrite": "true"},
    False: {"streaming-read-append-overwrite": "true"},
}


def delivered(table: lake.Table, start: int) -> list[list[tuple[str, list[Any]]]]:
    """Return the changes of our stream in the form of Java's."""
    found = []
    for each in table.stream("from-snapshot", snapshot=start):
        rows = each.to_arrow()
        kinds = rows["rowkind"].to_pylist()
        found.append([*zip(kinds, json_rows(rows.drop_columns(["rowkind"])), strict=True)])
    return found


def in_order(snapshots: list[list[tuple[str, list[Any]]]]) -> list[list[tuple[str, list[Any]]]]:
    return [sorted(rows) for rows in snapshots if rows]


@pytest.mark.parametrize("producer", ["none", "input"])
@pytest.mark.parametrize("seed", range(3))
def test_streams_of_keyed_tables_deliver_the_same(
    catalog: lake.Catalog, peer: JavaPeer, seed: int, producer: str
):
    check_that_streams_agree(
        catalog, peer, seed, {**ASKED[True], "changelog-producer": producer}, ["id"]
    )


@pytest.mark.parametrize("seed", range(2))
def test_streams_of_append_tables_deliver_the_same(
    catalog: lake.Catalog, peer: JavaPeer, seed: int
):
    check_that_streams_agree(catalog, peer, seed, ASKED[False], [])


def check_that_streams_agree(
    catalog: lake.Catalog, peer: JavaPeer, seed: int, options: dict[str, str], keys: list[str]
) -> None:
    """Let either write, overwrite and compact, and compare what both streams deliver."""
    chance = random.Random(seed)
    table = catalog.create_table(
        "shop.t", [("id", "BIGINT"), ("n", "INT")], primary_key=keys, options=options
    )
    for number in range(10):
        ids = chance.sample(range(9), chance.randint(1, 5))
        rows = pa.table({"id": ids, "n": [number] * len(ids)}, schema=table.schema.arrow_schema())
        match chance.choice(["ours", "java", "ours over", "java over", "compact", "truncate"]):
            case "ours":
                table.write(rows)
            case "java":
                peer.write("shop.t", rows)
            case "ours over":
                table.write(rows, overwrite={})
            case "java over":
                peer.write("shop.t", rows, overwrite=True)
            case "compact":
                table.compact(strategy="full")
            case _:
                table.truncate()
    ours, java = delivered(table, 1), peer.stream("shop.t", 1)
    assert in_order(ours) == in_order(java)
    assert ours
