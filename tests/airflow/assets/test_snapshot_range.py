"""Each snapshot is read once, however Airflow gives out events to runs."""

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.assets.change import ROW_KINDS
from airflow_provider_lake.assets.snapshot_range import SnapshotRange, snapshot_range
from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.triggers.cursor import WatchedCommits, advance
from tests.airflow.contexts import ByAsset
from tests.airflow.versions import AirflowFailException


@pytest.fixture
def orders(catalog):
    """A table with eight snapshots, the n-th of them with the row n."""
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(1, 9):
        orders.write(pa.table({"id": [number]}))
    return orders


def event(previous, snapshot, **more):
    payload = {"snapshot_id": snapshot, "previous_snapshot_id": previous, **more}
    return SimpleNamespace(extra={"from_trigger": True, "payload": payload})


def context(*events, asset=None, store=None, dag_id="totals"):
    asset = asset or lake_asset("shop.orders")
    return {
        "ti": SimpleNamespace(dag_id=dag_id, run_id="r", task_id="t"),
        "triggering_asset_events": ByAsset([(asset, [*events])] if events else []),
        "task_state_store": store,
    }


def rows_of(run):
    """Read the changes of a run and acknowledge them."""
    part = snapshot_range(run)
    read = (
        part.open_table().changes(after=part.after, upto=part.upto) if not part.is_empty else None
    )
    part.acknowledge()
    return [] if read is None else read.to_arrow()["id"].to_pylist()


def test_the_first_run_begins_where_its_first_event_does(orders):
    assert rows_of(context(event(2, 3), event(3, 5))) == [3, 4, 5]


def test_an_event_that_comes_in_a_later_run_is_not_read_twice(orders):
    """Airflow gave events 1 and 3 to one run, and 2 to the next."""
    first = context(event(0, 2), event(5, 7))
    second = context(event(2, 5))
    third = context(event(7, 8))

    assert [rows_of(run) for run in (first, second, third)] == [[1, 2, 3, 4, 5, 6, 7], [], [8]]


def test_what_an_event_has_lost_is_read_all_the_same(orders):
    assert rows_of(context(event(0, 2))) == [1, 2]
    assert rows_of(context(event(6, 8))) == [3, 4, 5, 6, 7, 8]


def test_events_of_tasks_and_of_watchers_mean_the_same(orders):
    plain = SimpleNamespace(extra={"snapshot_id": 2, "previous_snapshot_id": 0})
    assert rows_of(context(plain, event(2, 4))) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "extra", [None, {}, {"snapshot_id": "3"}, {"snapshot_id": 3, "previous_snapshot_id": "x"}]
)
def test_an_event_that_somebody_made_by_hand_reads_up_to_the_head(orders, extra):
    assert rows_of(context(SimpleNamespace(extra=extra))) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_positions_of_an_event_begin_and_end_a_run(orders):
    ends = {"position": str(orders.position(4)), "previous_position": str(orders.position(2))}
    part = snapshot_range(context(event(0, 8, **ends)))
    assert (part.after, part.upto) == (2, 4)


def test_the_range_that_an_earlier_version_handed_to_a_task_is_read(orders):
    given = {**snapshot_range(context(event(1, 3))).to_dict(), "after": 1, "upto": 3}
    part = SnapshotRange.from_dict(json.loads(json.dumps(given)))
    assert part.open_table().changes(after=part.after, upto=part.upto).to_arrow().num_rows == 2


def test_a_run_that_failed_before_it_acknowledged_gets_the_same_again(orders):
    run = context(event(1, 3))
    tries = [snapshot_range(run), snapshot_range(run)]
    assert [(part.after, part.upto) for part in tries] == [(1, 3), (1, 3)]


def test_what_is_not_acknowledged_is_kept_from_expiring(orders):
    snapshot_range(context(event(3, 5)))
    orders.expire_snapshots(retain_max=1, retain_min=1)
    assert orders.snapshots()[0].id <= 4


