"""A SQL catalog and its files are changed one after the other: dying in between loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.options import CatalogOptions
from lakeformat.catalog.sql import SqlCatalog
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.paimon.handle import TableHandle
from lakeformat.publish import IcebergPublication
from lakeformat.publish.targets.entry import Named
from lakeformat.testing.crashable import CrashableStorage
from lakeformat.testing.faults import Fault, PowerCut, kinds_for
from tests.sampling import sample, sampled_fault_calls

COLUMNS = [("id", "BIGINT")]
ROWS = [1, 2, 3]
ROOT = Path(__file__).resolve().parents[2]


def opened(storage: CrashableStorage, file: Path) -> SqlCatalog:
    options = {"metastore": "jdbc", "uri": f"sqlite:///{file}"}
    return SqlCatalog(storage, "wh", options=CatalogOptions(options))


def rows(table: lake.Table) -> list[int]:
    return table.scan().to_arrow()["id"].to_pylist()


def create(catalog: SqlCatalog) -> None:
    catalog.create_table("shop.new", COLUMNS)


def drop(catalog: SqlCatalog) -> None:
    catalog.drop_table("shop.orders")


def rename(catalog: lake.Catalog) -> None:
    catalog.rename_table("shop.orders", "shop.new", force=True)


@pytest.mark.parametrize("change", [create, drop, rename])
def test_after_a_power_cut_at_any_storage_call_repair_leaves_all_or_nothing(tmp_path, change):
    prepared = CrashableStorage()
    catalog = opened(prepared, tmp_path / "base.db")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": ROWS}))
    catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    base = (tmp_path / "base.db").read_bytes()

    (tmp_path / "calm.db").write_bytes(base)
    calm = prepared.reopened()
    change(opened(calm, tmp_path / "calm.db"))
    assert len(calm.log) > 3
    cuts = [(c, k) for c in calm.log for k in kinds_for(c.operation) if k.startswith("power_cut")]
    for call, kind in sample(cuts, 8):
        name = f"{call.number}-{kind}.db"
        (tmp_path / name).write_bytes(base)
        storage = prepared.reopened(Fault(call.number, kind))
        with pytest.raises(PowerCut):
            change(opened(storage, tmp_path / name))
        check_repaired(storage.reopened(), tmp_path / name, change, f"{kind} at {call}")


def check_repaired(storage: CrashableStorage, file: Path, change, where: str) -> None:
    catalog = opened(storage, file)
    catalog.repair()
    tables = catalog.list_tables("shop")
    for table in tables:
        found = catalog.table(f"shop.{table}")
        was_there = table == "orders" or change is rename
        assert rows(found) == (ROWS if was_there else []), where
        assert len(found.schema.fields) == (2 if was_there else 1), where
    directories = {path.split("/")[2] for path in storage.files("wh/shop.db")}
    if change is create:
        assert "orders" in tables, where
        assert rows(catalog.create_table("shop.new", COLUMNS, exist_ok=True)) == [], where
    elif change is drop:
        assert tables in (["orders"], []), where
        assert directories == set(tables), where
    else:
        assert tables in (["orders"], ["new"]), where
        if tables == ["new"]:
            assert directories == {"new"}, where
    assert not any(catalog.repair().to_dict().values()), where


def test_a_table_whose_rename_was_cut_off_anywhere_is_dropped_with_every_file(tmp_path):
    prepared = CrashableStorage()
    catalog = opened(prepared, tmp_path / "base.db")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": ROWS}))
    catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    base = (tmp_path / "base.db").read_bytes()
    (tmp_path / "calm.db").write_bytes(base)
    calm = prepared.reopened()
    rename(opened(calm, tmp_path / "calm.db"))
    for call in sample(calm.log, 6):
        file = tmp_path / f"{call.number}.db"
        file.write_bytes(base)
        storage = prepared.reopened(Fault(call.number, "power_cut_before"))
        with pytest.raises(PowerCut):
            rename(opened(storage, file))
        found = storage.reopened()
        catalog = opened(found, file)
        [name] = catalog.list_tables("shop")
        with suppress(lake.NotFoundError):  # half of a copy is not a table
            table = catalog.table(f"shop.{name}")
            assert (rows(table), len(table.schema.fields)) == (ROWS, 2), f"{call}"
        catalog.drop_table(f"shop.{name}")
        assert found.files("wh/shop.db") == {}, f"{call}"
        assert not any(catalog.repair().to_dict().values()), f"{call}"


def test_without_a_database_a_power_cut_leaves_the_old_table_or_the_whole_new_one():
    prepared = CrashableStorage()
    catalog = FileSystemCatalog(prepared, "wh")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": ROWS}))
    calm = prepared.reopened()
    FileSystemCatalog(calm, "wh").rename_table("shop.orders", "shop.new", force=True)
    for call in sampled_fault_calls(calm.log):
        for kind in kinds_for(call.operation):
            storage = prepared.reopened(Fault(call.number, kind))
            is_renamed = False
            with suppress(PowerCut, lake.UnavailableError):
                rename(FileSystemCatalog(storage, "wh"))
                is_renamed = True  # only the search for a publication failed
            found = FileSystemCatalog(storage.reopened(), "wh")
            tables = found.list_tables("shop")
            assert tables, f"{kind} at {call}"
            assert not is_renamed or (call.operation in {"list", "read"} and tables == ["new"])
            for table in tables:
                assert rows(found.table(f"shop.{table}")) == ROWS, f"{kind} at {call}"
            with suppress(lake.NotFoundError):  # the rename was complete
                rename(found)  # what was copied is no hindrance
            assert rows(found.table("shop.new")) == ROWS, f"{kind} at {call}"
            left = found._storage.files("wh/shop.db")
            assert not any("/orders/" in path or "/.moving.tmp" in path for path in left), call


@dataclass(frozen=True)
class _Entry:
    """The entry of a published table in a catalog, which is a dict."""

    name: str
    catalog: dict[str, Named]

    def find(self) -> Named | None:
        return self.catalog.get(self.name)

    def create(self, newest: LoadedMetadata) -> bool:
        self.catalog[self.name] = Named(newest.metadata_file, newest.metadata)
        return True

    def move(self, named: Named, newest: LoadedMetadata) -> bool:
        return self.create(newest)

    def shows(self, named: Named, newest: LoadedMetadata) -> bool:
        return named.address == newest.metadata_file

    def remove(self) -> None:
        del self.catalog[self.name]


class _Targets:
    def __init__(self) -> None:
        self.catalog: dict[str, Named] = {}

    def require(self, handle: TableHandle) -> None:
        pass

    def entries(self, handle: TableHandle) -> tuple[_Entry, ...]:
        return (_Entry(handle.layout.root, self.catalog),)


@pytest.mark.parametrize("storage", ["hadoop-catalog", "table-location"])
def test_a_repeat_of_a_rename_also_withdraws_the_publication_under_the_old_name(storage):
    prepared, targets = CrashableStorage(), _Targets()

    def opened(storage: CrashableStorage) -> FileSystemCatalog:
        catalog = FileSystemCatalog(storage, "wh")
        catalog._publication = IcebergPublication(lambda: targets)
        return catalog

    catalog = opened(prepared)
    catalog.create_database("shop")
    published = {"metadata.iceberg.storage": storage}
    catalog.create_table("shop.orders", COLUMNS, options=published).write(pa.table({"id": ROWS}))
    assert list(targets.catalog) == ["wh/shop.db/orders"]
    before = dict(targets.catalog)
    calm = prepared.reopened()
    rename(opened(calm))
    assert list(targets.catalog) == ["wh/shop.db/new"]
    targets.catalog = before
    [last] = [c for c in calm.log if c.operation == "delete_directory" and "/orders" in c.path][:1]
    dying = prepared.reopened(Fault(last.number, "power_cut_before"))
    with pytest.raises(PowerCut):
        rename(opened(dying))
    found = opened(dying.reopened())
    rename(found)
    assert rows(found.table("shop.new")) == ROWS
    assert list(targets.catalog) == ["wh/shop.db/new"]
    assert not any("/orders/" in path for path in found._storage.files("wh"))


DYING = """
import json, os, sys
import pyarrow as pa
import lakeformat as lake
from lakeformat.catalog.sql import drop, listing, rename

