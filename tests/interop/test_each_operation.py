"""pypaimon and this library read the same rows after every maintenance operation.

Operations with their own tests, such as compaction and orphan removal, are not here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

NAME = "shop.orders"
COLUMNS = [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("note", "STRING")]
OPTIONS = {
    "bucket": "1",
    "changelog-producer": "input",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
}


def write(table: lake.Table, note: str) -> None:
    rows = {"dt": ["a", "b"], "id": [1, 2], "note": [note, note]}
    table.write(pa.table(rows, table.schema.arrow_schema()))


@pytest.fixture
def table(catalog: lake.Catalog) -> lake.Table:
    """Four snapshots, a tag for each of the first two, a branch with commits, and a reader."""
    how = {"primary_key": ["dt", "id"], "partition_by": ["dt"], "options": OPTIONS}
    table = catalog.create_table(NAME, COLUMNS, **how)
    for number in range(1, 5):
        write(table, f"v{number}")
    table.tags.create("one", snapshot=1)
    table.tags.create("two", snapshot=2, retain="1 ms")
    table.branches.create("dev", tag="one")
    write(catalog.table(f"{NAME}$branch_dev"), "of dev")
    table.consumers.set("job", next_snapshot=2)
    return table


def expire_tags(catalog: lake.Catalog, table: lake.Table) -> object:
    time.sleep(0.01)
    return table.tags.expire().deleted == ("two",)


def make_due_tags(catalog: lake.Catalog, table: lake.Table) -> object:
    catalog.alter_table(NAME, lake.set_option("tag.automatic-creation", "batch"))
    return catalog.table(NAME).tags.create_due().created


def expire_changelogs(catalog: lake.Catalog, table: lake.Table) -> object:
    table.consumers.clear()
    assert table.expire_snapshots().snapshots == (1, 2, 3)
    return table.expire_snapshots().changelogs


def roll_back_to_a_time(catalog: lake.Catalog, table: lake.Table) -> object:
    third = table.snapshots()[2].time_millis / 1000
    return table.rollback(as_of=datetime.fromtimestamp(third, UTC)).snapshot_id == 5


def lose_a_manifest(catalog: lake.Catalog, table: lake.Table) -> object:
    handle = table._handle
    head = table.latest_snapshot()
    [lost] = manifests_of(handle.storage, handle.layout, head, ListKind.DELTA)
    handle.storage.delete(handle.layout.manifest(lost.file_name))
    return table.remove_missing_manifests(dry_run=False).missing_manifests


def repair_hints(catalog: lake.Catalog, table: lake.Table) -> object:
    directory = Path(table.location.removeprefix("file://")) / "snapshot"
    (directory / "LATEST").write_text("99")
    (directory / "EARLIEST").write_text("1")
    return table.repair().changes


def clone(**what: object) -> Callable[[lake.Catalog, lake.Table], object]:
    def act(catalog: lake.Catalog, table: lake.Table) -> object:
        lake.clone_table(table, catalog, "shop.copy", **what)
        return catalog.table("shop.copy")

    return act


def clone_a_branch(catalog: lake.Catalog, table: lake.Table) -> object:
    lake.clone_table(catalog.table(f"{NAME}$branch_dev"), catalog, "shop.copy")
    return catalog.table("shop.copy")


OPERATIONS: dict[str, Callable[[lake.Catalog, lake.Table], object]] = {
    "replace a tag": lambda _, t: t.tags.replace("two", snapshot=3),
    "rename a tag": lambda _, t: t.tags.rename("two", "zwei"),
    "expire tags": expire_tags,
    "make due tags": make_due_tags,
    "rename a branch": lambda _, t: t.branches.rename("dev", "new"),
    "delete a branch": lambda _, t: t.branches.delete("dev").files,
    "roll back to a time": roll_back_to_a_time,
    "expire snapshots": lambda _, t: t.expire_snapshots().snapshots == (1,),
    "expire changelogs": expire_changelogs,
    "drop a partition": lambda _, t: t.drop_partitions([{"dt": "a"}]).snapshot_id,
    "lose a manifest": lose_a_manifest,
    "repair hints": repair_hints,
    "move a consumer": lambda _, t: t.consumers.reset("job", next_snapshot=3) is None,
    "forget consumers": lambda _, t: t.consumers.clear().removed,
    "clone a snapshot": clone(snapshot=2),
    "clone a tag": clone(tag="one"),
    "clone everything": clone(full=True),
    "clone a branch": clone_a_branch,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_pypaimon_reads_the_same_rows_after(catalog, peer: Peer, table: lake.Table, name):
    done = OPERATIONS[name](catalog, table)
    assert done
    for each in (NAME, *(["shop.copy"] if isinstance(done, lake.Table) else [])):
        ours = catalog.table(each)
        assert_same_rows(rows_of(peer.read(each)), rows_of(ours.scan().to_arrow()))
    table = catalog.table(NAME)
    for tag in table.tags.list():
        theirs = rows_of(peer.read(NAME, tag=tag.name))
        assert_same_rows(theirs, rows_of(table.scan(tag=tag.name).to_arrow()))
    peer.write(
        NAME, pa.table({"dt": ["a"], "id": [9], "note": ["theirs"]}, table.schema.arrow_schema())
    )
    assert_same_rows(rows_of(peer.read(NAME)), rows_of(table.scan().to_arrow()))
