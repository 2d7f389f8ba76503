"""Triggers: rebuilt from what they serialise, and run as the triggerer runs them."""

import asyncio
import json
import time
from collections import Counter
from contextlib import aclosing, suppress
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
import structlog
from airflow.sdk.module_loading import import_string

from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.sensors.conditions import (
    CompactionNeeded,
    ConsumerLag,
    PartitionThere,
    PublicationCurrent,
    SnapshotAdvanced,
    WatermarkReached,
    read_condition,
    write_condition,
)
from airflow_provider_lake.triggers.cursor import WatchedCommits, advance
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger
from airflow_provider_lake.triggers.table import LakeConditionTrigger, LakeSnapshotTrigger
from airflow_provider_lake.triggers.watch import Tick, _look
from lakeformat import UnavailableError, open_catalog
from lakeformat.catalog.heads import Heads
from lakeformat.tables.position import Position
from tests.airflow.versions import since

COLUMNS = [("id", "BIGINT")]
SOON = 0.01


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", COLUMNS)


def write(table, *ids, **more):
    return table.write(pa.table({"id": [*ids]}), **more)


def rebuilt(trigger):
    """Return the trigger as the triggerer reads it from the metadata database."""
    path, arguments = trigger.serialize()
    again = import_string(path)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
    return again


def events_of(trigger, *, count=1, meanwhile=()):
    """The payloads of the first events; ``meanwhile`` are calls made while it waits."""

    async def collect():
        found = []
        for step in [lambda: None, *meanwhile]:
            step()
        async for event in trigger.run():
            found.append(event.payload)
            if len(found) == count:
                return found
        return found

    return asyncio.run(asyncio.wait_for(collect(), timeout=30))


@pytest.mark.parametrize(
    "condition",
    [
        SnapshotAdvanced(after_snapshot=3, kinds=("COMPACT",), since_millis=5, changelog=True),
        WatermarkReached(millis=7),
        PartitionThere(partition={"dt": "a"}, done=True),
        CompactionNeeded(strategy="full", min_files=4),
        ConsumerLag(consumer="job", max_behind=2),
        PublicationCurrent(max_behind=2),
    ],
)
def test_a_condition_survives_the_metadata_database(condition):
    assert read_condition(json.loads(json.dumps(write_condition(condition)))) == condition


def test_the_snapshot_trigger_fires_with_all_that_is_new(orders):
    for number in (1, 2, 3):
        write(orders, number)

    [event] = events_of(rebuilt(LakeSnapshotTrigger(table="shop.orders", after_snapshot=1)))

    found = event.pop("found")
    assert event == {"status": "met"}
    told = {k: found[k] for k in ("snapshot_id", "previous_snapshot_id", "commits", "rows")}
    assert told == {"snapshot_id": 3, "previous_snapshot_id": 1, "commits": 2, "rows": 2}
    assert (found["table"], found["commit_kind"], found["missed"]) == (
        "shop.orders",
        "APPEND",
        False,
    )


def test_a_trigger_waits_for_a_table_that_is_not_there_yet(catalog):
    trigger = LakeSnapshotTrigger(table="shop.orders", poll_interval=SOON)

    async def story():
        events = trigger.run()
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(5 * SOON)
        assert not first.done()
        await asyncio.to_thread(lambda: write(catalog.create_table("shop.orders", COLUMNS), 1))
        return (await asyncio.wait_for(first, 30)).payload

    assert asyncio.run(story())["found"]["snapshot_id"] == 1


def test_a_question_without_an_answer_is_refused_and_not_asked_for_ever(orders, warehouse):
    write(orders, 1)
    (Path(warehouse) / "shop.db" / "orders" / "snapshot" / "snapshot-1").write_text("{")

    [event] = events_of(rebuilt(LakeSnapshotTrigger(table="shop.orders")))

    assert event["status"] == "refused"
    assert event["reason"].startswith("CorruptTableError: ")


def test_a_connection_that_does_not_exist_is_refused(orders):
    condition = write_condition(SnapshotAdvanced())
    trigger = LakeConditionTrigger(
        table="shop.orders", condition=condition, lake_conn_id="no_such_lake"
    )
    [event] = events_of(rebuilt(trigger))
    assert "no_such_lake" in event["reason"]


