"""Two drops in one database, and a drop that is interrupted while it checks the table."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog, drop
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.storage import LocalStorage

COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def catalog(opened) -> lake.Catalog:
    catalog = opened()
    catalog.create_database("shop")
    for name in ("orders", "other"):
        catalog.create_table(f"shop.{name}", COLUMNS).write(pa.table({"id": [1]}))
    return catalog


@pytest.fixture
def shop(tmp_path) -> Path:
    return tmp_path / "wh" / "shop.db"


@pytest.fixture
def in_the_check(monkeypatch):
    """Lets a rival act right before, or right after, a drop reads the identity of the table that it
    has hidden.
    """

    def at(act, *, after: bool = False) -> None:
        read, rivals = drop.table_identity, [act]

        def watched(storage, layout):
            is_hidden = layout.root.rpartition("/")[2].startswith(".")
            rival = rivals.pop() if is_hidden and rivals else None
            if rival and not after:
                rival()
            found = read(storage, layout)
            if rival and after:
                rival()
            return found

        monkeypatch.setattr(drop, "table_identity", watched)

    return at


@pytest.fixture
def recreated(monkeypatch):
    """Lets another program put a new table in the place of one right before a drop hides it."""

    def put(catalog: lake.Catalog, shop: Path) -> None:
        catalog.create_database("elsewhere")
        catalog.create_table("elsewhere.new", COLUMNS).write(pa.table({"id": [42]}))
        move, new = LocalStorage.rename_directory, shop.parent / "elsewhere.db" / "new"

        def meanwhile(storage, source, target):
            if source == str(shop / "orders") and new.exists():
                storage.delete_directory(source)
                new.rename(source)
            move(storage, source, target)

        monkeypatch.setattr(LocalStorage, "rename_directory", meanwhile)

    return put


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def die() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
def test_another_drop_in_the_database_does_not_disturb_a_drop(
    catalog, opened, shop, in_the_check, after
):
    in_the_check(lambda: opened().drop_table("shop.other"), after=after)
    catalog.drop_table("shop.orders")
    assert list(shop.iterdir()) == []
    assert catalog.list_tables("shop") == []
    assert catalog.repair() == RepairReport()


@pytest.mark.parametrize("after", [False, True])
def test_a_repair_does_not_disturb_a_drop(catalog, opened, shop, in_the_check, after):
    # In a jdbc catalog a repair of the whole database would wait for the lock of the drop.
    scope = "shop" if isinstance(catalog, FileSystemCatalog) else "shop.other"
    in_the_check(lambda: opened().repair(scope), after=after)
    catalog.drop_table("shop.orders")
    assert [each.name for each in shop.iterdir()] == ["other"]
    assert catalog.list_tables("shop") == ["other"]
    assert catalog.repair() == RepairReport()


@pytest.mark.parametrize("after", [False, True])
def test_a_table_that_was_created_again_keeps_its_rows_during_another_drop(
    catalog, opened, shop, in_the_check, recreated, after
):
    recreated(catalog, shop)
    in_the_check(lambda: opened().drop_table("shop.other"), after=after)
    with pytest.raises(lake.CommitConflictError, match=r"another program recreated it meanwhile"):
        catalog.drop_table("shop.orders")
    assert [each.name for each in shop.iterdir()] == ["orders"]
    assert ids(lake.open_table(str(shop / "orders"))) == [42]


def test_a_new_table_with_first_rows_is_kept_during_another_drop(
    catalog, opened, shop, in_the_check, monkeypatch
):
    catalog.create_table("shop.new", COLUMNS)
    move = LocalStorage.rename_directory

    def meanwhile(storage, source, target):
        monkeypatch.setattr(LocalStorage, "rename_directory", move)
        lake.open_table(source).write(pa.table({"id": [5]}))
        move(storage, source, target)

    monkeypatch.setattr(LocalStorage, "rename_directory", meanwhile)
    in_the_check(lambda: opened().drop_table("shop.other"))
    assert catalog.drop_new_table("shop.new") is False
    assert ids(lake.open_table(str(shop / "new"))) == [5]


@pytest.mark.parametrize("ends", ["repair", "another drop", "drop of the database"])
def test_a_drop_that_is_interrupted_during_its_check_is_finished(
    catalog, opened, shop, in_the_check, ends
):
    in_the_check(die)
    with pytest.raises(KeyboardInterrupt):
        catalog.drop_table("shop.orders")
    (hidden,) = shop.glob(".*")
    assert hidden.name.startswith(".checking-")
    catalog = opened()
    assert catalog.list_tables("shop") == ["other"]
    if ends == "repair":
        assert catalog.repair().dropped
        assert [each.name for each in shop.iterdir()] == ["other"]
    elif ends == "another drop":
        catalog.drop_table("shop.other")
        assert list(shop.iterdir()) == []
    else:
        catalog.drop_database("shop", cascade=True)
        assert not shop.exists()


def test_a_table_that_was_created_again_is_kept_after_an_interrupted_drop(
    catalog, opened, shop, in_the_check, recreated, caplog
):
    recreated(catalog, shop)
    in_the_check(die)
    with pytest.raises(KeyboardInterrupt):
        catalog.drop_table("shop.orders")
    (hidden,) = shop.glob(".*")
    catalog = opened()
    with caplog.at_level(logging.WARNING):
        catalog.repair()
        catalog.drop_table("shop.other")
    assert f"{hidden}. The directory is kept" in caplog.text
    assert ids(lake.open_table(str(hidden))) == [42]
    hidden.rename(shop / "orders")
    catalog.repair()
    assert ids(catalog.table("shop.orders")) == [42]


def test_a_drop_of_the_database_keeps_a_table_that_was_created_again(
    catalog, opened, shop, in_the_check, recreated
):
    recreated(catalog, shop)
    in_the_check(die)
    with pytest.raises(KeyboardInterrupt):
        catalog.drop_table("shop.orders")
    (hidden,) = shop.glob(".*")
    if isinstance(catalog, FileSystemCatalog):
        refused = r"a drop of a table is not finished \(see the log warning\)"
        with pytest.raises(lake.CommitConflictError, match=refused):
            opened().drop_database("shop", cascade=True)
    else:
        opened().drop_database("shop", cascade=True)
    assert ids(lake.open_table(str(hidden))) == [42]
