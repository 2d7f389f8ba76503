"""Operators, sensors, watchers and events on a table of an Iceberg catalog."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.execution_time.context import OutletEventAccessors

import lakeformat as lake
from airflow_provider_lake.assets.snapshot_range import snapshot_range
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.maintain import LakeMaintainOperator
from airflow_provider_lake.operators.rollback import LakeRollbackOperator
from airflow_provider_lake.operators.tag import LakeTagOperator
from airflow_provider_lake.outlet_events import announce
from airflow_provider_lake.sensors.compaction import LakeCompactionNeededSensor
from airflow_provider_lake.sensors.conditions import CompactionNeeded
from airflow_provider_lake.sensors.consumer import LakeConsumerLagSensor
from airflow_provider_lake.sensors.partition import LakePartitionSensor
from airflow_provider_lake.sensors.snapshot import LakeSnapshotSensor
from airflow_provider_lake.sensors.watermark import LakeWatermarkSensor
from airflow_provider_lake.supervised import deferral
from airflow_provider_lake.supervised.run_folder import RunFolder
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger
from spark_jobs.runtime.registry import find_job
from tests.airflow.contexts import StateStore, cleared, task_context
from tests.airflow.deferred import event_of, of_triggerer
from tests.airflow.operators.test_operators import OPERATORS, REQUIRED
from tests.airflow.versions import AirflowFailException, TaskDeferred
from tests.golden.iceberg_orders import IcebergOrders

LACKING = [
    operator
    for operator in OPERATORS
    if find_job(operator.job).operation in lake.IcebergTable.instead
]


@pytest.fixture
def orders(tmp_path, connect) -> IcebergOrders:
    options = {"format": "iceberg"}
    connect(
        "lake_default", conn_type="lake", extra={"warehouse": str(tmp_path), "options": options}
    )
    return IcebergOrders(tmp_path)


def sensor(kind, **arguments):
    return kind(
        task_id="wait", table="shop.orders", deferrable=True, poke_interval=0.01, **arguments
    )


def test_health_and_checks_are_reported(orders):
    health = LakeHealthOperator(task_id="look", table="shop.orders").execute(task_context())
    checked = LakeCheckOperator(task_id="check", table="shop.orders", min_rows=5)
    found = checked.execute(task_context())
    assert health["report"]["verdict"] == "degraded"
    assert health["reason"].endswith(f"lake compact file://{orders.root}")
    assert found["report"]["rows"] == 5
    assert health["previous_snapshot_id"] == found["previous_snapshot_id"] == orders.snapshots[-1]


def test_a_table_is_maintained(orders):
    work = LakeMaintainOperator(task_id="care", table="shop.orders", fail_when="degraded")
    done = work.execute(task_context())
    assert done["reason"].startswith("degraded before, healthy now; compacted 8 files")
    assert done["snapshot_id"] == LakeHook().table("shop.orders").latest_snapshot().id


def test_rows_are_ingested_once_and_announced(orders, tmp_path):
    (tmp_path / "rows.csv").write_text("id,p,v\n91,x,new\n92,y,new\n")
    outlet = lake_asset("shop.orders")
    work = LakeIngestOperator(
        task_id="load", table="shop.orders", source=str(tmp_path / "rows.csv"), outlets=[outlet]
    )
    context = task_context()
    before = LakeHook().table("shop.orders").scan().count()

    done, again = work.execute(context), work.execute(context)

    table = LakeHook().table("shop.orders")
    assert table.scan().count() == before + 2
    assert (done["snapshot_id"], done["replayed"]) == (table.latest_snapshot().id, False)
    assert (again["snapshot_id"], again["replayed"]) == (done["snapshot_id"], True)
    extra = context["outlet_events"][outlet].extra
    assert (extra["commit_kind"], extra["rows"]) == ("APPEND", 2)
    assert extra["previous_position"] == f"main/5@{orders.snapshots[-1]}"
    assert extra["position"] == str(table.position())


def test_a_cleared_task_replaces_the_rows_of_its_first_run(orders, tmp_path):
    work = LakeIngestOperator(
        task_id="load", table="shop.new", source=str(tmp_path / "rows.csv"), create=True
    )
    context = task_context("load")
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    work.execute(context)
    (tmp_path / "rows.csv").write_text("id\n1\n3\n")
    done = work.execute(cleared(context))
    table = LakeHook().table("shop.new")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert (done["snapshot_id"], done["replayed"]) == (table.latest_snapshot().id, False)


def test_rows_are_staged_checked_and_published_and_replaced_when_the_tasks_are_cleared(
    orders, tmp_path
):
    contexts = {name: task_context(name) for name in ("stage", "check", "publish")}

    def run(rows, **checks):
        (tmp_path / "rows.csv").write_text(f"id\n{rows}\n")
        work = {"table": "shop.new", "source": str(tmp_path / "rows.csv"), "create": True}
        staged = LakeIngestOperator(task_id="stage", stage=True, **work).execute(contexts["stage"])
        addresses = [staged["staged"]]
        with DAG("publishing"):
            check = LakeCheckOperator(
                task_id="check", table="shop.new", staged=addresses, unique=["id"], **checks
            )
            publish = LakeCommitOperator(task_id="publish", table="shop.new", staged=addresses)
            check >> publish
        assert check.execute(contexts["check"])["staged"] == addresses
        return publish.execute(contexts["publish"])

    assert run("1\n2")["report"]["rows"] == 2
    for context in contexts.values():
        cleared(context)
    done = run("2\n3")
    table = LakeHook().table("shop.new")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert (done["snapshot_id"], done["replayed"]) == (table.latest_snapshot().id, False)

    for context in contexts.values():
        cleared(context)
    with pytest.raises(AirflowFailException, match="The staged files were deleted"):
        run("4\n4", discard_failed=True)
    assert table.staged.list() == []


def test_a_cleared_task_applies_its_messages_again(orders, tmp_path):
    work = LakeIngestOperator(
        task_id="load",
        table="shop.new",
        source=str(tmp_path / "changes.json"),
        format="maxwell-json",
        create=True,
        primary_key=["id"],
    )
    context = task_context("load")
    (tmp_path / "changes.json").write_text('{"type": "insert", "data": {"id": 1, "n": 1}}\n')
    work.execute(context)
    (tmp_path / "changes.json").write_text('{"type": "insert", "data": {"id": 2, "n": 2}}\n')
    done = work.execute(cleared(context))
    rows = LakeHook().table("shop.new").scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]
    assert done["replayed"] is False


def test_a_cleared_task_writes_its_rows_to_a_mixed_table_again(orders, tmp_path):
    columns = [("id", "BIGINT"), ("name", "STRING")]
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_table("shop.people", columns, format="mixed", primary_key=["id"])
    source = tmp_path / "people.csv"
    arguments = {"table": "shop.people", "source": str(source), "format": "csv"}
    loading = LakeIngestOperator(task_id="load", **arguments)
    source.write_text("id,name\n1,ada\n2,bob\n")
    context = task_context()
    first = loading.execute(context)
    context["ti"].try_number = 2
    repeated = loading.execute(context)
    assert repeated["snapshot_id"] == first["snapshot_id"]
    source.write_text("id,name\n1,eve\n")
    loading.execute(cleared(context))
    rows = catalog.table("shop.people").scan().to_arrow().to_pylist()
    assert sorted(each["name"] for each in rows) == ["bob", "eve"]


@pytest.mark.parametrize("more", [{}, {"conflict": "transaction-order"}], ids=["plain", "ordered"])
def test_a_cleared_task_adds_no_row_to_a_mixed_table_a_second_time(orders, tmp_path, more):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    people = catalog.create_table(
        "shop.people",
        [("id", "BIGINT"), ("part", "STRING"), ("name", "STRING")],
        format="mixed",
        primary_key=["id"],
        options={"write.upsert.enabled": "false"},
    )

    def compute():
        return [{"id": 1, "part": "a", "name": "ada"}]

    work = task.lake_commit(table="shop.people", **more)(compute)
    with DAG("people"):
        operator = work().operator
    operator.execute(task_context("work"))
    refusal = r"'write.upsert.enabled' = 'false': the same rows .* Delete the earlier rows"
    with pytest.raises(AirflowFailException, match=refusal):
        operator.execute(cleared(task_context("work")))
    assert names_of(people) == {(1, "ada")}
    assert people.scan().count() == 1

    (tmp_path / "rows.csv").write_text("id,part,name\n1,a,eve\n")
    source = str(tmp_path / "rows.csv")
    loading = LakeIngestOperator(
        task_id="load", table="shop.people", source=source, upsert_by=["id"]
    )
    loading.execute(task_context("load"))
    loading.execute(cleared(task_context("load")))
    assert people.scan().to_arrow()["name"].to_pylist() == ["eve"]


@pytest.mark.parametrize(
    "arguments",
    [{"overwrite": "partitions"}, {"overwrite": "table"}, {"conflict": "transaction-order"}],
    ids=["partitions", "table", "rows"],
)
def test_operators_write_a_mixed_table_in_transaction_order(orders, tmp_path, arguments):
    """A function computes rows, while a stream writes: its batch has begun before the call."""
    columns = [("id", "BIGINT"), ("part", "STRING"), ("name", "STRING")]
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    people = catalog.create_table(
        "shop.people", columns, format="mixed", primary_key=["id", "part"], partition_by=["part"]
    )
    old = [{"id": 1, "part": "a", "name": "old"}, {"id": 2, "part": "b", "name": "old"}]
    people.write(pa.Table.from_pylist(old))
    (tmp_path / "rows.csv").write_text("id,part,name\n3,b,batch\n")
    LakeIngestOperator(
        task_id="load", table="shop.people", source=str(tmp_path / "rows.csv"), **arguments
    ).execute(task_context("load"))
    if "overwrite" in arguments:
        assert (2, "old") not in names_of(people)

    def compute():
        stream = {"id": 4, "part": "c", "name": "stream"}
        people.write(pa.Table.from_pylist([stream]))
        return [{"id": 3, "part": "b", "name": "batch"}, {**stream, "name": "batch"}]

    work = task.lake_commit(table="shop.people", **arguments)(compute)
    with DAG("people"):
        work().operator.execute(task_context("work"))
    assert (4, "stream") in names_of(people)
    assert (3, "batch") in names_of(people)
    assert ((1, "old") in names_of(people)) is (arguments != {"overwrite": "table"})


def names_of(table):
    return {(row["id"], row["name"]) for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({}, None),
        ({"partition_by": ["id"], "overwrite": "partitions"}, [1, 2, 3, 9]),
        ({"overwrite": "table"}, [1, 3]),
        ({"upsert_by": ["id"]}, [1, 2, 3, 9]),
    ],
)
def test_a_task_that_is_cleared_after_a_compaction_replaces_or_names_the_command(
    orders, tmp_path, arguments, left
):
    source = tmp_path / "rows.csv"
    work = LakeIngestOperator(
        task_id="load", table="shop.new", source=str(source), create=True, **arguments
    )
    source.write_text("id\n9\n")
    other = work.execute(task_context("other"))
    source.write_text("id\n1\n2\n")
    work.execute(context := task_context("load"))
    table = LakeHook().table("shop.new")
    table.compact(strategy="full", rewrite_all=True)
    assert table.latest_snapshot().id != other["snapshot_id"]
    source.write_text("id\n1\n3\n")
    if left is None:
        with pytest.raises(AirflowFailException, match=r"lake delete \S+new --where .*'force'"):
            work.execute(cleared(context))
    else:
        work.execute(cleared(context))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == (left or [1, 2, 9])


def test_a_function_returns_rows_of_a_new_table_once(orders):
    @task.lake_commit(table="shop.new", create=True, partition_by=["truncate(1, name)"])
    def load(table):
        return [{"name": "a"}, {"name": "b" if table is None else "again"}]

    work, context = load().operator, task_context()
    done, again = work.execute(context), work.execute(context)
    table = LakeHook().table("shop.new")
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == ["a", "b"]
    assert (done["replayed"], again["replayed"]) == (False, True)
    assert done["snapshot_id"] == again["snapshot_id"] == table.latest_snapshot().id


def test_a_rollback_and_its_retry_move_the_branch_once(orders):
    second, last = orders.snapshots[1], orders.snapshots[-1]
    work = LakeRollbackOperator(task_id="back", table="shop.orders", snapshot=second)
    context = task_context()
    done, again = work.execute(context), work.execute(context)
    assert (done["previous_snapshot_id"], done["snapshot_id"]) == (last, second)
    assert LakeHook().latest_snapshot("shop.orders").id == second
    assert again["snapshot_id"] in (None, second)
    tag = LakeTagOperator(task_id="tag", table="shop.orders", action="create", tag="release/1")
    assert tag.execute(task_context())["report"]["snapshot_id"] == second


@pytest.mark.parametrize("has_store", [False, True])
def test_a_rollback_whose_process_was_lost_does_not_move_the_branch_again(orders, has_store):
    """The machine was restarted after the rollback, and a writer has added rows since. The state
    store failed before the deferral.
    """
    second, context = orders.snapshots[1], task_context()
    work = LakeRollbackOperator(task_id="back", table="shop.orders", snapshot=second)
    work._record_success = lambda *_: None  # a process records none
    work.execute(context)
    table = LakeHook().table("shop.orders")
    table.write(table.scan().to_arrow().slice(0, 1))
    head = table.latest_snapshot().id
    resumed = LakeRollbackOperator(
        task_id="back", table="shop.orders", snapshot=second, deferrable=True
    )

    event = {"status": "elsewhere", "pid": 1, "started": 1}
    of_store = {"task_state_store": StateStore()} if has_store else {}
    result = resumed.execute_complete(context | of_store, event)

    assert (result["replayed"], table.latest_snapshot().id) == (True, head)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("table", ["shop.orders", "shop.orders$branch_dev"])
def test_a_rollback_whose_process_was_lost_is_done_once(
    orders, table, is_done, tmp_path, monkeypatch
):
    """The machine was restarted before or after the rollback. Earlier in the same run, a task wrote
    rows; on main, another task rolled back and a writer added rows, too.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(deferral, "triggerer_is_here", lambda: True)
    target, context = orders.snapshots[-1], task_context()
    LakeHook().table("shop.orders").branches.create("dev")
    opened = LakeHook().table(table)

    def write():
        opened.write(opened.scan().to_arrow().slice(0, 1))
        return opened.latest_snapshot().id

    class Back(LakeRollbackOperator):
        def _program(self):
            return super()._program() if is_done else [sys.executable, "-c", ""]

    def work():
        return Back(task_id="back", table=table, snapshot=target, deferrable=True)

    write()
    if table == "shop.orders":
        opened.rollback(snapshot=target)
        write()
    with pytest.raises(TaskDeferred) as deferred:
        work().execute(context)
    event = event_of(of_triggerer(deferred.value.trigger))
    assert (opened.latest_snapshot().id == target) is is_done
    RunFolder(deferred.value.trigger.folder).remove()
    head = write() if is_done else target

    result = work().execute_complete(context, event, **deferred.value.kwargs)

    assert (result["replayed"], opened.latest_snapshot().id) == (is_done, head)


