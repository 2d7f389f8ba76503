"""The tab of a task: its changes, read from the table."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.page import task as page_of_task
from airflow_provider_lake.page.task_result import report_facts
from spark_jobs import expire_snapshots
from tests.airflow.conftest import DAGS, TEST_DAGS
from tests.airflow.page.pages import TASK, TASK_PATH, words, write
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
    assert "Rows unchanged: a compaction rewrites the same rows; total rows 12" in found
    assert "Files added 2 files with 12 rows" in found
    assert "Files deleted 12 files with 12 rows" in found
    assert re.search(r"dt=a 1 6 [\d.]+ \w+ 6 6 ", found)


def test_the_results_of_checks_are_shown_with_examples_and_advice(ask, orders, said):
    orders.write(pa.table({"id": [1, 1], "item": ["a", None]}))
    report = orders.check(not_null=["item"], unique=["id"], min_rows=1, warn_only=["unique"])
    said["lake_table"] = {"table": "shop.orders"}
    said["return_value"] = {"reason": report.reason, "report": report.to_dict()}

    found = words(ask(TASK_PATH))

    assert "2 rows: 3 checks, 1 failed, 1 warned." in found
    assert "rows passed 2 rows, expected at least 1" in found
    assert "not_null(item) failed 1 of 2 rows has a null, such as id=1, item=NULL correct" in found
    assert "unique(id) warned 2 rows with values that another row has, too" in found


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
            "An earlier attempt of this task had already published this commit. Table shop.orders "
            "of connection lake_default. None of the 1 snapshot checked",
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


def test_a_function_that_commits_its_rows_shows_its_snapshot(ask, warehouse, airflow_db):
    run = load(TEST_DAGS)["functions"].test()

    found = words(ask(f"/lake/tasks/functions/{quote(run.run_id)}/fill/1"))

    assert "map index 1 Published as snapshot 1." in found
    assert "Table shop.milk of connection lake_default" in found
    assert "Rows +3; total rows 3" in found


def test_a_task_that_replaces_a_partition_shows_its_snapshot(ask, warehouse, tmp_path, airflow_db):
    """It writes under a name of its own; its asset event names the snapshot."""
    day = tmp_path / "2024-01-31"
    day.mkdir()
    (day / "part-1.csv").write_text("id,item,price\n1,tea,3\n2,milk,4\n")
    run = run_for_january_31(load(DAGS)["backfill_partitions"], tmp_path)
    table = lake.open_catalog(warehouse).table("shop.daily_orders")
    table.truncate()

    found = words(ask(f"/lake/tasks/backfill_partitions/{quote(run.run_id)}/replace_day/-1"))

    assert "Table shop.daily_orders of connection lake_default" in found
    assert "Snapshot 1 OVERWRITE" in found
    assert "dt=2024-01-31 1 2" in found
    assert "Snapshot 2" not in found


def test_a_cleared_task_that_failed_shows_its_first_commit_and_the_one_before_the_failure(
    ask, orders, said, monkeypatch
):
    """A clear removes XComs and keeps asset events; the failed try has sent none."""
    user = commit_user(TASK, "shop.orders")
    for identifier, writer in enumerate((user, "somebody", user), start=1):
        rows = pa.table({"id": [identifier], "item": ["tea"]})
        orders.write(rows, commit=lake.CommitId(writer, identifier))
    said["lake_table"] = {"table": "shop.orders"}
    first = {"snapshot_id": 1, "previous_snapshot_id": 0}
    monkeypatch.setattr(page_of_task, "events_of", lambda task: [("lake://shop/orders", first)])

    found = words(ask(TASK_PATH))

    assert "Snapshot 1 APPEND" in found
    assert "Snapshot 3 APPEND" in found
    assert "Snapshot 2" not in found


def test_an_asset_event_shows_no_snapshot_beside_its_own(ask, orders, said, monkeypatch):
    """The newest snapshots are searched as well, because the task has no result yet."""
    for number in range(3):
        write(orders, number, user=f"writer-{number}")
    said["lake_table"] = {"table": "shop.orders"}
    sent = {"snapshot_id": 2, "previous_snapshot_id": "odd"}
    monkeypatch.setattr(page_of_task, "events_of", lambda task: [("lake://shop/orders", sent)])

    found = words(ask(TASK_PATH))

    assert "Snapshot 2 APPEND" in found
    assert "The task sent an asset event for 1 snapshot." in found
    assert "Snapshot 1 " not in found
    assert "Snapshot 3 " not in found


def test_an_xcom_does_not_replace_the_asset_event_of_a_task(ask, orders, said):
    """Without an event of the task, no snapshot of another writer is shown."""
    write(orders, 1, user="somebody")
    said["return_value"] = {"table": "shop.orders", "snapshot_id": 1, "previous_snapshot_id": 0}

    found = words(ask(TASK_PATH))

    assert "has not named a table" in found
    assert "Snapshot 1" not in found


def test_an_expiry_shows_the_files_that_it_deleted(ask, orders, said):
    for number in range(6):
        write(orders, number)
    orders.compact()
    result = expire_snapshots.run(
        {
            "warehouse": orders.location.removesuffix("/shop.db/orders"),
            "table": "shop.orders",
            "retain_max": 1,
            "retain_min": 1,
            "older_than": "0 s",
        }
    )
    said |= {"lake_table": {"table": "shop.orders"}, "return_value": result}

    found = words(ask(TASK_PATH))

    files = result["report"]["files"]
    assert files["data"] == 6
    assert "6 snapshots, 1 to 6, expired; deleted" in found
    assert f"deleted {sum(files.values())} files of" in found
    assert "The task has published no snapshot." in found
    assert "Files 6 data," in found


def test_a_task_on_a_database_shows_each_table(ask, orders, said):
    said["lake_table"] = {"database": "shop"}
    said["return_value"] = {
        "reason": "1 of 2 tables compacted, 1 failed",
        "report": {
            "tables": [
                {"table": "shop.orders", "report": {"reason": "6 compacted"}, "error": None},
                {"table": "shop.tea", "report": None, "error": "a file is missing"},
                "not a table",
            ]
        },
    }

    answer = ask(TASK_PATH)

    assert "1 of 2 tables compacted, 1 failed." in words(answer)
    assert "shop.orders 6 compacted shop.tea Failed: a file is missing" in words(answer)
    assert "/lake/table/lake_default?name=shop.tea" in answer.text


@pytest.mark.parametrize(
    "report", [None, 7, "text", [], {"tables": 3}, {"tables": [3]}, {"checks": [3]}, {"n": {}}]
)
def test_a_result_that_people_changed_breaks_no_page(ask, orders, said, report):
    said["lake_table"] = {"table": "shop.orders"}
    said["return_value"] = {"snapshot_id": "x", "reason": 5, "report": report}
    assert ask(TASK_PATH).status_code == 200

    said["return_value"] = {"snapshot_id": None, "report": report}
    assert ask(TASK_PATH).status_code == 200


def test_the_numbers_of_a_report_are_named_and_zeros_left_out():
    report = {
        "table": "shop.orders",
        "dry_run": True,
        "limited": False,
        "snapshots": [*range(100)],
        "files": {"data": 40, "manifest": 1},
        "freed_bytes": 2048,
        "spared": 0,
        "seconds": 1.25,
        "plan_millis": 1600,
        "note": "x" * 300,
        "left_out": {"snapshots": 20},
    }

    assert report_facts({"report": report}) == [
        ("Dry run", "yes"),
        ("Snapshots", "120"),
        ("Files", "40 data, 1 manifest"),
        ("Freed bytes", "2.0 KiB"),
        ("Seconds", "1.2"),
        ("Plan", "1 s"),
        ("Note", "x" * 200 + "…"),
    ]
