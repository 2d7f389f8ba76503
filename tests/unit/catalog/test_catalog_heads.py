"""Many tables are looked at with one listing, and few requests for each."""

from collections import Counter
from threading import Barrier

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.heads import Heads
from lakeformat.storage import open_storage
from tests.counting import CountingStorage
from tests.unit.catalog.iceberg.small_table import make_small_table

ROWS = [("id", "BIGINT")]


@pytest.fixture
def counted(tmp_path):
    """A catalog of 20 tables with a commit each, and the storage that counts its calls."""
    storage, root = open_storage(str(tmp_path))
    counting = CountingStorage(storage)
    catalog = FileSystemCatalog(counting, root)
    catalog.create_database("shop")
    for number in range(20):
        write(catalog.create_table(f"shop.t{number}", ROWS))
    return catalog, counting


def write(table):
    import pyarrow as pa

    return table.write(pa.table({"id": [1]}))


def names(count):
    return [f"shop.t{number}" for number in range(count)]


def calls_of(counting, look):
    counting.calls.clear()
    found = look()
    return found, Counter(operation for operation, _ in counting.calls)


def test_an_idle_look_lists_once_however_many_tables_there_are(counted):
    catalog, counting = counted
    for count in (2, 20):
        heads = Heads(catalog)
        heads.look(names(count))
        _, calls = calls_of(counting, lambda: heads.look(names(count)))  # noqa: B023
        assert calls == {"list": 1, "exists": count, "read": count}


def test_the_tables_of_a_look_are_asked_at_the_same_time(counted, monkeypatch):
    """If they were asked one after the other, the first would wait here for the second in vain."""
    catalog, counting = counted
    heads, both = Heads(catalog), Barrier(2)
    heads.look(names(2))
    exists = counting._storage.exists

    def meet(path):
        both.wait(timeout=60)
        return exists(path)

    monkeypatch.setattr(counting._storage, "exists", meet)
    assert list(heads.look(names(2)).heads) == names(2)


def test_a_look_sees_each_new_commit(counted):
    catalog, _ = counted
    heads = Heads(catalog)
    before = heads.look(names(3)).heads
    write(catalog.table("shop.t1"))
    after = heads.look(names(3)).heads
    assert [before[n].snapshot.id for n in names(3)] == [1, 1, 1]
    assert [after[n].snapshot.id for n in names(3)] == [1, 2, 1]


def test_a_commit_is_seen_though_all_before_it_have_expired(counted, tmp_path):
    catalog, _ = counted
    heads = Heads(catalog)
    heads.look(["shop.t0"])
    for _ in range(4):
        write(catalog.table("shop.t0"))
    for number in range(1, 5):
        (tmp_path / "shop.db" / "t0" / "snapshot" / f"snapshot-{number}").unlink()
    assert heads.look(["shop.t0"]).heads["shop.t0"].snapshot.id == 5


def test_a_table_that_comes_goes_and_comes_again_is_another_one(counted):
    catalog, _ = counted
    heads = Heads(catalog)
    assert heads.look(["shop.new", "attic.old"]).heads == {}
    write(catalog.create_table("shop.new", ROWS))
    first = heads.look(["shop.new"]).heads["shop.new"].snapshot
    catalog.drop_table("shop.new")
    write(catalog.create_table("shop.new", ROWS))
    second = heads.look(["shop.new"]).heads["shop.new"].snapshot
    assert (first.id, second.id) == (1, 1)
    assert first.identity != second.identity


def test_one_damaged_table_hides_no_other(counted, tmp_path):
    catalog, _ = counted
    (tmp_path / "shop.db" / "t0" / "snapshot" / "snapshot-1").write_text("{")
    found = Heads(catalog).look(names(2))
    assert list(found.heads) == ["shop.t1"]
    assert isinstance(found.failed["shop.t0"], lake.CorruptTableError)


def test_a_database_that_cannot_be_listed_hides_no_table_of_another(counted, monkeypatch):
    catalog, counting = counted
    catalog.create_database("hr")
    write(catalog.create_table("hr.orders", ROWS))
    plain = counting._storage.list

    def refuse(path):
        if path.endswith("/hr.db"):
            raise lake.AccessDeniedError("hr may not be listed")
        return plain(path)

    heads = Heads(catalog)
    monkeypatch.setattr(counting._storage, "list", refuse)
    found = heads.look(["hr.orders", "hr.staff", "shop.t0"])
    assert list(found.heads) == ["shop.t0"]
    assert {name: str(error) for name, error in found.failed.items()} == {
        "hr.orders": "hr may not be listed",
        "hr.staff": "hr may not be listed",
    }
    monkeypatch.undo()
    assert list(heads.look(["hr.orders", "shop.t0"]).heads) == ["hr.orders", "shop.t0"]


def test_a_table_without_commits_has_no_snapshot_yet(counted):
    catalog, _ = counted
    catalog.create_table("shop.empty", ROWS)
    assert Heads(catalog).look(["shop.empty"]).heads["shop.empty"].snapshot is None


def test_snapshots_after_a_number_are_those_that_are_newer(counted):
    catalog, _ = counted
    table = catalog.table("shop.t0")
    write(table)
    write(table)
    assert [snapshot.id for snapshot in table.snapshots(after=1)] == [2, 3]


def test_tables_of_an_iceberg_catalog_are_looked_at(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    make_small_table(tmp_path / "shop/orders")
    heads = Heads(catalog)
    found = heads.look(["shop.orders", "shop.none", "none.orders"])
    assert {name: head.snapshot.id for name, head in found.heads.items()} == {"shop.orders": 7}
    assert found.failed == {}
    catalog.table("shop.orders").write(pa.table({"id": [3]}))
    newest = catalog.table("shop.orders").latest_snapshot()
    assert heads.look(["shop.orders"]).heads["shop.orders"].snapshot.id == newest.id


def test_a_table_of_a_nested_database_is_looked_at(tmp_path):
    uri = f"sqlite:///{tmp_path}/c.db"
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="sql", uri=uri)
    catalog.create_database("shop.eu")
    write(catalog.create_table("shop.eu.orders", ROWS))
    found = Heads(catalog).look(["shop.eu.orders", "shop.eu.none"])
    assert list(found.heads) == ["shop.eu.orders"]
