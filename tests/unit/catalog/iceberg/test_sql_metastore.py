"""The SQL metastore: rows that Java and PyIceberg wrote, and rows that they will read."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.golden.iceberg import IcebergTable, iceberg_table
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table


def opened(folder: Path, **options: str) -> IcebergCatalog:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return lake.open_catalog(
        str(folder),
        format="iceberg",
        metastore="sql",
        uri=f"jdbc:sqlite:{folder}/catalog.db",
        options=named,
    )


def execute(folder: Path, statement: str, *values: str | None) -> list[tuple]:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection, connection:
        return connection.execute(statement, values).fetchall()


def register(folder: Path, name: str, address: str | None) -> None:
    """Add the row of a table, as another program does."""
    database, _, table = name.rpartition(".")
    execute(
        folder,
        "INSERT INTO iceberg_tables VALUES ('default', ?, ?, ?, NULL, 'TABLE')",
        *(database, table, address),
    )


@pytest.fixture
def warehouse(tmp_path) -> Path:
    opened(tmp_path).create_database("shop", properties={"owner": "ada"})
    register(tmp_path, "shop.orders", make_small_table(tmp_path / "shop/orders"))
    return tmp_path


def java_catalog(folder: Path, name: str) -> tuple[IcebergTable, IcebergCatalog]:
    """Return a golden table with the catalog that Java wrote, corrected for the table's place."""
    golden = iceberg_table(name)
    shutil.copy(golden.as_written.parent / "catalog.db", folder)
    [(address,)] = execute(folder, "SELECT metadata_location FROM iceberg_tables")
    here = f"file:{golden.location}/metadata/{address.rpartition('/')[2]}"
    execute(folder, "UPDATE iceberg_tables SET metadata_location = ?", here)
    options = {"catalog_name": f"c_dev_{name}", "external_roots": golden.location}
    return golden, opened(folder, **options)


@pytest.mark.parametrize("name", ["branches_tags", "six_commits"])
def test_a_catalog_that_java_wrote_names_the_current_metadata(tmp_path, name):
    golden, catalog = java_catalog(tmp_path, name)
    assert catalog.list_databases() == ["db"]
    assert catalog.list_tables("db") == ["t"]
    assert catalog.database_properties("db") == {"owner": "root"}
    newest = catalog.table("db.t").latest_snapshot()
    assert newest.snapshot_id == golden.expected["current_snapshot_id"]


def test_the_catalogs_of_one_database_are_apart(tmp_path):
    _, catalog = java_catalog(tmp_path, "six_commits")
    assert catalog.table("db.t").scan().count() == 60
    assert opened(tmp_path).list_databases() == []
    with pytest.raises(
        lake.NotFoundError, match=r"also has these catalogs: 'c_dev_six_commits'.*catalog-name"
    ):
        opened(tmp_path).table("db.t")


def test_an_empty_database_file_is_an_empty_catalog(tmp_path):
    (tmp_path / "catalog.db").touch()
    catalog = opened(tmp_path)
    assert catalog.list_databases() == []
    with pytest.raises(lake.NotFoundError, match="database 'shop' does not exist"):
        catalog.table("shop.orders")


READS = {
    "list_databases": lambda catalog: catalog.list_databases(),
    "list_tables": lambda catalog: catalog.list_tables("shop"),
    "table": lambda catalog: catalog.table("shop.orders"),
    "create_table": lambda catalog: catalog.create_table("shop.orders", [("id", "BIGINT")]),
    "drop_database": lambda catalog: catalog.drop_database("shop", missing_ok=True),
    "require_exists": lambda catalog: catalog.require_exists(),
}


@pytest.mark.parametrize("read", READS)
def test_a_mistyped_file_is_named_and_not_created(tmp_path, read):
    catalog = opened(tmp_path)
    with pytest.raises(lake.NotFoundError, match=r"catalog\.db: this file does not exist.*create_"):
        READS[read](catalog)
    assert not (tmp_path / "catalog.db").exists()
    catalog.create_database("shop")
    assert opened(tmp_path).list_databases() == ["shop"]