@pytest.fixture
def out_of_reach(monkeypatch):
    """A catalog that answers from the third time on, as a SQL database that is started again."""
    open_it, times = LakeHook.get_conn, []

    def reach(hook):
        times.append(hook)
        if len(times) < 3:
            raise UnavailableError("the metastore does not answer")
        return open_it(hook)

    monkeypatch.setattr(LakeHook, "get_conn", reach)
    monkeypatch.setattr(LakeHook, "table", lambda hook, name: hook.get_conn().table(name))
    return times


def test_a_catalog_that_cannot_be_reached_now_is_waited_for(orders, out_of_reach):
    write(orders, 1)
    [event] = events_of(rebuilt(LakeSnapshotTrigger(table="shop.orders", poll_interval=SOON)))
    assert (event["status"], len(out_of_reach)) == ("met", 3)


def test_a_watcher_waits_for_its_catalog_too(orders, out_of_reach):
    write(orders, 1)
    event = watching(next_event, after_snapshot=0)
    assert (event["snapshot_id"], len(out_of_reach)) == (1, 3)


# ------------------------------------------------------------------ watching


@pytest.fixture
def short_outage(catalog, monkeypatch):
    """Return a function after which the next two requests of a watcher fail: that for the new
    snapshots, and that for the newest ones.
    """
    module, listing = "airflow_provider_lake.triggers.snapshot_event", type(catalog)._likely_tables
    left = []

    def fail(which, plain):
        def ask(*arguments):
            if left[:1] == [which]:
                left.pop(0)
                raise UnavailableError("the storage does not answer")
            return plain(*arguments)

        return ask

    monkeypatch.setattr(f"{module}.advance", fail("changes", advance))
    monkeypatch.setattr(type(catalog), "_likely_tables", fail("tables", listing))
    return lambda: left.extend(["changes", "tables"])


def test_two_failed_requests_in_a_row_lose_no_event(orders, short_outage):
    store = StateStore()

    def commit():
        short_outage()
        write(orders, 1)

    assert watching(begun(store, commit), store)["snapshot_id"] == 1


def test_a_watcher_that_joins_during_an_outage_gets_its_event(orders, monkeypatch):
    """Another watcher of the table has already reported the newest snapshot."""
    write(orders, 1)
    heads = Heads(LakeHook("lake_default").get_conn())
    seen = {}
    _look(heads, {"shop.orders"}, set(), seen)
    with monkeypatch.context() as outage:
        error = UnavailableError("the storage does not answer")
        outage.setattr(heads, "_head", Mock(side_effect=error))
        assert _look(heads, {"shop.orders"}, {"shop.orders"}, seen) == Tick()

    assert [*_look(heads, {"shop.orders"}, set(), seen).heads] == ["shop.orders"]
    assert not _look(heads, {"shop.orders"}, set(), seen).heads


def test_a_table_of_a_database_that_is_not_created_yet_is_absent(tmp_path, caplog):
    uri = f"sqlite:///{tmp_path}/c.db"
    heads = Heads(open_catalog(str(tmp_path), metastore="jdbc", uri=uri))
    found = _look(heads, {"shop.orders"}, {"shop.orders"}, {})
    assert found == Tick(absent=frozenset({"shop.orders"}))
    assert "this file does not exist. Correct the path in the uri" in caplog.text


class StateStore:
    """The store of one asset, as the triggerer hands it to a trigger."""

    def __init__(self):
        self.kept = {}

    async def aget(self, key, default=None):
        return self.kept.get(key, default)

    async def aset(self, key, value):
        self.kept[key] = json.loads(json.dumps(value))


@pytest.mark.parametrize("pause", [0, -1, True, "30", float("inf"), float("nan")])
def test_a_pause_that_is_none_or_never_ends_is_refused(pause):
    with pytest.raises(ValueError, match="poll_interval must be a number of seconds above 0"):
        LakeSnapshotEventTrigger(table="shop.orders", poll_interval=pause)


async def next_event(stream):
    return (await asyncio.wait_for(anext(stream), 30)).payload


def watching(story, store=None, /, **more):
    """Run a story with the events of a watcher of ``shop.orders``."""

    async def run():
        how = {"poll_interval": SOON, **more}
        trigger = rebuilt(LakeSnapshotEventTrigger(table="shop.orders", **how))
        trigger.asset_state_store = store
        async with aclosing(trigger.run()) as stream:
            return await story(stream)

    return asyncio.run(run())


def begun(store, act):
    """A story: the watcher has looked, which its store shows; then something is done."""

    async def story(stream):
        waiting = asyncio.ensure_future(next_event(stream))
        while not store.kept:
            await asyncio.sleep(SOON)
        await asyncio.to_thread(act)
        return await waiting

    return story


