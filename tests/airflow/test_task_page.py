"""The tab of a task: its changes, read from the table."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.identity import commit_user
from tests.airflow.conftest import DAGS
from tests.airflow.pages import TASK, TASK_PATH, words, write
from tests.airflow.test_dags import load, run_for_january_31


def test_a_task_that_ran_shows_its_snapshot(ask, warehouse, tmp_path, airflow_db):
    day = tmp_path / "2024-01-31"
    day.mkdir()
    (day / "part-1.csv").write_text("id,note\n1,tea\n2,milk\n")
    run = run_for_january_31(load(DAGS)["ingest_orders"], tmp_path)
    orders = lake.open_catalog(warehouse).table("shop.orders")
    orders.write(pa.table({"id": [9], "note": ["not the task's"]}))

    found = words(ask(f"/lake/tasks/ingest_orders/{quote(run.run_id)}/land_orders/-1"))

    assert run.run_id in found
    assert "Snapshot 1 APPEND" in found
    assert "Rows +2; total rows 2" in found
    assert "Files added 1 file with 2 rows" in found
    assert "Files deleted none" in found
    assert orders.snapshots()[0].commit_user in found
    assert "Snapshot 2" not in found


def test_a_task_shows_its_commits_whatever_it_claims(ask, orders, said):
    """A user who can edit a task's XCom sees no commit of other tasks through it."""
    write(orders, 1, user="somebody")
    write(orders, 2, user=commit_user(TASK, "shop.orders"))
    said["lake_table"] = {"table": "shop.orders", "lake_conn_id": "lake_default"}
    said["return_value"] = {"snapshot_id": 2, "previous_snapshot_id": 0}

    found = words(ask(TASK_PATH))

    assert "Snapshot 2 APPEND" in found
    assert "Snapshot 1" not in found


def test_a_task_that_failed_after_its_commit_shows_it(ask, orders, said):
    write(orders, 1, user=commit_user(TASK, "shop.orders"))
    for number in range(5):
        write(orders, number)
    said["lake_table"] = {"table": "shop.orders"}

    assert "Snapshot 1 APPEND" in words(ask(TASK_PATH))


def test_a_compaction_shows_what_went_by_partition(ask, catalog, said):
    table = catalog.create_table(
        "shop.days", [("dt", "STRING"), ("id", "BIGINT")], partition_by=["dt"]
    )
    for number in range(6):
        table.write(pa.table({"dt": ["a", "b"], "id": [number, number]}))
    table.compact(commit=lake.CommitId(commit_user(TASK, "shop.days"), 1))
    said["lake_table"] = {"table": "shop.days"}

    found = words(ask(TASK_PATH))

    assert "Snapshot 7 COMPACT" in found
    assert "Rows 0; total rows 12; a compaction rewrites the same rows" in found
    assert "Files added 2 files with 12 rows" in found
    assert "Files deleted 12 files with 12 rows" in found
    assert re.search(r"dt=a 1 6 [\d.]+ \w+ 6 6 ", found)


@pytest.mark.parametrize(
    ("words_of_task", "expected"),
    [
        ({}, "has not named a table"),
        ({"lake_table": {"database": "shop"}}, "all tables of the database shop"),
        (
            {
                "lake_table": {"table": "shop.orders"},
                "return_value": {"skipped": True, "reason": "no file is new"},
            },
            "No work was needed: no file is new.",
        ),
        ({"lake_table": {"table": "shop.orders"}}, "is still running"),
        (
            {
                "lake_table": {"table": "shop.orders"},
                "return_value": {"snapshot_id": 1, "previous_snapshot_id": 0},
            },
            "The snapshot 1 of this task has expired",
        ),
        (
            {
                "lake_table": {"table": "shop.orders"},
                "return_value": {"snapshot_id": None, "replayed": True},
            },
            "An earlier attempt of this task had already published this commit. None of",
        ),
    ],
)
def test_a_task_without_a_snapshot_says_why(ask, orders, said, words_of_task, expected):
    for number in range(3):
        write(orders, number)
    orders.expire_snapshots(retain_max=1, retain_min=1, older_than=datetime.now(UTC))
    said |= words_of_task

    answer = ask(TASK_PATH)

    assert answer.status_code == 200
    assert expected in words(answer)


def test_a_task_of_a_lost_connection_says_which(ask, orders, said):
    said["lake_table"] = {"table": "shop.orders", "lake_conn_id": "lost_lake"}

    answer = ask(TASK_PATH)

    assert answer.status_code == 404
    assert "connection 'lost_lake' does not exist" in words(answer)
    assert "task 'g.tidy' of run 'manual__1+a'" in words(answer)
