"""Functions that ask for Spark, each in a process of its own: a session ends with its function."""

import json
import os
import shutil
import signal
import subprocess
import sys

import psutil
import pyarrow as pa
import pytest
from airflow.sdk import task

import lakeformat as lake
from tests.airflow.conftest import TEST_DAGS
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException

PATIENCE_SECONDS = 300
STORY = pytest.mark.sampled(1, among="tasks with a real Spark")

RUN = f"""
from tests.airflow.versions import DagBag
run = DagBag({str(TEST_DAGS)!r}).dags["prices_on_spark"].test()
print("answer", run.state)
"""

ALONE = """
import json
from airflow.sdk import task
from tests.airflow.contexts import task_context

@task.lake_job(table="shop.prices", spark_conn_id="two_cores", conf={"spark.lake.test": "yes"})
def look(spark, table, factor):
    from pyspark.sql import SparkSession
    context = spark.sparkContext
    return {
        "rows": spark.read.format("lake").load("shop.prices").count() * factor,
        "master": context.master,
        "conf": spark.conf.get("spark.lake.test"),
        "app": context.appName,
    }

context = task_context()
made = look(factor=10).operator
found = made.execute(context)
from pyspark.sql import SparkSession
found |= {"left": SparkSession.getActiveSession() is not None, "said": context["ti"].xcoms}
print("answer", json.dumps(found))
"""


@pytest.fixture(autouse=True)
def _needs_spark(quick_java):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")


@pytest.fixture
def prices(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    table = catalog.create_table("shop.prices", [("item", "STRING"), ("price", "BIGINT")])
    table.write(pa.table({"item": ["apple", "pear", "plum"], "price": [5, 7, 9]}))
    return catalog


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Airflow 3.4 may log more when the process ends.
    [answer] = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    return answer.removeprefix("answer ")


@pytest.mark.spark
@STORY
def test_the_page_s_second_dag_writes_a_data_frame_once(airflow_db, prices):
    assert run(RUN) == "success"

    levels = prices.table("shop.price_levels")
    found = levels.scan().to_arrow().to_pylist()
    assert {row["is_dear"]: row["count"] for row in found} == {False: 1, True: 2}
    [snapshot] = levels.snapshots()
    assert snapshot.commit_user.startswith("airflow.prices_on_spark.levels.")


@pytest.mark.spark
@STORY
def test_a_function_gets_spark_where_its_connection_says(prices, connect):
    connect("two_cores", conn_type="spark", host="local[2]")

    found = json.loads(run(ALONE))

    assert (found["rows"], found["master"], found["conf"]) == (30, "local[2]", "yes")
    assert found["app"].startswith("lake_job.airflow.shop.")
    assert not found["left"]
    assert found["said"]["lake_spark"]["application_id"].startswith("local-")


OVERWRITTEN = """
import json
import lakeformat as lake
import pyarrow as pa
from airflow.sdk import task
from tests.airflow.contexts import task_context

@task.lake_commit(table="shop.people", overwrite="table", spark_conn_id="one_core")
def people(spark, table):
    table.write(pa.table({"id": [3], "name": ["of the stream"]}))
    return spark.range(2, 4).selectExpr("id", "concat('of the batch ', id) AS name")

done = people().operator.execute(task_context())
print("answer", json.dumps(done["report"]["rows"]))
"""


@pytest.mark.spark
@STORY
def test_a_data_frame_overwrites_a_mixed_table_as_a_batch(tmp_path, connect):
    extra = {"warehouse": str(tmp_path), "options": {"format": "iceberg"}}
    connect("lake_default", conn_type="lake", extra=extra)
    connect("one_core", conn_type="spark", host="local[1]")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("name", "STRING")]
    people = catalog.create_table("shop.people", columns, format="mixed", primary_key=["id"])
    people.write(pa.table({"id": [1, 2], "name": ["old", "old"]}))

    assert json.loads(run(OVERWRITTEN)) == 2

    found = people.scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [2, 3], "name": ["of the batch 2", "of the stream"]}


KILLED = """
import signal, sys, time
from airflow.sdk import task
from tests.airflow.contexts import task_context

@task.lake_job(table="shop.prices")
def wait(spark):
    print("at work", flush=True)
    time.sleep(3600)

made = wait().operator
signal.signal(signal.SIGTERM, lambda *_: made.on_kill())
made.execute(task_context())
"""


@pytest.mark.spark
@STORY
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_spark_ends_with_the_task(prices, how):
    words = [sys.executable, "-c", KILLED]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        said = iter(worker.stdout.readline, b"")
        assert any(line == b"at work\n" for line in said)
        started = psutil.Process(worker.pid).children(recursive=True)
        worker.send_signal(how)
        worker.wait(PATIENCE_SECONDS)

    _, left = psutil.wait_procs(started, timeout=60)
    assert [each.name() for each in started if each in left] == []
    assert len(started) >= 1


@pytest.mark.parametrize(
    ("conn_id", "said"),
    [
        ("elsewhere", "deploy mode 'cluster'"),
        ("nobody", "Spark connection 'nobody' does not exist"),
    ],
)
def test_spark_that_cannot_be_had_here_is_refused(prices, connect, conn_id, said):
    connect("elsewhere", conn_type="yarn", host="", extra={"deploy-mode": "cluster"})
    look = task.lake_job(table="shop.prices", spark_conn_id=conn_id)(lambda spark: spark)
    operator = look.override(task_id="look")().operator

    with pytest.raises(AirflowFailException, match=said):
        operator.execute(task_context())
