"""pypaimon reads snapshots that racing and interleaved commits left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.storage import LocalStorage
from tests.crash.interleaved import World, shown
from tests.crash.process_writer import ids_of, make_table, start_writer
from tests.crash.test_interleavings import run
from tests.interop.peer import Peer

# Long enough for overwrites, compactions and expiry to have happened, of both kinds of table.
KEYED_SEEDS = (10, 73, 92)
APPEND_SEEDS = (53, 67)

_SAMPLED = 5


def put_on_disk(world: World, warehouse: Path, table: str) -> None:
    """Copy a table from memory to where pypaimon looks for it."""
    root, storage = world.seen.layout.root, LocalStorage()
    for path, content in world.seen.storage.files(root).items():
        storage.overwrite(f"{warehouse}/shop.db/{table}{path.removeprefix(root)}", content)


def older_snapshots(world: World) -> list[int]:
    """A few of those that have not expired, the oldest among them."""
    storage, layout = world.seen.storage, world.seen.layout
    there = snapshot_ids(storage, layout)[:-1]
    assert there, "nothing but the newest is left"
    return there[:: max(len(there) // _SAMPLED, 1)]


@pytest.mark.parametrize("seed", KEYED_SEEDS)
def test_the_snapshots_of_interleaved_keyed_commits(seed: int, peer: Peer, tmp_path: Path):
    world = run(seed, keyed=True)
    assert world.compacted
    put_on_disk(world, tmp_path / "warehouse", "keyed")
    rows = peer.read("shop.keyed").to_pylist()
    expected = shown(world.states[max(world.states)])
    assert {(row["dt"], row["id"]): row["note"] for row in rows} == expected
    assert len(rows) == len(expected)
    for number in older_snapshots(world):
        then = peer.read("shop.keyed", snapshot=number).to_pylist()
        there = {(row["dt"], row["id"]): row["note"] for row in then}
        assert there == shown(world.states[number]), f"snapshot {number}"


@pytest.mark.parametrize("seed", APPEND_SEEDS)
def test_the_snapshots_of_interleaved_appends(seed: int, peer: Peer, tmp_path: Path):
    world = run(seed, keyed=False)
    assert world.compacted
    put_on_disk(world, tmp_path / "warehouse", "plain")
    rows = peer.read("shop.plain").to_pylist()
    expected = shown(world.states[max(world.states)])
    assert {row["id"]: row["note"] for row in rows} == expected
    assert len(rows) == len(expected)
    for number in older_snapshots(world):
        then = peer.read("shop.plain", snapshot=number).to_pylist()
        there = {row["id"]: row["note"] for row in then}
        assert there == shown(world.states[number]), f"snapshot {number}"


def test_the_commits_of_several_processes(peer: Peer, tmp_path: Path):
    table = make_table(str(tmp_path / "warehouse"))
    writers = [
        start_writer(table, n, commits=12, rows=2, promises=tmp_path / f"{n}") for n in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = sorted(peer.read("shop.orders")["id"].to_pylist())
    assert found == [
        number for w in range(3) for c in range(12) for number in ids_of(w, c, commits=12, rows=2)
    ]
    assert peer.describe("shop.orders")["latest_snapshot"] == 36
    assert lake.open_table(table).scan().count() == len(found)
