"""The logins of catalogs in which tables are published: from the connection, never from a table."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import lakeformat as lake
from tests.unit.publish.catalogs import COLUMNS, opened
from tests.unit.publish.published import rows_of

REST = {"metadata.iceberg.storage": "rest-catalog"}


def catalog_of(directory: Path, options: dict[str, str]) -> lake.Catalog:
    catalog = lake.open_catalog(str(directory), options=options)
    catalog.create_database("shop", exist_ok=True)
    return catalog


def table_with(directory: Path, options: dict[str, str], **connection: str) -> lake.Table:
    """A table as another engine made it, opened by a connection."""
    catalog = catalog_of(directory, {})
    catalog.create_table("shop.orders", COLUMNS)
    schema = directory / "shop.db/orders/schema/schema-0"
    members = json.loads(schema.read_text())
    schema.write_text(json.dumps({**members, "options": {**members["options"], **options}}))
    given = {f"metadata.iceberg.rest.{key}": value for key, value in connection.items()}
    found = catalog_of(directory, given).table("shop.orders")
    assert isinstance(found, lake.Table)
    return found


def write(table: lake.Table) -> None:
    table.write(rows_of(id=[1], note=["a"]))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metadata.iceberg.rest.token", "s3cret"),
        ("metadata.iceberg.rest.credential", "me:s3cret"),
        ("metadata.iceberg.rest.s3.secret-access-key", "s3cret"),
        ("metadata.iceberg.rest.header.X-Auth", "s3cret"),
        ("metadata.iceberg.rest.uri", "http://me:s3cret@127.0.0.1:1"),
    ],
)
def test_a_credential_in_the_schema_is_refused_by_its_name(tmp_path, key, value):
    table = table_with(
        tmp_path, {**REST, "metadata.iceberg.rest.uri": "http://127.0.0.1:1", key: value}
    )
    with pytest.raises(lake.UnsupportedError, match="has a credential") as refused:
        write(table)
    assert key in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert table.snapshots() == []


@pytest.mark.parametrize(
    ("address", "connection", "says"),
    [
        (
            None,
            {},
            r"option 'metadata\.iceberg\.rest\.uri' to the table, the catalog or the conn",
        ),
        (
            "http://b",
            {"token": "t"},
            r"give 'metadata\.iceberg\.rest\.uri' to the catalog or connection, too",
        ),
        ("http://b", {"uri": "http://a", "token": "t"}, "names another address"),
    ],
)
def test_no_commit_is_made_without_one_certain_address(tmp_path, address, connection, says):
    options = REST if address is None else {**REST, "metadata.iceberg.rest.uri": address}
    table = table_with(tmp_path, options, **connection)
    with pytest.raises(lake.UnsupportedError, match=says):
        write(table)
    assert table.snapshots() == []


def test_a_token_of_the_connection_is_sent_and_left_out_of_pickles(tmp_path):
    with opened("rest", tmp_path) as published:
        published.service.server.tokens = {"s3cret"}
        token = {"metadata.iceberg.rest.token": "s3cret"}
        catalog = catalog_of(tmp_path / "wh", {**published.service.connection, **token})
        table = catalog.create_table("shop.orders", COLUMNS, options=published.service.options)
        write(table)
        assert table.health().reasons == ()
        assert published.service.server.tables.keys() == {"shop.orders"}
        assert b"s3cret" not in pickle.dumps(table._handle)
        assert "s3cret" not in repr(catalog._options)


def test_a_table_cannot_move_the_address_to_which_a_credential_is_sent(tmp_path):
    with opened("rest", tmp_path) as published, opened("rest", tmp_path) as thief:
        uri = published.service.server.uri
        stolen = {
            "metadata.iceberg.rest.oauth2-server-uri": f"{thief.service.server.uri}/v1/oauth/tokens"
        }
        table = table_with(tmp_path / "wh", {**REST, **stolen}, uri=uri, credential="me:s3cret")
        write(table)
        assert thief.service.server.requests == []
        assert published.service.server.tokens_given > 0


def test_a_service_that_cannot_replace_a_table_gets_it_anew(tmp_path):
    with opened("rest", tmp_path) as published:
        published.service.server.replaces = False
        table = published.table()
        for number in (1, 2):
            table.write(rows_of(id=[number], note=["a"]))
        table.rollback(snapshot=1, as_latest=False)
        table.write(rows_of(id=[9], note=["b"]))
        assert [row["id"] for row in published.read()] == [1, 9]


def test_an_answer_that_is_lost_is_looked_up(tmp_path):
    with opened("rest", tmp_path) as published:
        table = published.table()
        write(table)
        published.service.server.lost_answers = [503]
        write(table)
        assert published.service.server.commits == 1
        assert table.health().reasons == ()


def test_a_wrong_option_of_the_connection_is_an_error_with_the_right_one(tmp_path):
    with pytest.raises(
        lake.InvalidRequestError, match=r"did you mean 'metadata\.iceberg\.rest\.token'"
    ):
        lake.open_catalog(str(tmp_path), options={"metadata.iceberg.rest.tokem": "x"})


def test_a_table_opened_by_its_directory_takes_the_same_options(tmp_path):
    with opened("sql", tmp_path) as published:
        published.table()
        place = str(tmp_path / "wh/shop.db/orders")
        with pytest.raises(lake.UnsupportedError, match=r"'metadata\.iceberg\.sql\.uri'"):
            write(_opened(place, None))
        write(_opened(place, published.service.connection))
        assert [row["id"] for row in published.read()] == [1]


def _opened(place: str, options: dict[str, str] | None) -> lake.Table:
    found = lake.open_table(place, options=options)
    assert isinstance(found, lake.Table)
    return found


def test_the_configuration_of_hive_names_the_metastore(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "hive-site.xml").write_text(
        "<configuration><property><name>hive.metastore.uris</name>"
        "<value>thrift://127.0.0.1:1</value></property></configuration>"
    )
    options = {"metadata.iceberg.storage": "hive-catalog"}
    with opened("hive", tmp_path) as published:
        found = {**options, "metadata.iceberg.hive-conf-dir": str(conf)}
        write(table_with(tmp_path / "wh", found))
        assert [row["id"] for row in published.read()] == [1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {},
            r"give the option 'metadata\.iceberg\.uri' to the table, the catalog or the connection",
        ),
        ({"metadata.iceberg.hive-conf-dir": "/nowhere"}, r"/nowhere/hive-site\.xml"),
        (
            {
                "metadata.iceberg.uri": "thrift://127.0.0.1:1",
                "metadata.iceberg.hive-client-class": "com.amazonaws.AWSCatalogMetastoreClient",
            },
            "reaches only Hive metastores",
        ),
    ],
)
def test_a_hive_metastore_without_an_address_is_refused(tmp_path, options, says):
    table = table_with(tmp_path, {"metadata.iceberg.storage": "hive-catalog", **options})
    with pytest.raises(lake.UnsupportedError, match=says):
        write(table)
    assert table.snapshots() == []
