"""Iceberg tables in AWS Glue and S3, which moto serves on loopback."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.conformance.s3_server import SECRET_KEY, glue_options_for, options_for

COLUMNS = pa.schema([("id", pa.int64()), ("note", pa.string())])


@pytest.fixture
def opened(s3_endpoint: str, s3_bucket: str) -> Callable[[], IcebergCatalog]:
    """Opens the catalog, each time as another process does."""
    address, options = f"s3://{s3_bucket}/warehouse", options_for(s3_endpoint)
    options |= glue_options_for(s3_endpoint)

    def open_again() -> IcebergCatalog:
        return lake.open_catalog(address, format="iceberg", metastore="glue", options=options)

    return open_again


@pytest.fixture
def catalog(opened: Callable[[], IcebergCatalog]) -> IcebergCatalog:
    return opened()


@pytest.fixture
def shop(catalog: IcebergCatalog, s3_bucket: str) -> str:
    """A database of its own, because the tests share one Glue."""
    name = s3_bucket.replace("-", "_")
    catalog.create_database(name, properties={"owner": "ada"})
    return name


def ids(catalog: IcebergCatalog, name: str) -> list[int]:
    return sorted(catalog.table(name).scan().to_arrow()["id"].to_pylist())


def rows(*numbers: int) -> pa.Table:
    return pa.table([[*numbers], [f"row {each}" for each in numbers]], schema=COLUMNS)


def test_a_table_lives_in_glue_from_its_creation_to_its_drop(
    opened, catalog, shop, s3_client, s3_bucket
):
    name = f"{shop}.orders"
    table = catalog.create_table(name, COLUMNS, options={"gc.enabled": "true"})
    for number in range(4):
        catalog.table(name).write(rows(number))
    assert catalog.list_tables(shop) == ["orders"]
    assert catalog.database_properties(shop)["owner"] == "ada"

    compacted = table.compact(strategy="full", rewrite_all=True)
    assert (compacted.files_in, compacted.files_out) == (4, 1)
    table.delete("id = 3")
    catalog.alter_table(name, lake.add_column("price", "DOUBLE"))
    expired = table.expire_snapshots(retain_min=1, older_than="0 s")
    assert (len(catalog.table(name).snapshots()), expired.is_complete) == (1, True)
    assert sum(expired.deleted.files.values()) > 4
    assert ids(opened(), name) == [0, 1, 2]
    assert catalog.table(name).schema.named("price") is not None
    with pytest.raises(lake.UnsupportedError, match="Glue cannot rename"):
        catalog.rename_table(name, f"{shop}.old")

    catalog.drop_table(name, purge=True)
    assert catalog.list_tables(shop) == []
    left = s3_client.list_objects_v2(Bucket=s3_bucket).get("Contents", [])
    assert [each for each in left if not each["Key"].endswith("/.directory")] == []
    catalog.drop_database(shop)
    assert shop not in catalog.list_databases()


def test_pyiceberg_writes_the_same_table(catalog, shop, s3_endpoint):
    from pyiceberg.catalog.glue import GlueCatalog

    catalog.create_table(f"{shop}.orders", COLUMNS).write(rows(1))
    options = glue_options_for(s3_endpoint)
    files = {
        "s3.endpoint": s3_endpoint,
        "s3.access-key-id": options["glue.access-key-id"],
        "s3.secret-access-key": SECRET_KEY,
        "s3.region": "us-east-1",
    }
    theirs = GlueCatalog("theirs", **options, **files).load_table(f"{shop}.orders")
    theirs.append(rows(2))
    catalog.table(f"{shop}.orders").write(rows(3))
    theirs.refresh()
    assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert ids(catalog, f"{shop}.orders") == [1, 2, 3]


def test_no_secret_is_logged_or_shown(catalog, shop, caplog):
    with caplog.at_level(logging.DEBUG, logger="lakeformat"):
        table = catalog.create_table(f"{shop}.orders", COLUMNS)
        table.write(rows(1))
        with pytest.raises(lake.NotFoundError) as missing:
            catalog.table(f"{shop}.ordesr")
    shown = [caplog.text, str(missing.value), repr(catalog), repr(table)]
    assert not [each for each in shown if SECRET_KEY in each]
