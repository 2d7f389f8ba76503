"""Sensors: they ask once in the worker, and then wait where no worker is held."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from airflow.sdk import DAG

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError, argument_types
from airflow_provider_lake.sensors.compaction import LakeCompactionNeededSensor
from airflow_provider_lake.sensors.consumer import LakeConsumerLagSensor
from airflow_provider_lake.sensors.partition import LakePartitionSensor
from airflow_provider_lake.sensors.publication import LakePublicationSensor
from airflow_provider_lake.sensors.snapshot import LakeSnapshotSensor
from airflow_provider_lake.sensors.table import LakeTableSensor
from airflow_provider_lake.sensors.watermark import LakeWatermarkSensor
from tests.airflow.versions import AirflowFailException, AirflowSkipException, TaskDeferred


@pytest.fixture
def orders(catalog):
    """A partitioned table with one commit and a watermark of 100."""
    columns = [("id", "BIGINT"), ("dt", "STRING")]
    orders = catalog.create_table("shop.orders", columns, partition_by=["dt"])
    write(orders, 1, watermark=100)
    return orders


def write(table, *ids, dt="a", **more):
    return table.write(pa.table({"id": [*ids], "dt": [dt] * len(ids)}), **more)


def sensor(kind, **arguments):
    return kind(
        task_id="wait", table="shop.orders", deferrable=True, poke_interval=0.01, **arguments
    )


def compacts(orders):
    for number in range(6):
        write(orders, number)


def reads(orders):
    orders.consumers.set("job", next_snapshot=2)


CASES = {
    "snapshot": (
        lambda: sensor(LakeSnapshotSensor, after_snapshot=1),
        lambda orders: write(orders, 2),
        {"snapshot_id": 2, "previous_snapshot_id": 1},
    ),
    "watermark": (
        lambda: sensor(LakeWatermarkSensor, watermark="1970-01-01T00:00:00.200"),
        lambda orders: write(orders, 2, watermark=200),
        {"snapshot_id": 2, "watermark": 200},
    ),
    "partition": (
        lambda: sensor(LakePartitionSensor, partition={"dt": "b"}),
        lambda orders: write(orders, 2, 3, dt="b"),
        {"partitions": {"dt=b": 2}},
    ),
    "partition done": (
        lambda: sensor(LakePartitionSensor, partition={"dt": "a"}, done=True),
        lambda orders: orders.mark_partitions_done([{"dt": "a"}]),
        {"partitions": {"dt=a": 1}},
    ),
    "compaction needed": (
        lambda: sensor(LakeCompactionNeededSensor, min_files=5),
        compacts,
        {"strategy": "minor", "units": 1, "files": 7},
    ),
    "consumer lag": (
        lambda: sensor(LakeConsumerLagSensor, consumer="job"),
        reads,
        {"consumer": "job", "behind": 0, "next_snapshot": 2},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_defers_until_the_triggerer_finds_what_it_waits_for(orders, case):
    make, act, expected = CASES[case]

    with pytest.raises(TaskDeferred) as deferred:
        make().execute({})
    assert deferred.value.method_name == "execute_complete"
    act(orders)
    event = asyncio.run(anext_of(deferred.value.trigger))

    found = make().execute_complete({}, event.payload)
    assert {key: found[key] for key in expected} == expected


async def anext_of(trigger):
    return await asyncio.wait_for(anext(trigger.run()), 30)


@pytest.mark.parametrize("case", CASES)
def test_it_returns_at_once_what_is_there_already(orders, case):
    make, act, expected = CASES[case]
    act(orders)

    found = make().execute({})

    assert {key: found[key] for key in expected} == expected


def test_it_also_waits_in_a_worker(orders):
    waiting = LakeSnapshotSensor(task_id="wait", table="shop.orders", deferrable=False)

    assert waiting.execute({})["snapshot_id"] == 1
    assert not waiting.poke({}).xcom_value["rewound"]


def test_compactions_do_not_wake_it_unless_asked_for(orders):
    compacts(orders)
    orders.compact()
    head = orders.latest_snapshot()
    assert head.commit_kind == "COMPACT"

    with pytest.raises(TaskDeferred):
        sensor(LakeSnapshotSensor, after_snapshot=head.id - 1).execute({})
    every = sensor(LakeSnapshotSensor, after_snapshot=head.id - 1, kinds=("COMPACT",))
    assert every.execute({})["commit_kind"] == "COMPACT"


def test_a_commit_may_have_to_be_newer_than_a_time(orders):
    later = datetime(2999, 1, 1, tzinfo=UTC)
    with pytest.raises(TaskDeferred):
        sensor(LakeSnapshotSensor, since=later).execute({})
    assert sensor(LakeSnapshotSensor, since="2001-01-01").execute({})["snapshot_id"] == 1


@pytest.mark.parametrize("later", [0, 1, 2, 3])
def test_a_rollback_that_removed_the_position_ends_the_wait(orders, later):
    """New snapshots may have the number of the position, or higher ones."""
    write(orders, 2)
    write(orders, 3)
    removed = str(orders.position())
    orders.rollback(snapshot=1, as_latest=False)
    for number in range(later):
        write(orders, 10 + number)

    found = sensor(LakeSnapshotSensor, after_position=removed).execute({})

    assert (found["rewound"], found["missed"], found["commits"]) == (True, False, 1)
    assert found["snapshot_id"] == 1 + later
    assert (found["previous_snapshot_id"], found["previous_position"]) == (None, None)


def test_a_rollback_wakes_a_sensor_that_waits_in_the_triggerer(orders):
    write(orders, 2)
    waiting = sensor(LakeSnapshotSensor, after_position=str(orders.position()))
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    orders.rollback(snapshot=1, as_latest=False)
    event = asyncio.run(anext_of(deferred.value.trigger))

    found = waiting.execute_complete({}, event.payload)

    assert (found["rewound"], found["snapshot_id"]) == (True, 1)


def test_a_recreated_table_ends_the_wait_with_its_first_commit(orders, catalog):
    removed = str(orders.position())
    catalog.drop_table("shop.orders")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")])
    waiting = sensor(LakeSnapshotSensor, after_position=removed)
    with pytest.raises(TaskDeferred):
        waiting.execute({})
    write(orders, 1)

    found = waiting.execute({})

    assert (found["rewound"], found["snapshot_id"]) == (True, 1)


def test_after_a_rollback_the_newest_commit_may_have_to_be_newer_than_a_time(orders):
    write(orders, 2)
    removed = str(orders.position())
    orders.rollback(snapshot=1, as_latest=False)
    after = orders.latest_snapshot().time_millis + 1
    waiting = sensor(LakeSnapshotSensor, after_position=removed, since=after)
    with pytest.raises(TaskDeferred):
        waiting.execute({})
    write(orders, 3)

    assert waiting.execute({})["rewound"]


def test_expired_commits_before_a_compaction_are_missed(orders, warehouse):
    first = str(orders.position())
    write(orders, 2)
    orders.compact(strategy="full")
    write(orders, 3)
    assert [each.commit_kind for each in orders.snapshots()][2] == "COMPACT"
    for number in (1, 2):
        (Path(warehouse) / f"shop.db/orders/snapshot/snapshot-{number}").unlink()
    compacted, newest = (each.time_millis for each in orders.snapshots())

    found = sensor(LakeSnapshotSensor, after_position=first).execute({})
    assert (found["previous_snapshot_id"], found["commits"], found["missed"]) == (1, 1, True)
    for since, missed in ((compacted, True), (newest, newest == compacted)):
        found = sensor(LakeSnapshotSensor, after_position=first, since=since).execute({})
        assert (found["commits"], found["missed"]) == (1, missed)


def test_a_consumer_that_fell_behind_is_said_at_once(orders, warehouse):
    orders.consumers.set("job", next_snapshot=1)
    write(orders, 2)
    (Path(warehouse) / "shop.db" / "orders" / "snapshot" / "snapshot-1").unlink()

    with pytest.raises(
        AirflowFailException, match=r"consumer 'job' of shop\.orders cannot continue"
    ):
        sensor(LakeConsumerLagSensor, consumer="job").execute({})


WRONG = [
    (LakeSnapshotSensor, {"table": "orders"}, "'table' must be database.table, got 'orders'"),
    (LakeSnapshotSensor, {"table": "shop.or/ders"}, "the table name 'or/ders'"),
    (LakeSnapshotSensor, {"lake_conn_id": ""}, "'lake_conn_id' must be a non-empty str"),
    (LakeSnapshotSensor, {"deferrable": "yes"}, "'deferrable' must be True or False"),
    (LakeSnapshotSensor, {"after_snapshot": "None"}, "'after_snapshot' must be a whole number"),
    (LakeSnapshotSensor, {"since": "yesterday"}, "'since' must be a time such as"),
    (LakeSnapshotSensor, {"since": "7 d"}, "'since' must be a time such as"),
    (LakeSnapshotSensor, {"since": "20240131000000"}, "'since' must be a time such as"),
    (LakeSnapshotSensor, {"kinds": ("MERGE",)}, "kinds must be a list of one or more of APPEND"),
    (LakeWatermarkSensor, {"watermark": ""}, "'watermark' must be a time such as"),
    (LakePartitionSensor, {"partition": "a"}, "'partition' must be a dict"),
    (LakePartitionSensor, {"partition": {}}, "'partition' is empty"),
    (LakeCompactionNeededSensor, {"strategy": "fast"}, "'strategy' must be 'minor' or 'full'"),
    (LakeCompactionNeededSensor, {"min_files": "many"}, "'min_files' must be a whole number"),
    (LakeConsumerLagSensor, {"consumer": ""}, "'consumer' must be a non-empty str"),
    (LakeConsumerLagSensor, {"consumer": "a/b"}, "'consumer': consumer id 'a/b' is not allowed"),
    (LakeConsumerLagSensor, {"consumer": "c" * 205}, "is too long"),
    (LakeConsumerLagSensor, {"consumer": "c", "max_behind": True}, "'max_behind' must be a whole"),
    (
        LakeSnapshotSensor,
        {"after_snapshot": -1},
        "'after_snapshot' must be a whole number from 0 on",
    ),
    (LakeCompactionNeededSensor, {"min_files": 0}, "'min_files' must be a whole number from 1 on"),
    (
        LakeConsumerLagSensor,
        {"consumer": "c", "max_behind": -1},
        "'max_behind' must be a whole number",
    ),
    (LakePublicationSensor, {"max_behind": -1}, "'max_behind' must be a whole number from 0 on"),
]
FITTING = {
    LakeSnapshotSensor: {},
    LakeWatermarkSensor: {"watermark": 1_700_000_000_000},
    LakePartitionSensor: {"partition": {"dt": "a"}},
    LakeCompactionNeededSensor: {},
    LakeConsumerLagSensor: {"consumer": "c"},
    LakePublicationSensor: {},
}


def any_sensor(kind, **arguments):
    given = {"task_id": "wait", "table": "shop.orders", **FITTING[kind]}
    return kind(**given | arguments)


def test_it_waits_until_readers_of_iceberg_see_the_newest_snapshot(catalog):
    options = {"metadata.iceberg.storage": "table-location", "iceberg.publish-mode": "async"}
    columns = [("id", "BIGINT"), ("dt", "STRING")]
    published = catalog.create_table("shop.orders", columns, options=options)
    write(published, 1)
    with pytest.raises(TaskDeferred):
        sensor(LakePublicationSensor).execute({})
    behind = sensor(LakePublicationSensor, max_behind=1).execute({})
    assert behind == {"table": "shop.orders", "behind": 1}
    lake.publish_table(published)
    assert sensor(LakePublicationSensor).execute({}) == {"table": "shop.orders", "behind": 0}


def test_a_consumer_that_mapped_sensors_share_is_checked_too():
    with DAG("d", schedule=None), pytest.raises(LakeArgumentError, match="'a/b' is not allowed"):
        LakeConsumerLagSensor.partial(task_id="wait", consumer="a/b")


@pytest.mark.parametrize(("kind", "wrong", "words"), WRONG)
def test_what_can_never_be_right_is_refused_where_the_dag_is_parsed(kind, wrong, words):
    with pytest.raises(LakeArgumentError, match="task 'wait'") as refused:
        any_sensor(kind, **wrong)
    assert words in str(refused.value)


@pytest.mark.parametrize(("kind", "wrong", "words"), WRONG)
def test_a_template_that_renders_to_nonsense_is_not_retried(orders, kind, wrong, words):
    [(name, value)] = [pair for pair in wrong.items() if pair[0] != "consumer"] or wrong.items()
    more = {key: given for key, given in wrong.items() if key != name}
    waiting = any_sensor(kind, **more, **{name: "{{ value }}"})
    waiting.render_template_fields({"value": json.dumps(value) if name == "kinds" else value})

    with pytest.raises(AirflowFailException) as refused:
        waiting.execute({})
    assert words in str(refused.value)


@pytest.mark.parametrize("kind", FITTING)
def test_every_argument_of_a_sensor_is_a_template(kind):
    assert {*argument_types(kind, LakeTableSensor)} == {*kind.template_fields}


def test_what_templates_render_to_is_read_as_the_arguments_types(orders):
    waiting = any_sensor(
        LakeSnapshotSensor,
        after_snapshot="{{ 1 }}",
        since="{{ 1700000000000 }}",
        deferrable="{{ True }}",
        kinds="{{ ['COMPACT'] | tojson }}",
    )
    waiting.render_template_fields({})
    waiting._take_rendered()

    assert (waiting.after_snapshot, waiting.since) == (1, 1_700_000_000_000)
    assert (waiting.deferrable, waiting.kinds) == (True, ["COMPACT"])


@pytest.mark.parametrize("day", ["20240131", "2024-01-31", "20240131T000000"])
def test_a_day_without_dashes_is_that_day(day):
    """``{{ ds_nodash }}`` gives such a day. Read as a number, it would be a moment in 1970."""
    for kind, name, member in (
        (LakeSnapshotSensor, "since", "since_millis"),
        (LakeWatermarkSensor, "watermark", "millis"),
    ):
        waiting = any_sensor(kind, **{name: "{{ value }}"})
        waiting.render_template_fields({"value": day})
        waiting._take_rendered()

        assert getattr(waiting.condition(), member) == 1_706_659_200_000


def test_a_number_that_is_meant_as_something_else_is_no_moment():
    with pytest.raises(LakeArgumentError, match="got 1700000000000000: it is too large"):
        any_sensor(LakeSnapshotSensor, since=1_700_000_000_000_000)
    with pytest.raises(LakeArgumentError, match="'since' must be a time in epoch milliseconds"):
        any_sensor(LakeSnapshotSensor, since=1_700_000_000)
    with pytest.raises(LakeArgumentError, match="'watermark' must be a time in epoch milliseconds"):
        any_sensor(LakeWatermarkSensor, watermark=20240131)


def test_a_triggerer_is_never_asked_to_look_without_a_pause():
    with pytest.raises(
        LakeArgumentError, match="'poke_interval' must be a number of seconds above 0"
    ):
        any_sensor(LakeSnapshotSensor, poke_interval=0, deferrable=True)
    assert any_sensor(LakeSnapshotSensor, poke_interval=0, deferrable=False).poke_interval == 0


def test_a_partition_column_the_table_does_not_have_is_not_retried(orders):
    with pytest.raises(AirflowFailException, match="day"):
        sensor(LakePartitionSensor, partition={"day": "a"}).execute({})


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("choice", ["soft_fail", "never_fail"])
def test_a_failure_is_a_skip_with_soft_fail(orders, choice, deferrable):
    waiting = any_sensor(
        LakePartitionSensor, partition={"day": "a"}, deferrable=deferrable, **{choice: True}
    )
    with pytest.raises(AirflowSkipException):
        waiting.execute({})


def test_what_the_triggerer_could_not_find_fails_for_good(orders):
    waiting = sensor(LakeSnapshotSensor)
    with pytest.raises(AirflowFailException, match="CorruptTableError: gone"):
        waiting.execute_complete({}, {"status": "refused", "reason": "CorruptTableError: gone"})
