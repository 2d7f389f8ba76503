"""The page of a table beside its health: columns, options, tags, consumers, snapshots, tasks."""

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.page import table_facts
from airflow_provider_lake.page.airflow_records import OneTask
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.page.pages import Words, words, write
from tests.airflow.test_dags import load

PAGE = "/lake/table/lake_default?name=shop.orders"
SNAPSHOT = "/lake/snapshot/lake_default?name=shop.orders&number="


def links_of(answer):
    return [attrs["href"] for tag, attrs in Words(answer.text).tags if tag == "a"]


@pytest.fixture
def keyed(catalog):
    """Two keys, written three times: six records, two rows."""
    table = catalog.create_table(
        "shop.keyed",
        [("id", "BIGINT"), ("item", "STRING")],
        primary_key=["id"],
        options={"bucket": "1"},
    )
    for _ in range(3):
        write(table, 1, 2)
    return table


def test_columns_options_tags_and_consumers_are_shown(ask, catalog, warehouse):
    """An option that is a credential is masked: other engines may have written it."""
    table = catalog.create_table(
        "shop.all",
        [("dt", "STRING"), ("id", "DECIMAL(10, 2)")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1", "note": "hush-hush-key"},
        comment="Every order",
    )
    table.write(pa.table({"dt": ["a"], "id": pa.array([1], pa.decimal128(10, 2))}))
    table.tags.create("v1", retain="7 d")
    table.consumers.set("mirror", next_snapshot=1)
    schema = Path(warehouse) / "shop.db/all/schema/schema-0"
    schema.write_text(schema.read_text().replace('"note"', '"fs.s3a.secret.key"'))

    answer = ask("/lake/table/lake_default?name=shop.all")

    said = words(answer)
    assert "Every order" in said
    assert "dt STRING NOT NULL primary key partition id DECIMAL(10, 2) NOT NULL primary key" in said
    assert "Options bucket 1 fs.s3a.secret.key ***" in said
    assert "hush-hush-key" not in answer.text
    assert "v1 1 20" in said
    assert "mirror 1 1 20" in said


def test_many_tags_are_left_to_the_command_line(ask, orders, monkeypatch):
    monkeypatch.setattr(table_facts, "_MOST_TAGS", 1)
    write(orders, 1)
    for name in ("v1", "v2"):
        orders.tags.create(name)

    assert "2 tags, too many for this page: lake tag list shop.orders" in words(ask(PAGE))


def test_records_of_a_keyed_table_are_never_called_rows(ask, keyed):
    address = "/lake/table/lake_default?name=shop.keyed"
    said = words(ask(address))
    assert "Records in files 6" in said
    assert "3 files with 6 records" in said
    assert "6 rows" not in said
    assert "Rows of a scan not counted" in said

    keyed.compact(strategy="full")
    said = words(ask(address))

    assert f"Rows {keyed.scan().count()} " in said
    assert "Rows of a scan 2 " in said


def test_many_files_of_a_keyed_table_are_not_counted(ask, keyed, monkeypatch):
    monkeypatch.setattr(table_facts, "_MOST_COUNTED_FILES", 0)
    keyed.compact(strategy="full")

    assert "Records in files 2" in words(ask("/lake/table/lake_default?name=shop.keyed"))


def test_rows_that_deletion_vectors_hide_are_not_counted(ask, catalog):
    table = catalog.create_table(
        "shop.hidden", [("id", "BIGINT")], options={"deletion-vectors.enabled": "true"}
    )
    table.write(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")

    said = words(ask("/lake/table/lake_default?name=shop.hidden"))

    assert f"Rows {table.scan().count()} " in said
    assert "with 3 records" in said


def test_a_compaction_never_has_negative_rows(ask, keyed):
    number = keyed.compact(strategy="full").snapshot_ids[-1]
    assert keyed.latest_snapshot().delta_record_count < 0

    of_table = words(ask("/lake/table/lake_default?name=shop.keyed"))
    of_one = words(ask(f"/lake/snapshot/lake_default?name=shop.keyed&number={number}"))

    assert f"{number} COMPACT 20" in of_table
    assert "rewritten 2" in of_table
    assert "Records unchanged: a compaction rewrites the same rows; total records 2" in of_one
    assert "−" not in of_table + of_one


def test_each_snapshot_has_a_page_between_its_neighbours(ask, orders):
    for number in range(3):
        write(orders, number, user=f"writer-{number}")

    assert f"{SNAPSHOT}2" in [link.replace("&amp;", "&") for link in links_of(ask(PAGE))]
    answer = ask(f"{SNAPSHOT}2")

    said = words(answer)
    assert "Snapshot 2 APPEND" in said
    assert "Rows +1; total rows 2" in said
    assert "writer-1" in said
    assert {f"{SNAPSHOT}1", f"{SNAPSHOT}3"} <= {*links_of(answer)}
    assert f"{SNAPSHOT}2" not in links_of(ask(f"{SNAPSHOT}3"))[:3]


@pytest.mark.parametrize(
    ("number", "status", "happened"),
    [
        (
            "7",
            404,
            "table shop.orders has no snapshot 7: it has expired, was rolled back, or was never "
            "published",
        ),
        ("0", 422, "number: Input should be greater than or equal to 1"),
        ("x", 422, "number"),
    ],
)
def test_a_snapshot_that_is_not_there_says_so(ask, orders, number, status, happened):
    write(orders, 1)
    answer = ask(f"{SNAPSHOT}{number}")

    assert answer.status_code == status
    assert happened in words(answer)


@pytest.fixture
def filled(warehouse, airflow_db):
    """The run of a mapped task that has filled ``shop.tea``."""
    return load(TEST_DAGS)["functions"].test()


def test_a_commit_of_a_task_leads_to_its_run(ask, filled):
    answer = ask("/lake/table/lake_default?name=shop.tea")

    [link] = [each for each in links_of(answer) if "/tasks/" in each]
    assert link == f"/lake/tasks/functions/{quote(filled.run_id)}/fill/0"
    assert f"fill of functions {filled.run_id}" in words(answer)
    assert "Changes by fill" in words(ask(link))
    of_one = words(ask("/lake/snapshot/lake_default?name=shop.tea&number=1"))
    assert (
        f"Published by the task fill of DAG functions, run {filled.run_id}, map index 0" in of_one
    )


def test_a_commit_of_a_task_that_you_may_not_see_leads_nowhere(ask, filled, monkeypatch):
    from airflow.api_fastapi.app import get_auth_manager

    monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", lambda **_: False)
    answer = ask("/lake/table/lake_default?name=shop.tea")

    task = OneTask("functions", filled.run_id, "fill", 0)
    assert filled.run_id not in answer.text
    assert commit_user(task, "shop.tea") in words(answer)


def test_a_compaction_of_a_task_leads_to_its_run_too(ask, filled, warehouse):
    """It adds a suffix to the commit user; a task on a database has that in its user."""
    table = lake.open_catalog(warehouse).table("shop.tea")
    task = OneTask("functions", filled.run_id, "count", -1)
    for number in range(3):
        table.write(pa.table({"n": [number], "run": ["later"]}))
    table.compact(strategy="full", commit=lake.CommitId(commit_user(task, "shop"), 1))

    links = links_of(ask("/lake/table/lake_default?name=shop.tea"))

    assert f"/lake/tasks/functions/{quote(filled.run_id)}/count/-1" in links