warehouse, options, window = json.loads(sys.argv[1])
catalog = lake.open_catalog(warehouse, options=options)

def die(*arguments, **more):
    os._exit(9)

if window == "create":
    listing.Listing.add_table = die
    catalog.create_table("shop.new", [("id", "BIGINT")])
elif window == "rename":
    rename.move_directory = die
    catalog.rename_table("shop.orders", "shop.new")
else:
    drop.run_drop = die
    catalog.drop_table("shop.orders")
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def options(request, tmp_path) -> dict[str, str]:
    if request.param == "sqlite":
        uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
    else:
        uri = request.getfixturevalue("postgres").new_database()
    return {"metastore": "jdbc", "uri": uri, "lock-acquire-timeout": "2 s"}


@pytest.fixture
def killed(options, tmp_path):
    """A catalog on disk in which a process died in the middle of a change."""
    warehouse = str(tmp_path / "warehouse")
    patient = {**options, "lock-acquire-timeout": "60 s", "lock-check-max-sleep": "100 ms"}
    catalog = lake.open_catalog(warehouse, options=patient)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": ROWS}))

    def kill(window: str) -> lake.Catalog:
        arguments = json.dumps([warehouse, options, window])
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        died = subprocess.run([sys.executable, "-c", DYING, arguments], env=environment)
        assert died.returncode == 9
        return catalog

    return kill


