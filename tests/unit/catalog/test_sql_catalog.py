"""The SQL catalog on SQLite: what Java's JDBC catalog left there, and what it will find."""

from __future__ import annotations

import sqlite3
import sys
import threading
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy.exc import OperationalError

import lakeformat as lake
from lakeformat.storage.sql import SqlLock, parse_database_uri
from lakeformat.storage.sql.failure import translated

COLUMNS = [("id", "BIGINT")]


class Database:
    """Statements of another program in the same file."""

    def __init__(self, path) -> None:
        self.path = path

    def execute(self, statement: str, *values: str) -> list[tuple]:
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def lock(self, table: str) -> None:
        self.execute(
            "INSERT INTO paimon_distributed_locks (lock_id, expire_time_seconds) VALUES (?, 480)",
            f"jdbc.{table}",
        )


@pytest.fixture
def database(tmp_path) -> Database:
    return Database(tmp_path / "catalog.db")


@pytest.fixture
def opened(tmp_path, database):
    uri = f"jdbc:sqlite:{database.path}"

    def open_again(**options: str) -> lake.Catalog:
        named = {key.replace("_", "-"): value for key, value in options.items()}
        return lake.open_catalog(
            str(tmp_path / "warehouse"), metastore="jdbc", uri=uri, options=named
        )

    return open_again


@pytest.fixture
def catalog(opened) -> lake.Catalog:
    catalog = opened()
    catalog.create_database("shop")
    return catalog


def test_java_finds_databases_tables_and_options_where_it_keeps_them(catalog, database, tmp_path):
    catalog.create_table("shop.orders", COLUMNS, options={"target-file-size": "1 mb"})
    assert database.execute("SELECT * FROM paimon_tables") == [("jdbc", "shop", "orders")]
    location = str(tmp_path / "warehouse" / "shop.db")
    assert sorted(database.execute("SELECT * FROM paimon_database_properties")) == [
        ("jdbc", "shop", "exists", "true"),
        ("jdbc", "shop", "location", location),
    ]
    assert database.execute("SELECT * FROM paimon_table_properties") == [
        ("jdbc", "shop", "orders", "target-file-size", "1 mb")
    ]


def test_properties_follow_the_schema(catalog, database):
    catalog.create_table("shop.orders", COLUMNS, options={"target-file-size": "1 mb"})
    catalog.alter_table("shop.orders", lake.set_option("target-file-size", "2 mb"))
    kept = "SELECT property_value FROM paimon_table_properties"
    assert database.execute(kept) == [("2 mb",)]
    database.execute("UPDATE paimon_table_properties SET property_value = 'stale'")
    assert catalog.repair("shop.orders").synchronized == ("shop.orders",)
    assert database.execute(kept) == [("2 mb",)]
    catalog.rename_table("shop.orders", "shop.new")
    assert database.execute("SELECT table_name, property_key FROM paimon_table_properties") == [
        ("new", "target-file-size")
    ]


def test_an_option_too_long_for_its_column_is_in_the_schema_alone(catalog, database):
    prefix = "p" * 1001
    made = catalog.create_table("shop.orders", COLUMNS, options={"data-file.prefix": prefix})
    assert made.options.data_file_prefix == prefix
    assert database.execute("SELECT * FROM paimon_table_properties") == []


def test_options_stay_in_the_schema_alone_if_that_is_wanted(opened, database):
    catalog = opened(sync_all_properties="false")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS, options={"target-file-size": "1 mb"})
    assert database.execute("SELECT * FROM paimon_table_properties") == []


def test_a_database_has_properties_that_can_be_changed(catalog):
    catalog.create_database("bank", properties={"owner": "ann", "note": "x"})
    catalog.alter_database("bank", set={"owner": "bob", "more": "y"}, remove=["note"])
    found = catalog.database_properties("bank")
    assert found.pop("location").endswith("/bank.db")
    assert found == {"owner": "bob", "more": "y"}
    with pytest.raises(lake.InvalidRequestError, match="'owner' of a database is too long"):
        catalog.alter_database("bank", set={"owner": "b" * 1001})
    with pytest.raises(lake.InvalidRequestError, match="'location' of database 'bank' cannot"):
        catalog.alter_database("bank", remove=["location"])


def test_a_database_that_java_put_elsewhere_is_found_there(catalog, database, tmp_path):
    place = tmp_path / "a b%20c"
    for key, value in (("exists", "true"), ("location", f"file:{place}")):
        database.execute(
            "INSERT INTO paimon_database_properties VALUES ('jdbc', 'far', ?, ?)", key, value
        )
    catalog.create_table("far.orders", COLUMNS)
    assert (place / "orders" / "schema" / "schema-0").exists()


