"""A trigger waits for a driver on YARN or Kubernetes by the REST API of the cluster."""

import asyncio
import json
import logging
import sys
from datetime import timedelta

import pyarrow as pa
import pytest
from airflow.providers.apache.spark.hooks import spark_submit as stock_hook

from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.triggers import driver as driver_trigger
from tests.airflow.contexts import StateStore, task_context
from tests.airflow.deferred import WITHOUT_TASKS, defer, event_of
from tests.airflow.supervised.clusters import (
    APPLICATION,
    NO_POD,
    KubernetesClient,
    kubernetes,
    pod,
    yarn,
)
from tests.airflow.versions import AirflowException, AirflowTaskTimeout, since

ACCEPTED, RUNNING = ("ACCEPTED", "UNDEFINED", ""), ("RUNNING", "UNDEFINED", "")
SUCCEEDED = ("FINISHED", "SUCCEEDED", "")
FAILED = ("FINISHED", "FAILED", "User application exited with status 1")

# The output of a driver on a cluster does not reach spark-submit.
DOES_THE_WORK = WITHOUT_TASKS.replace("os.execv", "os.dup2(os.open('/dev/null', 1), 1); os.execv")


@pytest.fixture
def orders(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    table.write(pa.table({"id": [2]}))
    return table


@pytest.fixture
def task(tmp_path, connect):
    """Returns a task in deploy mode cluster, with a program in place of spark-submit.

    The program does the work at once, which a real driver does later.
    """
    (tmp_path / "results").mkdir()

    def make(master, extra, submitted, *, does=DOES_THE_WORK, **given):
        connect("cluster", conn_type="spark", host=master, extra=extra)
        program = tmp_path / "spark-submit"
        count = f"open({str(tmp_path / 'submitted')!r}, 'a').write('x')"
        program.write_text(f"#!{sys.executable}\n{count}\nprint({submitted!r}, flush=True)\n{does}")
        program.chmod(0o755)
        return LakeCompactOperator(
            task_id="work",
            table="shop.orders",
            engine="spark",
            spark_conn_id="cluster",
            deploy_mode="cluster",
            result_folder=str(tmp_path / "results"),
            spark_binary=str(program),
            deferrable=True,
            **given,
        )

    return make


@pytest.fixture
def on_yarn(task):
    def make(cluster, **given):
        extra = {"yarn_resourcemanager_webapp_address": cluster.address}
        return task("yarn", extra, f"Submitted application {APPLICATION}", **given)

    return make


@pytest.fixture
def on_kubernetes(task, monkeypatch):
    def make(cluster, **given):
        client = KubernetesClient(cluster.address)
        stub = type("KubeClient", (), {"get_kube_client": lambda: client, "ApiException": OSError})
        monkeypatch.setattr(stock_hook, "kube_client", stub, raising=False)
        submitted = "\tpod name: compact-8f2-driver\n\tnamespace: jobs"
        return task(f"k8s://{cluster.address}", {"namespace": "jobs"}, submitted, **given)

    return make


@pytest.fixture
def context():
    return tried()


def tried(store=None, *, try_number=1, clear_number=0):
    context = task_context(try_number=try_number)
    context["ti"].stats_tags = {}
    context["task_state_store"] = StateStore() if store is None else store
    context["dag_run"].clear_number = clear_number
    return context


def submissions(tmp_path):
    return len((tmp_path / "submitted").read_text())


def test_an_application_on_yarn_is_waited_for(on_yarn, orders, context, caplog):
    caplog.set_level(logging.INFO)
    with yarn(ACCEPTED, RUNNING, RUNNING, SUCCEEDED) as cluster:
        work = on_yarn(cluster)
        trigger = defer(work, context)
        event = event_of(trigger)
    result = work.execute_complete(context, event)

    assert event == {"status": "driver_ended", "failure": None}
    assert result["snapshot_id"] == 3
    assert context["ti"].xcoms["lake_spark"]["application_id"] == APPLICATION
    states = [f"driver {APPLICATION}: {name}" for name in ("ACCEPTED", "RUNNING", "FINISHED")]
    assert [each for each in caplog.messages if each.startswith("driver ")] == states


def test_a_driver_on_kubernetes_is_waited_for(on_kubernetes, orders, context):
    with kubernetes(pod("Pending"), pod("Running"), pod("Succeeded", 0, "Completed")) as cluster:
        work = on_kubernetes(cluster)
        trigger = defer(work, context)
        event = event_of(trigger)

    assert trigger.driver == "jobs:compact-8f2-driver"
    assert work.execute_complete(context, event)["snapshot_id"] == 3


def test_a_failed_application_fails_the_task_with_the_words_of_yarn(on_yarn, orders, context):
    with yarn(RUNNING, FAILED) as cluster:
        work = on_yarn(cluster, does="")
        event = event_of(defer(work, context))

    with pytest.raises(AirflowException, match="FAILED: User application exited with status 1"):
        work.execute_complete(context, event)


def test_a_failed_pod_fails_the_task_with_its_exit_code(on_kubernetes, orders, context):
    with kubernetes(pod("Running"), pod("Failed", 137, "OOMKilled")) as cluster:
        work = on_kubernetes(cluster, does="")
        event = event_of(defer(work, context))

    with pytest.raises(AirflowException, match="exit code 137, OOMKilled"):
        work.execute_complete(context, event)


def test_the_result_decides_about_a_pod_that_was_deleted_after_its_end(
    on_kubernetes, orders, context
):
    with kubernetes(pod("Running"), NO_POD) as cluster:
        work = on_kubernetes(cluster)
        event = event_of(defer(work, context))

    assert work.execute_complete(context, event)["snapshot_id"] == 3


def test_no_answer_is_no_end(on_yarn, orders, context, caplog):
    with yarn(RUNNING, 503, 503, SUCCEEDED) as cluster:
        event = event_of(defer(on_yarn(cluster), context))

    assert event == {"status": "driver_ended", "failure": None}
    assert caplog.text.count("asks again") == 2


def test_a_cluster_that_stays_silent_fails_the_task(on_yarn, orders, context, monkeypatch, caplog):
    monkeypatch.setattr(driver_trigger, "_MOST_FAILURES", 3)
    with yarn(503) as cluster:
        work = on_yarn(cluster, does="")
        event = event_of(defer(work, context))

    assert caplog.text.count("asks again") == 2  # not after the last check
    with pytest.raises(AirflowException, match="has sent no state of driver"):
        work.execute_complete(context, event)


@pytest.mark.parametrize("where", ["yarn", "kubernetes"])
def test_a_cleared_task_ends_its_driver(where, on_yarn, on_kubernetes, orders, context):
    server, make, state = {
        "yarn": (yarn, on_yarn, RUNNING),
        "kubernetes": (kubernetes, on_kubernetes, pod("Running")),
    }[where]
    with server(state) as cluster:
        trigger = defer(make(cluster, does=""), context)

        asyncio.run(trigger.on_kill())

        assert cluster.killed


def test_execution_timeout_ends_the_driver(on_yarn, orders, context):
    with yarn(RUNNING) as cluster:
        work = on_yarn(cluster, does="", execution_timeout=timedelta(seconds=0.2))
        event = event_of(defer(work, context))

        assert cluster.killed
    with pytest.raises(AirflowTaskTimeout, match="execution_timeout"):
        work.execute_complete(context, event)


@since("3.3", "the state that a task keeps, such as the id of its driver")
def test_a_retry_rejoins_the_application_and_a_clear_submits_another(on_yarn, orders, tmp_path):
    first = tried()
    with yarn(RUNNING) as cluster:
        work = on_yarn(cluster, does="")
        one = defer(work, first)

        retry = defer(work, {**first, "ti": tried(try_number=2)["ti"]})
        assert (retry.driver, submissions(tmp_path)) == (one.driver, 1)

        cleared = tried(first["task_state_store"], try_number=2, clear_number=1)
        defer(work, cleared)
        assert submissions(tmp_path) == 2


def test_no_argument_of_the_trigger_is_secret(on_yarn, orders, context):
    with yarn(RUNNING) as cluster:
        _, arguments = defer(on_yarn(cluster, does=""), context).serialize()

    assert {*arguments} == {"manager", "driver", "spark_conn_id", "ends_at", "poll_interval"}
    assert cluster.address not in json.dumps(arguments)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({}, "connection 'cluster' has no yarn_resourcemanager_webapp_address"),
        ({"principal": "lake@REALM"}, "a trigger has no credentials for YARN with Kerberos"),
    ],
)
def test_a_task_whose_cluster_no_trigger_can_ask_keeps_its_slot(
    extra, reason, task, orders, context, caplog
):
    submitted = f"Submitted application {APPLICATION}"
    work = task("yarn", extra, submitted, durable=False)
    caplog.set_level(logging.INFO)

    assert work.execute(context)["snapshot_id"] == 3
    assert f"the task keeps its worker slot: {reason}" in caplog.text
