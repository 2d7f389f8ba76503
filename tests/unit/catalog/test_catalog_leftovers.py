"""A table that is renamed, dropped or linked elsewhere leaves nothing that another one inherits."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.repair_report import RepairReport
from lakeformat.storage import LocalStorage, open_storage

COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def catalog(opened) -> lake.Catalog:
    catalog = opened()
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    return catalog


@pytest.fixture
def shop(tmp_path) -> Path:
    return tmp_path / "wh" / "shop.db"


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets a rival act right before a step of the storage on a path that ends so."""

    def before(step: str, end: str, act) -> None:
        original, rivals = getattr(LocalStorage, step), [act]

        def stepped(storage, path, *more):
            if path.endswith(end) and rivals:
                rivals.pop()()
            return original(storage, path, *more)

        monkeypatch.setattr(LocalStorage, step, stepped)

    return before


def ids(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


# ---------------------------------------------------------------------- writers who do not know


def test_a_commit_does_not_bring_back_a_table_that_was_renamed_under_it(
    catalog, opened, meanwhile, shop
):
    table = catalog.table("shop.orders")
    meanwhile("create", "/snapshot-2", lambda: opened().rename_table("shop.orders", "shop.renamed"))
    with pytest.raises(lake.NotFoundError, match="renamed or dropped"):
        table.write(pa.table({"id": [2]}))
    assert not (shop / "orders" / "snapshot").exists()
    assert catalog.list_tables("shop") == ["renamed"]
    assert ids(catalog.table("shop.renamed")) == [1]


def drop(catalog: lake.Catalog) -> None:
    catalog.drop_table("shop.orders")


def rename(catalog: lake.Catalog) -> None:
    catalog.rename_table("shop.orders", "shop.renamed")


def make_anew(catalog: lake.Catalog) -> None:
    drop(catalog)
    catalog.create_table("shop.orders", [("other", "STRING")])


@pytest.mark.parametrize("change", [drop, rename])
def test_a_table_that_is_not_there_any_more_is_not_read_as_an_empty_one(catalog, change):
    table = catalog.table("shop.orders")
    change(catalog)
    for read in (table.scan, table.latest_snapshot, table.position):
        with pytest.raises(lake.NotFoundError, match="renamed or dropped after it was opened"):
            read()


@pytest.mark.parametrize("rival", [drop, rename, make_anew])
def test_a_new_schema_does_not_stay_where_another_table_is_or_none(
    tmp_path, meanwhile, shop, rival
):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    meanwhile("create", "/schema-1", lambda: rival(lake.open_catalog(str(tmp_path / "wh"))))
    with pytest.raises((lake.NotFoundError, lake.CommitConflictError), match="renamed or dropped"):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    assert not list(shop.rglob("schema-1"))


def test_a_new_schema_does_not_stay_alone_where_a_writer_has_left_files(tmp_path, meanwhile, shop):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)

    def rename_and_leave_files() -> None:
        rename(lake.open_catalog(str(tmp_path / "wh")))
        (shop / "orders" / "manifest").mkdir(parents=True)

    meanwhile("create", "/schema-1", rename_and_leave_files)
    with pytest.raises(lake.CommitConflictError, match="Nothing was changed"):
        catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    assert not list(shop.rglob("schema-1"))


# ---------------------------------------------------------------------- files without a table


@pytest.mark.parametrize("left", ["snapshot/snapshot-1", "manifest/m", "bucket-0/data", "k=1/x"])
def test_a_table_is_not_made_on_top_of_files_of_another(catalog, shop, left):
    path = shop / "new" / left
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    remedy = rf"{left}\. Delete the files with catalog.drop_table\('shop.new'\)"
    with pytest.raises(lake.AlreadyExistsError, match=remedy):
        catalog.create_table("shop.new", COLUMNS)
    assert catalog.plan_drop_table("shop.new").directory.endswith("/shop.db/new")
    catalog.drop_table("shop.new")
    assert not (shop / "new").exists()
    catalog.create_table("shop.new", COLUMNS)


