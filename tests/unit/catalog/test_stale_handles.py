"""A table that was renamed, dropped or made anew is not written through a handle of before."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.storage import MemoryStorage

ROWS = pa.table({"id": [1]})
COLUMNS = [("id", "BIGINT")]
IS_GONE = "does not exist any more: it was renamed or dropped"
IS_ANOTHER = "is not the table that was opened"


@pytest.fixture
def orders(catalog) -> lake.Table:
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(ROWS)
    return orders


def prepared(table: lake.Table) -> list[lake.CommitMessage]:
    writer = table.new_writer()
    writer.write(ROWS)
    return writer.prepare()


CHANGES = {
    "write": lambda table: table.write(ROWS),
    "overwrite": lambda table: table.write(ROWS, overwrite={}),
    "truncate": lambda table: table.truncate(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fate", ["renamed", "dropped"])
def test_nothing_is_published_where_the_table_was(catalog, orders, tmp_path, fate, change):
    if fate == "renamed":
        moved = catalog.rename_table("shop.orders", "shop.moved")
    else:
        catalog.drop_table("shop.orders")
    with pytest.raises(lake.NotFoundError, match=IS_GONE):
        CHANGES[change](orders)
    assert [path for path in (tmp_path / "shop.db" / "orders").rglob("*") if path.is_file()] == []
    if fate == "renamed":
        assert moved.scan().count() == 1


CALLS: dict[str, Callable[[lake.Table], object]] = {
    "consumer": lambda table: table.consumers.set("job", next_snapshot=1),
    "branch": lambda table: table.branches.create("dev"),
    "tag": lambda table: table.tags.create("v1"),
    "statistics": lambda table: table.analyze(),
}


@pytest.mark.parametrize("call", CALLS)
def test_neither_consumers_nor_references_are_created_where_the_table_was(catalog, orders, call):
    catalog.rename_table("shop.orders", "shop.moved")
    with pytest.raises(lake.NotFoundError, match=IS_GONE):
        CALLS[call](orders)
    assert not orders.consumers.list()
    catalog.create_table("shop.orders", COLUMNS)
    if call != "tag":  # a table without snapshots has nothing to tag
        CALLS[call](catalog.table("shop.orders"))


def test_messages_of_a_renamed_table_are_committed_under_its_new_name_only(catalog, orders):
    messages = prepared(orders)
    moved = catalog.rename_table("shop.orders", "shop.moved")
    with pytest.raises(lake.NotFoundError, match=IS_GONE):
        orders.commit(messages)
    with pytest.raises(lake.NotFoundError, match=IS_GONE):
        orders.abort(messages)
    moved.commit(messages)
    assert moved.scan().count() == 2


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("columns", [COLUMNS, [("name", "STRING")]])
def test_a_table_made_in_its_place_is_another_one(catalog, orders, columns, change):
    catalog.drop_table("shop.orders")
    anew = catalog.create_table("shop.orders", columns)
    with pytest.raises(lake.NotFoundError, match=IS_ANOTHER):
        CHANGES[change](orders)
    assert anew.latest_snapshot() is None


def test_so_it_is_if_it_has_fewer_schemas_than_the_one_before(catalog, orders):
    orders = catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    catalog.drop_table("shop.orders")
    catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.NotFoundError, match=IS_ANOTHER):
        orders.write(ROWS)


LOOKS: dict[str, Callable[[lake.Table], object]] = {
    "compact": lambda table: table.compact(),
    "plan": lambda table: table.plan_compaction(strategy="minor"),
    "sort": lambda table: table.compact(order_by=["id"]),
    "health": lambda table: table.health(),
    "expire": lambda table: table.expire_snapshots(dry_run=True),
    "orphans": lambda table: table.remove_orphans(),
    "rollback": lambda table: table.rollback(snapshot=1, dry_run=True),
    "cut": lambda table: table.rollback(snapshot=1, as_latest=False, dry_run=True),
    "tag": lambda table: table.tags.create("v1"),
    "deleted tag": lambda table: table.tags.delete("v0", missing_ok=True),
    "expired tags": lambda table: table.tags.expire(),
    "branch": lambda table: table.branches.create("dev"),
    "consumer": lambda table: table.consumers.set("job", next_snapshot=1),
}


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_said_of_a_table_that_is_gone_or_another(catalog, orders, look):
    catalog.drop_table("shop.orders")
    with pytest.raises(lake.NotFoundError, match=IS_GONE):
        LOOKS[look](orders)
    anew = catalog.create_table("shop.orders", COLUMNS)
    anew.write(ROWS)
    with pytest.raises(lake.NotFoundError, match=IS_ANOTHER):
        LOOKS[look](orders)
    LOOKS[look](anew)


def test_maintenance_deletes_nothing_of_a_table_made_in_its_place(catalog):
    keeps_one = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    old = catalog.create_table("shop.orders", COLUMNS, options=keeps_one)
    old.write(ROWS)

    def replace_at_expiry(progress: lake.MaintainProgress) -> None:
        if progress.step == "expire":
            catalog.drop_table("shop.orders")
            anew = catalog.create_table("shop.orders", COLUMNS)
            for _ in range(3):
                anew.write(ROWS)

    report = old.maintain(on_progress=replace_at_expiry)
    assert [step.step for step in report.steps if step.error] == ["expire", "orphans", "health"]
    assert catalog.table("shop.orders").scan(snapshot=1).count() == 1, "by its own retention"


def test_a_handle_whose_table_was_altered_goes_on(catalog, orders):
    catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    orders.write(ROWS)
    assert catalog.table("shop.orders").scan().to_arrow()["note"].to_pylist() == [None, None]


@pytest.mark.parametrize("commits_before", [0, 1])
def test_a_rename_at_the_last_moment_takes_the_publication_back(commits_before):
    """A storage that cannot detect it: a late file of another writer still exists."""
    storage = MemoryStorage(f"stale-{commits_before}")
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.late", COLUMNS)
    for _ in range(commits_before):
        orders.write(ROWS)
    original = storage.create

    def too_late(path, content):
        if "/snapshot-" in path:
            storage.create = original
            catalog.rename_table("shop.late", "shop.moved")
            storage.overwrite("wh/shop.db/late/bucket-0/rows", b"")
        return original(path, content)

    storage.create = too_late
    try:
        with pytest.raises(lake.NotFoundError, match=IS_GONE):
            orders.write(ROWS)
    finally:
        storage.create = original
    assert not [path for path in storage.files() if "/late/snapshot/snapshot-" in path]
    assert catalog.table("shop.moved").scan().count() == commits_before


@pytest.mark.parametrize("commits", [1, 2, 3])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_retried_commit_is_not_published_in_a_table_made_in_its_place(moment, commits):
    """The new table has as many snapshots as the old one, or more, when the publication fails."""
    storage = MemoryStorage(f"replaced-{moment}-{commits}")
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(ROWS)
    original = storage.create

    def make_another() -> None:
        catalog.drop_table("shop.orders")
        anew = catalog.create_table("shop.orders", COLUMNS)
        for number in range(commits):
            anew.write(pa.table({"id": [10 + number]}))

    def replaced(path: str, content: bytes) -> bool:
        if not path.endswith("/snapshot-2"):
            return original(path, content)
        storage.create = original
        if moment == "before":
            make_another()
        created = original(path, content)
        if moment == "after":
            make_another()
        return created

    storage.create = replaced
    with pytest.raises(lake.NotFoundError, match=IS_ANOTHER):
        orders.write(ROWS)
    rows = catalog.table("shop.orders").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == [10 + number for number in range(commits)]


@pytest.mark.parametrize("arguments", [{"snapshot": 2}, {"snapshot": 1, "retain": "3 d"}])
def test_a_replaced_tag_is_not_left_in_a_table_made_in_its_place(arguments):
    storage = MemoryStorage(f"tagged-{arguments['snapshot']}")
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    for _ in range(2):
        orders.write(ROWS)
    orders.tags.create("good", snapshot=1)
    original = storage.overwrite

    def replaced(path: str, content: bytes) -> None:
        if path.endswith("/tag-good"):
            storage.overwrite = original
            catalog.drop_table("shop.orders")
            catalog.create_table("shop.orders", COLUMNS).write(ROWS)
        original(path, content)

    storage.overwrite = replaced
    with pytest.raises(lake.NotFoundError, match=IS_ANOTHER):
        orders.tags.replace("good", **arguments)
    assert catalog.table("shop.orders").tags.list() == []
