"""The pages of tables of an Iceberg catalog."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.maintenance.gate import due_tables
from airflow_provider_lake.page import task
from airflow_provider_lake.page.airflow_records import OneTask
from airflow_provider_lake.page.rendering import render
from tests.airflow.page.pages import Words, words
from tests.golden.iceberg_orders import IcebergOrders
from tests.golden.mixed import mixed_copy

PAGE = "/lake/table/lake_default?name=shop.orders"


@pytest.fixture
def orders(tmp_path, connect) -> IcebergOrders:
    extra = {"warehouse": str(tmp_path), "options": {"format": "iceberg"}}
    connect("lake_default", conn_type="lake", extra=extra)
    return IcebergOrders(tmp_path)


def test_the_list_has_verdict_size_and_last_commit(ask, orders):
    said = words(ask("/lake/tables/lake_default"))
    assert "orders degraded 89 " in said
    assert " KiB 8 " in said
    assert "1 degraded" in said


def test_the_list_has_a_mixed_table_once_with_its_verdict(ask, orders, tmp_path):
    mixed_copy("keyed_int", tmp_path / "shop")
    said = words(ask("/lake/tables/lake_default"))
    assert "orders degraded 89 " in said
    assert "t degraded 89 " in said
    assert "1 unreadable" not in said
    assert "t_change_" not in said


def test_the_due_tables_of_a_database_have_a_mixed_table_with_changes(orders, tmp_path):
    mixed_copy("keyed_int", tmp_path / "shop")
    assert {each["table"] for each in due_tables("shop", min_files=1)} == {"shop.orders", "shop.t"}


def test_a_table_has_its_own_facts(ask, orders):
    LakeHook().table("shop.orders").consumers.set("mirror", next_snapshot=4)
    said = words(ask(PAGE))
    assert "mirror 4 2 " in said
    assert "3 data files each have at least 30% deleted rows" in said
    assert f"To do: lake compact file://{orders.root} " in said
    assert "Iceberg table of version 2, partitioned by p " in said
    assert "Delete files 3 position delete files, 0 deletion vectors" in said
    assert "Partitions, most urgent first" in said
    assert "p=x 0 4 4 2 2 5 3.3 KiB" in said
    assert "write.delete.mode merge-on-read" in said
    assert f"main branch {orders.snapshots[-1]}" in said
    assert f"{orders.snapshots[-1]} overwrite " in said
    assert "count the files by reading every snapshot" in said
    assert "3 files with" in words(ask(f"{PAGE}&history=true"))


def test_a_mixed_table_has_its_own_facts(ask, orders, tmp_path):
    mixed_copy("keyed_int", tmp_path / "shop")
    found = words(ask("/lake/table/lake_default?name=shop.t"))
    assert "Mixed table of version 2" in found
    assert "--strategy minor" in found
    assert "Branches and tags" not in found


def test_a_table_before_its_first_commit_says_so(ask, orders):
    first = orders.root / "metadata/v1.metadata.json"
    metadata = json.loads(first.read_text())
    for file in orders.root.glob("metadata/v*.metadata.json"):
        file.unlink()
    metadata |= {"snapshots": [], "refs": {}, "current-snapshot-id": None, "snapshot-log": []}
    (orders.root / "metadata/v1.metadata.json").write_text(json.dumps(metadata))
    said = words(ask(PAGE))
    assert "The table has no commit yet." in said
    assert "and so no branch" in said


def test_the_files_of_a_snapshot_are_refused_by_name(ask, orders):
    answer = ask(f"/lake/snapshot/lake_default?name=shop.orders&number={orders.snapshots[0]}")
    said = words(answer)
    assert "This cannot be shown" in said
    assert "no operation 'snapshot_change': the system table 'entries' has the files" in said
    assert "no page can show this: follow the advice in the error message" in said


def page_of_task(monkeypatch, one: OneTask, result: dict[str, object]) -> str:
    records = {
        task.TABLE_KEY: {"table": "shop.orders", "lake_conn_id": "lake_default"},
        "return_value": result,
    }
    monkeypatch.setattr(task, "xcom_of", lambda _, key: records[key])
    monkeypatch.setattr(task, "events_of", lambda _: [])
    monkeypatch.setattr(task, "lake_of_dag", lambda connection_id, _: LakeHook(connection_id))
    found = task.changes_of_task(one)
    page = render("task.html", "/lake", found=found, report=[], lines=[], checks=[])
    return " ".join(" ".join(Words(page).pieces).split())


def test_the_page_of_a_task_shows_its_snapshots(orders, monkeypatch):
    one = OneTask("d", "r", "t", -1)
    table = LakeHook().table("shop.orders")
    rows = pa.table({"id": pa.array([9], pa.int32()), "v": ["a"], "p": ["x"]})
    report = table.write(rows, commit=lake.CommitId(commit_user(one, "shop.orders"), 1))
    said = page_of_task(monkeypatch, one, {"reason": "1 row", "snapshot_id": report.snapshot_id})
    assert f"Snapshot {report.snapshot_id} append Committed " in said
    assert "Net rows +1" in said
    assert "None of the" not in said


def test_the_page_of_a_task_without_snapshots_says_so(orders, monkeypatch):
    one = OneTask("d", "r", "t", -1)
    said = page_of_task(monkeypatch, one, {"reason": "degraded", "snapshot_id": None})
    assert "Degraded." in said
    assert "The task has published no snapshot." in said
