"""Each branch of a published Paimon table is an Iceberg table in the directory of the branch."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import (
    ROOT,
    catalog_of,
    content,
    iceberg,
    published_table,
    rows_of,
    seen,
)

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
DEV = "shop.orders$branch_dev"


@pytest.fixture
def table(request) -> lake.Table:
    found = published_table(MemoryStorage(request.node.name), COLUMNS)
    found.write(rows_of(id=[1], note=["a"]))
    found.write(rows_of(id=[2], note=["b"]))
    return found


def metadata_of(table: lake.Table, branch: str) -> list[str]:
    names = table._handle.storage.files(f"{ROOT}/branch/branch-{branch}/metadata")
    return sorted(name for name in names if name.endswith(".json"))


def test_a_branch_is_seen_from_its_creation_on_and_main_is_not_changed(table):
    table.branches.create("dev", snapshot=1)
    dev = catalog_of(table).table(DEV)
    assert seen(dev) == [{"id": 1, "note": "a"}]
    dev.write(rows_of(id=[7], note=["dev"]))
    assert [row["id"] for row in seen(dev)] == [1, 7]
    assert [row["id"] for row in seen(table)] == [1, 2]
    uuid, main = (iceberg(each)._loaded().metadata.table_uuid for each in (dev, table))
    assert uuid != main
    for snapshot in dev.snapshots():
        assert seen(dev, snapshot.id) == content(dev.scan(snapshot=snapshot.id).to_arrow())


def test_a_branch_has_its_own_schema_tags_and_expiry(table):
    table.branches.create("dev", snapshot=1)
    dev = catalog_of(table).alter_table(DEV, lake.rename_column("note", "text"))
    dev.write(rows_of(id=[3], text=["c"]), overwrite="table")
    dev.tags.create("now")
    dev.write(rows_of(id=[4], text=["d"]), overwrite="table")
    dev.expire_snapshots(retain_max=1, retain_min=1)
    shown = iceberg(dev)
    assert shown.scan(tag="now").to_arrow().to_pylist() == [{"id": 3, "text": "c"}]
    assert seen(dev) == [{"id": 4, "text": "d"}]
    assert iceberg(table).tags.list() == []
    assert [row["id"] for row in seen(table)] == [1, 2]


def test_a_forwarded_branch_is_seen_in_main(table):
    table.branches.create("dev", snapshot=2)
    catalog_of(table).table(DEV).write(rows_of(id=[3], note=["dev"]))
    assert [row["id"] for row in seen(table)] == [1, 2]
    table.branches.fast_forward("dev")
    assert [row["id"] for row in seen(table)] == [1, 2, 3]


def test_the_branches_of_a_renamed_table_are_seen_at_its_new_address(table):
    table.branches.create("dev", snapshot=1)
    renamed = catalog_of(table).rename_table("shop.orders", "shop.sales", force=True)
    dev = catalog_of(table).table("shop.sales$branch_dev")
    assert seen(dev) == [{"id": 1, "note": "a"}]
    assert (dev.health().reasons, renamed.remove_orphans().files) == ((), ())
    dev.write(rows_of(id=[7], note=["dev"]))
    assert [row["id"] for row in seen(dev)] == [1, 7]


def test_a_branch_that_cannot_be_read_does_not_fail_a_rename(table, caplog):
    table.branches.create("dev", snapshot=1)
    storage, layout = table._handle.storage, table._handle.layout.on_branch("dev")
    storage.overwrite(layout.schema(0), b"{")
    renamed = catalog_of(table).rename_table("shop.orders", "shop.sales", force=True)
    assert [row["id"] for row in seen(renamed)] == [1, 2]
    assert "the Iceberg metadata of the branches of" in caplog.text


def test_a_renamed_branch_is_seen_at_its_new_address(table):
    table.branches.create("dev", snapshot=1)
    before = iceberg(catalog_of(table).table(DEV))._loaded().metadata.table_uuid
    table.branches.rename("dev", "test")
    renamed = catalog_of(table).table("shop.orders$branch_test")
    assert iceberg(renamed)._loaded().metadata.table_uuid == before
    assert seen(renamed) == [{"id": 1, "note": "a"}]
    assert (metadata_of(table, "dev"), renamed.health().reasons) == ([], ())


def test_a_deleted_branch_leaves_no_metadata(table):
    table.branches.create("dev", snapshot=1)
    catalog_of(table).table(DEV).write(rows_of(id=[7], note=["dev"]))
    assert metadata_of(table, "dev")
    table.branches.delete("dev")
    assert metadata_of(table, "dev") == []
    assert [row["id"] for row in seen(table)] == [1, 2]


def test_commits_of_other_engines_to_a_branch_are_published_later(table):
    table.branches.create("dev")
    dev = catalog_of(table).table(DEV)
    assert lake.publish_table(dev).reason == "the table has no snapshot"
    object.__setattr__(dev._handle, "observer", None)
    options = {**dev._handle.options.to_dict(), "metadata.iceberg.storage": "disabled"}
    object.__setattr__(dev._handle.options, "_raw", options)
    dev.write(rows_of(id=[7], note=["theirs"]))
    dev = catalog_of(table).table(DEV)
    [reason] = dev.health().reasons
    assert (reason.advice, reason.finding.split(",")[0]) == (
        "lake publish 'shop.orders$branch_dev'",
        "the table has no Iceberg metadata yet",
    )
    assert lake.publish_table(dev).published == (1,)
    assert seen(dev) == [{"id": 7, "note": "theirs"}]