def test_a_name_taken_by_a_view_is_taken_and_the_view_stays(catalog, database):
    database.execute("INSERT INTO paimon_views VALUES ('jdbc', 'shop', 'v', '{}')")
    catalog.create_table("shop.orders", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"'shop.v' is a view"):
        catalog.create_table("shop.v", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"'shop.v' is a view"):
        catalog.rename_table("shop.orders", "shop.v")
    assert catalog.list_tables("shop") == ["orders"]
    catalog.drop_table("shop.orders")
    with pytest.raises(lake.InvalidRequestError, match="has views of other programs: v"):
        catalog.drop_database("shop")
    assert len(database.execute("SELECT * FROM paimon_views")) == 1


def test_a_database_exists_as_soon_as_any_row_mentions_it(catalog, database):
    database.execute("INSERT INTO paimon_tables VALUES ('jdbc', 'a', 't')")
    database.execute("INSERT INTO paimon_views VALUES ('jdbc', 'b', 'v', '{}')")
    assert catalog.list_databases() == ["a", "b", "shop"]


def test_catalogs_with_different_keys_do_not_see_each_other(catalog, opened, database):
    catalog.create_table("shop.orders", COLUMNS)
    other = opened(catalog_key="other")
    assert other.list_databases() == []
    assert other.repair().registered == ("shop", "shop.orders")
    assert other.list_tables("shop") == ["orders"]


def test_a_key_without_rows_is_refused_with_the_keys_that_have_rows(catalog, opened):
    opened().require_exists()
    with pytest.raises(lake.NotFoundError, match=r"no catalog 'other'; it has 'jdbc'.*catalog-key"):
        opened(catalog_key="other").require_exists()


def test_a_mistyped_file_is_named_and_not_created(opened, database):
    for read in (
        lambda catalog: catalog.list_databases(),
        lambda catalog: catalog.table("shop.orders"),
    ):
        with pytest.raises(lake.NotFoundError, match=r"catalog\.db: this file does not exist"):
            read(opened())
    assert not database.path.exists()
    opened().create_database("shop")
    assert opened().list_databases() == ["shop"]


def test_a_lost_file_is_created_by_a_repair(catalog, opened, database):
    catalog.create_table("shop.orders", COLUMNS)
    database.path.unlink()
    assert opened().repair().registered == ("shop", "shop.orders")


def test_a_row_without_files_is_reported_and_can_be_dropped(catalog, database):
    database.execute("INSERT INTO paimon_tables VALUES ('jdbc', 'shop', 'ghost')")
    assert catalog.repair("shop").without_files == ("shop.ghost",)
    with pytest.raises(
        lake.NotFoundError, match=r"'shop.ghost' is listed in .* files are missing or incomplete"
    ):
        catalog.table("shop.ghost")
    assert catalog.plan_drop_table("shop.ghost").directory.endswith("/shop.db/ghost")
    catalog.drop_table("shop.ghost")
    assert catalog.list_tables("shop") == []


def test_a_table_made_anew_after_an_unfinished_drop_is_not_dropped_by_repair(catalog, database):
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    database.execute(
        "INSERT INTO paimon_table_properties VALUES ('jdbc','shop','orders','lake.dropped','x')"
    )
    assert catalog.repair().dropped == ()
    assert catalog.table("shop.orders").scan().count() == 1
    assert database.execute("SELECT * FROM paimon_table_properties") == []


def test_files_nobody_listed_survive_the_drop_of_their_database(catalog, tmp_path):
    stray = tmp_path / "warehouse" / "shop.db" / "notes.txt"
    stray.write_text("mine")
    catalog.drop_database("shop")
    assert catalog.list_databases() == []
    assert stray.exists()


def test_a_held_lock_stops_changes_of_names_and_schemas_but_not_commits(opened, database):
    catalog = opened(lock_acquire_timeout="1 s")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    database.lock("shop.orders")
    for wrong in (
        lambda: catalog.drop_table("shop.orders"),
        lambda: catalog.rename_table("shop.orders", "shop.new"),
        lambda: catalog.alter_table("shop.orders", lake.add_column("a", "INT")),
    ):
        with pytest.raises(lake.LockUnavailableError, match="not free within 1 s"):
            wrong()
    assert catalog.table("shop.orders").schema.id == 0
    assert catalog.table("shop.orders").write(pa.table({"id": [1]})).snapshot_id == 1