def test_a_name_without_rows_is_refused_with_the_names_that_have_rows(warehouse):
    opened(warehouse).require_exists()
    opened(warehouse, catalog_name="defau").list_databases()
    with pytest.raises(
        lake.NotFoundError, match=r"no catalog 'defau'; it has 'default'.*did you mean 'default'"
    ):
        opened(warehouse, catalog_name="defau").require_exists()


def test_a_database_of_other_programs_is_no_catalog(tmp_path):
    execute(tmp_path, "CREATE TABLE notes (a INT)")
    with pytest.raises(lake.NotFoundError, match="lacks the table 'iceberg_tables' or"):
        opened(tmp_path).require_exists()


def test_an_open_table_follows_the_row(warehouse):
    orders = opened(warehouse).table("shop.orders")
    assert ids_of(orders) == [1, 2]
    newer = make_small_table(warehouse / "shop/elsewhere", ids=(5,))
    execute(warehouse, "UPDATE iceberg_tables SET metadata_location = ?", newer)
    assert ids_of(orders) == [5]


def test_views_are_no_tables(warehouse):
    execute(
        warehouse, "INSERT INTO iceberg_tables VALUES ('default', 'shop', 'v', 'x', NULL, 'VIEW')"
    )
    catalog = opened(warehouse)
    assert catalog.list_tables("shop") == ["orders"]
    with pytest.raises(lake.NotFoundError, match=r"table 'shop\.v' does not exist"):
        catalog.table("shop.v")


