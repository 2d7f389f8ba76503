"""pypaimon reads a table after our tags, branches and rollbacks, and continues to write it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.file_indexes import rewrite
from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]


def rows(note: str) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())])
    return pa.table({"id": [1], "note": [note]}, schema=schema)


def note(peer: Peer, **when) -> list[str]:
    return peer.read("shop.orders", **when)["note"].to_pylist()


def test_pypaimon_reads_what_is_left_after_each_operation(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["id"], options={"bucket": "1"}
    )
    for number in (1, 2, 3):
        table.write(rows(f"v{number}"))
    table.tags.create("one", snapshot=1, retain="30 d")
    table.tags.create("two", snapshot=2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert (note(peer), note(peer, tag="one"), note(peer, tag="two")) == (["v3"], ["v1"], ["v2"])

    table.rollback(tag="two", as_latest=True)
    assert note(peer) == ["v2"]
    peer.write("shop.orders", rows("v5"))
    assert (note(peer), table.scan().count()) == (["v5"], 1)

    table.branches.create("dev", snapshot=5)
    catalog.table("shop.orders$branch_dev").write(rows("dev"))
    table.branches.fast_forward("dev")
    assert note(peer) == ["dev"]

    table.branches.delete("dev")
    table.tags.delete("one")
    table.rollback(snapshot=5, as_latest=False)
    assert note(peer) == ["v5"]
    peer.write("shop.orders", rows("v6"))
    assert note(peer) == ["v6"]
    assert table.scan().to_arrow()["note"].to_pylist() == ["v6"]


def test_pypaimon_reads_files_that_a_rollback_has_brought_back(catalog: lake.Catalog, peer: Peer):
    table = catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["id"], options={"bucket": "1"}
    )
    table.write(rows("v1"))
    table.write(rows("v2"), overwrite={})
    table.rollback(snapshot=1)
    assert note(peer) == ["v1"]
    table.rollback(snapshot=2)
    assert note(peer) == ["v2"]
    table.rollback(snapshot=3)
    assert note(peer) == ["v1"]
    assert table.scan().to_arrow()["note"].to_pylist() == ["v1"]


@pytest.mark.parametrize("files_together", [1, 256])
def test_pypaimon_reads_files_that_are_known_again_as_they_were(
    catalog: lake.Catalog, peer: Peer, monkeypatch: pytest.MonkeyPatch, files_together: int
):
    monkeypatch.setattr(rewrite, "_GROUP_FILES", files_together)
    table = catalog.create_table("shop.orders", COLUMNS, options={"bucket": "-1"})
    for number in (1, 2, 3):
        table.write(rows(f"v{number}"))
    wanted = "file-index.bloom-filter.columns", "file-index.bloom-filter.id.items"
    index = [lake.set_option(wanted[0], "id"), lake.set_option(wanted[1], "10")]
    for changes in (index, [], [lake.remove_option(name) for name in wanted], index):
        table = catalog.alter_table("shop.orders", *changes) if changes else table
        table.rewrite_file_indexes(force=not changes)
        assert sorted(note(peer)) == ["v1", "v2", "v3"]
