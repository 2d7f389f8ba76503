"""Hive and Glue keep the metadata file in the parameters of a table. Their services are stubs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Barrier
from unittest.mock import Mock

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from hive_metastore.ttypes import LockState, MetaException, Table

import lakeformat as lake
from lakeformat.catalog.heads import Heads
from lakeformat.catalog.iceberg import glue as glue_metastore
from lakeformat.catalog.iceberg import hive as hive_metastore
from lakeformat.catalog.iceberg.hive_client import HiveClient
from lakeformat.catalog.names import parse_nested_name
from lakeformat.cli.warehouse import is_listed
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from tests.unit.catalog.iceberg.small_table import ids_of, make_small_table
from tests.unit.catalog.iceberg.stub_services import GlueStub, HiveStub
from tests.unit.catalog.iceberg.test_catalog_commits import append


@pytest.fixture(params=[HiveStub, GlueStub])
def service(request, tmp_path, monkeypatch) -> HiveStub | GlueStub:
    """A service with the table ``shop.orders``."""
    found = request.param()
    found.install(monkeypatch)
    found.register("shop", "orders", make_small_table(tmp_path / "shop/orders"))
    return found


@pytest.fixture
def hive(tmp_path, monkeypatch) -> HiveStub:
    found = HiveStub()
    found.install(monkeypatch)
    found.register("shop", "orders", make_small_table(tmp_path / "shop/orders"))
    return found


def test_glue_is_opened_with_the_options_of_the_catalog(tmp_path, monkeypatch):
    glue = GlueStub()
    glue.install(monkeypatch)
    glue.register("shop", "csv", None)
    options = {
        "glue.region": "eu-1",
        "glue.access-key-id": "key",
        "glue.secret-access-key": "secret",
        "glue.endpoint": "http://127.0.0.1:1",
    }
    assert glue.open(tmp_path, **options).list_databases() == ["shop"]
    assert glue.given == {
        "region_name": "eu-1",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "service": "glue",
        "endpoint_url": "http://127.0.0.1:1",
    }
    with pytest.raises(lake.InvalidRequestError, match=r"'shop\.csv' is not an Iceberg table"):
        glue.open(tmp_path).table("shop.csv")


def test_the_service_names_the_metadata_file(service, tmp_path):
    catalog = service.open(tmp_path)
    assert catalog.list_tables("shop") == ["orders"]
    assert ids_of(catalog.table("shop.orders")) == [1, 2]
    with pytest.raises(lake.NotFoundError, match=r"did you mean 'shop\.orders'"):
        catalog.table("shop.ordes")


def test_a_hive_metastore_that_does_not_answer_is_unavailable(tmp_path):
    catalog = lake.open_catalog(
        str(tmp_path), format="iceberg", metastore="hive", uri="thrift://127.0.0.1:1"
    )
    with pytest.raises(lake.UnavailableError, match="cannot list the databases in thrift://"):
        catalog.list_databases()


def test_a_hive_metastore_that_is_silent_is_unavailable_after_the_timeout(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections by itself
        catalog = lake.open_catalog(
            str(tmp_path),
            format="iceberg",
            metastore="hive",
            uri=f"thrift://127.0.0.1:{silent.getsockname()[1]}",
            options={"hive.timeout-seconds": "0.01"},
        )
        for ask in (catalog.list_databases, lambda: catalog.table("shop.orders")):
            with pytest.raises(lake.UnavailableError, match=r"thrift://.*read timeout"):
                ask()


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1 min"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(tmp_path, seconds):
    with pytest.raises(lake.InvalidRequestError, match=r"must be a number of seconds above 0"):
        lake.open_catalog(
            str(tmp_path),
            format="iceberg",
            metastore="hive",
            uri="thrift://127.0.0.1:1",
            options={"hive.timeout-seconds": seconds},
        )


def test_a_commit_keeps_the_parameters_of_other_programs(service, tmp_path):
    handle = service.open(tmp_path).table("shop.orders")._handle
    service.parameters("shop", "orders").update({"numRows": "7", "snapshot-count": "1"})
    first = service.parameters("shop", "orders")["metadata_location"]
    commit_metadata(handle, lambda its: set_properties(its.metadata, {"a": "1", "b": "2"}))
    commit_metadata(handle, lambda its: remove_properties(its.metadata, ["a"]))
    commit_metadata(handle, append("x"))
    found = service.parameters("shop", "orders")
    assert found["by"] == "spark"
    assert found["b"] == "2"
    assert "a" not in found
    assert found["snapshot-count"] == "2"
    assert found["metadata_location"].rpartition("/")[2].startswith("00004-")
    assert found["previous_metadata_location"] != first
    assert "current-snapshot-id" not in found, "only known facts are renewed"


@pytest.mark.parametrize("name", ["table_type", "metadata_location", "EXTERNAL"])
def test_a_property_with_the_name_of_a_parameter_changes_no_parameter(service, tmp_path, name):
    catalog = service.open(tmp_path)
    catalog.create_database("new", properties={"location": f"file://{tmp_path}/new.db"})
    table = catalog.create_table("new.orders", [("id", "BIGINT")], options={name: "x"})
    catalog.alter_table("new.orders", lake.set_option(name, "y"))
    before = dict(service.parameters("new", "orders"))
    catalog.alter_table("new.orders", lake.remove_option(name))
    after = service.parameters("new", "orders")
    assert catalog.list_tables("new") == ["orders"]
    assert name not in table.properties
    assert after["previous_metadata_location"] == before["metadata_location"]
    assert (after["table_type"], after["EXTERNAL"]) == ("ICEBERG", "TRUE")


def test_a_change_between_the_reading_and_the_commit_is_another_attempt(service, tmp_path):
    """The service itself compares, in the moment of the change."""
    handle = service.open(tmp_path).table("shop.orders")._handle
    elsewhere = service.open(tmp_path).table("shop.orders")._handle

    def other_commit() -> None:
        service.before_a_change = lambda: None
        service.is_locked = False  # another program ignores the lock
        commit_metadata(elsewhere, append("other"))
        service.is_locked = True

    service.before_a_change = other_commit
    result = commit_metadata(handle, append("mine"))
    assert result.attempts == 2
    assert added(handle) == ["other", "mine"]


def test_a_lost_answer_is_found_in_the_table(service, tmp_path):
    handle = service.open(tmp_path).table("shop.orders")._handle
    service.lose_an_answer()
    assert commit_metadata(handle, append("a")).attempts == 1
    assert added(handle) == ["a"]


def test_a_lost_answer_is_found_though_another_commit_followed(service, tmp_path):
    handle = service.open(tmp_path).table("shop.orders")._handle
    elsewhere = service.open(tmp_path).table("shop.orders")._handle
    service.lose_an_answer()
    lost = service.after_a_change

    def followed() -> None:
        service.after_a_change = lambda: None
        service.is_locked = False
        commit_metadata(elsewhere, append("other"))
        service.after_a_change = lost
        lost()

    service.after_a_change = followed
    commit_metadata(handle, append("mine"))
    assert added(handle) == ["mine", "other"]


@pytest.mark.parametrize(("length", "deletes"), [(1, "false"), (1, "true"), (2, "false")])
def test_glue_finds_a_conflict_with_itself_unless_log_and_snapshot_are_lost(
    tmp_path, monkeypatch, length, deletes
):
    """The client sends a request again if it got no answer; the second one is a conflict."""
    glue = GlueStub()
    glue.install(monkeypatch)
    catalog = glue.open(tmp_path)
    catalog.create_database("shop")
    few = {
        "write.metadata.previous-versions-max": str(length),
        "write.metadata.delete-after-commit.enabled": deletes,
    }
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=few)
    table.write(pa.table({"id": [1]}))

    def others() -> None:
        glue.after_a_change = lambda: None
        other = catalog.table("shop.orders")
        other.write(pa.table({"id": [8]}))
        other.expire_snapshots(older_than=datetime.now(UTC), retain_min=1)
        raise GlueStub.exceptions.ConcurrentModificationException("the second request")

    glue.after_a_change = others
    if length == 1:
        with pytest.raises(lake.CommitOutcomeUnknownError, match="its snapshot may have expired"):
            table.write(pa.table({"id": [2]}))
    else:
        table.write(pa.table({"id": [2]}))
    assert ids_of(catalog.table("shop.orders")) == [1, 2, 8]


def test_glue_tries_again_after_two_others_although_the_log_is_short(tmp_path, monkeypatch):
    glue = GlueStub()
    glue.install(monkeypatch)
    catalog = glue.open(tmp_path)
    catalog.create_database("shop")
    few = {"write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=few)
    table.write(pa.table({"id": [1]}))

    def others() -> None:
        glue.before_a_change = lambda: None
        for number in (8, 9):
            catalog.table("shop.orders").write(pa.table({"id": [number]}))

    glue.before_a_change = others
    table.write(pa.table({"id": [2]}))
    assert ids_of(catalog.table("shop.orders")) == [1, 2, 8, 9]


def test_a_table_is_created_and_dropped(service, tmp_path):
    catalog = service.open(tmp_path)
    columns = [("id", "BIGINT NOT NULL"), ("tags", "ARRAY<STRING>"), ("at", "TIMESTAMP(6)")]
    catalog.create_database("new", properties={"location": f"file://{tmp_path}/new.db"})
    created = catalog.create_table("new.orders", columns, options={"owner": "ada"})
    assert created.location == f"file://{tmp_path}/new.db/orders"
    assert service.parameters("new", "orders")["owner"] == "ada"
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_table("new.orders", columns)
    metadata = tmp_path / "new.db/orders/metadata"
    assert len([*metadata.iterdir()]) == 1, "the file of the second attempt is deleted"
    catalog.drop_table("new.orders")
    assert catalog.list_tables("new") == []
    assert len([*metadata.iterdir()]) == 1, "the file is kept"
    catalog.create_table("new.orders", columns)
    catalog.drop_table("new.orders", purge=True)
    assert catalog.list_tables("new") == []
    assert len([*metadata.iterdir()]) == 1, "only the file of the second table is deleted"


def test_a_table_whose_creation_was_sent_twice_is_created_once(service, tmp_path, monkeypatch):
    catalog, create = service.open(tmp_path), service.create_table
    catalog.create_database("new", properties={"location": f"file://{tmp_path}/new.db"})

    def twice(*given, **named) -> None:
        create(*given, **named)
        create(*given, **named)

    monkeypatch.setattr(service, "create_table", twice)
    table = catalog.create_table("new.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    assert ids_of(catalog.table("new.orders")) == [1]
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_table("new.orders", [("id", "BIGINT")])


def test_a_name_of_a_hive_table_that_is_not_iceberg_is_taken(hive, tmp_path):
    catalog = hive.open(tmp_path)
    catalog.create_database("new", properties={"location": f"file://{tmp_path}/new.db"})
    hive.tables["new", "csv"] = Table("csv", "new")
    with pytest.raises(lake.AlreadyExistsError):
        catalog.create_table("new.csv", [("id", "BIGINT")])
    assert [*(tmp_path / "new.db").rglob("*.json")] == []


@pytest.mark.parametrize("kind", ["iceberg", "mixed"])
def test_a_name_with_capitals_is_one_with_lower_case(service, tmp_path, kind):
    catalog = service.open(tmp_path)
    catalog.create_database("New", properties={"location": f"file://{tmp_path}/new.db"})
    columns = [("id", "BIGINT NOT NULL")]
    for exist_ok in (False, True):
        table = catalog.create_table(
            "New.Orders", columns, format=kind, primary_key=["id"], exist_ok=exist_ok
        )
        table.write(pa.table({"id": pa.array([1 + exist_ok], pa.int64())}))
    assert table.location == f"file://{tmp_path}/new.db/orders"
    assert catalog.list_tables("New") == catalog.list_tables("new") == ["orders"]
    catalog.alter_table("new.ORDERS", lake.set_option("a", "b"))
    assert ids_of(catalog.table("New.Orders")) == ids_of(catalog.table("new.orders")) == [1, 2]
    catalog.drop_table("New.Orders", purge=True, missing_ok=True)
    assert service.tables.keys() == {("shop", "orders")}


def test_a_table_is_watched_by_a_name_with_capitals(service, tmp_path):
    found = Heads(service.open(tmp_path)).look(["Shop.Orders", "shop.none"])
    assert {name: head.snapshot.id for name, head in found.heads.items()} == {"Shop.Orders": 7}
    assert found.failed == {}


def test_a_table_is_listed_by_a_name_with_capitals(service, tmp_path):
    catalog = service.open(tmp_path)
    assert is_listed(catalog, "Shop.Orders")
    assert not is_listed(catalog, "Shop.Items")


def test_a_pair_that_names_its_change_store_with_capitals_is_one_table(service, tmp_path):
    catalog = service.open(tmp_path)
    catalog.create_database("new", properties={"location": f"file://{tmp_path}/new.db"})
    columns = [("id", "BIGINT NOT NULL")]
    catalog.create_table("new.orders", columns, format="mixed", primary_key=["id"])
    as_before = {"mixed-format.change.identifier": "new.Orders_change_"}
    handle = catalog._handle(parse_nested_name("new.orders"))
    commit_metadata(handle, lambda its: set_properties(its.metadata, as_before))
    catalog.table("new.Orders").write(pa.table({"id": pa.array([1], pa.int64())}))
    assert catalog.list_tables("new") == ["orders"]
    catalog.drop_table("new.orders", purge=True)
    assert service.tables.keys() == {("shop", "orders")}


def test_hive_lists_the_columns_for_other_programs(hive, tmp_path):
    catalog = hive.open(tmp_path)
    hive.databases["shop"].locationUri = f"file://{tmp_path}/shop.db"
    catalog.create_table("shop.new", [("id", "BIGINT"), ("tags", "ARRAY<STRING>")])
    columns = hive.tables["shop", "new"].sd.cols
    assert [(each.name, each.type) for each in columns] == [
        ("id", "bigint"),
        ("tags", "array<string>"),
    ]


def columns_in(service: HiveStub | GlueStub, table: str) -> list[tuple[str, str, str | None]]:
    """Return the name, the type and the comment of each column that the service lists."""
    found = service.tables["shop", table]
    if isinstance(service, HiveStub):
        return [(each.name, each.type, each.comment) for each in found.sd.cols]
    listed = found["StorageDescriptor"]["Columns"]
    return [(each["Name"], each["Type"], each.get("Comment")) for each in listed]


def test_changed_columns_are_listed_for_other_programs(service, tmp_path, monkeypatch):
    service.databases.clear()
    catalog = service.open(tmp_path)
    catalog.create_database("shop", properties={"location": f"file://{tmp_path}/shop.db"})
    catalog.create_table("shop.new", [("id", "BIGINT")])
    assert columns_in(service, "new") == [("id", "bigint", None)]
    added = lake.add_column("x", "STRING", comment="a note")
    catalog.alter_table("shop.new", added, lake.rename_column("id", "key"))
    changed = [("key", "bigint", None), ("x", "string", "a note")]
    assert columns_in(service, "new") == changed
    catalog.table("shop.new").write(pa.table({"key": [1], "x": ["a"]}))
    lacking = Mock(side_effect=lake.UnsupportedError("PyIceberg lacks the type"))
    for each in (hive_metastore, glue_metastore):
        monkeypatch.setattr(each, "client_schema", lacking)
    catalog.alter_table("shop.new", lake.add_column("y", "INT"))
    assert columns_in(service, "new") == changed
    assert catalog.table("shop.new").schema.column_names == ["key", "x", "y"]


@pytest.fixture
def glue(tmp_path, monkeypatch) -> GlueStub:
    found = GlueStub()
    found.install(monkeypatch)
    found.register("shop", "orders", make_small_table(tmp_path / "shop/orders"))
    return found


def test_a_commit_keeps_what_other_programs_set_in_glue(glue, tmp_path):
    more = {
        "Description": "all orders",
        "Owner": "ada",
        "Retention": 7,
        "PartitionKeys": [],
        "StorageDescriptor": {"Columns": [], "Location": "s3://b/orders"},
    }
    glue.tables["shop", "orders"] |= {**more, "CatalogId": "1"}
    commit_metadata(glue.open(tmp_path).table("shop.orders")._handle, append("a"))
    found = glue.tables["shop", "orders"]
    assert {key: found.get(key) for key in more} == more
    assert "CatalogId" not in found, "Glue refuses it in a request"


def test_a_table_in_glue_without_a_type_gets_it_with_a_commit(glue, tmp_path):
    del glue.tables["shop", "orders"]["TableType"]
    commit_metadata(glue.open(tmp_path).table("shop.orders")._handle, append("a"))
    assert glue.tables["shop", "orders"]["TableType"] == "EXTERNAL_TABLE"


def test_glue_gets_long_comments_of_columns_shortened_and_in_one_line(glue, tmp_path):
    glue.databases["shop"]["LocationUri"] = f"file://{tmp_path}/shop.db"
    catalog = glue.open(tmp_path)
    catalog.create_table("shop.new", [("id", "BIGINT")])
    catalog.alter_table("shop.new", lake.add_column("n", "INT", comment="one\ntwo" + "x" * 300))
    assert columns_in(glue, "new")[-1] == ("n", "int", "one two" + "x" * 248)


def test_glue_gets_comments_without_the_characters_that_it_refuses(glue, tmp_path):
    glue.databases["shop"]["LocationUri"] = f"file://{tmp_path}/shop.db"
    catalog = glue.open(tmp_path)
    catalog.create_table("shop.new", [("id", "BIGINT")])
    added = lake.add_column("n", "INT", comment="a\x07b \uffff\x00\u200d\U0001f600\ue000")
    table = catalog.alter_table("shop.new", added)
    assert columns_in(glue, "new")[-1] == ("n", "int", "a b \u200d\U0001f600\ue000")
    assert (
        table._handle.load().metadata.schema.fields[-1].doc
        == "a\x07b \uffff\x00\u200d\U0001f600\ue000"
    )


def refusal(code: str, attempts: int) -> Callable[[], None]:
    def refuse() -> None:
        error = {"Code": code, "Message": "must satisfy the pattern"}
        raise ClientError(
            {"Error": error, "ResponseMetadata": {"RetryAttempts": attempts}}, "UpdateTable"
        )

    return refuse


@pytest.mark.parametrize("code", ["ValidationException", "InvalidInputException"])
def test_a_change_that_glue_refuses_is_an_error_and_leaves_no_file(glue, tmp_path, code):
    table = glue.open(tmp_path).table("shop.orders")
    before = sorted(tmp_path.rglob("*.json"))
    glue.before_a_change = refusal(code, attempts=0)
    with pytest.raises(
        lake.InvalidRequestError, match=r"must satisfy the pattern\. Nothing was changed\. Correct"
    ):
        commit_metadata(table._handle, append("a"))
    assert sorted(tmp_path.rglob("*.json")) == before


@pytest.mark.parametrize(("code", "attempts"), [("ValidationException", 1), ("Throttled", 0)])
def test_a_change_that_glue_may_have_made_has_an_unknown_outcome(glue, tmp_path, code, attempts):
    """The client of AWS sends a request again if it got no answer."""
    glue.before_a_change = refusal(code, attempts)
    table = glue.open(tmp_path).table("shop.orders")
    before = sorted(tmp_path.rglob("*.json"))
    with pytest.raises(lake.CommitOutcomeUnknownError):
        commit_metadata(table._handle, append("a"))
    assert len([*tmp_path.rglob("*.json")]) == len(before) + 1


def test_hive_renames_a_table(hive, tmp_path):
    catalog = hive.open(tmp_path)
    assert ids_of(catalog.rename_table("shop.Orders", "shop.Old")) == [1, 2]
    assert catalog.list_tables("shop") == ["old"]


class Connection:
    """A connection for one thread, as PyIceberg opens and closes it."""

    def __init__(self, hive):
        self._hive, self._is_open = hive, False

    def __enter__(self):
        assert not self._is_open, "two threads use one connection"
        self._is_open = True
        return self._hive

    def __exit__(self, *_):
        self._is_open = False


def test_hive_lists_two_databases_at_the_same_time(hive, tmp_path, monkeypatch):
    monkeypatch.setattr(HiveClient, "_create_hive_client", staticmethod(lambda _: Connection(hive)))
    hive.register("hr", "staff", make_small_table(tmp_path / "hr/staff"))
    both, list_tables = Barrier(2), hive.get_all_tables

    def meet(db_name):
        both.wait(timeout=20)
        return list_tables(db_name)

    monkeypatch.setattr(hive, "get_all_tables", meet)
    found = Heads(hive.open(tmp_path)).look(["hr.staff", "shop.orders"])
    assert (list(found.heads), found.failed) == (["hr.staff", "shop.orders"], {})


def test_a_rename_of_a_pair_with_capitals_is_completed(hive, tmp_path, monkeypatch):
    """An earlier version created it, and the process died before the first rename."""
    catalog = hive.open(tmp_path)
    hive.databases["shop"].locationUri = f"file://{tmp_path}/shop.db"
    columns = [("id", "BIGINT NOT NULL")]
    catalog.create_table("shop.pair", columns, format="mixed", primary_key=["id"])
    catalog.table("shop.pair").write(pa.table({"id": pa.array([1], pa.int64())}))
    as_before = {"mixed-format.change.identifier": "shop.Pair_change_"}
    handle = catalog._handle(parse_nested_name("shop.pair"))
    commit_metadata(handle, lambda its: set_properties(its.metadata, as_before))
    with monkeypatch.context() as dying:
        dying.setattr(type(catalog._metastore), "rename_table", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            catalog.rename_table("shop.pair", "shop.bills")
    assert ids_of(catalog.rename_table("shop.pair", "shop.bills")) == [1]
    assert catalog.list_tables("shop") == ["bills", "orders"]
    assert ("shop", "bills_change_") in hive.tables


def test_a_writer_without_the_lock_changes_nothing(hive, tmp_path):
    handle = hive.open(tmp_path).table("shop.orders")._handle
    hive.lock_state = LockState.WAITING
    before = dict(hive.parameters("shop", "orders"))
    held = (
        r"'shop\.orders' is locked .* by user 'flink' on node-3 \(lock 6\).*metastore.txn.timeout"
    )
    with pytest.raises(lake.LockUnavailableError, match=held):
        commit_metadata(handle, append("a"))
    assert hive.parameters("shop", "orders") == before
    assert len([*(tmp_path / "shop/orders/metadata").glob("*.json")]) == 1


def test_a_writer_that_is_stopped_while_it_waits_for_the_lock_gives_up_its_request(hive, tmp_path):
    handle = hive.open(tmp_path).table("shop.orders")._handle
    hive.lock_state = LockState.WAITING

    def stop(request: object) -> None:
        raise KeyboardInterrupt

    hive.check_lock = stop
    with pytest.raises(KeyboardInterrupt):
        commit_metadata(handle, append("a"))
    assert hive.unlocked == 1


def test_hive_keeps_the_lock_of_a_change_whose_answer_was_lost(hive, tmp_path):
    """The metastore may still make the change, so no other writer may begin one."""
    handle = hive.open(tmp_path).table("shop.orders")._handle
    hive.lose_an_answer()
    commit_metadata(handle, append("a"))
    assert hive.is_locked


def test_a_change_that_hive_refuses_is_an_error_and_leaves_no_file(hive, tmp_path):
    handle = hive.open(tmp_path).table("shop.orders")._handle

    def refuse() -> None:
        raise MetaException("permission denied")

    hive.before_a_change = refuse
    with pytest.raises(lake.UnavailableError, match="permission denied"):
        commit_metadata(handle, append("a"))
    assert len([*(tmp_path / "shop/orders/metadata").glob("*.json")]) == 1
    assert not hive.is_locked


def added(handle: TableHandle) -> list[str]:
    """The names of the snapshots after the first one."""
    return [each.summary["name"] for each in handle.load().metadata.snapshots[1:]]