def test_tables_of_the_first_version_of_the_metastore_are_read(warehouse):
    execute(warehouse, "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    assert opened(warehouse).list_tables("shop") == ["orders"]
    assert ids_of(opened(warehouse).table("shop.orders")) == [1, 2]


def test_a_nested_database_makes_its_parent_exist(warehouse):
    catalog = opened(warehouse)
    catalog.create_database("a.b")
    assert catalog.list_databases() == ["a.b", "shop"]
    assert catalog.list_tables("a") == []
    with pytest.raises(lake.NotFoundError):
        catalog.list_tables("a.bb")


def test_databases_are_created_and_dropped(warehouse):
    catalog = opened(warehouse)
    assert catalog.database_properties("shop") == {"owner": "ada"}
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_database("shop")
    with pytest.raises(lake.InvalidRequestError, match="has 1 table: orders"):
        catalog.drop_database("shop")
    catalog.create_database("new")
    catalog.drop_database("new")
    assert catalog.list_databases() == ["shop"]


@pytest.mark.parametrize("purge", [False, True])
def test_a_name_with_a_dot_does_not_drop_the_table_of_a_nested_database(warehouse, purge):
    catalog = opened(warehouse)
    catalog.create_database("shop.x")
    catalog.create_table("shop.x.y", [("id", "BIGINT")]).write(pa.table({"id": [1, 2]}))
    register(warehouse, "shop.z", make_small_table(warehouse / "shop/z"))
    execute(warehouse, "UPDATE iceberg_tables SET table_name = 'x.y' WHERE table_name = 'z'")
    said = r"its tables were not dropped: .*'shop\.x\.y' is the table 'y' of the database 'shop\.x'"
    for drop in (catalog.plan_drop_database, catalog.drop_database):
        with pytest.raises(lake.InvalidRequestError, match=said):
            drop("shop", cascade=True, purge=purge)
    assert catalog.list_tables("shop") == ["orders", "x.y"]
    assert ids_of(catalog.table("shop.x.y")) == [1, 2]
    assert ids_of(catalog.table("shop.orders")) == [1, 2]


def test_a_row_without_a_metadata_file_is_damage(warehouse):
    execute(warehouse, "UPDATE iceberg_tables SET metadata_location = NULL")
    with pytest.raises(lake.CorruptTableError, match="names no metadata file"):
        opened(warehouse).table("shop.orders")


def test_pyiceberg_and_this_library_list_the_same(warehouse):
    from pyiceberg.catalog.sql import SqlCatalog

    theirs = SqlCatalog("default", uri=f"sqlite:///{warehouse}/catalog.db")
    assert theirs.list_namespaces() == [("shop",)]
    assert theirs.list_tables("shop") == [("shop", "orders")]
    theirs.create_namespace("news", {"owner": "grace"})
    theirs.close()
    assert opened(warehouse).list_databases() == ["news", "shop"]
    assert opened(warehouse).database_properties("news") == {"owner": "grace"}


def test_a_table_that_is_sent_to_a_task_writes_files_for_a_commit_here(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    sent = pickle.dumps(orders)
    assert b"catalog.db" not in sent
    there = pickle.loads(sent)
    with there.new_writer() as writer:
        writer.write(pa.table({"id": [1]}))
        messages = writer.prepare()
    with pytest.raises(lake.UnsupportedError, match="commit them in the process that opened"):
        there.commit(messages)
    orders.commit(messages)
    assert ids_of(orders) == [1]


@pytest.mark.parametrize("age", ["0 s", None])
def test_a_renamed_table_and_a_new_one_of_its_old_name_keep_each_others_files(tmp_path, age):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    old = catalog.create_table("shop.orders", [("id", "BIGINT")])
    old.write(pa.table({"id": [1]}))
    catalog.rename_table("shop.orders", "shop.old_orders")
    new = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(2, 5):
        new.write(pa.table({"id": [number]}))
    old = catalog.table("shop.old_orders")
    assert new.location == old.location
    for table in (new, old):  # the older table's metadata has lower numbers
        (tmp_path / "shop/orders/data/lost.parquet").write_bytes(b"orphan")
        time.sleep(0.05)  # the file system's clock has steps of some milliseconds
        given = {} if age is None else {"older_than": age, "allow_younger": True}
        report = table.remove_orphans(dry_run=False, max_share=1, **given)
        assert report.removed_files == (0 if age is None else 1)
        assert "kept the files of 1 other table in the same directory" in report.reason
    assert ids_of(new) == [2, 3, 4]
    assert ids_of(old) == [1]


def test_no_table_is_created_in_the_directory_of_a_paimon_table(tmp_path):
    paimon = lake.open_catalog(str(tmp_path))
    paimon.create_database("shop")
    published = paimon.create_table(
        *("shop.orders", [("id", "BIGINT")]),
        options={"metadata.iceberg.storage": "table-location"},
    )
    published.write(pa.table({"id": [1]}))
    catalog = opened(tmp_path)
    catalog.create_database("shop", properties={"location": f"file://{tmp_path}/shop.db"})
    for exist_ok in (False, True):
        with pytest.raises(lake.AlreadyExistsError, match=r"holds a Paimon table, so no Iceberg"):
            catalog.create_table("shop.orders", [("id", "BIGINT")], exist_ok=exist_ok)
    assert catalog.list_tables("shop") == []
    # The entry of the published table is legal, but the files are those of the Paimon table.
    (newest,) = (tmp_path / "shop.db/orders/metadata").glob("*1.metadata.json")
    register(tmp_path, "shop.orders", f"file:{newest}")
    entry = catalog.create_table("shop.orders", [("id", "BIGINT")], exist_ok=True)
    with pytest.raises(lake.UnsupportedError, match=r"is published for a Paimon table"):
        entry.remove_orphans(dry_run=False)
    # Paimon's Java library sets neither the identity nor the property.
    foreign = newest.read_text().replace("paimon-commit-identity", "x").replace("gc.enabled", "y")
    newest.write_text(foreign)
    entry = catalog.table("shop.orders")
    with pytest.raises(lake.InvalidRequestError, match="is also the directory of a Paimon table"):
        entry.remove_orphans(dry_run=False)
    assert ids_of(entry) == ids_of(published) == [1]
