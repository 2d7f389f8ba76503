"""Dropping a table removes its own files, wherever they lie, and nothing else that lies there."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.storage import open_storage
from lakeformat.storage.shown import secrets_in, without_credentials

COLUMNS = [("id", "BIGINT")]
_numbers = itertools.count()


def catalog_at(warehouse: str, allowed: str | None = None) -> lake.Catalog:
    options = {} if allowed is None else {"external-roots": allowed}
    catalog = lake.open_catalog(warehouse, options=options)
    catalog.create_database("shop")
    return catalog


def external(path: str) -> dict[str, str]:
    return {
        "data-file.external-paths": path,
        "data-file.external-paths.strategy": "round-robin",
    }


def test_an_external_path_that_holds_everything_loses_only_the_buckets_of_the_table():
    root = f"memory://drop-{next(_numbers)}"
    catalog = catalog_at(f"{root}/wh", f"{root}/out")
    kept = catalog.create_table("shop.kept", COLUMNS)
    kept.write(pa.table({"id": [1]}))
    doomed = catalog.create_table("shop.doomed", COLUMNS, options=external(f"{root}/out"))
    doomed.write(pa.table({"id": [2]}))
    storage, _ = open_storage(f"{root}/wh")
    storage.overwrite("out/notes.txt", b"mine")
    storage.overwrite("out/other/bucket-0/data.parquet", b"mine")
    catalog.drop_table("shop.doomed")
    assert sorted(path for path in storage.files() if path.startswith("out/")) == [
        "out/notes.txt",
        "out/other/bucket-0/data.parquet",
    ]
    assert kept.scan().count() == 1


def test_an_external_path_that_is_another_database_is_refused(tmp_path):
    catalog = catalog_at(str(tmp_path), str(tmp_path))
    catalog.create_database("other")
    kept = catalog.create_table("other.kept", COLUMNS)
    kept.write(pa.table({"id": [1]}))
    with pytest.raises(lake.InvalidRequestError, match="lies in the directory of database 'other'"):
        catalog.create_table("shop.doomed", COLUMNS, options=external(f"file:{tmp_path}/other.db"))
    assert kept.scan().count() == 1


def test_one_place_spelled_in_two_ways_is_one_place(tmp_path):
    catalog = catalog_at(str(tmp_path / "wh"), str(tmp_path / "out"))
    catalog.create_table("shop.a", COLUMNS, options=external(f"file:{tmp_path}/out"))
    catalog.create_table("shop.b", COLUMNS, options=external(f"file://{tmp_path}/out"))
    with pytest.raises(lake.InvalidRequestError, match=r"'shop.a' and .* of 'shop.b' overlap"):
        catalog.drop_table("shop.a")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://KEY:Se/cr3t@bucket/wh", "s3://…@bucket/wh"),
        ("s3:/KEY:SECRET@b", "s3:/…@b"),
        ("az://c:SECRET@acct", "az://…@acct"),
        ("hdfs://u:pw@host", "hdfs://…@host"),
        ("abfss://box@account.dfs.core.windows.net/wh", None),
        ("/data/a@b", None),
    ],
)
def test_what_looks_like_a_password_is_not_shown(address, shown):
    assert without_credentials(address) == (shown or address)


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("postgresql://me:hush@db/lake", {"hush"}),
        ("mysql://me:a%40b@db", {"a%40b", "a@b"}),
        ("mysql://me:one@two@db", {"one@two", "one", "two"}),
        ("jdbc:mysql://db/lake?user=me&password=hush&ssl=true", {"hush"}),
        ("abfss://box@account.dfs.core.windows.net/wh", set()),
        ("/data/a@b", set()),
    ],
)
def test_the_secrets_in_an_address_are_known(address, secrets):
    assert {*secrets_in(address)} == secrets


@pytest.mark.parametrize(
    "address",
    [
        "s3:/K:TOPSECRET@b",
        "hdfs://u:TOPSECRET@h",
        "ftp://u:TOPSECRET@h/x",
        "file://u:TOPSECRET@h/x",
    ],
)
def test_no_error_about_an_address_tells_its_password(address):
    with pytest.raises(lake.InvalidRequestError) as refused:
        open_storage(address)
    assert "TOPSECRET" not in str(refused.value)