def test_a_run_without_events_reads_up_to_the_head_and_its_retry_no_further(orders):
    kept = {}
    store = SimpleNamespace(get=kept.get, set=kept.__setitem__)
    run = context(store=store)
    first = snapshot_range(run, "shop.orders")
    orders.write(pa.table({"id": [9]}))
    again = snapshot_range(run, "shop.orders")
    assert (first.after, first.upto) == (again.after, again.upto) == (0, 8)


@pytest.mark.parametrize("dag_id", ["a" * 250, "日" * 100])
def test_a_dag_with_a_long_id_has_a_consumer(orders, dag_id):
    assert rows_of(context(event(0, 2), dag_id=dag_id)) == [1, 2]
    assert rows_of(context(event(2, 3), dag_id=dag_id)) == [3]
    assert rows_of(context(event(3, 4), dag_id=f"{dag_id[:-1]}b")) == [4]


def test_a_consumer_with_a_long_name_is_still_found(orders, monkeypatch):
    """Object stores accept long names, so consumers of earlier versions have them."""
    dag_id = "a" * 196
    orders.consumers.set(f"airflow.{dag_id}", after=orders.position(7))
    monkeypatch.setattr("lakeformat.tables.file_name_part.LONGEST_BYTES", 100)
    assert rows_of(context(event(0, 8), dag_id=dag_id)) == [8]


def test_a_range_travels_through_xcom(orders):
    part = snapshot_range(context(event(1, 3)))
    assert SnapshotRange.from_dict(part.to_dict()) == part


def test_a_consumer_that_fell_behind_is_an_error_and_no_gap(orders, warehouse):
    rows_of(context(event(0, 1)))
    for number in (1, 2, 3):
        (Path(warehouse) / "shop.db" / "orders" / "snapshot" / f"snapshot-{number}").unlink()

    with pytest.raises(AirflowFailException, match="up to position main/1, and the next"):
        snapshot_range(context(event(1, 8)))


def test_a_table_that_was_rolled_back_is_to_be_read_whole(orders):
    rows_of(context(event(0, 8)))
    part = snapshot_range(context(event(None, 4, rewound=True)))
    assert part.rewound
    assert not part.is_empty


def test_an_older_event_of_a_rollback_moves_the_consumer_not_back(orders):
    """Airflow gave the event of the rollback to a later run than the event after it."""
    rows_of(context(event(0, 8)))
    cut_and_write_again(orders, 55, 66)
    first = snapshot_range(context(event(5, 6)))
    assert (first.rewound, first.upto) == (True, 6)
    first.acknowledge()

    part = snapshot_range(context(event(None, 5, rewound=True)))

    assert (part.rewound, part.after, part.upto) == (True, 6, 6)
    part.acknowledge()
    orders.write(pa.table({"id": [77]}))
    assert rows_of(context(event(6, 7))) == [77]


def test_an_older_event_of_a_recreated_table_reads_all_that_an_earlier_run_has_read(
    orders, catalog
):
    rows_of(context(event(0, 8)))
    catalog.drop_table("shop.orders")
    anew = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in (1, 2):
        anew.write(pa.table({"id": [number]}))
    assert rows_of(context(event(1, 2))) == [2]

    part = snapshot_range(context(event(None, 1, rewound=True)))

    assert (part.rewound, part.upto) == (True, 2)


def test_events_of_snapshots_that_a_rollback_took_away_end_at_what_is_there(orders):
    """One run got the last event before the rollback and the event of the rollback."""
    rows_of(context(event(0, 6)))
    orders.rollback(snapshot=4, as_latest=False)

    part = snapshot_range(context(event(6, 8), event(None, 4, rewound=True)))

    assert (part.rewound, part.upto) == (True, 4)
    part.acknowledge()
    orders.write(pa.table({"id": [55]}))
    assert rows_of(context(event(4, 5))) == [55]


def test_an_event_from_before_a_rollback_alone_has_nothing_to_read_and_its_retry_neither(orders):
    rows_of(context(event(0, 4)))
    orders.rollback(snapshot=4, as_latest=False)
    kept = {}
    run = context(event(6, 8), store=SimpleNamespace(get=kept.get, set=kept.__setitem__))

    assert snapshot_range(run).is_empty
    orders.write(pa.table({"id": [55]}))
    assert snapshot_range(run).is_empty