def test_a_rollback_that_rejoins_a_process_knows_no_time_before_it(orders, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(deferral, "triggerer_is_here", lambda: True)
    found, context = [], task_context()
    for _ in range(2):
        work = LakeRollbackOperator(
            task_id="back", table="shop.orders", snapshot=orders.snapshots[1], deferrable=True
        )
        with pytest.raises(TaskDeferred) as deferred:
            work.execute(context)
        event_of(of_triggerer(deferred.value.trigger))
        found.append(deferred.value)

    assert found[0].trigger.pid == found[1].trigger.pid
    assert isinstance(found[0].kwargs["began_millis"], int)
    assert found[1].kwargs is None


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("table", ["shop.orders", "shop.orders$branch_dev"])
def test_a_rollback_after_one_of_another_task_in_the_run_moves_the_branch(orders, table, has_store):
    second = orders.snapshots[1]
    LakeHook().table("shop.orders").branches.create("dev")
    run, stores = task_context()["dag_run"], {"one": StateStore(), "two": StateStore()}

    def back(task_id, try_number=1):
        work = LakeRollbackOperator(task_id=task_id, table=table, snapshot=second)
        context = task_context(task_id, try_number=try_number) | {"dag_run": run}
        of_store = {"task_state_store": stores[task_id]} if has_store else {}
        return work.execute(context | of_store)

    def write():
        opened = LakeHook().table(table)
        opened.write(opened.scan().to_arrow().slice(0, 1))

    def head():
        return LakeHook().latest_snapshot(table).id

    write()
    back("one")
    write()
    assert (back("two")["replayed"], head()) == (False, second)
    write()
    assert (back("two", try_number=2)["replayed"], head() == second) == (True, False)


@pytest.mark.parametrize(
    "operator",
    LACKING,
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("engine", ["python", "spark"])
def test_an_operator_that_the_format_lacks_fails_before_spark_is_started(orders, operator, engine):
    arguments = REQUIRED.get(operator, {})
    takes_engine = "engine" in operator.template_fields
    if takes_engine:
        arguments = {**arguments, "engine": engine}
    work = operator(task_id="work", table="shop.orders", **arguments)
    with pytest.raises(AirflowFailException, match="is an Iceberg table, which has no operation '"):
        work.execute(task_context())


def test_a_sensor_sees_a_new_snapshot(orders):
    before, last = orders.snapshots[-2:]
    hidden = orders.hide_last()
    with pytest.raises(TaskDeferred) as deferred:
        sensor(LakeSnapshotSensor, after_snapshot=before).execute({})
    orders.commit_last(hidden)

    event = asyncio.run(first_of(deferred.value.trigger))
    found = sensor(LakeSnapshotSensor).execute_complete({}, event.payload)

    assert (found["previous_snapshot_id"], found["snapshot_id"]) == (before, last)
    assert (found["commit_kind"], found["commits"]) == ("OVERWRITE", 1)
    assert found["position"] == f"main/5@{last}"


async def first_of(trigger):
    return await asyncio.wait_for(anext(trigger.run()), 30)


def test_a_sensor_takes_a_position(orders):
    table = LakeHook().table("shop.orders")
    second = str(table.snapshots()[1].position)
    found = sensor(LakeSnapshotSensor, after_position=second).execute({})
    assert (found["previous_position"], found["commits"]) == (second, 3)
    with pytest.raises(TaskDeferred):
        sensor(LakeSnapshotSensor, after_position=str(table.position())).execute({})


def test_a_sensor_waits_for_a_consumer(orders):
    consumers = LakeHook().table("shop.orders").consumers
    consumers.set("mirror", next_snapshot=5)
    waiting = sensor(LakeConsumerLagSensor, consumer="mirror")
    with pytest.raises(TaskDeferred):
        waiting.execute({})
    consumers.set("mirror", next_snapshot=6)
    assert waiting.execute({})["behind"] == 0


def test_a_sensor_waits_for_rows_of_a_partition(orders):
    found = sensor(LakePartitionSensor, partition={"p": "x"}).execute({})
    assert (found["partitions"], found["snapshot_id"]) == ({"p=x": 5}, orders.snapshots[-1])
    with pytest.raises(TaskDeferred):
        sensor(LakePartitionSensor, partition={"p": "z"}).execute({})
    with pytest.raises(AirflowFailException, match="'v'"):
        sensor(LakePartitionSensor, partition={"v": "a"}).execute({})


def test_a_watcher_reports_the_new_snapshot(orders):
    before, last = orders.snapshots[-2:]
    hidden = orders.hide_last()
    watcher = LakeSnapshotEventTrigger(
        table="shop.orders", poll_interval=0.01, after_snapshot=before
    )

    async def watch():
        found = asyncio.ensure_future(first_of(watcher))
        await asyncio.sleep(0.1)
        orders.commit_last(hidden)
        return await found

    payload = asyncio.run(watch()).payload
    assert (payload["previous_snapshot_id"], payload["snapshot_id"]) == (before, last)


def test_a_compaction_that_is_due_is_done_once(orders):
    found = sensor(LakeCompactionNeededSensor).execute({})
    assert (found["table"], found["units"]) == ("shop.orders", 2)
    compact = LakeCompactOperator(task_id="compact", table="shop.orders", strategy="minor")
    done = compact.execute(task_context())
    assert done["previous_snapshot_id"] == orders.snapshots[-1]
    assert done["report"]["files_in"] == found["files"]
    assert CompactionNeeded().check("shop.orders", LakeHook().table("shop.orders")) is None


@pytest.mark.parametrize(
    ("waiting", "advice"),
    [
        (lambda: sensor(LakeWatermarkSensor, watermark="2024-01-31"), "wait for a snapshot"),
        (lambda: sensor(LakePartitionSensor, partition={"p": "x"}, done=True), "leave out 'done'"),
        (lambda: sensor(LakeSnapshotSensor, changelog=True), "table.changes"),
    ],
)
def test_a_sensor_that_could_never_end_fails_at_once(orders, waiting, advice):
    with pytest.raises(AirflowFailException, match=f"is an Iceberg table, .*{advice}"):
        waiting().execute({})


def test_a_range_shows_a_rollback_that_no_event_reports(orders):
    table = LakeHook().table("shop.orders")
    run = {**task_context(), "triggering_asset_events": {}}
    first = snapshot_range(run, "shop.orders", consumer="totals")
    first.acknowledge()
    assert (first.rewound, first.upto) == (False, table.position())
    table.rollback(snapshot=orders.snapshots[-2])
    table.write(table.scan().to_arrow())

    part = snapshot_range(run, "shop.orders", consumer="totals")

    assert (part.rewound, part.upto) == (True, table.position())
    part.acknowledge()
    assert snapshot_range(run, "shop.orders", consumer="totals").is_empty


def test_an_event_carries_the_positions(orders):
    before, last = orders.snapshots[-2:]
    outlet = lake_asset("shop.orders")
    context = {"outlet_events": OutletEventAccessors(), "ti": SimpleNamespace()}
    result = {"table": "shop.orders", "snapshot_id": last, "previous_snapshot_id": before}

    announce(context, [outlet], result)

    extra = context["outlet_events"][outlet].extra
    assert (extra["previous_snapshot_id"], extra["snapshot_id"]) == (before, last)
    assert extra["position"] == f"main/5@{last}"
    assert extra["previous_position"] == f"main/4@{before}"


def test_an_event_of_a_mixed_table_is_about_the_commit_that_it_names(orders, tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    people = catalog.create_table(
        "shop.people", [("id", "BIGINT NOT NULL")], format="mixed", primary_key=["id"]
    )
    outlet = lake_asset("shop.people")
    found = []
    for row in (1, 2):
        written = people.write(pa.table({"id": [row]}))
        context = {"outlet_events": OutletEventAccessors(), "ti": SimpleNamespace()}
        announce(context, [outlet], {"table": "shop.people", "snapshot_id": written.snapshot_id})
        extra = context["outlet_events"][outlet].extra
        found.append((extra["snapshot_id"] == written.snapshot_id, extra["missed"]))
        people.compact(strategy="full")  # from now on the base store has a snapshot, too

    assert found == [(True, False), (True, False)]