def test_a_commit_is_told_and_what_was_there_before_is_not(orders):
    write(orders, 1)
    store = StateStore()

    event = watching(begun(store, lambda: write(orders, 2, 3, watermark=9)), store)

    assert event == {
        "table": "shop.orders",
        "snapshot_id": 2,
        "previous_snapshot_id": 1,
        "position": str(orders.position()),
        "previous_position": str(orders.snapshot(1).position),
        "commit_kind": "APPEND",
        "commits": 1,
        "rows": 2,
        "changelog_rows": 0,
        "schema_id": 0,
        "watermark": 9,
        "time_millis": orders.latest_snapshot().time_millis,
        "missed": False,
        "rewound": False,
    }


def test_a_table_that_comes_later_is_told_from_its_first_commit(catalog):
    store = StateStore()

    event = watching(
        begun(store, lambda: write(catalog.create_table("shop.orders", COLUMNS), 1)), store
    )

    assert (event["previous_snapshot_id"], event["snapshot_id"]) == (0, 1)


def test_compactions_are_passed_over(orders):
    for number in range(6):
        write(orders, number)
    compacted = orders.compact()
    assert compacted.snapshot_ids == (7,)

    async def story(stream):
        first = await next_event(stream)
        write(orders, 9)
        orders.compact()
        return first, await next_event(stream)

    first, second = watching(story, after_snapshot=6, kinds=("APPEND", "COMPACT"))
    assert first["commit_kind"] == "COMPACT"
    assert second["snapshot_id"] >= 8

    async def skipping(stream):
        return await next_event(stream)

    event = watching(skipping, after_snapshot=6)
    assert (event["snapshot_id"], event["commits"], event["commit_kind"]) == (8, 1, "APPEND")


def test_what_is_committed_while_no_triggerer_runs_is_told_afterwards(orders):
    store = StateStore()
    write(orders, 1)

    watching(begun(store, lambda: write(orders, 2)), store)
    [(key, kept)] = store.kept.items()
    assert (key, kept) == (
        "lake-cursor:APPEND+OVERWRITE",
        {"position": str(orders.snapshot(1).position)},
    )
    write(orders, 3)

    event = watching(next_event, store)

    assert (event["previous_snapshot_id"], event["snapshot_id"], event["commits"]) == (1, 3, 2)


def test_an_event_is_kept_only_after_airflow_has_it(orders):
    """A crash right after an event sends it again; the cursor moves a moment later."""
    store = StateStore()
    write(orders, 1)

    async def one_event_then_die(stream):
        return await next_event(stream)

    first = watching(one_event_then_die, store, after_snapshot=0)
    assert store.kept == {}
    assert watching(one_event_then_die, store, after_snapshot=0) == first


async def ended(waiting):
    """Cancel the task and wait until it has left the stream, as the triggerer does."""
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


def test_a_watcher_that_airflow_ends_before_its_second_look_misses_nothing(orders, monkeypatch):
    """The DAG processor does so each time it reads a DAG that names the asset without watchers."""
    monkeypatch.setattr("airflow_provider_lake.triggers.snapshot_event._STORED_SECONDS", SOON)
    store = StateStore()
    write(orders, 1)

    async def one_look(stream):
        waiting = asyncio.ensure_future(next_event(stream))
        while not store.kept:
            await asyncio.sleep(SOON)
        await ended(waiting)

    async def one_event(stream):
        event, number = await next_event(stream), kept_number(store)
        waiting = asyncio.ensure_future(next_event(stream))
        while kept_number(store) == number:
            await asyncio.sleep(SOON)
        await ended(waiting)
        return event

    def once(story):
        return watching(lambda stream: asyncio.wait_for(story(stream), 30), store, poll_interval=60)

    once(one_look)
    write(orders, 2)
    assert once(one_event)["snapshot_id"] == 2
    write(orders, 3)
    assert once(one_event)["previous_snapshot_id"] == 2


def test_keeping_the_place_after_an_event_does_not_put_the_next_look_off(orders, monkeypatch):
    """A watcher without a shared loop waits once for both."""
    stored, waits = 0.2, []

    class Hurried:
        """A replacement of asyncio's sleep that records the pauses and does not wait."""

        to_thread = asyncio.to_thread

        @staticmethod
        async def sleep(seconds):
            waits.append(seconds)
            await asyncio.sleep(0)

    monkeypatch.setattr("airflow_provider_lake.triggers.snapshot_event._STORED_SECONDS", stored)
    monkeypatch.setattr("airflow_provider_lake.triggers.watch.asyncio", Hurried)
    write(orders, 1)

    async def two_events(stream):
        await next_event(stream)
        await asyncio.to_thread(write, orders, 2)
        await next_event(stream)

    watching(two_events, StateStore(), poll_interval=60, after_snapshot=0)
    assert waits[0] <= 60 - stored