def test_an_event_of_a_table_that_was_made_anew_leaves_no_row_of_it_out(orders, catalog):
    """A consumer set behind the head would pass over what comes next."""
    catalog.drop_table("shop.orders")
    anew = catalog.create_table("shop.orders", [("id", "BIGINT")])
    anew.write(pa.table({"id": [1]}))
    assert snapshot_range(context(event(6, 8))).is_empty

    anew.write(pa.table({"id": [2]}))
    assert rows_of(context(event(1, 2))) == [2]


KINDS = {
    "paimon": ("paimon", {}),
    "iceberg": ("iceberg", {}),
    "mixed": ("iceberg", {"format": "mixed", "primary_key": ["id"]}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_recreated_table_is_read_whole_also_if_the_run_of_its_event_fails(
    kind, tmp_path, connect
):
    name, arguments = KINDS[kind]
    connect("lake_default", conn_type="lake", extra={"warehouse": str(tmp_path), "format": name})
    catalog = lake.open_catalog(str(tmp_path), format=name)
    catalog.create_database("shop")
    wanted = WatchedCommits("shop.anew", ROW_KINDS, changelog=False)
    made, cursor = None, None

    def commit(number):
        nonlocal cursor
        made.write(pa.table({"id": [number]}))
        payload, cursor = advance(made, made.latest_snapshot(), cursor, wanted)
        extra = {"from_trigger": True, "payload": payload}
        return context(SimpleNamespace(extra=extra), asset=lake_asset("shop.anew"))

    def recreate():
        nonlocal made
        if made is not None:
            catalog.drop_table("shop.anew", **({} if kind == "paimon" else {"purge": True}))
        made = catalog.create_table("shop.anew", [("id", "BIGINT NOT NULL")], **arguments)

    recreate()
    cursor = made.position()
    snapshot_range(commit(1)).acknowledge()
    recreate()
    run = commit(2)
    failed = [snapshot_range(run), snapshot_range(run)]
    part = snapshot_range(commit(3))

    assert failed[0] == failed[1]
    assert [each.rewound for each in (*failed, part)] == [True, True, True]
    assert sorted(made.scan(snapshot=part.upto).to_arrow()["id"].to_pylist()) == [2, 3]
    part.acknowledge()
    assert snapshot_range(context(), "shop.anew").is_empty
    later = snapshot_range(commit(4))
    assert (later.rewound, later.after) == (False, part.upto)


def test_no_snapshot_that_a_rewound_run_must_read_expires(orders):
    part = snapshot_range(context(event(None, 4, rewound=True)))
    orders.expire_snapshots(retain_max=1, retain_min=1)
    assert orders.snapshots()[0].id == part.upto
    assert snapshot_range(context(), "shop.orders").rewound


def test_a_recreated_table_that_is_empty_again_begins_at_its_first_snapshot(orders, catalog):
    """The watcher reports its first commit as rewound, too."""
    catalog.drop_table("shop.orders")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    part = snapshot_range(context(event(None, 4, rewound=True)))
    assert (part.rewound, part.after, part.upto) == (True, 0, 0)


def test_a_consumer_beyond_the_head_tells_of_a_rollback_that_nobody_has_told_of(orders, warehouse):
    rows_of(context(event(0, 8)))
    kept = Path(warehouse) / "shop.db" / "orders" / "consumer" / "consumer-airflow.totals"
    next_snapshot = kept.read_bytes()
    orders.rollback(snapshot=4, as_latest=False)
    kept.write_bytes(next_snapshot)  # as another engine leaves it

    part = snapshot_range(context(), "shop.orders")

    assert (part.rewound, part.upto, part.is_empty) == (True, 4, False)
    part.acknowledge()
    assert snapshot_range(context(), "shop.orders").is_empty


def cut_and_write_again(table, *ids):
    """Remove snapshots 5 to 8, and write one snapshot for each id."""
    table.rollback(snapshot=4, as_latest=False)
    for each in ids:
        table.write(pa.table({"id": [each]}))


def test_a_rollback_is_noticed_without_a_watcher_also_if_its_numbers_were_used_again(orders):
    for count, upto in ((0, 4), (1, 5), (4, 8), (5, 9)):
        rows_of(context(event(0, orders.position().number)))
        cut_and_write_again(orders, *range(55, 55 + count))

        part = snapshot_range(context(), "shop.orders")

        assert (part.rewound, part.upto, part.is_empty) == (True, upto, False)
        part.acknowledge()
        assert snapshot_range(context(), "shop.orders").is_empty
        orders.write(pa.table({"id": [99]}))
        assert rows_of(context(event(upto, upto + 1))) == [99]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_rollback_before_the_acknowledgement_is_noticed_by_the_next_run(orders, count):
    part = snapshot_range(context(event(0, 8, position=str(orders.position()))))
    cut_and_write_again(orders, *range(55, 55 + count))
    part.acknowledge()
    following = snapshot_range(context(), "shop.orders")
    assert (following.rewound, following.upto) == (True, 4 + count)


def test_a_first_run_whose_event_begins_at_a_removed_snapshot_reads_all_rows(orders):
    snapshots = orders.snapshots()
    ends = {"previous_position": str(snapshots[5].position), "position": str(orders.position())}
    cut_and_write_again(orders, 55, 66, 77, 88)
    part = snapshot_range(context(event(6, 8, **ends)))
    assert (part.rewound, part.upto) == (True, 8)


def test_a_rollback_is_noticed_after_the_snapshots_before_it_have_expired(orders, warehouse):
    rows_of(context(event(0, 8)))
    cut_and_write_again(orders, 55, 66, 77, 88)
    for number in (1, 2, 3, 4):
        (Path(warehouse) / "shop.db" / "orders" / "snapshot" / f"snapshot-{number}").unlink()
    assert snapshot_range(context(), "shop.orders").rewound


def test_a_rollback_by_an_engine_that_moves_no_consumer_is_noticed(orders, warehouse):
    rows_of(context(event(0, 7)))
    consumer = Path(warehouse) / "shop.db" / "orders" / "consumer" / "consumer-airflow.totals"
    content = consumer.read_bytes()
    cut_and_write_again(orders, 55, 66, 77, 88)
    consumer.write_bytes(content)

    part = snapshot_range(context(), "shop.orders")

    assert (part.rewound, part.upto) == (True, 8)


def test_a_rollback_of_snapshots_that_no_run_has_read_is_no_reason_to_read_all_rows(orders):
    rows_of(context(event(0, 4)))
    cut_and_write_again(orders, 55, 66)
    part = snapshot_range(context(), "shop.orders")
    assert (part.rewound, part.after, part.upto) == (False, 4, 6)


def test_an_event_of_a_snapshot_whose_number_was_used_again_ends_at_the_newest(orders):
    ends = {"position": str(orders.position()), "previous_position": str(orders.position(4))}
    rows_of(context(event(0, 4)))
    cut_and_write_again(orders, 55, 66, 77, 88, 99)
    assert snapshot_range(context(event(4, 8, **ends))).upto == 9


def test_events_of_two_tables_need_a_name(orders):
    run = context(event(0, 1))
    run["triggering_asset_events"][lake_asset("shop.items")] = [event(0, 1)]
    with pytest.raises(LakeArgumentError, match=r"\(shop\.items, shop\.orders\)"):
        snapshot_range(run)
    assert snapshot_range(run, "shop.orders").upto == 1


def test_a_run_without_events_needs_a_name_and_is_not_retried(orders):
    words = r"no event of a lake table started this run, .*: write snapshot_range\(context, 'data"
    with pytest.raises(LakeArgumentError, match=words):
        snapshot_range(context())
    with pytest.raises(
        LakeArgumentError, match=r"'orders' is not a table name: write database\.table"
    ):
        snapshot_range(context(), "orders")
