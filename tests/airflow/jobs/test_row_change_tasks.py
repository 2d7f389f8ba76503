"""Tasks that delete and update rows: a retry changes nothing twice, a cleared one does it again."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.operators.delete import LakeDeleteOperator
from airflow_provider_lake.operators.update import LakeUpdateOperator
from tests.airflow.contexts import cleared, task_context
from tests.airflow.versions import AirflowFailException, AirflowSkipException

COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING")]


@pytest.fixture(params=["paimon", "iceberg", "mixed"])
def form(request):
    return request.param


@pytest.fixture
def orders(tmp_path, connect, form):
    of_catalog = "paimon" if form == "paimon" else "iceberg"
    extra = {"warehouse": str(tmp_path), "options": {"format": of_catalog}}
    connect("lake_default", conn_type="lake", extra=extra)
    catalog = lake.open_catalog(str(tmp_path), format=of_catalog)
    catalog.create_database("shop")
    how = {"iceberg": {}, "mixed": {"format": "mixed", "primary_key": ["id"]}}
    keyed = {"primary_key": ["id"], "options": {"bucket": "1"}}
    table = catalog.create_table("shop.orders", COLUMNS, **how.get(form, keyed))
    put(table, a=1, b=2, c=3)
    return table


def put(table, **ids):
    table.write(pa.table({"id": [*ids.values()], "name": [*ids]}))


def names(table):
    found = table.scan().to_arrow().to_pydict()
    return sorted(zip(found["id"], found["name"], strict=True))


def drop(where, **more):
    return LakeDeleteOperator(task_id="drop", table="shop.orders", where=where, **more)


def fix(where, name, **more):
    new = {"name": name}
    return LakeUpdateOperator(task_id="fix", table="shop.orders", where=where, set=new, **more)


def test_a_retry_changes_nothing_twice_and_a_clear_does_it_again(orders):
    context = task_context("drop")
    done = drop("id < 3").execute(context)
    put(orders, late=2)
    again = drop("id < 3").execute(context)
    assert (done["report"]["rows"], again["replayed"]) == (2, True)
    assert names(orders) == [(2, "late"), (3, "c")]
    redone = drop("id < 3").execute(cleared(context))
    assert (redone["replayed"], redone["report"]["rows"]) == (False, 1)
    assert names(orders) == [(3, "c")]
    put(orders, later=1)
    kept = drop("id < 3", on_clear="skip").execute(cleared(context))
    assert (kept["replayed"], kept["snapshot_id"]) == (True, redone["snapshot_id"])
    assert names(orders) == [(1, "later"), (3, "c")]


@pytest.mark.parametrize("is_known", [True, False], ids=["start known", "start unknown"])
def test_skip_changes_no_row_after_the_snapshot_of_the_success_has_expired(orders, form, is_known):
    outlet = lake_asset("shop.orders")
    context = task_context("drop")
    context["dag_run"].clear_number = 0 if is_known else 1
    done = drop("id < 3").execute(context)
    put(orders, late=2)
    put(orders, later=7)
    expire(orders, form)
    task = drop("id < 3", on_clear="skip", outlets=[outlet])
    kept = task.execute(cleared(context))
    assert (kept["replayed"], kept["snapshot_id"]) == (True, done["snapshot_id"])
    assert names(orders) == [(2, "late"), (3, "c"), (7, "later")]
    event = context["outlet_events"][outlet].extra
    if form == "paimon":
        assert (event["snapshot_id"], event["missed"]) == (done["snapshot_id"], True)
    else:
        assert event == {}


def expire(table, form):
    if form == "paimon":
        table.expire_snapshots(retain_max=1, retain_min=1)
        return
    if form == "mixed":
        table.compact(strategy="full")
    table.expire_snapshots(older_than="0 s", retain_min=1)


def test_a_cleared_update_stores_the_new_values(orders):
    context = task_context("fix")
    seen = []
    assert fix("id = 1", "wrong", on_report=seen.append).execute(context)["report"]["rows"] == 1
    assert [each["job"] for each in seen] == ["update"]
    assert fix("id = 1", "right").execute(context)["replayed"]
    assert names(orders)[0] == (1, "wrong")
    assert not fix("id = 1", "right").execute(cleared(context))["replayed"]
    assert names(orders)[0] == (1, "right")


def test_a_task_that_was_skipped_does_its_work_once_it_is_cleared(orders):
    context = task_context("drop")
    task = drop("name = 'late'", skip_if_noop=True)
    with pytest.raises(AirflowSkipException, match="no row meets the condition"):
        task.execute(context)
    put(orders, late=9)
    assert task.execute(cleared(context))["report"]["rows"] == 1
    assert names(orders) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("form", ["mixed"], indirect=True)
def test_a_dry_run_changes_nothing_and_is_no_success_that_a_clear_repeats(orders, told):
    context = task_context("drop")
    counted = drop("id < 3", dry_run=True).execute(context)
    assert (counted["skipped"], counted["snapshot_id"], counted["report"]["rows"]) == (
        False,
        None,
        2,
    )
    assert told.numbers() == {}
    done = drop("id < 3").execute(context)
    assert (done["replayed"], names(orders)) == (False, [(3, "c")])
    assert told.numbers()["rows_changed"] == 2
    assert told.numbers()["files_out"] == done["report"]["files_added"]


@pytest.mark.parametrize("form", ["paimon"], indirect=True)
def test_rows_in_transaction_order_are_kept_and_a_clear_names_the_task_to_clear(orders):
    read = str(orders.position())
    put(orders, stream=2)
    how = {"read_snapshot": read, "conflict": "transaction-order"}
    context = task_context("fix")
    assert fix("id < 4", "batch", **how).execute(context)["report"]["rows"] == 2
    assert names(orders) == [(1, "batch"), (2, "stream"), (3, "batch")]
    with pytest.raises(AirflowFailException, match="clear the task that read the table, too"):
        fix("id < 4", "again", **how).execute(cleared(context))
    kept = fix("id < 4", "again", **how, on_clear="skip").execute(context)
    assert (kept["replayed"], names(orders)[0]) == (True, (1, "batch"))
