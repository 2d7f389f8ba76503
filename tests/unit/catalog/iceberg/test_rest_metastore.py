"""A REST catalog names the metadata of its tables; everything else is read from the files."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg import IcebergCatalog
from tests.iceberg_rest_server import Refused, RestServer, rest_server
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table

SECRET = "very-secret"


@pytest.fixture
def server() -> Iterator[RestServer]:
    with rest_server() as found:
        found.databases["shop"] = {"owner": "ada"}
        yield found


@pytest.fixture
def warehouse(tmp_path, server) -> Path:
    server.tables["shop.orders"] = make_small_table(tmp_path / "shop/orders")
    return tmp_path


def opened(server: RestServer, place: Path | str, **options: str) -> IcebergCatalog:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return lake.open_catalog(
        str(place), format="iceberg", metastore="rest", uri=server.uri, options=named
    )


def test_databases_and_tables_are_listed(server, warehouse):
    catalog = opened(server, warehouse)
    assert catalog.list_databases() == ["shop"]
    assert catalog.list_tables("shop") == ["orders"]
    assert catalog.database_properties("shop") == {"owner": "ada"}


def test_a_table_is_read_from_the_file_that_the_catalog_names(server, warehouse):
    orders = opened(server, warehouse).table("shop.orders")
    assert ids_of(orders) == [1, 2]
    assert orders.location == f"file://{warehouse}/shop/orders"
    assert opened(server, warehouse).table("shop.orders$files").scan().to_arrow().num_rows == 1


def test_an_open_table_follows_the_catalog(server, warehouse):
    orders = opened(server, warehouse).table("shop.orders")
    server.tables["shop.orders"] = make_small_table(warehouse / "shop/moved", ids=(7, 8, 9))
    assert ids_of(orders) == [7, 8, 9]
    del server.tables["shop.orders"]
    with pytest.raises(lake.NotFoundError, match=r"'shop\.orders' does not exist"):
        orders.scan()


def test_a_nested_database_is_named_in_full(server, warehouse):
    catalog = opened(server, warehouse)
    catalog.create_database("shop.eu")
    server.tables["shop.eu.orders"] = server.tables["shop.orders"]
    assert ids_of(catalog.table("shop.eu.orders")) == [1, 2]


@pytest.mark.parametrize("purge", [False, True])
def test_no_table_is_dropped_if_the_database_has_nested_databases(server, warehouse, purge):
    catalog = opened(server, warehouse)
    for name in ("shop.eu", "shop.eu.fr", "shops", "a.b"):
        catalog.create_database(name)
    for drop in (catalog.plan_drop_database, catalog.drop_database):
        with pytest.raises(
            lake.InvalidRequestError, match=r"it has 1 nested database: shop\.eu\. "
        ):
            drop("shop", cascade=True, purge=purge)
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
    for name in ("shop.eu.fr", "shop.eu", "shop"):
        catalog.drop_database(name, cascade=True, purge=purge)
    assert (server.tables, catalog.list_databases()) == ({}, ["a.b", "shops"])


def test_a_refused_drop_of_a_database_advises_to_drop_its_nested_ones(server, warehouse):
    catalog = opened(server, warehouse)
    catalog.create_database("new")
    catalog.create_database("new.eu")
    with pytest.raises(lake.InvalidRequestError, match=r"views and nested databases first"):
        catalog.drop_database("new", cascade=True)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 422, 501])
def test_a_database_is_dropped_in_a_service_without_nested_databases(server, warehouse, status):
    server.nested_failure = status
    catalog = opened(server, warehouse)
    catalog.drop_database("shop", cascade=True, purge=True)
    assert catalog.list_databases() == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_no_table_is_dropped_if_nested_databases_cannot_be_listed(server, warehouse, status):
    server.nested_failure = status
    catalog = opened(server, warehouse)
    for drop in (catalog.plan_drop_database, catalog.drop_database):
        with pytest.raises(lake.UnavailableError, match=r"list the databases in 'shop'.*retry"):
            drop("shop", cascade=True, purge=True)
    assert ids_of(catalog.table("shop.orders")) == [1, 2]


def test_mistyped_names_get_the_nearest_one(server, warehouse):
    catalog = opened(server, warehouse)
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop\.orders'\?"):
        catalog.table("shop.order")
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop'\?"):
        catalog.table("shoop.orders")


def test_databases_are_created_and_dropped(server, warehouse):
    catalog = opened(server, warehouse)
    catalog.create_database("new", properties={"owner": "grace"})
    assert server.databases["new"] == {"owner": "grace"}
    with pytest.raises(lake.AlreadyExistsError, match="exist_ok=True"):
        catalog.create_database("new")
    catalog.create_database("new", exist_ok=True)
    catalog.drop_database("new")
    catalog.drop_database("new", missing_ok=True)
    with pytest.raises(lake.InvalidRequestError, match="has 1 table: orders"):
        catalog.drop_database("shop")
    assert [*server.databases] == ["shop"]


@pytest.mark.parametrize("status", [301, 302])
def test_a_change_that_would_be_redirected_as_a_get_is_refused(server, warehouse, status):
    catalog = opened(server, warehouse)
    server.redirect = status
    assert catalog.list_tables("shop") == ["orders"]
    refused = r"a redirect of POST to .*Nothing was changed"
    with pytest.raises(lake.InvalidRequestError, match=rf"create database 'new'.*{refused}"):
        catalog.create_database("new")
    with pytest.raises(lake.InvalidRequestError, match=rf"create table 'shop.new'.*{refused}"):
        catalog.create_table("shop.new", [("id", "BIGINT")])
    with pytest.raises(lake.InvalidRequestError, match=rf"rename table 'shop.orders'.*{refused}"):
        catalog.rename_table("shop.orders", "shop.new")
    assert [*server.databases, *server.tables] == ["shop", "shop.orders"]


def test_a_drop_that_would_be_redirected_as_a_get_is_refused(server, warehouse):
    catalog = opened(server, warehouse)
    server.redirect = 302
    with pytest.raises(
        lake.InvalidRequestError, match=r"a redirect of DELETE to .*'uri' to the new"
    ):
        catalog.drop_table("shop.orders")
    assert [*server.tables] == ["shop.orders"]


def test_the_service_gets_the_name_of_the_warehouse(server, warehouse):
    opened(server, warehouse).list_databases()
    opened(server, warehouse, warehouse="analytics").list_databases()
    assert server.warehouses == [str(warehouse), "analytics"]


def test_a_warehouse_that_is_a_name_allows_only_the_external_roots(server, warehouse):
    catalog = opened(server, "analytics")
    assert catalog.location == "analytics"
    assert catalog.list_tables("shop") == ["orders"]
    with pytest.raises(lake.InvalidRequestError, match=f"external-roots=file://{warehouse}/shop "):
        catalog.table("shop.orders")
    allowed = opened(server, "analytics", external_roots=str(warehouse))
    assert ids_of(allowed.table("shop.orders")) == [1, 2]


def test_a_token_is_sent_and_an_expired_one_is_renewed(server, warehouse):
    server.tokens = {"some"}
    assert opened(server, warehouse, token="some").list_databases() == ["shop"]
    catalog = opened(server, warehouse, credential=f"client:{SECRET}")
    orders = catalog.table("shop.orders")
    server.tokens, before = {"renewed later"}, server.tokens_given
    ids_of(orders)
    assert server.tokens_given == before + 1


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, lake.AccessDeniedError, "Check the token"),
        (403, lake.AccessDeniedError, "Check the token"),
        (404, lake.NotFoundError, "does not exist"),
        (400, lake.InvalidRequestError, "Check the name"),
        (429, lake.UnavailableError, "retry once"),
        (500, lake.UnavailableError, "retry once"),
        (503, lake.UnavailableError, "retry once"),
    ],
)
def test_a_failure_of_the_service_is_named(server, warehouse, status, error, words):
    orders = opened(server, warehouse).table("shop.orders")
    # A token that is not accepted is sent twice.
    server.failures = [(status, "out of order")] * (2 if status == 401 else 1)
    with pytest.raises(error, match=f"(?s)out of order.*{words}|{words}.*out of order"):
        orders.scan()
    assert ids_of(orders) == [1, 2]


def test_no_message_shows_the_token(server, warehouse):
    server.tokens = {"another"}
    catalog = opened(server, warehouse, token=SECRET)
    with pytest.raises(lake.AccessDeniedError) as refused:
        catalog.list_databases()
    shown = "".join(traceback.format_exception(refused.value))
    assert "***" in shown
    assert SECRET not in shown
    assert SECRET not in repr(catalog)


def test_no_message_shows_a_token_that_the_service_issued(server, warehouse, monkeypatch):
    catalog = opened(server, warehouse, credential=f"client:{SECRET}")
    catalog.list_databases()

    def refuse(method, path, query, body):
        raise Refused(403, f"{[*server.tokens]} of {SECRET} may not")

    monkeypatch.setattr(server, "answer", refuse)
    for call in (catalog.list_databases, lambda: catalog.table("shop.orders")):
        with pytest.raises(
            lake.AccessDeniedError, match=r"\['\*\*\*'\] of \*\*\* may not"
        ) as refused:
            call()
        assert "token-" not in "".join(traceback.format_exception(refused.value))


def test_no_message_shows_credentials_in_the_address(server, warehouse):
    server.tables["shop.orders"] = None
    uri = server.uri.replace("://", f"://ada:{SECRET}@")
    catalog = lake.open_catalog(str(warehouse), format="iceberg", metastore="rest", uri=uri)
    with pytest.raises(lake.CorruptTableError, match="http://…@127") as refused:
        catalog.table("shop.orders")
    assert SECRET not in str(refused.value)


def test_a_service_that_does_not_answer_is_unavailable(warehouse):
    with rest_server() as stopped:
        pass
    with pytest.raises(lake.UnavailableError, match="cannot list the databases in http://127"):
        opened(stopped, warehouse).list_databases()


def test_an_answer_of_another_service_is_refused(server, warehouse):
    catalog = opened(server, warehouse)
    server.tables["shop.orders"] = None
    with pytest.raises(lake.CorruptTableError, match="names no metadata file"):
        catalog.table("shop.orders")
    server.config = {"s3.region": 1}
    server.tables["shop.orders"] = "file:///elsewhere"
    with pytest.raises(lake.CorruptTableError, match="a value that is not a string"):
        catalog.table("shop.orders")
    server.config, server.credentials = {}, 5
    with pytest.raises(lake.CorruptTableError, match=r"the credentials of .* are not a list"):
        catalog.table("shop.orders")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({"namespace-separator": ""}, "separator cannot be an empty string"),
        ({"rest-page-size": "-1"}, "rest-page-size must be a positive integer"),
    ],
)
def test_a_wrong_option_that_the_service_adds_is_named(server, warehouse, override, words):
    server.overrides = override
    with pytest.raises(lake.InvalidRequestError, match=rf"{words}\. Check the options"):
        opened(server, warehouse).list_tables("shop")


def test_a_wrong_option_of_the_client_is_named(server, warehouse):
    catalog = lake.open_catalog(
        str(warehouse),
        format="iceberg",
        metastore="rest",
        uri=server.uri,
        options={"rest.sigv4-enabled": "maybe"},
    )
    with pytest.raises(
        lake.InvalidRequestError, match=r"sigv4-enabled .* maybe\. Check the options"
    ):
        catalog.list_tables("shop")
