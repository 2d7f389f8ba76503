"""A deferrable task holds its slot for seconds: a process without a worker does its work."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from copy import copy
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.tag import LakeTagOperator
from airflow_provider_lake.supervised import deferral
from airflow_provider_lake.supervised.process_id import ProcessId
from airflow_provider_lake.supervised.run_folder import RunFolder
from airflow_provider_lake.triggers import process as process_trigger
from tests.airflow.contexts import task_context
from tests.airflow.deferred import (
    AS_SPARK_DOES,
    KILLED_RUN_START,
    WITHOUT_TASKS,
    HeldIngest,
    defer,
    event_of,
    finish,
    of_triggerer,
)
from tests.airflow.versions import AirflowException, AirflowFailException, AirflowTaskTimeout

APPLICATION = {"application_id": "local-1", "ui": "http://here:4040"}
ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 120


@pytest.fixture(autouse=True)
def _on_a_machine_with_a_triggerer(tmp_path, monkeypatch):
    """Folders of processes are kept below the directory of the test."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(deferral, "triggerer_is_here", lambda: True)
    yield
    for folder in folders(tmp_path):
        folder.end(PATIENCE_SECONDS)


@pytest.fixture
def held(tmp_path, warehouse, monkeypatch):
    """Returns a task whose process waits at its commit until ``go`` exists."""
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    monkeypatch.setenv("TEST_SIGNS", str(tmp_path))
    monkeypatch.setenv("TEST_MOMENT", "before")

    def make(**given):
        source = str(tmp_path / "a.csv")
        named = {"task_id": "work", "table": "shop.orders", "source": source, "create": True}
        return HeldIngest(**named, engine="python", deferrable=True, **given)

    return make


def folders(tmp_path):
    root = tmp_path / "tmp" / f"lake-tasks-{os.getuid()}"
    return [RunFolder(path) for path in root.iterdir()] if root.exists() else []


def retried(context, *, clear_number=0, max_tries=0):
    """The context of the next try of the same task; a clear counts in its run or its tries."""
    run = copy(context["dag_run"])
    run.clear_number = clear_number
    again = task_context(try_number=2)
    again["ti"].max_tries += max_tries
    return {**again, "dag_run": run}


def runs(pid):
    with suppress(FileNotFoundError):
        return ProcessId.of(pid).is_running
    return False


def wait_for(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def snapshots(warehouse):
    return [each.id for each in lake.open_catalog(warehouse).table("shop.orders").snapshots()]


def test_deferred_tasks_ingest_each_file_once(tmp_path, warehouse):
    source = str(tmp_path / "*.csv")
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text(f"id\n{number}\n")
        task = LakeIngestOperator(
            **{"task_id": "work", "table": "shop.orders", "source": source, "create": True},
            engine="python",
            deferrable=True,
        )
        finish(task, task_context(run_id=f"scheduled__{number}"))
    table = lake.open_catalog(warehouse).table("shop.orders")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_deferred_task_returns_and_sends_what_any_task_does(catalog, told, caplog):
    """The result, the asset events, the metrics and the log of a compaction in both ways."""
    caplog.set_level(logging.INFO)
    found = []
    for name, way in (("in_its_slot", False), ("without_one", True)):
        table = catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
        table.write(pa.table({"id": [1]}))
        table.write(pa.table({"id": [2]}))
        outlet = lake_asset(f"shop.{name}")
        task = LakeCompactOperator(
            task_id="work", table=f"shop.{name}", outlets=[outlet], deferrable=way
        )
        context = task_context()
        told.clear()
        caplog.clear()
        result = finish(task, context) if way else task.execute(context)
        extra = dict(context["outlet_events"][outlet].extra)
        logged = [(each.levelname, each.getMessage()) for each in caplog.records]
        of_work = [each for each in logged if "compaction" in each[1] or "COMPACT" in each[1]]
        found.append([without_times(each, name) for each in (result, extra, told.numbers())])
        found[-1].append(without_times(of_work, name))

    assert found[0][0]["snapshot_id"] == 3
    for mine, theirs in zip(*found, strict=True):
        assert mine == theirs


def without_times(value, name):
    """The value with another name of the table, and without what no two tasks have alike."""
    known = json.loads(json.dumps(value, default=str).replace(name, "any"))
    if isinstance(known, list):
        return [without_times(each, name) for each in known]
    if not isinstance(known, dict):
        return known
    ends = ("seconds", "millis", "position")
    return {key: without_times(v, name) for key, v in known.items() if not key.endswith(ends)}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"table": "shop.nothing"}, "NotFoundError"),
        ({"table": "shop.orders", "where": "id = 1"}, "InvalidRequestError"),
    ],
)
def test_a_deferred_task_fails_as_any_task_does(arguments, error, orders):
    task = LakeCompactOperator(task_id="work", deferrable=True, **arguments)
    direct = LakeCompactOperator(task_id="work", **arguments)

    with pytest.raises(AirflowFailException, match=error) as expected:
        direct.execute(task_context())
    with pytest.raises(AirflowFailException) as failed:
        finish(task, task_context())

    assert str(failed.value) == str(expected.value)