def test_what_a_crash_leaves_while_a_table_is_made_is_no_table(catalog, shop):
    (shop / "new" / "schema").mkdir(parents=True)
    (shop / "new" / "schema" / ".schema-0.1f.tmp").write_bytes(b"{")
    (shop / "new" / "snapshot").mkdir()
    catalog.create_table("shop.new", COLUMNS, exist_ok=True)
    with pytest.raises(lake.NotFoundError, match=r"'shop.nothing' does not exist"):
        catalog.drop_table("shop.nothing")


def test_a_drop_that_was_killed_leaves_a_hidden_directory_that_is_no_table(
    catalog, opened, shop, monkeypatch
):
    def killed(storage, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete_directory", killed)
        with pytest.raises(KeyboardInterrupt):
            catalog.drop_table("shop.orders")
    (hidden,) = shop.iterdir()
    assert hidden.name.startswith(".dropped-")
    assert (hidden / "schema" / "schema-0").exists()
    catalog = opened()
    assert catalog.list_tables("shop") == []
    assert catalog.repair().dropped
    assert list(shop.iterdir()) == []
    assert catalog.repair() == RepairReport()


def test_files_that_do_not_go_with_their_table_are_told_of_and_keep_no_other(
    catalog, opened, shop, monkeypatch
):
    stuck = shop / ".dropped-1"
    stuck.mkdir()
    delete = LocalStorage.delete_directory

    def refuse(storage, path):
        if path == str(stuck):
            raise lake.UnavailableError("permission denied")
        delete(storage, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete_directory", refuse)
        told = r"'shop.orders' is dropped, but .*: permission denied.*repair\('shop'\)"
        with pytest.raises(lake.UnavailableError, match=told):
            catalog.drop_table("shop.orders")
    assert list(shop.iterdir()) == [stuck]
    assert opened().list_tables("shop") == []
    opened().repair("shop")
    assert list(shop.iterdir()) == []


def test_a_table_made_anew_at_the_last_moment_of_a_drop_stays(tmp_path, meanwhile):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    other = lake.open_catalog(str(tmp_path / "wh"))
    meanwhile("rename_directory", "/shop.db/orders", lambda: make_anew(other))
    with pytest.raises(lake.CommitConflictError, match="another program recreated it meanwhile"):
        catalog.drop_table("shop.orders")
    assert catalog.table("shop.orders").schema.column_names == ["other"]


# ---------------------------------------------------------------------- links


def test_a_table_that_is_a_link_is_dropped_and_what_it_leads_to_stays(catalog, shop, tmp_path):
    (shop / "orders").rename(tmp_path / "far")
    (shop / "orders").symlink_to(tmp_path / "far")
    assert ids(catalog.table("shop.orders")) == [1]
    catalog.drop_table("shop.orders")
    assert catalog.list_tables("shop") == []
    assert list(shop.iterdir()) == []
    assert (tmp_path / "far" / "schema" / "schema-0").exists()


def test_a_table_with_a_linked_bucket_is_dropped(catalog, shop, tmp_path):
    (shop / "orders" / "bucket-0").rename(tmp_path / "far")
    (shop / "orders" / "bucket-0").symlink_to(tmp_path / "far")
    catalog.drop_table("shop.orders")
    assert list(shop.iterdir()) == []
    catalog.create_table("shop.orders", COLUMNS)


@pytest.mark.parametrize("cascade", [True, False])
def test_a_database_that_is_a_link_is_dropped_and_its_tables_stay(tmp_path, cascade):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    link = tmp_path / "wh" / "alias.db"
    link.symlink_to(tmp_path / "wh" / "shop.db")
    assert catalog.plan_drop_database("alias", cascade=cascade) == []
    catalog.drop_database("alias", cascade=cascade)
    assert not link.is_symlink()
    assert ids(catalog.table("shop.orders")) == [1]


@pytest.mark.parametrize("target", ["nowhere", "far", "far/file"])
def test_links_in_a_dropped_database_go_and_what_they_lead_to_stays(tmp_path, target):
    catalog = lake.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_text("theirs")
    (tmp_path / "wh" / "shop.db" / "link").symlink_to(tmp_path / target)
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == []
    assert (tmp_path / "far" / "file").read_text() == "theirs"


# ---------------------------------------------------------------------- databases


def test_a_database_that_gets_a_table_at_the_last_moment_keeps_it(catalog, opened, meanwhile, shop):
    catalog.drop_table("shop.orders")

    def make() -> None:
        other = opened()
        other.create_database("shop", exist_ok=True)
        other.create_table("shop.late", COLUMNS).write(pa.table({"id": [7]}))

    meanwhile("remove_empty_directory", "/shop.db", make)
    # A directory is the database itself; of rows, the old ones are dropped and new ones were made.
    refused = pytest.raises(lake.InvalidRequestError, match="has 1 table: late")
    with refused if isinstance(catalog, FileSystemCatalog) else nullcontext():
        catalog.drop_database("shop")
    assert ids(opened().table("shop.late")) == [7]


def test_only_an_empty_directory_is_removed_from_memory_too():
    storage, _ = open_storage("memory://leftovers")
    storage.make_directory("wh/shop.db")
    storage.overwrite("wh/shop.db/t/f", b"x")
    assert storage.remove_empty_directory("wh/shop.db") is False
    storage.delete("wh/shop.db/t/f")
    assert storage.remove_empty_directory("wh/shop.db") is True


def test_names_that_nobody_could_give_today_hinder_nothing(catalog, shop, tmp_path):
    (shop / "orders").rename(shop / "orders.v1")
    (tmp_path / "wh" / ".db").mkdir()
    (tmp_path / "wh" / "o:x.db" / "t" / "schema").mkdir(parents=True)
    (tmp_path / "wh" / "o:x.db" / "t" / "schema" / "schema-0").write_bytes(
        (shop / "orders.v1" / "schema" / "schema-0").read_bytes()
    )
    catalog.create_table("shop.other", COLUMNS)
    assert "shop.orders.v1" in catalog.repair().damaged
    assert "" not in catalog.list_databases()
    catalog.drop_database("shop", cascade=True)
    assert "shop" not in catalog.list_databases()


@pytest.mark.parametrize("sign", ["metadata/00001-a.metadata.json", "_delta_log/0.json"])
def test_a_table_of_another_kind_is_neither_built_upon_nor_dropped(catalog, shop, sign):
    """The drop of the table would remove the other one's rows, too."""
    for name in (sign, "dt=1/a.parquet"):
        (shop / "lent" / name).parent.mkdir(parents=True)
        (shop / "lent" / name).write_text("{}")
    with pytest.raises(lake.AlreadyExistsError, match=r"another format.*choose another name"):
        catalog.create_table("shop.lent", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"another format.*choose another name"):
        lake.clone_table(catalog.table("shop.orders"), catalog, "shop.lent")
    with pytest.raises(lake.NotFoundError):
        catalog.drop_table("shop.lent")
    assert (shop / "lent" / sign).exists()
    assert (shop / "lent" / "dt=1" / "a.parquet").exists()


def test_a_table_of_another_kind_does_not_go_with_its_database(catalog, shop):
    sign = shop / "lent" / "metadata" / "00001-a.metadata.json"
    sign.parent.mkdir(parents=True)
    sign.write_text("{}")
    if isinstance(catalog, FileSystemCatalog):
        for drops in (catalog.plan_drop_database, catalog.drop_database):
            with pytest.raises(lake.InvalidRequestError, match="a table of another format"):
                drops("shop", cascade=True)
        assert catalog.list_tables("shop") == ["orders"]
        catalog.drop_table("shop.orders")
        with pytest.raises(lake.InvalidRequestError, match="a table of another format"):
            catalog.drop_database("shop")
    else:  # which removes what it lists, and leaves the rest
        catalog.drop_database("shop", cascade=True)
    assert sign.exists()


def test_a_planned_drop_of_a_database_names_the_files_that_are_in_no_table(tmp_path, caplog):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    (tmp_path / "shop.db" / "backup").mkdir()
    (tmp_path / "shop.db" / "notes.txt").write_text("keep")
    [plan] = catalog.plan_drop_database("shop", cascade=True)
    assert plan.table == "shop.orders"
    assert "also deletes files that belong to none of its tables: backup, notes.txt" in caplog.text


# ---------------------------------------------------------------------- what is not text


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda catalog: catalog.repair(5), "5 is not a table name"),
        (lambda catalog: catalog.create_database("new", properties=[1]), "properties"),
        (lambda catalog: catalog.create_table("shop.new", COLUMNS, options=[1]), "options"),
        (lambda catalog: catalog.alter_database("shop", set=["a"]), "set must map str to str"),
        (lambda catalog: catalog.alter_database("shop", remove="owner"), "remove must be a list"),
        (lambda catalog: catalog.alter_database("shop", remove=None), "remove must be a list"),
        (lambda catalog: catalog.alter_database("shop", set={"a": "\ud800"}), r"set\['a'\]"),
        (lambda catalog: catalog.create_database("n", properties={"a": "\0"}), "null character"),
    ],
)
def test_what_is_no_text_is_named(catalog, call, field):
    with pytest.raises(lake.InvalidRequestError, match=field):
        call(catalog)


