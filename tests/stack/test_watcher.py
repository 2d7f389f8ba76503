"""A real triggerer: a commit that Airflow knows nothing of starts a DAG."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

DAGS = Path(__file__).resolve().parent / "dags"
PATIENCE = 240


@pytest.fixture
def airflow(tmp_path):
    connection = {"conn_type": "lake", "extra": {"warehouse": str(tmp_path / "warehouse")}}
    settings = {"AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection)}
    with LocalAirflow(tmp_path / "airflow", DAGS, settings=settings) as airflow:
        airflow.wait_for_dags("watched", "told", seconds=PATIENCE)
        yield airflow


def read_by(airflow, count):
    """Return the rows that all runs have read, in order."""
    airflow.wait_for_runs("watched", count, seconds=PATIENCE)
    runs = airflow.runs("watched")
    results = [airflow.result("watched", run, "read_what_is_new") for run in runs]
    return sorted((each for each in results), key=lambda each: each["upto"])


def test_commits_start_runs_that_read_each_row_once(airflow, tmp_path):
    """The table does not exist when the watcher starts; a compaction starts no run.

    Nor is the watcher ended by a DAG that has the table's own asset as an outlet.
    """
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(6):
        orders.write(pa.table({"id": [number]}))
    first = read_by(airflow, 1)
    compacted = orders.compact().snapshot_ids
    orders.write(pa.table({"id": [99]}))

    seen = first
    while seen[-1]["upto"] < orders.latest_snapshot().id:
        seen = read_by(airflow, len(seen) + 1)

    assert compacted
    assert sorted(number for each in seen for number in each["ids"]) == [0, 1, 2, 3, 4, 5, 99]
    assert all(each["ids"] for each in seen)