def test_a_write_at_the_end_of_the_wait_does_not_hide_who_holds_the_lock(opened, database):
    catalog = opened(lock_acquire_timeout="1 s")
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    database.lock("shop.orders")
    other = sqlite3.connect(database.path, check_same_thread=False, isolation_level=None)
    begins = threading.Timer(0.5, lambda: other.execute("BEGIN IMMEDIATE"))
    ends = threading.Timer(1.3, lambda: other.execute("ROLLBACK"))
    try:
        begins.start()
        ends.start()
        with pytest.raises(lake.LockUnavailableError, match="not free within 1 s"):
            catalog.drop_table("shop.orders")
    finally:
        begins.join()
        ends.join()
        other.close()


def test_a_commit_against_a_held_lock_fails_at_once_and_leaves_nothing(
    opened, database, tmp_path, monkeypatch
):
    catalog = opened(lock_acquire_timeout="1 s", **{"lock.enabled": "true"})
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    database.lock("shop.orders")

    def files() -> set[Path]:
        return {path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()}

    tries = []
    hold = SqlLock.hold
    monkeypatch.setattr(SqlLock, "hold", lambda *asked: tries.append(asked) or hold(*asked))
    before = files()
    with pytest.raises(lake.LockUnavailableError, match="not free within 1 s"):
        table.write(pa.table({"id": [1]}))
    assert len(tries) == 1
    assert files() == before
    assert table.snapshots() == []
    database.execute("DELETE FROM paimon_distributed_locks")
    assert table.write(pa.table({"id": [1]})).snapshot_id == 1


def test_with_lock_enabled_rows_are_written_and_the_lock_is_free_afterwards(opened, database):
    catalog = opened(**{"lock.enabled": "true"})
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(pa.table({"id": [1]}))
    catalog.alter_table("shop.orders", lake.add_column("a", "INT"))
    assert catalog.table("shop.orders").scan().count() == 1
    assert database.execute("SELECT * FROM paimon_distributed_locks") == []


@pytest.mark.parametrize(
    ("uri", "properties", "url"),
    [
        ("jdbc:sqlite:/a/b.db", {}, "sqlite:////a/b.db"),
        ("sqlite:////a/b.db", {}, "sqlite:////a/b.db"),
        ("jdbc:sqlite:/a/b.db?busy_timeout=500", {}, "sqlite:////a/b.db"),
        ("jdbc:sqlite:~/b.db", {}, f"sqlite:///{Path.home()}/b.db"),
        (
            "jdbc:postgresql://h:5433/d?user=u&password=p%40",
            {},
            "postgresql+psycopg2://u:p%40@h:5433/d?connect_timeout=10",
        ),
        (
            "jdbc:postgresql://h/d?ssl=true&currentSchema=s",
            {"user": "u", "password": "p"},
            "postgresql+psycopg2://u:p@h/d"
            "?connect_timeout=10&options=-csearch_path%3Ds&sslmode=verify-full",
        ),
        ("jdbc:postgresql:d", {}, "postgresql+psycopg2://localhost/d?connect_timeout=10"),
        (
            "postgresql+pg8000://h/d",
            {},
            "postgresql+pg8000://h/d?connect_timeout=10",
        ),
        (
            "postgresql+psycopg2://a:b@h/d",
            {"user": "u", "password": "p"},
            "postgresql+psycopg2://u:p@h/d?connect_timeout=10",
        ),
    ],
)
def test_both_ways_to_write_an_address(uri, properties, url):
    found = parse_database_uri(uri, properties)
    assert found.url.render_as_string(hide_password=False) == url