def kept_number(store):
    [kept] = store.kept.values()
    return Position.parse(kept).number


def test_the_cursor_of_an_earlier_version_is_read(orders):
    for number in range(3):
        write(orders, number)
    store = StateStore()
    kept = {"snapshot_id": 1, "identity": orders.snapshot(1).identity}
    store.kept["lake-cursor:APPEND+OVERWRITE"] = kept

    event = watching(next_event, store)

    assert (event["previous_snapshot_id"], event["snapshot_id"], event["rewound"]) == (1, 3, False)


def test_expired_and_rolled_back_histories_say_so(orders, warehouse):
    for number in range(4):
        write(orders, number)
    (Path(warehouse) / "shop.db" / "orders" / "snapshot" / "snapshot-1").unlink()
    (Path(warehouse) / "shop.db" / "orders" / "snapshot" / "snapshot-2").unlink()
    missed = watching(next_event, after_snapshot=1)
    assert (missed["missed"], missed["commits"]) == (True, 2)

    store = StateStore()
    store.kept["lake-cursor:APPEND+OVERWRITE"] = {"snapshot_id": 4, "identity": "another"}
    rewound = watching(next_event, store)
    assert (rewound["rewound"], rewound["previous_snapshot_id"]) == (True, None)


def test_a_check_that_is_handled_late_is_no_rollback(orders):
    """The watcher was busy while the loop made a second check."""
    wanted = WatchedCommits("shop.orders", ("APPEND",), changelog=False)
    beginning = orders.position()
    heads = [(write(orders, number), orders.latest_snapshot())[1] for number in (1, 2, 3)]

    first, cursor = advance(orders, heads[0], beginning, wanted)
    assert (first["snapshot_id"], cursor) == (3, 3)
    assert advance(orders, heads[1], cursor, wanted) == (None, cursor)
    assert advance(orders, heads[2], cursor, wanted) == (None, cursor)

    orders.rollback(snapshot=1, as_latest=False)
    assert advance(orders, heads[0], cursor, wanted)[0]["rewound"]


def test_commits_that_expired_unseen_before_a_compaction_are_missed(orders):
    """No snapshot of the commits is left, only the snapshot of the compaction."""
    wanted = WatchedCommits("shop.orders", ("APPEND",), changelog=False)
    write(orders, 0)
    beginning = orders.position()
    for number in (1, 2):
        write(orders, number)
    orders.compact(strategy="full")
    orders.expire_snapshots(retain_max=1, retain_min=1, older_than="0 s")

    event, cursor = advance(orders, orders.latest_snapshot(), beginning, wanted)
    assert (event["missed"], event["commit_kind"], event["rewound"]) == (True, "COMPACT", False)
    assert (event["previous_position"], cursor) == (str(beginning), 4)
    assert advance(orders, orders.latest_snapshot(), cursor, wanted) == (None, cursor)

    found = SnapshotAdvanced(after_snapshot=str(beginning)).check("shop.orders", orders)
    assert found == event
    since_a_time = SnapshotAdvanced(after_snapshot=str(beginning), since_millis=1)
    assert since_a_time.check("shop.orders", orders) is None


def test_the_watermark_of_an_event_is_that_of_its_newest_snapshot(orders):
    """The rollback takes the watermark back."""
    write(orders, 1, watermark=100)
    write(orders, 2, watermark=900)
    assert SnapshotAdvanced().check("shop.orders", orders)["watermark"] == 900
    orders.rollback(snapshot=1)
    found = SnapshotAdvanced().check("shop.orders", orders)
    assert (found["commits"], found["watermark"]) == (3, 100)


@pytest.mark.parametrize("between", ["absent", "empty", "unseen"])
def test_a_table_made_anew_is_said_to_be_whatever_was_seen_in_between(orders, catalog, between):
    write(orders, 1)
    write(orders, 2)

    def anew():
        catalog.drop_table("shop.orders")
        time.sleep(20 * SOON if between == "absent" else 0)
        again = catalog.create_table("shop.orders", COLUMNS)
        time.sleep(20 * SOON if between == "empty" else 0)
        write(again, 3)

    event = watching(begun(store := StateStore(), anew), store)

    assert (event["rewound"], event["snapshot_id"], event["previous_snapshot_id"]) == (
        True,
        1,
        None,
    )