def test_warnings_of_the_process_are_warnings_of_the_task(orders, tmp_path, caplog):
    class Warning_(LakeHealthOperator):
        def _program(self):
            code = (
                "import logging, sys; from spark_jobs import health; from spark_jobs.runtime import"
                " job; f = job.wanted_table; health.wanted_table = lambda *a: ("
                "logging.getLogger('lakeformat').warning('act on this'), f(*a))[1]; "
                "sys.exit(health.main(sys.argv[1:]))"
            )
            return [sys.executable, "-c", code]

    finish(Warning_(task_id="work", table="shop.orders", deferrable=True), task_context())

    [found] = [each for each in caplog.records if each.getMessage() == "act on this"]
    assert found.levelname == "WARNING"


@pytest.fixture
def on_spark(tmp_path, connect):
    """Returns a task on Spark, with a program in place of spark-submit."""
    connect("spark_here", conn_type="spark", host="local[1]")

    def make(operator, code=AS_SPARK_DOES, **arguments):
        program = tmp_path / "spark-submit"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
        given = {"task_id": "work", "engine": "spark", "spark_conn_id": "spark_here", **arguments}
        return operator(**given, spark_binary=str(program), deferrable=True)

    return make


def test_spark_on_this_machine_is_waited_for(on_spark, catalog, told):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    table.write(pa.table({"id": [2]}))
    code = f"print('LAKE_SPARK ' + {json.dumps(json.dumps(APPLICATION))})\n{WITHOUT_TASKS}"
    task, context = on_spark(LakeCompactOperator, code, table="shop.orders"), task_context()

    result = finish(task, context)

    assert result["snapshot_id"] == 3
    assert context["ti"].xcoms["lake_spark"] == APPLICATION
    assert told.numbers()["files_in"] == 2
    assert task.is_on_spark


def test_commands_after_spark_run_when_the_driver_has_ended(on_spark, orders, tmp_path):
    task = on_spark(
        LakeHealthOperator,
        table="shop.orders",
        post_submit_commands=[f"touch {tmp_path / 'after'}"],
    )
    trigger = defer(task, task_context())
    event = event_of(trigger)
    assert not (tmp_path / "after").exists()

    task.execute_complete(task_context(), event)

    assert (tmp_path / "after").exists()


def test_a_silent_master_is_named_after_a_deferral_too(on_spark, orders):
    code = "import sys; print('Failed to connect to master away:7077'); sys.exit(1)"
    task, context = on_spark(LakeHealthOperator, code, table="shop.orders"), task_context()

    with pytest.raises(AirflowException, match="Spark's master away:7077 does not answer: check"):
        finish(task, context)


def test_a_result_folder_is_used_after_a_deferral_too(on_spark, orders, tmp_path):
    silent = AS_SPARK_DOES.replace("os.execv", "os.dup2(os.open('/dev/null', 1), 1); os.execv")
    (tmp_path / "results").mkdir()
    task = on_spark(
        LakeHealthOperator, silent, table="shop.orders", result_folder=str(tmp_path / "results")
    )

    assert finish(task, task_context())["job"] == "health"


def test_nothing_is_left_behind(orders, tmp_path):
    finish(LakeHealthOperator(task_id="work", table="shop.orders", deferrable=True), task_context())

    assert folders(tmp_path) == []


