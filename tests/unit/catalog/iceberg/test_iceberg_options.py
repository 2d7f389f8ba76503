"""Options of catalogs of Iceberg tables: each is known by its metastores, or refused by name."""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.options import METASTORES, IcebergOptions

URI = {"path": "", "sql": "sqlite:////x.db", "rest": "http://x", "hive": "thrift://x:1", "glue": ""}


def options(metastore: str = "path", **given: str) -> IcebergOptions:
    named = {key.replace("_", "-"): value for key, value in given.items()}
    uri = {"uri": URI[metastore]} if URI.get(metastore) else {}
    return IcebergOptions.of({"metastore": metastore} | uri | named)


def test_options_of_the_storage_and_of_the_metastore_are_apart():
    found = options("sql", **{"s3.region": "eu-1", "jdbc.user": "ada", "catalog_name": "prod"})
    assert found.storage == {"s3.region": "eu-1"}
    assert found.client == {"jdbc.user": "ada", "catalog-name": "prod"}
    assert "ada" not in repr(found)


@pytest.mark.parametrize(
    "key",
    ["lock.enabled", "table-default.bucket", "catalog-key", "case-sensitive", "client-pool-size"],
)
@pytest.mark.parametrize("metastore", METASTORES)
def test_options_of_paimon_have_no_meaning_here(metastore, key):
    with pytest.raises(lake.UnsupportedError, match=f"'{key}' belongs to catalogs of Paimon"):
        options(metastore, **{key: "1"})


def test_an_unknown_option_gets_the_nearest_one():
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'credential'"):
        options("rest", credentials="a:b")


def test_an_option_of_another_metastore_is_refused():
    with pytest.raises(lake.InvalidRequestError, match="'token' needs the rest metastore"):
        options("sql", token="secret")


@pytest.mark.parametrize(
    ("key", "metastore", "owner"),
    [("jdbc.user", "rest", "sql"), ("jdbc.user", "path", "sql"), ("header.X-Key", "sql", "rest")],
)
def test_a_prefix_of_another_metastore_names_that_metastore(key, metastore, owner):
    with pytest.raises(lake.InvalidRequestError, match=f"'{key}' needs the {owner} metastore"):
        options(metastore, **{key: "ada"})


@pytest.mark.parametrize(
    ("metastore", "meant"), [("jdbc", "sql"), ("hadoop", "path"), ("res", "rest")]
)
def test_a_metastore_by_another_name_is_explained(metastore, meant):
    with pytest.raises(lake.InvalidRequestError, match=f"did you mean '{meant}'"):
        options(metastore)


@pytest.mark.parametrize("metastore", ["sql", "rest", "hive"])
def test_an_address_is_needed(metastore):
    with pytest.raises(lake.InvalidRequestError, match=f"the {metastore} metastore needs uri="):
        IcebergOptions.of({"metastore": metastore})


def test_directories_have_no_address():
    with pytest.raises(lake.InvalidRequestError, match="the path metastore has no uri"):
        IcebergOptions.of({"uri": "http://x"})


@pytest.mark.parametrize(
    ("uri", "metastore"),
    [
        ("https://x", "rest"),
        ("thrift://x:1", "hive"),
        ("jdbc:sqlite:/x.db", "sql"),
        ("postgresql+psycopg2://ada:hidden@x/db", "sql"),
    ],
)
def test_an_address_without_a_metastore_names_the_likely_one(tmp_path, uri, metastore):
    with pytest.raises(lake.InvalidRequestError, match=f"`--metastore {metastore}`"):
        IcebergOptions.of({"uri": uri})
    with pytest.raises(
        lake.InvalidRequestError, match=f"`lake --format iceberg --metastore {metastore}`"
    ) as failure:
        lake.open_catalog(str(tmp_path), uri=uri)
    assert ("'jdbc' for Paimon" in str(failure.value)) == (metastore == "sql")
    assert "hidden" not in str(failure.value)


@pytest.mark.parametrize("metastore", ["rest", "hive", "glue", "sql", "path"])
def test_a_metastore_of_iceberg_tables_names_the_format(tmp_path, metastore):
    with pytest.raises(lake.InvalidRequestError, match=r"`lake --format iceberg`") as failure:
        lake.open_catalog(str(tmp_path), metastore=metastore, uri=URI[metastore] or None)
    assert f"'metastore' ('{metastore}')" in str(failure.value)


@pytest.mark.parametrize("key", ["type", "catalog-type", "catalog-impl"])
def test_the_key_of_another_client_is_explained(key):
    with pytest.raises(
        lake.InvalidRequestError, match="set option 'metastore' to one of path, sql, rest"
    ):
        options(**{key: "rest"})


def test_secrets_are_known_as_a_whole_and_by_their_secret_part():
    found = options("rest", credential="client:hidden", **{"header.X-Key": "also"})
    assert {*found.secrets} == {"client:hidden", "hidden", "also"}


def test_a_format_is_refused_by_name(tmp_path):
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'iceberg'"):
        lake.open_catalog(str(tmp_path), format="icberg")