@pytest.mark.parametrize(
    ("uri", "properties", "words"),
    [
        ("", {}, "needs uri="),
        ("not an address", {}, "is not a database address"),
        ("mysql://h/d", {}, "a mysql database cannot hold a metastore"),
        ("jdbc:mysql://h/d", {}, "a jdbc:mysql database cannot hold a metastore"),
        ("jdbc:postgresql://a,b/d", {}, "not a jdbc:postgresql address of one host"),
        ("jdbc:postgresql://h/d?loginTimeout=1", {}, "the uri's loginTimeout is not supported"),
        ("postgresql://h/d", {"nix": "1"}, "option jdbc.nix is not supported"),
        ("sqlite://", {}, "must be a file"),
        ("jdbc:sqlite::memory:", {}, "must be a file"),
        ("jdbc:sqlite:/a.db", {"user": "u"}, "parameter 'user' is not supported"),
        ("jdbc:sqlite:/a.db?cache=shared", {}, "parameter 'cache' is not supported.* busy_timeout"),
        ("jdbc:sqlite:/a.db?busy_timeout=1s", {}, "busy_timeout .* must be a whole number"),
        ("jdbc:sqlite:~nobody-of-that-name/a.db", {}, "names no home directory"),
    ],
)
def test_an_address_that_cannot_be_right_is_refused(uri, properties, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        parse_database_uri(uri, properties)


def test_how_long_java_waits_for_a_busy_file_is_how_long_we_wait():
    waits = [
        parse_database_uri("jdbc:sqlite:/a.db").busy_seconds,
        parse_database_uri("jdbc:sqlite:/a.db?busy_timeout=500").busy_seconds,
        parse_database_uri("sqlite:////a.db", {"busy_timeout": "0"}).busy_seconds,
    ]
    assert waits == [30, 0.5, 0]


def test_a_file_that_stays_busy_is_said_as_soon_as_that_has_passed(tmp_path, database):
    warehouse, uri = str(tmp_path / "warehouse"), f"jdbc:sqlite:{database.path}"
    catalog = lake.open_catalog(warehouse, metastore="jdbc", uri=f"{uri}?busy_timeout=1")
    catalog.create_database("bank")
    assert {path.name for path in tmp_path.glob("*.db*")} == {"catalog.db"}
    other = sqlite3.connect(database.path)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(lake.UnavailableError, match="database is locked"):
            catalog.create_database("shop")
    finally:
        other.close()


@pytest.mark.parametrize(
    ("uri", "missing", "remedy"),
    [
        ("jdbc:postgresql://h/d", "psycopg2", r"pip install 'airflow-provider-lake\[jdbc\]'"),
        ("postgresql+pg8000://h/d", "pg8000", r"the package pg8000, or write postgresql\+psycopg2"),
        ("postgresql+nix://h/d", "nix", r"Check its name, or write postgresql\+psycopg2"),
    ],
)
def test_a_driver_that_is_not_installed_is_named(tmp_path, monkeypatch, uri, missing, remedy):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(lake.InvalidRequestError, match=f"{missing}.*{remedy}"):
        lake.open_catalog(str(tmp_path), metastore="jdbc", uri=uri)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/d", {}),
        ("jdbc:postgresql://127.0.0.1:1/d?user=u&password=s3cret", {}),
        ("jdbc:postgresql://127.0.0.1:1/d", {"jdbc.user": "u", "jdbc.password": "s3cret"}),
        ("postgresql://u:s3cret@127.0.0.1:x/d", {}),
        ("s3cret", {}),
    ],
)
def test_a_password_is_in_no_message_and_no_traceback(tmp_path, uri, options):
    with pytest.raises(lake.LakeError) as raised:
        lake.open_catalog(str(tmp_path), metastore="jdbc", uri=uri, options=options)
    assert "s3cret" not in "".join(traceback.format_exception(raised.value)).replace(uri, "")
    assert "s3cret" not in str(raised.value)


def test_a_password_that_a_driver_quotes_is_blotted_out():
    address = parse_database_uri("postgresql://u:s3cret@h/d")
    said = OperationalError("SELECT 1", {}, Exception("no user u/s3cret"))
    told = r"cannot ask in .* no user u/\*\*\*"
    with pytest.raises(lake.UnavailableError, match=told) as raised, translated(address, "ask"):
        raise said
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_options_and_addresses_print_no_secret():
    from lakeformat.catalog.options import CatalogOptions

    uri = "postgresql://u:s3cret@h/d?sslpassword=s3cret"
    options = CatalogOptions({"metastore": "jdbc", "uri": uri, "jdbc.password": "s3cret"})
    address = parse_database_uri(uri)
    assert "s3cret" not in repr(options) + repr(address) + str(address)


def test_what_is_said_twice_must_be_the_same(tmp_path):
    options = {"metastore": "filesystem"}
    lake.open_catalog(str(tmp_path), metastore="filesystem", options=options)
    with pytest.raises(
        lake.InvalidRequestError, match="argument metastore and the option 'metastore' differ"
    ):
        lake.open_catalog(str(tmp_path), metastore="jdbc", options=options)


@pytest.mark.parametrize("key", ["uri", "jdbc.user", "catalog-key", "lock.enabled"])
def test_an_option_of_the_jdbc_metastore_is_refused_without_it(tmp_path, key):
    value = "true" if key == "lock.enabled" else "x"
    with pytest.raises(lake.InvalidRequestError, match=f"'{key}' needs the jdbc metastore"):
        lake.open_catalog(str(tmp_path), options={key: value})


def test_without_sqlalchemy_the_extra_is_named(tmp_path, monkeypatch):
    loaded = ("lakeformat.storage.sql", "lakeformat.catalog.sql", "sqlalchemy")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(lake.InvalidRequestError, match=r"airflow-provider-lake\[jdbc\]"):
        lake.open_catalog(str(tmp_path), metastore="jdbc", uri="sqlite:////a.db")