def test_no_argument_of_the_trigger_and_no_file_is_secret(tmp_path, orders, connect, warehouse):
    extra = {"warehouse": warehouse, "secret_options": '{"s3.secret-key": "hush-hush"}'}
    connect("lake_default", conn_type="lake", extra=extra)
    task = LakeHealthOperator(task_id="work", table="shop.orders", deferrable=True)

    trigger = defer(task, task_context())

    assert event_of(trigger)["status"] == "ended"
    assert "hush-hush" not in json.dumps(trigger.serialize())
    [folder] = folders(tmp_path)
    assert all(b"hush-hush" not in file.read_bytes() for file in folder.path.iterdir())
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_without_a_triggerer_on_this_machine_the_task_keeps_its_slot(orders, monkeypatch, caplog):
    monkeypatch.setattr(deferral, "triggerer_is_here", lambda: False)
    caplog.set_level(logging.INFO)

    result = LakeHealthOperator(task_id="work", table="shop.orders", deferrable=True).execute(
        task_context()
    )

    assert result["job"] == "health"
    assert "the task keeps its worker slot: no triggerer runs on this machine" in caplog.text


def test_a_triggerer_elsewhere_sends_the_task_back_to_wait_in_its_slot(orders, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    task = LakeHealthOperator(task_id="work", table="shop.orders", deferrable=True)
    trigger = defer(task, task_context())
    with monkeypatch.context() as patch:
        patch.setattr(process_trigger, "this_host", lambda: "another host")
        event = event_of(trigger)

    result = task.execute_complete(task_context(), event)

    assert event["status"] == "elsewhere"
    assert result["job"] == "health"
    assert "the triggerer cannot see the task's process" in caplog.text


def test_a_worker_elsewhere_does_the_work_again_in_its_slot(held, tmp_path, warehouse, caplog):
    """The process has committed before its machine was lost."""
    context, task = task_context(), held()
    (tmp_path / "go").touch()
    event = event_of(defer(task, context))
    [folder] = folders(tmp_path)
    folder.remove()

    result = task.execute_complete(context, event)

    assert "this machine does not know the process of this task" in caplog.text
    assert result["replayed"]
    assert snapshots(warehouse) == [1]


def test_a_worker_that_is_killed_right_after_the_start_is_rejoined(held, tmp_path, warehouse):
    arguments = {
        "table": "shop.orders",
        "source": str(tmp_path / "a.csv"),
        "create": True,
        "engine": "python",
        "deferrable": True,
    }
    fake = tmp_path / "airflow"  # a process that looks like a triggerer
    fake.write_text("import time; time.sleep(600)")
    triggerer = subprocess.Popen([sys.executable, str(fake), "triggerer"])
    operator = "tests.airflow.deferred.KilledBeforeTheDeferral"
    words = [sys.executable, "-m", "tests.airflow.worker", operator, json.dumps(arguments)]
    killed = subprocess.run(words, cwd=ROOT, check=False)
    triggerer.kill()
    triggerer.wait()
    assert killed.returncode == -signal.SIGKILL
    [folder] = folders(tmp_path)
    started = folder.process

    context = task_context(try_number=2)
    context["dag_run"].start_date = KILLED_RUN_START
    trigger = defer(held(), context)
    (tmp_path / "go").touch()
    result = held().execute_complete(context, event_of(trigger))

    assert (trigger.pid, trigger.started) == (started.pid, started.started)
    assert not result["replayed"]
    assert snapshots(warehouse) == [1]


def test_a_kill_leaves_the_process_that_took_the_directory_of_the_awaited_one(held, monkeypatch):
    """While the task waits in its slot, a clear starts another process in the same directory."""
    context, work, began = task_context(), held(), []
    first = defer(held(), context)
    process = {"folder": first.folder, "pid": first.pid, "started": first.started}

    def clear(_):
        if not began:
            began.append(None)
            began.append(defer(held(), retried(context, clear_number=1)))

    def killed(*_):
        work.on_kill()
        return {}

    monkeypatch.setattr(time, "sleep", clear)
    monkeypatch.setattr(work, "_run", killed)
    monkeypatch.setattr(work, "_finish", lambda result, _: result)
    work.execute_complete(context, {"status": "elsewhere", **process})

    assert not runs(first.pid)
    assert runs(began[1].pid)


@pytest.mark.parametrize("status", ["ended", "elsewhere"])
def test_a_task_takes_no_result_of_another_process(status, held, tmp_path, warehouse, caplog):
    context, later = task_context(), {"clear_number": 1}
    first = defer(held(), context)
    second = defer(held(), retried(context, **later))  # ends the first process
    event = {**event_of(first), "status": status}

    result = held().execute_complete(context, event)

    assert "this machine does not know the process of this task" in caplog.text
    assert (result["snapshot_id"], result["replayed"]) == (1, False)
    assert runs(second.pid)
    (tmp_path / "go").touch()
    assert held().execute_complete(retried(context, **later), event_of(second))["replayed"]
    assert snapshots(warehouse) == [1]


def test_a_process_is_found_after_its_warehouse_has_another_spelling(
    catalog, tmp_path, warehouse, connect, caplog
):
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1]}))

    def task():
        return LakeTagOperator(
            task_id="work", table="shop.orders", action="create", tag="v1", deferrable=True
        )

    event = event_of(defer(task(), task_context()))
    connect("lake_default", conn_type="lake", extra={"warehouse": f"file://{warehouse}"})
    result = task().execute_complete(task_context(), event)
    assert result["job"] == "tag"
    assert "does not know the process" not in caplog.text
    assert folders(tmp_path) == []


