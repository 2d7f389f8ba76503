"""Tables are created, renamed and dropped through each kind of catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from lakeformat.catalog.names import parse_nested_name
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.write.append import append
from tests.iceberg_rest_server import rest_server
from tests.unit.catalog.iceberg.test_sql_metastore import execute, opened
from tests.unit.iceberg.path_table import appended, names

COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]


@pytest.fixture(params=["path", "sql", "rest"])
def catalog(request, tmp_path) -> Iterator[IcebergCatalog]:
    if request.param == "rest":
        with rest_server() as server:
            server.warehouse = f"file://{tmp_path}"
            found = lake.open_catalog(
                str(tmp_path), format="iceberg", metastore="rest", uri=server.uri
            )
            found.create_database("shop")
            yield found
        return
    found = opened(tmp_path)
    if request.param == "path":
        found = lake.open_catalog(str(tmp_path), format="iceberg")
    found.create_database("shop")
    yield found


def test_a_table_is_created_below_its_database(catalog, tmp_path):
    created = catalog.create_table(
        "shop.orders",
        COLUMNS,
        partition_by=["bucket(16, id)"],
        sort_by=["id desc"],
        options={"owner": "ada"},
        comment="all orders",
        format_version=3,
    )
    assert created.location == f"file://{tmp_path}/shop/orders"
    assert catalog.list_tables("shop") == ["orders"]
    orders = catalog.table("shop.orders")
    assert orders.schema.column_names == ["id", "note"]
    assert orders.properties == {"owner": "ada", "comment": "all orders"}
    metadata = orders._handle.load().metadata
    assert metadata.format_version == 3
    assert [field.name for field in metadata.partition_specs[-1].fields] == ["id_bucket"]
    assert orders.scan().to_arrow().num_rows == 0


def test_a_name_is_taken_once(catalog):
    catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    with pytest.raises(lake.AlreadyExistsError, match="exist_ok=True"):
        catalog.create_table("shop.orders", COLUMNS)
    kept = catalog.create_table("shop.orders", COLUMNS, exist_ok=True)
    assert kept.schema.column_names == ["id"]
    with pytest.raises(lake.NotFoundError, match="database 'shops' does not exist"):
        catalog.create_table("shops.orders", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="is a branch or a system table"):
        catalog.create_table("shop.orders$files", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="the columns must be"):
        catalog.create_table("shop.more", [1])
    for argument in ("primary_key", "partition_by", "sort_by"):
        for given in ("id", None):
            with pytest.raises(lake.InvalidRequestError, match=f"{argument} must be a list, got"):
                catalog.create_table("shop.more", COLUMNS, **{argument: given})


@pytest.mark.parametrize("more", [{}, {"format": "mixed", "primary_key": ["id"]}], ids=str)
def test_a_credential_is_no_property_of_a_new_table(catalog, more):
    with pytest.raises(lake.InvalidRequestError, match=r"'s3\.secret-key' names a credential"):
        catalog.create_table("shop.t", [("id", "BIGINT")], options={"s3.secret-key": "x"}, **more)
    options = {"write.data.path": "hdfs://user:private@host/x"}
    with pytest.raises(lake.InvalidRequestError, match=r"'hdfs://…@host/x', an address with a cr"):
        catalog.create_table("shop.t", [("id", "BIGINT")], options=options, **more)
    assert catalog.list_tables("shop") == []


def test_a_created_table_takes_commits(catalog):
    handle = catalog.create_table("shop.orders", COLUMNS)._handle
    commit_metadata(handle, lambda its: appended(its.metadata, "a"))
    assert names(catalog.table("shop.orders")._handle.load().metadata) == ["a"]


def test_commands_in_reports_name_the_table_as_the_catalog_does(catalog, tmp_path):
    orders = catalog.create_table("shop.orders", COLUMNS)
    for number in range(5):
        append(orders._handle, pa.table({"id": [number], "note": ["a"]}))
    named = f"file://{tmp_path}/shop/orders" if catalog.is_directory else "shop.orders"
    health = orders.health()
    assert [each.advice for each in health.reasons] == [f"lake compact {named}"]
    assert health.table == orders.location
    assert orders.maintain().note.endswith(f"lake maintain {named} deletes the files")


def test_a_table_is_dropped(catalog, tmp_path):
    catalog.create_table("shop.orders", COLUMNS)
    is_path = catalog.is_directory
    catalog.drop_table("shop.orders", purge=is_path)
    assert catalog.list_tables("shop") == []
    assert (tmp_path / "shop/orders/metadata").exists() is not is_path
    with pytest.raises(lake.NotFoundError):
        catalog.drop_table("shop.orders")
    catalog.drop_table("shop.orders", missing_ok=True)


def test_a_database_is_dropped_with_its_tables(catalog, tmp_path):
    for name in ("shop.orders", "shop.people"):
        catalog.create_table(name, COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match=r"orders, people.*cascade=True"):
        catalog.drop_database("shop")
    is_path = catalog.is_directory
    plans = catalog.plan_drop_database("shop", cascade=True, purge=is_path)
    assert [plan.table for plan in plans] == ["shop.orders", "shop.people"]
    assert catalog.list_tables("shop") == ["orders", "people"]
    catalog.drop_database("shop", cascade=True, purge=is_path)
    assert catalog.list_databases() == []
    assert (tmp_path / "shop/orders/metadata").exists() is not is_path
    catalog.drop_database("shop", missing_ok=True)


def test_a_mixed_table_is_a_pair_of_tables_in_each_catalog(catalog):
    made = catalog.create_table("shop.stock", COLUMNS, format="mixed", primary_key=["id"])
    assert catalog.list_tables("shop") == ["stock"]
    assert sorted(catalog._metastore.tables("shop")) == ["stock", "stock_change_"]
    made.write(pa.table({"id": [1, 2], "note": ["a", "b"]}))
    made.write(pa.table({"id": [1, 2], "note": [None, "c"]}), ["-D", "+U"])
    table = catalog.table("shop.stock")
    assert (table.format, table.primary_key, table.location) == ("mixed", ["id"], made.location)
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "note": "c"}]
    assert table.change.scan().count() == 7
    with pytest.raises(lake.UnsupportedError, match="is the change store of"):
        catalog.drop_table("shop.stock_change_", purge=True)
    name = "shop.stock"
    if not catalog.is_directory:
        name = "shop.goods"
        moved = catalog.rename_table("shop.stock", name)
        assert sorted(catalog._metastore.tables("shop")) == ["goods", "goods_change_"]
        moved.write(pa.table({"id": [3], "note": ["d"]}))
        assert moved.scan().count() == 2
    catalog.drop_table(name, purge=True)
    assert catalog._metastore.tables("shop") == []


def test_no_table_is_dropped_if_one_of_a_database_cannot_be_purged(catalog):
    catalog.create_table("shop.orders", COLUMNS)
    catalog.create_table("shop.people", COLUMNS, options={"gc.enabled": "false"})
    with pytest.raises(lake.LakeError, match=r"gc\.enabled"):
        catalog.drop_database("shop", cascade=True, purge=True)
    assert catalog.list_tables("shop") == ["orders", "people"]


@pytest.mark.parametrize("store", ["shop.stock", "shop.stock_change_"])
def test_a_table_is_kept_by_a_purge_if_one_of_its_stores_has_gc_false(catalog, store):
    catalog.create_table("shop.stock", COLUMNS, format="mixed", primary_key=["id"])
    handle = catalog._handle(parse_nested_name(store))
    commit_metadata(handle, lambda its: set_properties(its.metadata, {"gc.enabled": "false"}))
    for drop in (catalog.plan_drop_table, catalog.drop_table):
        with pytest.raises(lake.LakeError, match=r"'gc\.enabled'.* is false"):
            drop("shop.stock", purge=True)
    assert sorted(catalog._metastore.tables("shop")) == ["stock", "stock_change_"]


def test_a_table_is_renamed_where_its_files_can_stay(catalog, tmp_path):
    catalog.create_table("shop.orders", COLUMNS)
    catalog.create_table("shop.taken", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"table 'shop\.taken' exists"):
        catalog.rename_table("shop.orders", "shop.taken")
    if catalog.is_directory:
        with pytest.raises(lake.UnsupportedError, match="the metadata names each file by its URI"):
            catalog.rename_table("shop.orders", "shop.old")
        return
    renamed = catalog.rename_table("shop.orders", "shop.old")
    assert renamed.location == f"file://{tmp_path}/shop/orders"
    assert catalog.list_tables("shop") == ["old", "taken"]


def test_a_name_has_a_location_before_its_table_exists(catalog, tmp_path):
    assert catalog.location_of("shop.orders") == f"file://{tmp_path}/shop/orders"
    catalog.create_table("shop.orders", COLUMNS)
    assert catalog.location_of("shop.orders") == catalog.table("shop.orders").location


def test_a_directory_is_only_dropped_with_its_files(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, options={"gc.enabled": "false"})
    with pytest.raises(lake.UnsupportedError, match="purge=True"):
        catalog.drop_table("shop.orders")
    with pytest.raises(lake.InvalidRequestError, match=r"'gc\.enabled' is false"):
        catalog.drop_table("shop.orders", purge=True)
    assert catalog.list_tables("shop") == ["orders"]


def test_an_open_table_that_was_created_again_with_as_many_commits_must_be_opened_again(tmp_path):
    """Both tables have the current metadata file v2.metadata.json."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")

    def create(number):
        table = catalog.create_table("shop.orders", [("id", "BIGINT")])
        table.write(pa.table({"id": [number]}))

    create(1)
    before = catalog.table("shop.orders")
    before.latest_snapshot()
    catalog.drop_table("shop.orders", purge=True)
    create(2)

    words = r"if the table was dropped and created again, open the table again"
    with pytest.raises(lake.CorruptTableError, match=words):
        before.scan().to_arrow()
    assert catalog.table("shop.orders").scan().to_arrow().to_pylist() == [{"id": 2}]


