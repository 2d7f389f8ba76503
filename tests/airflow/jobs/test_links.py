"""Links lead where a task's own words point, and ask nothing else."""

from types import SimpleNamespace

import pytest

from airflow_provider_lake import links
from airflow_provider_lake.operators.compact import LakeCompactOperator

TASK = SimpleNamespace(dag_id="shop", run_id="manual__2024-01-01T00:00+00:00", task_id="g.tidy")


@pytest.fixture
def said(monkeypatch):
    """Return the XCom that the task has pushed."""
    xcoms = {}
    monkeypatch.setattr(
        links, "XCom", SimpleNamespace(get_value=lambda *, ti_key, key: xcoms.get(key))
    )
    return xcoms


def link(kind, map_index=-1):
    key = SimpleNamespace(**vars(TASK), map_index=map_index)
    return kind().get_link(None, ti_key=key)


def test_an_operator_has_both():
    task = LakeCompactOperator(task_id="work", table="shop.orders")

    assert [each.name for each in task.operator_extra_links] == ["Lake snapshot", "Spark UI"]


def test_a_browser_of_tables_is_given_the_snapshot(said, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW__LAKE__SNAPSHOT_URL", "https://t/{database}/{table}?s={snapshot_id}"
    )
    said |= {"lake_table": {"table": "shop.or ders"}, "return_value": {"snapshot_id": 7}}

    assert link(links.LakeSnapshotLink) == "https://t/shop/or%20ders?s=7"


def test_a_task_that_failed_has_a_link_to_its_table(said, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW__LAKE__SNAPSHOT_URL", "https://t/{database}/{table}?s={snapshot_id}"
    )
    said |= {"lake_table": {"table": "shop.orders"}}

    assert link(links.LakeSnapshotLink) == "https://t/shop/orders?s="


def test_without_a_browser_the_link_leads_to_what_the_task_changed(said):
    page = "/dags/shop/runs/manual__2024-01-01T00%3A00%2B00%3A00/tasks/g.tidy"

    assert link(links.LakeSnapshotLink) == f"{page}/plugin/lake-snapshots"
    assert link(links.LakeSnapshotLink, map_index=2) == f"{page}/mapped/2/plugin/lake-snapshots"


def test_spark_is_seen_in_the_history_server_else_at_its_driver(said, monkeypatch):
    assert link(links.LakeSparkLink) == ""
    task = LakeCompactOperator(task_id="work", table="shop.orders")
    assert links.LakeSparkLink().get_link(task, ti_key=None) == ""  # no request is made

    said["lake_spark"] = {"application_id": "local-17", "ui": "http://driver:4040"}
    assert link(links.LakeSparkLink) == "http://driver:4040"

    monkeypatch.setenv("AIRFLOW__LAKE__SPARK_HISTORY_URL", "https://history/")
    assert link(links.LakeSparkLink) == "https://history/history/local-17/jobs/"