def test_a_timeout_leaves_the_directory_of_another_process(held, tmp_path):
    context = task_context()
    first = defer(held(), context)
    second = defer(held(), retried(context, clear_number=1))
    event = {**event_of(first), "status": "timed_out"}

    with pytest.raises(AirflowTaskTimeout):
        held().execute_complete(context, event)

    [folder] = folders(tmp_path)
    assert folder.process == ProcessId(second.pid, second.started)


@pytest.mark.parametrize("differs", ["home", "warehouse"])
def test_a_second_airflow_of_the_same_user_ends_no_process_of_the_first(
    differs, held, tmp_path, monkeypatch, connect
):
    context = task_context()
    first = defer(held(), context)
    if differs == "home":
        monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "second"))
    else:
        connect("lake_default", conn_type="lake", extra={"warehouse": str(tmp_path / "second")})

    second = defer(held(), retried(context))

    assert second.pid != first.pid
    assert runs(first.pid)


def test_a_relative_warehouse_belongs_to_its_directory(tmp_path, monkeypatch):
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found.append(deferral.folder_of("work", "./warehouse").path)

    assert found[0] != found[1]
    assert found[1] == deferral.folder_of("work", str(tmp_path / "second" / "warehouse")).path


def test_a_process_of_the_release_before_is_found(held, tmp_path, warehouse, monkeypatch):
    """The name of its directory has no digest, and the event of its trigger names no process."""
    context = task_context()
    with monkeypatch.context() as patch:
        patch.setattr(deferral, "folder_of", lambda name, _: RunFolder.named(name))
        first = defer(held(), context)

    retry = defer(held(), retried(context))
    (tmp_path / "go").touch()
    event_of(retry)
    result = held().execute_complete(retried(context), {"status": "ended"})

    assert retry.pid == first.pid
    assert not result["replayed"]
    assert folders(tmp_path) == []


def test_a_retry_takes_the_result_of_a_process_that_has_ended_meanwhile(held, tmp_path, warehouse):
    context = task_context()
    defer(held(), context)
    (tmp_path / "go").touch()
    wait_for(lambda: not folders(tmp_path)[0].is_running)

    result = finish(held(), retried(context))

    assert result["snapshot_id"] == 1
    assert not result["replayed"]


def test_a_run_that_is_created_again_takes_no_result_of_the_deleted_run(catalog, tmp_path):
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    orders.write(pa.table({"id": [1, 2]}))
    named = {"task_id": "work", "table": "shop.orders", "unique": ["id"], "engine": "python"}
    deleted = task_context()
    defer(LakeCheckOperator(**named, deferrable=True), deleted)
    wait_for(lambda: not folders(tmp_path)[0].is_running)
    orders.write(pa.table({"id": [2]}))
    again = task_context()
    again["dag_run"].start_date = deleted["dag_run"].start_date + timedelta(minutes=1)

    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows with values that"):
        finish(LakeCheckOperator(**named, deferrable=True), again)


def test_durable_false_starts_another_process(tmp_path, warehouse, held):
    context, task = task_context(), held()
    first = defer(task, context)
    task.durable = False

    second = defer(task, retried(context))

    assert second.pid != first.pid
    assert not runs(first.pid)


