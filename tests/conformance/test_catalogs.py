"""Every catalog keeps one set of promises: directories alone, SQLite and PostgreSQL."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.storage import open_storage
from lakeformat.testing.crashable import CrashableStorage

COLUMNS = [("id", "BIGINT")]
KINDS = ["local", "memory", "sqlite", "postgresql"]
_names = itertools.count()


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def opened(kind, tmp_path, request):
    """Opens the same catalog, again and again, as other processes would."""
    warehouse = f"memory://conformance-{next(_names)}/wh" if kind == "memory" else str(tmp_path)
    settings = {}
    if kind == "sqlite":
        settings = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        settings = {"metastore": "jdbc", "uri": server.new_database()}
    options = {"external-roots": f"memory://outside,{warehouse}"}
    return lambda **more: lake.open_catalog(
        warehouse, **settings, **{**more, "options": {**options, **more.get("options", {})}}
    )


@pytest.fixture
def catalog(opened) -> lake.Catalog:
    catalog = opened()
    catalog.create_database("shop")
    return catalog


def rows(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_what_one_makes_another_finds(catalog, opened):
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1, 2]}))
    catalog.create_database("bank")
    other = opened()
    assert sorted(other.list_databases()) == ["bank", "shop"]
    assert other.list_tables("shop") == ["orders"]
    assert other.list_tables("bank") == []
    assert rows(other.table("shop.orders")) == [1, 2]


def test_a_taken_name_is_an_error_unless_that_is_fine(catalog):
    with pytest.raises(lake.AlreadyExistsError, match="database 'shop' exists"):
        catalog.create_database("shop")
    catalog.create_database("shop", exist_ok=True)
    first = catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"table 'shop.orders' exists"):
        catalog.create_table("shop.orders", COLUMNS)
    again = catalog.create_table("shop.orders", [("other", "INT")], exist_ok=True)
    assert again.schema == first.schema


def test_what_is_not_there_is_named(catalog):
    for wrong in (
        lambda: catalog.list_tables("bank"),
        lambda: catalog.create_table("bank.orders", COLUMNS),
        lambda: catalog.drop_database("bank"),
        lambda: catalog.repair("bank"),
    ):
        with pytest.raises(lake.NotFoundError, match="database 'bank' does not exist in"):
            wrong()
    for wrong in (
        lambda: catalog.table("shop.nix"),
        lambda: catalog.drop_table("shop.nix"),
        lambda: catalog.rename_table("shop.nix", "shop.new"),
        lambda: catalog.alter_table("shop.nix", lake.drop_column("id")),
        lambda: catalog.repair("shop.nix"),
    ):
        with pytest.raises(lake.NotFoundError, match=r"table 'shop.nix' does not exist"):
            wrong()
    catalog.drop_table("shop.nix", missing_ok=True)
    catalog.drop_database("bank", missing_ok=True)


def test_a_dropped_table_is_gone_with_its_files(catalog):
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(pa.table({"id": [1]}))
    plan = catalog.plan_drop_table("shop.orders")
    assert plan.directory == table.location
    assert plan.external_paths == ()
    catalog.drop_table("shop.orders")
    assert catalog.list_tables("shop") == []
    storage, root = open_storage(table.location)
    assert not storage.directory_exists(root)
    assert rows(catalog.create_table("shop.orders", COLUMNS)) == []


def test_a_dropped_table_takes_the_external_paths_of_every_schema_and_branch_along(
    catalog, tmp_path, kind
):
    table = catalog.create_table("shop.orders", COLUMNS)
    places = [f"memory://outside/{next(_names)}" for _ in range(3)]
    storage, root = open_storage(table.location)
    layout = TableLayout(root)
    name_external_paths(storage, layout, table.schema, 1, f"{places[0]}/a,{places[1]}/b")
    name_external_paths(storage, layout, table.schema, 2, "")
    name_external_paths(storage, layout.on_branch("dev"), table.schema, 0, f"{places[2]}/c")
    files = [f"{place}/{name}/bucket-0/f" for place, name in zip(places, "abc", strict=True)]
    for file in [*files, f"{places[0]}/other"]:
        there, path = open_storage(file)
        there.overwrite(path, b"x")

    plan = catalog.plan_drop_table("shop.orders")
    assert set(plan.external_paths) == {f"{places[0]}/a", f"{places[1]}/b", f"{places[2]}/c"}
    catalog.drop_table("shop.orders")
    for file in files:
        there, path = open_storage(file)
        assert not there.exists(path)
    there, path = open_storage(f"{places[0]}/other")
    assert there.exists(path)


def name_external_paths(storage, layout, schema, number, paths) -> None:
    from dataclasses import replace

    options = {"data-file.external-paths": paths} if paths else {}
    assert create_schema(storage, layout, replace(schema, id=number, options=options))


def test_an_external_path_that_holds_more_than_the_table_stops_the_drop(catalog, kind):
    table = catalog.create_table("shop.orders", COLUMNS)
    other = catalog.create_table("shop.other", COLUMNS)
    storage, root = open_storage(table.location)
    name_external_paths(storage, TableLayout(root), table.schema, 1, catalog.location)
    with pytest.raises(lake.InvalidRequestError, match="would delete more than the table"):
        catalog.drop_table("shop.orders")
    shared = f"memory://outside/{next(_names)}/shared"
    name_external_paths(storage, TableLayout(root), table.schema, 2, "")
    other_storage, other_root = open_storage(other.location)
    name_external_paths(other_storage, TableLayout(other_root), other.schema, 1, shared)
    catalog.create_table("shop.third", COLUMNS)
    third_storage, third_root = open_storage(catalog.table("shop.third").location)
    name_external_paths(third_storage, TableLayout(third_root), other.schema, 1, f"{shared}/x")
    with pytest.raises(
        lake.InvalidRequestError, match=r"'shop.third' and .*'shop.other' overlap, so"
    ):
        catalog.drop_table("shop.third")
    assert set(catalog.list_tables("shop")) == {"orders", "other", "third"}


def test_a_renamed_table_keeps_its_rows_and_takes_writes(catalog):
    catalog.create_database("bank")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    moved = catalog.rename_table("shop.orders", "bank.payments")
    moved.write(pa.table({"id": [2]}))
    assert rows(catalog.table("bank.payments")) == [1, 2]
    assert catalog.list_tables("shop") == []
    assert catalog.list_tables("bank") == ["payments"]
    with pytest.raises(lake.NotFoundError, match=r"'shop.orders' does not exist"):
        catalog.table("shop.orders")


def test_a_table_is_not_renamed_over_another(catalog):
    catalog.create_table("shop.orders", COLUMNS)
    catalog.create_table("shop.items", [("other", "INT")])
    with pytest.raises(
        lake.AlreadyExistsError, match=r"cannot rename 'shop.orders': table 'shop.items'"
    ):
        catalog.rename_table("shop.orders", "shop.items")
    with pytest.raises(lake.NotFoundError, match="database 'bank'"):
        catalog.rename_table("shop.orders", "bank.orders")
    with pytest.raises(lake.InvalidRequestError, match="the new name is the old one"):
        catalog.rename_table("shop.orders", "shop.orders")
    assert sorted(catalog.list_tables("shop")) == ["items", "orders"]
    assert catalog.table("shop.orders").schema.column_names == ["id"]


@pytest.mark.parametrize("name", ["shop.orders$branch_dev", "shop.orders$files"])
def test_only_whole_tables_are_dropped_and_renamed(catalog, name):
    catalog.create_table("shop.orders", COLUMNS)
    for wrong in (
        lambda: catalog.drop_table(name),
        lambda: catalog.rename_table(name, "shop.new"),
        lambda: catalog.rename_table("shop.orders", name),
        lambda: catalog.repair(name),
    ):
        with pytest.raises(lake.InvalidRequestError, match="a branch or a system table"):
            wrong()


def test_a_database_with_tables_is_dropped_only_on_purpose(catalog):
    table = catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match=r"has 1 table: orders. .*cascade=True"):
        catalog.drop_database("shop")
    [plan] = catalog.plan_drop_database("shop", cascade=True)
    assert plan.table == "shop.orders"
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == []
    storage, root = open_storage(table.location)
    assert not storage.directory_exists(root)
    catalog.create_database("shop")
    assert catalog.list_tables("shop") == []


def test_the_system_database_belongs_to_the_format(catalog):
    for wrong in (
        lambda: catalog.create_database("sys"),
        lambda: catalog.drop_database("sys"),
        lambda: catalog.list_tables("sys"),
        lambda: catalog.table("sys.tables"),
        lambda: catalog.create_table("sys.mine", COLUMNS),
    ):
        with pytest.raises(lake.UnsupportedError, match="'sys' is the system database"):
            wrong()


def test_new_tables_get_the_defaults_of_the_catalog(catalog, opened):
    catalog = opened(options={"table-default.file.format": "orc"})
    assert catalog.create_table("shop.a", COLUMNS).options.file_format == "orc"
    own = catalog.create_table("shop.b", COLUMNS, options={"file.format": "avro"})
    assert own.options.file_format == "avro"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"catalog-kez": "x"}, "'catalog-kez' is not supported .* mean 'catalog-key'"),
        ({"lock.type": "hive"}, "'lock.type' is not supported"),
        ({"case-sensitive": "perhaps"}, "'case-sensitive' is 'perhaps', but must be true or false"),
        ({"table-default.": "x"}, "'table-default.' is not supported"),
        ({"case-sensitive": True}, "must both be str"),
    ],
)
def test_a_wrong_option_is_refused_by_name(opened, options, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        opened(options=options)


def test_upper_case_is_for_catalogs_that_tell_it_apart(catalog, opened, kind):
    strict = opened(options={"case-sensitive": "false"})
    with pytest.raises(lake.InvalidRequestError, match="'Shop' has upper-case letters"):
        strict.create_database("Shop")
    with pytest.raises(lake.InvalidRequestError, match="'Orders' has upper-case letters"):
        strict.create_table("shop.Orders", COLUMNS)
    catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="'Orders' has upper-case letters"):
        strict.rename_table("shop.orders", "shop.Orders")
    loose = opened(options={"case-sensitive": "true"})
    loose.create_table("shop.Orders", COLUMNS)
    assert sorted(catalog.list_tables("shop")) == ["Orders", "orders"]
    assert strict.table("shop.Orders").schema.column_names == ["id"]


def test_a_name_longer_than_a_directory_takes_is_refused(catalog, kind):
    catalog.create_database("d" * 252)
    # In a metastore the key of the lock holds the database as well.
    catalog.create_table("shop." + "t" * (255 if kind in ("local", "memory") else 245), COLUMNS)
    with pytest.raises(lake.InvalidRequestError, match="… has 253 bytes, which is too long"):
        catalog.create_database("d" * 253)
    for name in ("t" * 256, "é" * 128):
        told = "… has 256 bytes, which is too long: choose one of at most 255"
        with pytest.raises(lake.InvalidRequestError, match=told):
            catalog.create_table(f"shop.{name}", COLUMNS)


def test_a_sound_catalog_needs_no_repair(catalog):
    catalog.create_table("shop.orders", COLUMNS)
    for name in (None, "shop", "shop.orders"):
        assert catalog.repair(name) == RepairReport()


def test_where_directories_cannot_be_renamed_somebody_has_to_insist():
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    with pytest.raises(lake.InvalidRequestError, match=r"not atomic .* Stop all writers.*force"):
        catalog.rename_table("shop.orders", "shop.new")
    assert rows(catalog.rename_table("shop.orders", "shop.new", force=True)) == [1]
    assert not any(path.startswith("wh/shop.db/orders/") for path in storage.files())