def test_a_path_table_in_memory_is_dropped_file_by_file():
    catalog = lake.open_catalog("memory://drops/w", format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    catalog.drop_table("shop.orders", purge=True)
    assert catalog.list_tables("shop") == []


def files_below(root: Path) -> list[str]:
    return sorted(each.name for each in root.rglob("*") if each.is_file())


def test_a_purge_deletes_only_the_files_that_the_metadata_names(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    for number in (1, 2):
        orders.write(pa.table({"id": [number]}), overwrite="table")
    orders.tags.create("first", snapshot=orders.snapshots()[0].id)
    root = tmp_path / "shop/orders"
    (root / "data/notes.txt").write_text("of another program")
    there = files_below(root)
    plan = catalog.plan_drop_table("shop.orders", purge=True)
    assert (plan.files, plan.outside) == (len(there) - 1, 0)
    assert plan.sentence.startswith(
        f"table shop.orders at file://{root} would be removed from the catalog; "
    )
    assert files_below(root) == there
    catalog.drop_table("shop.orders", purge=True)
    assert catalog.list_tables("shop") == []
    assert files_below(root) == ["notes.txt"]


def test_the_plan_of_a_drop_counts_one_file_in_the_singular(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    plan = catalog.plan_drop_table("shop.orders", purge=True)
    assert plan.sentence.endswith("; 1 file of unknown size would be deleted")
    assert replace(plan, outside=1).sentence.endswith("; kept: 1 file outside of it")


def test_the_plan_of_a_drop_names_all_other_files_of_a_directory(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    plan = catalog.plan_drop_table("shop.orders", purge=True)
    assert plan.sentence.endswith(
        "; 1 file of unknown size would be deleted, with all other files in its directory"
    )


def test_files_elsewhere_are_kept_by_a_purge_and_gc_false_refuses_it(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    place = {"write.data.path": f"file://{tmp_path}/elsewhere"}
    catalog.create_table("shop.kept", COLUMNS, options={"gc.enabled": "false"})
    allowed = opened(tmp_path, external_roots=f"{tmp_path}/elsewhere")
    allowed.create_table("shop.orders", COLUMNS, options=place).write(pa.table({"id": [1]}))
    with pytest.raises(lake.UnsupportedError, match=r"'gc\.enabled'"):
        catalog.drop_table("shop.kept", purge=True)
    assert catalog.plan_drop_table("shop.orders", purge=True).outside == 1
    assert allowed.plan_drop_table("shop.orders", purge=True).outside == 0
    catalog.drop_table("shop.orders", purge=True)
    assert len(files_below(tmp_path / "elsewhere")) == 1
    assert catalog.list_tables("shop") == ["kept"]


def test_a_database_can_have_a_location_of_its_own_below_the_warehouse(tmp_path):
    catalog = opened(tmp_path)
    catalog.create_database("shop", properties={"location": f"file://{tmp_path}/elsewhere"})
    created = catalog.create_table("shop.orders", COLUMNS)
    assert created.location == f"file://{tmp_path}/elsewhere/orders"
    catalog.create_database("out", properties={"location": "file:///outside"})
    with pytest.raises(lake.InvalidRequestError, match="outside of the warehouse"):
        catalog.create_table("out.orders", COLUMNS)


@pytest.mark.parametrize("kind", ["path", "sql"])
@pytest.mark.parametrize("name", ["write.data.path", "write.folder-storage.path"])
def test_data_files_are_not_placed_in_the_directory_of_another_table(tmp_path, kind, name):
    more = {"metastore": "sql", "uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {}
    catalog = lake.open_catalog(
        str(tmp_path), format="iceberg", options={"external-roots": str(tmp_path)}, **more
    )
    catalog.create_database("shop")
    other = catalog.create_table("shop.orders", COLUMNS)
    refused = r"/shop/orders is the directory of another table\. Orphan"
    for place in (other.location, f"{other.location}/data/x%20"):
        with pytest.raises(lake.InvalidRequestError, match=refused):
            catalog.create_table("shop.items", COLUMNS, options={name: place})
    assert catalog.list_tables("shop") == ["orders"]
    beside = {
        name: f"file://{tmp_path}/beside/data",
        "write.metadata.path": f"file://{tmp_path}/beside/metadata",
    }
    catalog.create_table("shop.items", COLUMNS, options=beside if kind == "sql" else {})
    with pytest.raises(lake.InvalidRequestError, match=refused):
        catalog.alter_table("shop.items", lake.set_option(name, f"{other.location}/data"))
    for place in (f"{catalog.location_of('shop.items')}/d", f"file://{tmp_path}/beside/data"):
        catalog.alter_table("shop.items", lake.set_option(name, place))
        catalog.table("shop.items").write(pa.table({"id": [1]}))
    assert catalog.table("shop.items").scan().to_arrow().num_rows == 2
    given = {name: f"{other.location}/data"}  # as an earlier version allowed
    found = catalog.create_table("shop.items", COLUMNS, options=given, exist_ok=True)
    assert found.scan().to_arrow().num_rows == 2
    with pytest.raises(lake.AlreadyExistsError, match=r"'shop\.items' exists"):
        catalog.create_table("shop.items", COLUMNS, options=given)


@pytest.mark.parametrize("kind", ["path", "sql"])
def test_no_file_is_written_into_another_table_without_or_with_external_roots(tmp_path, kind):
    more = {"metastore": "sql", "uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {}
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", **more)
    catalog.create_database("shop")
    other = catalog.create_table("shop.orders", COLUMNS)
    items = catalog.create_table("shop.items", COLUMNS)
    given = {"write.data.path": f"{other.location}/data"}
    refused = r"/shop/orders is the directory of another table\. Orphan"
    with pytest.raises(lake.InvalidRequestError, match=refused):
        catalog.create_table("shop.parts", COLUMNS, options=given)
    with pytest.raises(lake.InvalidRequestError, match=refused):
        catalog.alter_table("shop.items", lake.set_option("write.data.path", other.location))
    items.write(pa.table({"id": [1, 2]}))
    commit_metadata(items._handle, lambda loaded: set_properties(loaded.metadata, given))
    for root in (str(tmp_path), f"{tmp_path}/shop/orders/data"):
        options = {"external-roots": root}
        found = lake.open_catalog(str(tmp_path), format="iceberg", options=options, **more)
        table = found.table("shop.items")
        for write in (
            lambda table: table.write(pa.table({"id": [3]})),
            lambda table: table.delete("id = 1"),
            lambda table: table.new_writer().write(pa.table({"id": [3]})),
        ):
            with pytest.raises(lake.InvalidRequestError, match=refused):
                write(table)
        assert table.scan().to_arrow().num_rows == 2
    assert not (tmp_path / "shop/orders/data").exists()


def test_a_data_path_in_the_own_directory_by_a_link_is_not_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    options = {"external-roots": str(tmp_path / "real")}
    catalog = lake.open_catalog(str(tmp_path / "link"), format="iceberg", options=options)
    catalog.create_database("shop")
    given = {"write.data.path": f"{tmp_path}/real/shop/orders/d"}
    orders = catalog.create_table("shop.orders", COLUMNS, options=given)
    orders.write(pa.table({"id": [1]}))
    assert len(files_below(tmp_path / "real/shop/orders/d")) == 1


def test_a_data_path_in_a_former_directory_of_the_table_is_not_refused(tmp_path):
    catalog = opened(tmp_path, external_roots=str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    former = Path(orders.location.removeprefix("file://"))
    [[address]] = execute(tmp_path, "SELECT metadata_location FROM iceberg_tables")
    metadata = json.loads(Path(address.removeprefix("file://")).read_text())
    metadata["location"] = f"{tmp_path}/moved"  # as ALTER TABLE ... SET LOCATION changes it
    metadata["properties"]["write.data.path"] = f"{former}/data"
    moved = tmp_path / "moved/metadata/00001-a.metadata.json"
    moved.parent.mkdir(parents=True)
    moved.write_text(json.dumps(metadata))
    execute(tmp_path, "UPDATE iceberg_tables SET metadata_location = ?", str(moved))
    found = opened(tmp_path, external_roots=str(tmp_path))
    found.table("shop.orders").write(pa.table({"id": [1]}))
    assert len(files_below(former / "data")) == 1
    folder = lake.set_option("write.data.path", f"{former}/more")
    found.alter_table("shop.orders", folder)
    other = {**metadata, "table-uuid": "00000000-0000-0000-0000-000000000001"}
    (former / "metadata/00000-b.metadata.json").write_text(json.dumps(other))
    refused = r"/orders is the directory of another table"
    with pytest.raises(lake.InvalidRequestError, match=refused):
        found.table("shop.orders").write(pa.table({"id": [2]}))
    with pytest.raises(lake.InvalidRequestError, match=refused):
        found.alter_table("shop.orders", folder)


def test_a_data_path_below_a_directory_with_linked_metadata_is_not_refused(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files/metadata").symlink_to(tmp_path)
    catalog = opened(tmp_path, external_roots=str(tmp_path))
    catalog.create_database("shop")
    given = {"write.data.path": f"{tmp_path}/files/orders"}
    orders = catalog.create_table("shop.orders", COLUMNS, options=given)
    orders.write(pa.table({"id": [1]}))
    assert len(files_below(tmp_path / "files/orders")) == 1


def test_a_creation_that_loses_leaves_no_file(tmp_path, monkeypatch):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    metastore = catalog._metastore
    monkeypatch.setattr(type(metastore), "_row", lambda *_: None)
    execute(
        tmp_path,
        "INSERT INTO iceberg_tables VALUES ('default', 'shop', 'orders', 'x', NULL, 'TABLE')",
    )
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_table("shop.orders", COLUMNS)
    assert [*(tmp_path / "shop/orders/metadata").iterdir()] == []


def test_pyiceberg_reads_a_table_that_this_library_created(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = opened(tmp_path)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, primary_key=["id"], partition_by=["note"])
    theirs = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db")
    orders = theirs.load_table("shop.orders")
    assert orders.schema().column_names == ["id", "note"]
    assert [field.name for field in orders.spec().fields] == ["note"]
    theirs.close()
