"""Catalogs whose files lie in a bucket: options find their way, and nothing publishes unguarded."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.storage import creation_proof
from lakeformat.storage.object_store import ObjectStorage
from lakeformat.storage.sql import SqlLock
from tests.conformance.faulty_bucket import faulty_bucket

WAREHOUSE = "s3://lake/wh"
COLUMNS = [("id", "BIGINT")]


@pytest.fixture
def bucket(monkeypatch):
    # The next bucket may get the port, and with it the reputation, of an earlier one.
    monkeypatch.setattr(creation_proof, "_verdicts", {})
    with faulty_bucket() as bucket:
        yield bucket


@pytest.fixture
def options(bucket) -> dict[str, str]:
    """Options of the storage."""
    return {
        "s3.endpoint": bucket.endpoint,
        "s3.access-key": "key-id",
        "s3.secret-key": "secret",
        "s3.connection.timeout": "3s",
    }


@pytest.fixture
def jdbc(options, tmp_path) -> dict[str, str]:
    """Options of the storage and of a metastore."""
    return options | {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}


@pytest.fixture
def weak_bucket(bucket):
    """One that takes a conditional write and ignores the condition."""
    bucket.honours_conditions = False
    return bucket


def ids(table: lake.Table) -> list[int]:
    return table.scan().to_arrow()["id"].to_pylist()


def test_one_set_of_options_serves_the_storage_and_the_catalog(options):
    said = options | {"table-default.file.format": "avro"}
    catalog = lake.open_catalog(WAREHOUSE, options=said)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(pa.table({"id": [1]}))
    assert table.options.file_format == "avro"
    assert table.location == "s3://lake/wh/shop.db/orders"
    assert ids(lake.open_table(table.location, options=options)) == [1]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("s3.endpont", r"s3\.endpont is not an option of a storage. Did you mean s3\.endpoint"),
        (
            "gs.auth.access-token",
            "gs.auth.access-token does not apply to s3:// and s3a:// addresses",
        ),
        ("fs.oss.endpoint", "'fs.oss.endpoint' is not supported"),
    ],
)
def test_an_option_nobody_takes_is_refused_by_name(options, key, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        lake.open_catalog(WAREHOUSE, options=options | {key: "x"})


def test_options_of_a_bucket_are_refused_on_a_disk(tmp_path, options):
    for wrong in (lake.open_catalog, lake.open_table):
        with pytest.raises(lake.InvalidRequestError, match="does not apply to file://"):
            wrong(str(tmp_path), options=options)


def test_at_a_terminal_the_options_serve_names_and_addresses(options):
    catalog = lake.open_catalog(WAREHOUSE, options=options)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    said = [word for option in options.items() for word in ("--catalog-option", "=".join(option))]
    for table in ("shop.orders", f"{WAREHOUSE}/shop.db/orders"):
        done = CliRunner().invoke(app, ["-w", WAREHOUSE, *said, "snapshots", table])
        assert done.exit_code == 0, done.output
        assert "APPEND" in done.output


def test_without_any_guarantee_nothing_is_published_and_the_remedies_are_named(
    weak_bucket, options
):
    catalog = lake.open_catalog(WAREHOUSE, options=options)
    catalog.create_database("shop")
    remedies = r"lock\.enabled=true.*unsafe\.single-writer=true"
    with pytest.raises(lake.UnsupportedError, match=remedies):
        catalog.create_table("shop.orders", COLUMNS)
    assert catalog.list_tables("shop") == []


def test_whoever_vouches_for_being_alone_may_publish(weak_bucket, options):
    catalog = lake.open_catalog(WAREHOUSE, options=options | {"unsafe.single-writer": "true"})
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    for number in (1, 2):
        table.write(pa.table({"id": [number]}))
    assert ids(table) == [1, 2]


def test_with_a_metastore_every_publication_is_under_its_lock(weak_bucket, jdbc, monkeypatch):
    taken = []
    hold = SqlLock.hold
    monkeypatch.setattr(SqlLock, "hold", lambda *asked: taken.append(asked[1]) or hold(*asked))
    catalog = lake.open_catalog(WAREHOUSE, options=jdbc)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(pa.table({"id": [1]}))
    catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    assert taken == ["shop.orders"] * 3
    renamed = catalog.rename_table("shop.orders", "shop.new", force=True)
    renamed.write(pa.table({"id": [2]}))
    assert taken[3:] == ["shop.new", "shop.orders", "shop.new"]
    assert ids(renamed) == [1, 2]


def test_a_metastore_without_its_lock_leaves_such_a_bucket_refused(weak_bucket, jdbc):
    catalog = lake.open_catalog(WAREHOUSE, options=jdbc | {"lock.enabled": "false"})
    catalog.create_database("shop")
    with pytest.raises(lake.UnsupportedError, match=r"lock\.enabled=true"):
        catalog.create_table("shop.orders", COLUMNS)


def test_a_database_in_another_bucket_is_opened_with_the_same_options(
    s3_client, s3_bucket, s3_options, tmp_path, monkeypatch
):
    monkeypatch.setattr(creation_proof, "_verdicts", {})
    far = f"{s3_bucket}-far"
    s3_client.create_bucket(Bucket=far)
    metastore = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    catalog = lake.open_catalog(f"s3://{s3_bucket}/wh", options=s3_options | metastore)
    catalog.create_database("near")
    catalog.create_database("far", properties={"location": f"s3://{far}/shop"})
    catalog.create_table("far.orders", COLUMNS).write(pa.table({"id": [1]}))
    renamed = catalog.rename_table("far.orders", "far.new", force=True)
    assert renamed.location == f"s3://{far}/shop/new"
    assert ids(renamed) == [1]
    with pytest.raises(lake.InvalidRequestError, match="are in different storages"):
        catalog.rename_table("far.new", "near.orders", force=True)


@pytest.mark.parametrize("format", ["paimon", "iceberg", "mixed"])
def test_a_database_without_a_marker_outlives_its_last_table(bucket, options, format):
    """Another program may have created it by writing a table."""
    kind = "iceberg" if format == "mixed" else format
    catalog = lake.open_catalog(WAREHOUSE, options=options, format=kind)
    catalog.create_database("shop")
    more = {"format": "mixed", "primary_key": ["id"]} if format == "mixed" else {}
    catalog.create_table("shop.orders", COLUMNS, **more).write(pa.table({"id": [1]}))
    for key in [key for key in bucket.objects if key.endswith("/.directory")]:
        del bucket.objects[key]
    catalog.drop_table("shop.orders", **({} if format == "paimon" else {"purge": True}))
    assert catalog.list_databases() == ["shop"]
    catalog.create_table("shop.orders", COLUMNS, **more)
    catalog.drop_database("shop", cascade=True, **({} if format == "paimon" else {"purge": True}))
    assert catalog.list_databases() == []


def test_a_database_without_a_marker_outlives_the_rename_of_its_last_table(bucket, options):
    catalog = lake.open_catalog(WAREHOUSE, options=options)
    catalog.create_database("shop")
    catalog.create_database("other")
    catalog.create_table("shop.orders", COLUMNS)
    del bucket.objects["wh/shop.db/.directory"]
    catalog.rename_table("shop.orders", "other.orders", force=True)
    assert catalog.list_databases() == ["other", "shop"]
    assert catalog.list_tables("shop") == []


def test_a_database_with_a_marker_is_not_marked_again(bucket, options):
    catalog = lake.open_catalog(WAREHOUSE, options=options)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS)
    catalog.drop_table("shop.orders")
    assert bucket.puts("shop.db/.directory") == 1


def test_equal_schemas_do_not_make_another_table_a_copy_of_ours(options):
    at_one_time = replace(lake.Environment(), now_millis=lambda: 1_700_000_000_000)
    catalog = lake.open_catalog(WAREHOUSE, options=options, environment=at_one_time)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))
    catalog.create_table("shop.other", COLUMNS)
    with pytest.raises(lake.AlreadyExistsError, match=r"'shop.other' exists"):
        catalog.rename_table("shop.orders", "shop.other", force=True)
    assert catalog.list_tables("shop") == ["orders", "other"]
    assert ids(catalog.table("shop.orders")) == [1]


def test_a_copy_that_was_stopped_is_finished(options, monkeypatch):
    catalog = lake.open_catalog(WAREHOUSE, options=options)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", COLUMNS).write(pa.table({"id": [1]}))

    def killed(storage, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ObjectStorage, "delete_directory", killed)
        with pytest.raises(KeyboardInterrupt):
            catalog.rename_table("shop.orders", "shop.new", force=True)
    assert catalog.list_tables("shop") == ["new", "orders"]
    assert ids(catalog.rename_table("shop.orders", "shop.new", force=True)) == [1]
    assert catalog.list_tables("shop") == ["new"]