@pytest.mark.sampled(1)
def test_killed_between_schema_file_and_row_the_table_is_listed_by_repair(killed):
    catalog = killed("create")
    assert catalog.list_tables("shop") == ["orders"]
    with pytest.raises(
        lake.AlreadyExistsError, match=r"is not listed .*catalog\.repair\('shop.new'\)"
    ):
        catalog.create_table("shop.new", COLUMNS)
    assert catalog.repair().registered == ("shop.new",)
    assert rows(catalog.table("shop.new")) == []


@pytest.mark.sampled(1)
def test_killed_between_schema_file_and_row_creating_again_gets_the_table_if_that_is_fine(killed):
    catalog = killed("create")
    catalog.create_table("shop.new", COLUMNS, exist_ok=True).write(pa.table({"id": [7]}))
    assert rows(catalog.table("shop.new")) == [7]


@pytest.mark.sampled(1)
def test_killed_between_row_and_directory_the_rename_is_finished_by_repair(killed):
    catalog = killed("rename")
    assert catalog.list_tables("shop") == ["new"]
    with pytest.raises(
        lake.NotFoundError, match=r"repair\('shop.new'\) finishes an interrupted rename"
    ):
        catalog.table("shop.new")
    assert catalog.repair("shop.new").moved == ("shop.new",)
    assert rows(catalog.table("shop.new")) == ROWS
    assert catalog.list_tables("shop") == ["new"]


@pytest.mark.sampled(1)
def test_killed_between_row_and_files_the_drop_is_finished_by_repair(killed):
    catalog = killed("drop")
    location = Path(catalog.location.removeprefix("file://"), "shop.db", "orders")
    assert catalog.list_tables("shop") == []
    assert location.exists()
    assert catalog.repair("shop").dropped == ("shop.orders",)
    assert not location.exists()


def test_killed_between_row_and_files_a_new_table_does_not_get_the_old_rows(killed):
    catalog = killed("drop")
    assert rows(catalog.create_table("shop.orders", COLUMNS, exist_ok=True)) == []
