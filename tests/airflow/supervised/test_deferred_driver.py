"""A trigger waits for a driver of a standalone cluster, which runs beside the worker."""

import asyncio
import json
import os
import shutil

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.supervised import deferral
from tests.airflow.contexts import task_context
from tests.airflow.deferred import defer, event_of, finish
from tests.spark.standalone import environment, standalone_cluster

pytestmark = pytest.mark.sampled(1, among="tasks with a real Spark")


@pytest.fixture(scope="module")
def cluster(quick_java, tmp_path_factory):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def task(cluster, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(deferral, "triggerer_is_here", lambda: True)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    extra = {"warehouse": str(tmp_path / "warehouse")}
    monkeypatch.setenv(
        "AIRFLOW_CONN_LAKE_DEFAULT", json.dumps({"conn_type": "lake", "extra": extra})
    )
    catalog = lake.open_catalog(extra["warehouse"])
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(2):
        table.write(pa.table({"id": [number]}))
    spark = {"conn_type": "spark", "host": cluster.url}
    monkeypatch.setenv("AIRFLOW_CONN_STANDALONE", json.dumps(spark))
    return LakeCompactOperator(
        task_id="work",
        table="shop.orders",
        engine="spark",
        spark_conn_id="standalone",
        conf={"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"},
        deferrable=True,
    )


def test_its_result_and_its_application_are_known_at_the_end(task):
    context = task_context()

    result = finish(task, context)

    assert result["snapshot_id"] == 3
    assert context["ti"].xcoms["lake_spark"]["application_id"].startswith("app-")


def test_a_kill_ends_it_before_it_commits(task, tmp_path):
    trigger = defer(task, task_context())

    asyncio.run(trigger.on_kill())

    assert event_of(trigger)["status"] == "elsewhere"  # its folder is deleted
    table = lake.open_catalog(str(tmp_path / "warehouse")).table("shop.orders")
    assert table.latest_snapshot().id == 2
