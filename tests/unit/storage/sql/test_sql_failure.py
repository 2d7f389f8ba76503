"""An error of a database has advice, and no secret."""

from __future__ import annotations

import sqlite3
import traceback
from contextlib import closing
from urllib.parse import quote

import pytest
from sqlalchemy import make_url

import lakeformat as lake
from lakeformat.storage import open_storage

SECRET = "TOPSECRET"
NOWHERE = "postgresql://user@127.0.0.1:1/db"


def opened(uri: str, directory, **options: str) -> lake.Catalog:
    return lake.open_catalog(str(directory), metastore="jdbc", uri=uri, options=options)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("none/c.db", "create the directory of the file; then create_database"),
        ("directory", "must name a file in an existing directory"),
        ("junk.db", "is not a SQLite database: correct the uri"),
        ("foreign.db", "belongs to another program: restore it, or name an empty database"),
    ],
)
def test_a_file_that_is_no_metastore_says_what_to_do(tmp_path, name, remedy):
    (tmp_path / "directory").mkdir()
    (tmp_path / "junk.db").write_text("no database at all " * 100)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE paimon_tables (x INT)")
    with pytest.raises(lake.LakeError, match=remedy) as told:
        opened(f"sqlite:///{tmp_path}/{name}", tmp_path).list_databases()
    assert "Retry once the database answers" not in str(told.value)


@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        (f"{NOWHERE}?sslmode=bogus", "Correct that parameter"),
        ("postgresql://user@127.0.0.1:99999/db", "Correct that parameter"),
        (f"{NOWHERE}?nosuch=1", "Correct that parameter"),
        (f"{NOWHERE}?connect_timeout=soon", "Correct that parameter"),
    ],
)
def test_a_parameter_nobody_takes_is_to_be_corrected_and_not_retried(tmp_path, uri, remedy):
    with pytest.raises(lake.InvalidRequestError, match=remedy):
        opened(uri, tmp_path)


def test_a_database_that_is_not_there_is_to_be_made(postgres, tmp_path):
    there = make_url(postgres.new_database())
    uri = there.set(database="nosuch").render_as_string(hide_password=False)
    with pytest.raises(lake.InvalidRequestError, match="Create that database, or correct its name"):
        opened(uri, tmp_path)


@pytest.mark.parametrize(
    "uri",
    [
        f"jdbc:postgresql://127.0.0.1:1/db;password={SECRET}",
        f"postgresql://127.0.0.1:1/db;password={SECRET}",
        f"sqlite:////tmp/a\0{SECRET}",
        f"postgresql://u:\ud800{SECRET}@127.0.0.1:1/db",
    ],
)
def test_an_address_that_cannot_be_understood_is_refused_without_its_secret(tmp_path, uri):
    with pytest.raises(lake.InvalidRequestError) as refused:
        opened(uri, tmp_path)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("password", [f"\0{SECRET}", f"\ud800{SECRET}"])
def test_a_password_no_driver_takes_is_named_and_not_shown(tmp_path, password):
    with pytest.raises(
        lake.InvalidRequestError, match=r"jdbc\.password contains (half of a surr|a null)"
    ) as refused:
        opened(NOWHERE, tmp_path, **{"jdbc.password": password})
    assert SECRET not in "".join(traceback.format_exception(refused.value)[-1:])


@pytest.mark.parametrize("name", ["sslkey", "sslcert", "sslrootcert"])
def test_a_key_in_place_of_the_path_of_its_file_is_refused_and_never_shown(tmp_path, name):
    pem = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"
    for uri, options in (
        (NOWHERE, {f"jdbc.{name}": pem}),
        (f"{NOWHERE}?{name}={quote(pem)}", {}),
    ):
        with pytest.raises(lake.InvalidRequestError, match=f"{name} of the metastore") as refused:
            opened(uri, tmp_path, **options)
        assert SECRET not in "".join(traceback.format_exception(refused.value)[-1:])


@pytest.mark.parametrize(
    ("address", "options"),
    [
        (f"memory://u:{SECRET}@h/wh", {}),
        (f"s3://b/x?X-Amz-Signature={SECRET}", {}),
        (f"az://c@a.dfs.core.windows.net/x?sv=1&sig={SECRET}", {}),
        ("s3://b/x", {"s3.endpoint": f"http://u:{SECRET}@h"}),
    ],
)
def test_an_address_of_a_storage_keeps_its_secret(address, options):
    with pytest.raises(lake.InvalidRequestError) as refused:
        open_storage(address, options)
    assert SECRET not in str(refused.value)