def test_a_table_that_was_out_of_sight_for_a_while_is_not_told_of_again(orders, warehouse):
    for number in (1, 2, 3):
        write(orders, number)
    here, there = Path(warehouse, "shop.db", "orders"), Path(warehouse, "shop.db", "elsewhere")

    def out_of_sight():
        here.rename(there)
        time.sleep(20 * SOON)
        there.rename(here)
        time.sleep(20 * SOON)
        write(orders, 4)

    event = watching(begun(store := StateStore(), out_of_sight), store)

    assert (event["snapshot_id"], event["commits"], event["rewound"]) == (4, 1, False)


@since("3.3", "shared streams")
def test_watchers_of_a_connection_share_one_loop_and_one_listing(catalog, monkeypatch):
    """As the triggerer does it: its own manager of shared streams, fifty tables."""
    from airflow.triggers.shared_stream import SharedStreamManager

    from tests.counting import CountingStorage

    names = [f"shop.t{number}" for number in range(50)]
    tables = {name: catalog.create_table(name, COLUMNS) for name in names}
    for table in tables.values():
        write(table, 1)
    counting = CountingStorage(catalog._storage)
    watched = type(catalog)(counting, catalog._root)
    monkeypatch.setattr("airflow_provider_lake.hooks.lake.LakeHook.get_conn", lambda self: watched)

    async def story():
        manager = SharedStreamManager(log=structlog.get_logger(), max_subscriber_queue=100)
        told = asyncio.Queue()
        stores = [StateStore() for _ in names]

        async def follow(number, name):
            trigger = rebuilt(LakeSnapshotEventTrigger(table=name, poll_interval=SOON))
            trigger.asset_state_store = stores[number]
            key = trigger.shared_stream_key()
            stream = manager.subscribe(trigger_id=number, trigger=trigger, key=key)
            async for event in trigger.filter_shared_stream(stream):
                told.put_nowait(event.payload)

        followers = [asyncio.ensure_future(follow(n, name)) for n, name in enumerate(names)]
        while not all(store.kept for store in stores):
            await asyncio.sleep(SOON)
        counting.calls.clear()
        while sum(operation == "list" for operation, _ in counting.calls) < 5:
            await asyncio.sleep(SOON)
        idle = Counter(operation for operation, _ in counting.calls)
        for name in ("shop.t3", "shop.t40"):
            await asyncio.to_thread(write, tables[name], 2)
        found = [await asyncio.wait_for(told.get(), 30) for _ in "ab"]
        await manager.stop_all()
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)
        return idle, found

    idle, found = asyncio.run(story())
    looks = idle["list"]
    assert looks >= 5
    assert abs(idle["exists"] - 50 * looks) <= 50  # the look under way when counting began or ended
    assert {event["table"] for event in found} == {"shop.t3", "shop.t40"}


def test_nothing_blocks_the_event_loop(orders, monkeypatch):
    """A storage that hangs holds a thread, and no other trigger."""
    import threading

    hung, go = threading.Event(), threading.Event()
    plain = type(orders).latest_snapshot

    def hang(self, known=None):
        hung.set()
        go.wait(30)
        return plain(self, known)

    monkeypatch.setattr(type(orders), "latest_snapshot", hang)
    write(orders, 1)

    async def story(stream):
        waiting = asyncio.ensure_future(next_event(stream))
        while not hung.is_set():
            await asyncio.sleep(SOON)
        go.set()  # reached only because the loop is free
        return await waiting

    assert watching(story, after_snapshot=0)["snapshot_id"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"table": "orders"}, "database.table"),
        ({"table": "shop.orders", "kinds": ("INSERT",)}, "kinds must be a list of"),
        ({"table": "shop.orders", "kinds": "APPEND"}, "kinds must be a list of"),
        (
            {"table": "shop.orders", "after_snapshot": -1},
            "'after_snapshot' must be a whole number from 0",
        ),
        (
            {"table": "shop.orders", "after_snapshot": True},
            "'after_snapshot' must be a whole number",
        ),
        ({"table": "shop.orders", "changelog": "no"}, "changelog must be True or False, got 'no'"),
    ],
)
def test_a_watcher_that_makes_no_sense_is_refused_at_parse(arguments, words):
    with pytest.raises(ValueError, match=words):
        LakeSnapshotEventTrigger(**arguments)
