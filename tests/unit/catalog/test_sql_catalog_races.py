"""Another program changes a table of a SQL catalog meanwhile, or died while it did."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.names import TableName
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.catalog.sql import catalog as sql_catalog
from lakeformat.catalog.sql import drop, rename
from lakeformat.storage import LocalStorage
from lakeformat.storage.sql import SqlLock

COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def warehouse(tmp_path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def opened(tmp_path, warehouse):
    """Opens the catalog as another program would."""
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
    options = {"external-roots": "memory://a-path-that-appears"}
    return lambda: lake.open_catalog(str(warehouse), metastore="jdbc", uri=uri, options=options)


@pytest.fixture
def catalog(opened) -> lake.Catalog:
    catalog = opened()
    for database in ("bank", "shop"):
        catalog.create_database(database)
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    return catalog


@pytest.fixture
def execute(tmp_path):
    """Statements of another program in the same database."""

    def run(statement: str) -> list[tuple]:
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
            return connection.execute(statement).fetchall()

    return run


@pytest.fixture
def before_the_lock(monkeypatch):
    """Lets a rival act between the request for the first lock and its grant."""
    hold = SqlLock.hold

    def meanwhile(act) -> None:
        rivals = [act]

        def held(lock, key):
            if rivals:
                rivals.pop()()
            return hold(lock, key)

        monkeypatch.setattr(SqlLock, "hold", held)

    return meanwhile


@pytest.fixture
def interrupted(catalog, monkeypatch):
    """A rename that stops after the row and before the files."""

    def rename_table(old: str, new: str) -> None:
        def stop(*arguments, **more):
            raise lake.UnavailableError("the disk is away.")

        with monkeypatch.context() as patched:
            patched.setattr(rename, "move_directory", stop)
            with pytest.raises(
                lake.UnavailableError,
                match=r"is already listed as .*: fix the cause, then move its files",
            ):
                catalog.rename_table(old, new)

    return rename_table


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def files(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file()}


# ---------------------------------------------------------------------- dropping


def make_anew(catalog: lake.Catalog) -> None:
    catalog.drop_table("shop.orders")
    catalog.create_table("shop.orders", [*COLUMNS, ("note", "STRING")]).write(
        pa.table({"id": [2], "note": ["x"]})
    )


def put_another_in_its_place(catalog: lake.Catalog) -> None:
    catalog.create_table("bank.other", [*COLUMNS, ("n", "INT")]).write(pa.table({"id": [2]}))
    catalog.rename_table("shop.orders", "shop.away")
    catalog.rename_table("bank.other", "shop.orders")


def give_it_an_external_path(catalog: lake.Catalog) -> None:
    catalog.table("shop.orders").write(pa.table({"id": [2]}))
    outside = "memory://a-path-that-appears"
    catalog.alter_table(
        "shop.orders",
        lake.set_option("data-file.external-paths", outside),
        lake.set_option("data-file.external-paths.strategy", "round-robin"),
    )


@pytest.mark.parametrize("rival", [make_anew, put_another_in_its_place, give_it_an_external_path])
def test_a_drop_removes_what_it_was_planned_for_or_nothing(catalog, opened, before_the_lock, rival):
    before_the_lock(lambda: rival(opened()))
    with pytest.raises(
        lake.CommitConflictError, match=r"'shop.orders' was not dropped: another program"
    ):
        catalog.drop_table("shop.orders")
    assert 2 in ids(catalog.table("shop.orders"))
    assert catalog.repair() == RepairReport()


def test_of_the_filesystem_too_a_drop_removes_what_it_was_planned_for(warehouse, monkeypatch):
    catalog = lake.open_catalog(str(warehouse))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    check = FileSystemCatalog._check_remove_database

    def meanwhile(self, name, *, cascade):
        monkeypatch.setattr(FileSystemCatalog, "_check_remove_database", check)
        make_anew(lake.open_catalog(str(warehouse)))

    monkeypatch.setattr(FileSystemCatalog, "_check_remove_database", meanwhile)
    with pytest.raises(lake.CommitConflictError, match="was not dropped: another program"):
        catalog.drop_database("shop", cascade=True)
    assert ids(catalog.table("shop.orders")) == [2]


def test_a_new_table_with_first_rows_is_kept(catalog, opened, before_the_lock):
    catalog.create_table("shop.new", COLUMNS)
    before_the_lock(lambda: opened().table("shop.new").write(pa.table({"id": [5]})))
    assert catalog.drop_new_table("shop.new") is False
    assert ids(catalog.table("shop.new")) == [5]
    assert catalog.repair() == RepairReport()


def test_of_the_filesystem_too_a_new_table_with_first_rows_is_kept(warehouse, monkeypatch):
    catalog = lake.open_catalog(str(warehouse))
    catalog.create_database("shop")
    catalog.create_table("shop.new", COLUMNS)
    move = LocalStorage.rename_directory

    def meanwhile(self, source, target):
        monkeypatch.setattr(LocalStorage, "rename_directory", move)
        lake.open_catalog(str(warehouse)).table("shop.new").write(pa.table({"id": [5]}))
        move(self, source, target)

    monkeypatch.setattr(LocalStorage, "rename_directory", meanwhile)
    assert catalog.drop_new_table("shop.new") is False
    assert ids(catalog.table("shop.new")) == [5]
    assert catalog.repair() == RepairReport()


def test_a_table_that_is_dropped_by_two_is_dropped_once(catalog, opened, before_the_lock):
    before_the_lock(lambda: opened().drop_table("shop.orders"))
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' does not exist"):
        catalog.drop_table("shop.orders")
    catalog.create_table("shop.orders", COLUMNS)
    before_the_lock(lambda: opened().drop_table("shop.orders"))
    catalog.drop_table("shop.orders", missing_ok=True)


def test_a_row_that_vanishes_despite_the_lock_keeps_its_files(
    catalog, execute, warehouse, monkeypatch
):
    check = sql_catalog.SqlCatalog._check_planned

    def then_forget(self, name, plan):
        check(self, name, plan)
        execute("DELETE FROM paimon_tables")

    monkeypatch.setattr(sql_catalog.SqlCatalog, "_check_planned", then_forget)
    before = files(warehouse)
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' is no longer listed in"):
        catalog.drop_table("shop.orders")
    assert files(warehouse) == before
    assert execute("SELECT * FROM paimon_table_properties") == []


def test_what_identifies_a_table_is_no_part_of_a_shown_plan(catalog):
    plan = catalog.plan_drop_table("shop.orders")
    assert plan.identity
    shown = {"table", "directory", "external_paths", "published", "kept"}
    assert set(plan.to_dict()) == shown
    assert plan.identity not in repr(plan)


# ---------------------------------------------------------------------- half a rename


def test_a_table_renamed_half_way_is_dropped_where_its_files_are(catalog, interrupted, warehouse):
    interrupted("shop.orders", "bank.new")
    assert catalog.plan_drop_table("bank.new").directory.endswith("shop.db/orders")
    catalog.drop_table("bank.new")
    assert files(warehouse) == set()
    assert catalog.repair() == RepairReport()
    assert catalog.list_tables("bank") == catalog.list_tables("shop") == []


@pytest.mark.parametrize("scope", [None, "zoo", "zoo.new", "shop", "shop.orders"])
def test_files_on_their_way_to_another_database_are_no_table_of_the_first_one(
    catalog, interrupted, scope
):
    catalog.create_database("zoo")  # comes after the database that has the files
    interrupted("shop.orders", "zoo.new")
    assert catalog.repair(scope) == RepairReport(moved=("zoo.new",))
    assert ids(catalog.table("zoo.new")) == [1]
    assert catalog.list_tables("shop") == []


def test_a_database_is_dropped_after_the_files_that_are_on_their_way_have_left_it(
    catalog, interrupted, tmp_path
):
    catalog.create_database("far", properties={"location": str(tmp_path / "far")})
    catalog.rename_table("shop.orders", "far.orders")
    interrupted("far.orders", "bank.new")
    catalog.drop_database("far")
    assert ids(catalog.table("bank.new")) == [1]
    assert not (tmp_path / "far").exists()


@pytest.mark.parametrize("exist_ok", [False, True])
def test_nobody_takes_a_name_whose_files_are_on_their_way(catalog, interrupted, exist_ok):
    interrupted("shop.orders", "bank.new")
    catalog.create_table("shop.other", COLUMNS)
    told = r"directory of 'shop.orders' still holds files of table 'bank.new', .*interrupted"
    with pytest.raises(lake.AlreadyExistsError, match=told):
        catalog.create_table("shop.orders", COLUMNS, exist_ok=exist_ok)
    with pytest.raises(lake.AlreadyExistsError, match=told):
        catalog.rename_table("shop.other", "shop.orders")
    assert catalog.repair("bank.new").moved == ("bank.new",)
    catalog.create_table("shop.orders", COLUMNS)
    assert ids(catalog.table("bank.new")) == [1]


@pytest.mark.parametrize("error", [lake.CommitConflictError, lake.InvalidRequestError])
def test_a_rename_that_is_refused_by_the_storage_did_not_happen(
    catalog, monkeypatch, execute, error
):
    def refuse(*arguments, **more):
        raise error("this cannot be moved")

    monkeypatch.setattr(rename, "move_directory", refuse)
    with pytest.raises(error, match="this cannot be moved"):
        catalog.rename_table("shop.orders", "bank.new")
    assert ids(catalog.table("shop.orders")) == [1]
    assert catalog.list_tables("bank") == []
    assert execute("SELECT * FROM paimon_table_properties") == []


def test_a_rename_that_is_refused_after_it_copied_files_is_not_forgotten(
    catalog, monkeypatch, warehouse
):
    """A new table of that name would get the copied snapshots."""

    def copy_some(*arguments, **more):
        (warehouse / "bank.db" / "new" / "snapshot").mkdir(parents=True)
        raise lake.UnsupportedError("this bucket cannot publish")

    with monkeypatch.context() as patched:
        patched.setattr(rename, "move_directory", copy_some)
        with pytest.raises(
            lake.UnsupportedError,
            match=r"is already listed as 'bank.new': fix the cause, then move its files",
        ):
            catalog.rename_table("shop.orders", "bank.new")
    assert catalog.list_tables("bank") == ["new"]


def test_a_rename_that_cannot_be_finished_is_reported_and_hinders_nothing(
    catalog, interrupted, monkeypatch, warehouse
):
    interrupted("shop.orders", "bank.new")

    def refuse(*arguments, **more):
        raise lake.AlreadyExistsError("another has made it there")

    monkeypatch.setattr(rename, "move_directory", refuse)
    (warehouse / "shop.db" / "found" / "schema").mkdir(parents=True)
    schema = (warehouse / "shop.db" / "orders" / "schema" / "schema-0").read_bytes()
    (warehouse / "shop.db" / "found" / "schema" / "schema-0").write_bytes(schema)
    report = catalog.repair()
    assert report.damaged == ("bank.new",)
    assert report.registered == ("shop.found",)


def test_what_is_said_about_a_table_that_is_gone_hinders_no_rename(catalog, execute):
    execute(
        "INSERT INTO paimon_table_properties VALUES ('jdbc','bank','new','bucket','1'),"
        " ('jdbc','bank','new','lake.renamed-from','shop.gone')"
    )
    catalog.alter_table("shop.orders", lake.set_option("bucket", "-1"))
    catalog.rename_table("shop.orders", "bank.new")
    assert execute("SELECT * FROM paimon_table_properties") == [
        ("jdbc", "bank", "new", "bucket", "-1")
    ]


# ---------------------------------------------------------------------- changes of schemas


@pytest.mark.parametrize("name", ["shop.orders", "shop.orders$branch_dev"])
def test_a_change_of_schema_does_not_stay_behind_when_the_table_is_renamed(
    catalog, opened, before_the_lock, warehouse, name
):
    catalog.table("shop.orders")
    dev = warehouse / "shop.db" / "orders" / "branch" / "branch-dev" / "schema"
    dev.mkdir(parents=True)
    schema = (warehouse / "shop.db" / "orders" / "schema" / "schema-0").read_bytes()
    (dev / "schema-0").write_bytes(schema)
    before_the_lock(lambda: opened().rename_table("shop.orders", "bank.new"))
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' does not exist"):
        catalog.alter_table(name, lake.add_column("note", "STRING"))
    assert not (warehouse / "shop.db" / "orders").exists()
    assert catalog.repair() == RepairReport()


def test_a_table_that_lost_its_first_schema_is_named_and_hinders_no_repair(
    catalog, warehouse, execute
):
    for table in ("listed", "found"):
        catalog.create_table(f"shop.{table}", COLUMNS)
        catalog.alter_table(f"shop.{table}", lake.add_column("note", "STRING"))
        (warehouse / "shop.db" / table / "schema" / "schema-0").unlink()
    execute("DELETE FROM paimon_tables WHERE table_name IN ('found', 'orders')")
    report = catalog.repair()
    assert report == RepairReport(
        registered=("shop.orders",), damaged=("shop.found", "shop.listed")
    )
    assert catalog.list_tables("shop") == ["listed", "orders"]


def test_the_newest_schema_is_what_other_programs_are_told(
    catalog, warehouse, execute, monkeypatch
):
    """A program without our lock changes the schema between our change and our note of it."""
    alter = sql_catalog.SqlCatalog._alter_schema

    def then_another(*arguments):
        altered = alter(*arguments)
        FileSystemCatalog(LocalStorage(), str(warehouse)).alter_table(
            "shop.orders", lake.set_option("target-file-size", "3 mb")
        )
        return altered

    monkeypatch.setattr(sql_catalog.SqlCatalog, "_alter_schema", then_another)
    catalog.alter_table("shop.orders", lake.set_option("target-file-size", "2 mb"))
    assert execute("SELECT property_value FROM paimon_table_properties") == [("3 mb",)]


def test_nothing_is_told_about_a_table_that_is_not_listed_any_more(catalog, execute, monkeypatch):
    alter = sql_catalog.SqlCatalog._alter_schema

    def then_forget(*arguments):
        alter(*arguments)
        execute("DELETE FROM paimon_tables")

    monkeypatch.setattr(sql_catalog.SqlCatalog, "_alter_schema", then_forget)
    with pytest.raises(lake.NotFoundError):
        catalog.alter_table("shop.orders", lake.set_option("target-file-size", "2 mb"))
    assert execute("SELECT * FROM paimon_table_properties") == []


def test_the_newest_schema_is_read_while_nobody_else_can_note_another(catalog, tmp_path):
    """Read before, it could be noted after a newer one."""

    def newest_schema():
        with (
            closing(sqlite3.connect(tmp_path / "catalog.db", timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        return catalog.table("shop.orders").schema

    name = TableName("shop", "orders")
    assert catalog._listing.synchronize(name, newest_schema) is False


# ---------------------------------------------------------------------- names and databases


def test_a_name_whose_drop_was_interrupted_is_free_for_a_rename(catalog, monkeypatch):
    catalog.create_table("bank.new", COLUMNS).write(pa.table({"id": [9]}))

    def stop(*arguments):
        raise lake.UnavailableError("the disk is away.")

    with monkeypatch.context() as patched:
        patched.setattr(drop, "run_drop", stop)
        with pytest.raises(lake.UnavailableError):
            catalog.drop_table("bank.new")
    assert ids(catalog.rename_table("shop.orders", "bank.new")) == [1]
    assert catalog.repair() == RepairReport()


@pytest.mark.parametrize("hides", [False, True])
def test_a_name_whose_drop_was_interrupted_is_free_for_a_clone(catalog, monkeypatch, hides):
    catalog.create_table("bank.new", COLUMNS).write(pa.table({"id": [9]}))
    run_drop = drop.run_drop

    def stop(*arguments):
        if hides:
            run_drop(*arguments)
        raise lake.UnavailableError("the disk is away.")

    with monkeypatch.context() as patched:
        patched.setattr(drop, "run_drop", stop)
        with pytest.raises(lake.UnavailableError):
            catalog.drop_table("bank.new")
    lake.clone_table(catalog.table("shop.orders"), catalog, "bank.new")
    assert ids(catalog.table("bank.new")) == [1]
    assert catalog.repair() == RepairReport()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("name", ["bank.new", "bank.old"])
def test_no_clone_takes_a_name_of_an_interrupted_rename(catalog, interrupted, name, dry_run):
    catalog.create_table("bank.old", COLUMNS).write(pa.table({"id": [9]}))
    interrupted("bank.old", "bank.new")
    with pytest.raises(lake.AlreadyExistsError, match=r"catalog\.repair\('bank\.new'\)"):
        lake.clone_table(catalog.table("shop.orders"), catalog, name, dry_run=dry_run)
    catalog.repair()
    assert catalog.list_tables("bank") == ["new"]
    assert ids(catalog.table("bank.new")) == [9]


def test_a_clone_replaces_the_lost_files_of_a_listed_table(catalog, warehouse):
    catalog.create_table("bank.new", COLUMNS)
    shutil.rmtree(warehouse / "bank.db/new")
    lake.clone_table(catalog.table("shop.orders"), catalog, "bank.new")
    assert ids(catalog.table("bank.new")) == [1]


def test_a_table_is_not_made_in_a_database_that_is_dropped_meanwhile(
    catalog, opened, execute, monkeypatch, warehouse
):
    create = sql_catalog.create_schema
    catalog.create_database("new", properties={"owner": "me"})

    def then_drop(*arguments):
        opened().drop_database("new")
        return create(*arguments)

    monkeypatch.setattr(sql_catalog, "create_schema", then_drop)
    with pytest.raises(
        lake.NotFoundError,
        match=r"'new.orders' was not created: another program dropped database 'new'",
    ):
        catalog.create_table("new.orders", COLUMNS)
    assert catalog.list_databases() == ["bank", "shop"]
    assert not (warehouse / "new.db").exists()


def test_a_table_is_not_renamed_into_a_database_that_is_dropped_meanwhile(
    catalog, opened, before_the_lock
):
    before_the_lock(lambda: opened().drop_database("bank"))
    with pytest.raises(
        lake.NotFoundError,
        match=r"'bank.orders' was not created: another program dropped database 'bank'",
    ):
        catalog.rename_table("shop.orders", "bank.orders")
    assert catalog.list_databases() == ["shop"]
    assert ids(catalog.table("shop.orders")) == [1]


def test_an_odd_row_is_reported_and_hinders_neither_repair_nor_creation_nor_cascade(
    catalog, execute
):
    execute("INSERT INTO paimon_database_properties VALUES ('jdbc', 'a/b', 'exists', 'true')")
    execute("INSERT INTO paimon_tables VALUES ('jdbc', 'shop', 'a.b')")
    execute(
        "INSERT INTO paimon_table_properties VALUES"
        " ('jdbc', 'shop', 'orders', 'lake.renamed-from', 'nonsense')"
    )
    report = catalog.repair()
    assert report.damaged == ("a/b", "shop.orders")
    assert report.without_files == ("shop.a.b",)
    catalog.create_table("shop.new", COLUMNS)
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == ["a/b", "bank"]