def test_nothing_to_alter_in_a_database_is_no_error(catalog, shop):
    catalog.alter_database("shop")
    with pytest.raises(lake.NotFoundError, match="'missing' does not exist"):
        catalog.alter_database("missing")


@pytest.mark.parametrize(
    "open_it",
    [lake.open_catalog, partial(lake.open_catalog, format="iceberg"), lake.open_table],
    ids=["paimon", "iceberg", "table"],
)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("s3.secret-key=S3cr3t", "options must map str to str, got str"),
        (["s3.secret-key=S3cr3t"], "options must map str to str, got list"),
        ([["s3.secret-key", "S3cr3t"]], "options must map str to str, got list"),
        ({"s3.secret-key=S3cr3t": "x"}, r"option 's3\.secret-key=…' has its value in its name"),
        ({"fs.s3.secret.key=S3cr3t": "x"}, r"as in \{'fs\.s3\.secret\.key': '…'\}"),
    ],
)
def test_options_of_a_catalog_are_a_mapping(tmp_path, open_it, options, words):
    with pytest.raises(lake.InvalidRequestError, match=words) as refused:
        open_it(str(tmp_path), options=options)
    assert "S3cr3t" not in str(refused.value)


@pytest.mark.parametrize("nothing", ["", [], (), {}, None])
def test_empty_options_of_a_table_are_no_options(tmp_path, nothing):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    location = catalog.create_table("shop.orders", COLUMNS).location
    assert lake.open_table(location, options=nothing).scan().count() == 0


