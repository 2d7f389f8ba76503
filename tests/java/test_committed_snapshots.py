"""Java reads the results of interleaved commits, and writes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.interleaved import shown
from tests.crash.test_interleavings import run
from tests.interop.test_committed_snapshots import (
    APPEND_SEEDS,
    KEYED_SEEDS,
    older_snapshots,
    put_on_disk,
)
from tests.java.peer_process import JavaPeer


@pytest.mark.parametrize("seed", KEYED_SEEDS)
def test_the_snapshots_of_interleaved_keyed_commits(seed: int, peer: JavaPeer, tmp_path: Path):
    world = run(seed, keyed=True)
    put_on_disk(world, tmp_path / "warehouse", "keyed")
    expected = shown(world.states[max(world.states)])
    found = peer.read("shop.keyed")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert {(row["dt"], row["id"]): row["note"] for row in rows} == expected
    assert len(found.rows) == len(expected)
    for number in older_snapshots(world):
        then = peer.read("shop.keyed", options={"scan.snapshot-id": str(number)})
        rows = [dict(zip(then.columns, row, strict=True)) for row in then.rows]
        there = {(row["dt"], row["id"]): row["note"] for row in rows}
        assert there == shown(world.states[number]), f"snapshot {number}"
    peer.call("compact", table="shop.keyed")
    again = peer.read("shop.keyed")
    assert sorted(again.rows, key=str) == sorted(found.rows, key=str)


@pytest.mark.parametrize("seed", APPEND_SEEDS)
def test_the_snapshots_of_interleaved_appends(seed: int, peer: JavaPeer, tmp_path: Path):
    world = run(seed, keyed=False)
    put_on_disk(world, tmp_path / "warehouse", "plain")
    expected = shown(world.states[max(world.states)])
    found = peer.read("shop.plain")
    assert found.columns == ["id", "note"]
    assert dict(map(tuple, found.rows)) == expected
    assert len(found.rows) == len(expected)
    for number in older_snapshots(world):
        then = peer.read("shop.plain", options={"scan.snapshot-id": str(number)})
        assert dict(map(tuple, then.rows)) == shown(world.states[number]), f"snapshot {number}"