def test_a_triggerer_that_is_restarted_goes_on_and_logs_each_line_once(
    held, tmp_path, warehouse, caplog
):
    caplog.set_level(logging.INFO)
    context, task = task_context(), held()
    trigger = defer(task, context)
    wait_for((tmp_path / "here").exists)
    [folder] = folders(tmp_path)
    with folder.output.open("a") as output:
        output.write("a line before the restart\n")

    async def run_for_a_while():
        running = asyncio.create_task(anext(trigger.run()))
        await asyncio.sleep(1)
        running.cancel()

    asyncio.run(run_for_a_while())
    assert folder.is_running  # a restart is no kill
    (tmp_path / "go").touch()
    result = task.execute_complete(context, event_of(of_triggerer(trigger)))

    assert result["snapshot_id"] == 1
    assert caplog.text.count("a line before the restart") == 1


def test_a_process_that_is_killed_fails_the_task_and_a_retry_commits_once(
    held, tmp_path, warehouse
):
    context, task = task_context(), held()
    trigger = defer(task, context)
    wait_for((tmp_path / "here").exists)
    os.kill(int((tmp_path / "here").read_text()), signal.SIGKILL)

    with pytest.raises(AirflowException, match="was killed by SIGKILL"):
        task.execute_complete(context, event_of(trigger))
    (tmp_path / "go").touch()
    result = finish(held(), retried(context))

    assert not result["replayed"]
    assert snapshots(warehouse) == [1]


def test_a_supervisor_that_is_killed_fails_the_task(held, tmp_path):
    context, task = task_context(), held()
    trigger = defer(task, context)
    wait_for((tmp_path / "here").exists)
    os.kill(trigger.pid, signal.SIGKILL)

    with pytest.raises(AirflowException, match="with the process that supervised it"):
        task.execute_complete(context, event_of(trigger))


def test_a_task_that_is_cleared_ends_its_process_and_begins_anew(held, tmp_path, warehouse):
    context = task_context()
    trigger = defer(held(), context)
    wait_for((tmp_path / "here").exists)
    worker = int((tmp_path / "here").read_text())

    asyncio.run(trigger.on_kill())

    assert not runs(worker)
    assert folders(tmp_path) == []
    assert snapshots(warehouse) == []
    (tmp_path / "go").touch()
    assert finish(held(), retried(context, clear_number=1))["snapshot_id"] == 1


@pytest.mark.parametrize("mark", ["clear_number", "max_tries"])
def test_a_cleared_task_does_not_rejoin_a_process_that_no_trigger_has_ended(held, mark):
    """Before Airflow 3.3 a trigger does not learn of a kill.

    A clear that does not reset the run changes only ``max_tries``.
    """
    context = task_context()
    first = defer(held(), context)

    second = defer(held(), retried(context, **{mark: 1}))

    assert second.pid != first.pid


def test_a_kill_between_the_start_and_the_deferral_ends_the_process(held, monkeypatch, tmp_path):
    task = held()

    def killed(**_):
        task.on_kill()
        raise SystemExit(1)

    monkeypatch.setattr(task, "defer", killed)
    with pytest.raises(SystemExit):
        task.execute(task_context())

    [folder] = folders(tmp_path)
    assert not folder.is_running


def test_execution_timeout_ends_the_process(held, tmp_path):
    context, task = task_context(), held(execution_timeout=timedelta(seconds=1))
    trigger = defer(task, context)
    wait_for((tmp_path / "here").exists)

    with pytest.raises(AirflowTaskTimeout, match=r"after execution_timeout \(1 s\)"):
        task.execute_complete(context, event_of(trigger))

    assert not runs(int((tmp_path / "here").read_text()))


def test_the_default_of_every_operator_is_a_setting_of_airflow():
    """It is read once, so the other value needs a process of its own; here nothing is set."""
    code = (
        "from airflow_provider_lake.operators.tag import LakeTagOperator as Tag\n"
        "print(Tag(task_id='work', table='a.b', action='create', tag='c').deferrable)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE": "True"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[-1]
    unset = LakeTagOperator(task_id="work", table="a.b", action="create", tag="c")

    assert (found, unset.deferrable) == ("True", False)


def test_failed_checks_of_a_process_keep_their_results(catalog):
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    orders.write(pa.table({"id": [1, 1]}))
    reports, context = [], task_context()
    task = LakeCheckOperator(
        task_id="work",
        table="shop.orders",
        unique=["id"],
        engine="python",
        deferrable=True,
        on_report=reports.append,
    )

    with pytest.raises(AirflowFailException, match=r"unique\(id\): 2 rows with values that"):
        finish(task, context)

    [result] = reports
    assert context["ti"].xcoms["return_value"] == result == task.published
    assert result["report"]["failed"] == 1