def test_the_name_of_an_option_of_new_tables_may_have_an_equals_sign(tmp_path):
    options = {"table-default.fields.a=b.aggregate-function": "sum"}
    catalog = lake.open_catalog(str(tmp_path), options=options)
    catalog.create_database("shop")
    columns, engine = [*COLUMNS, ("a=b", "BIGINT")], {"merge-engine": "aggregation"}
    table = catalog.create_table("shop.orders", columns, primary_key=["id"], options=engine)
    assert table.schema.options["fields.a=b.aggregate-function"] == "sum"


def test_what_a_drop_has_hidden_is_removed_also_where_nobody_has_noted_it(catalog, shop):
    (shop / ".dropped-1" / "schema").mkdir(parents=True)
    assert catalog.repair("shop").dropped == ("shop..dropped-1",)
    assert [path.name for path in shop.iterdir()] == ["orders"]


def test_a_directory_without_a_schema_is_not_suggested_as_its_own_table(opened, catalog, shop):
    catalog.create_table("shop.pear", COLUMNS)
    catalog.drop_table("shop.pear")
    (shop / "pear" / "bucket-0").mkdir(parents=True)

    with pytest.raises(lake.NotFoundError, match=r"'shop\.pear' does not exist") as found:
        opened().table("shop.pear")

    assert "did you mean 'shop.pear'" not in str(found.value)
