"""Changes and streams that include overwrites: deleted rows, then new rows."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT"), ("n", "INT")]
ASKED = {"streaming-read-overwrite": "true"}


def rows(table: lake.Table, *values: tuple[int, int]) -> pa.Table:
    columns = {"id": [key for key, _ in values], "n": [n for _, n in values]}
    return pa.table(columns, schema=table.schema.arrow_schema())


def told(found: pa.Table) -> list[tuple[str, int, int]]:
    return [tuple(row.values()) for row in found.to_pylist()]


def replayed(changes: list[tuple[str, int, int]]) -> dict[int, int]:
    state: dict[int, int] = {}
    for kind, key, value in changes:
        if kind in ("+I", "+U"):
            state[key] = value
        elif kind == "-D":
            assert key in state
            del state[key]
    return state


@pytest.fixture
def orders(keyed_table):
    """A keyed table of one bucket whose changes include overwrites."""
    table = keyed_table(COLUMNS, bucket="1", **ASKED)
    table.write(rows(table, (1, 10), (2, 20)))
    return table


@pytest.mark.parametrize("producer", ["none", "input"])
def test_an_overwrite_takes_back_each_row_before_it_adds_its_own(keyed_table, producer):
    table = keyed_table(COLUMNS, bucket="1", **ASKED, **{"changelog-producer": producer})
    table.write(rows(table, (1, 10), (2, 20)))
    table.write(rows(table, (2, 21)))
    table.write(rows(table, (2, 22), (3, 30)), overwrite={})
    expected = [("-D", 1, 10), ("-D", 2, 21), ("+I", 2, 22), ("+I", 3, 30)]
    assert told(table.changes(2, 3).to_arrow()) == expected
    stream = table.stream("from-snapshot", snapshot=3)
    assert [told(each.to_arrow()) for each in stream] == [expected]


def test_without_the_option_an_overwrite_has_no_changes(keyed_table):
    table = keyed_table(COLUMNS, bucket="1")
    table.write(rows(table, (1, 10)))
    table.write(rows(table, (2, 20)), overwrite={})
    assert told(table.changes(1, 2).to_arrow()) == []
    assert list(table.stream("from-snapshot", snapshot=2)) == []


def test_a_truncation_takes_back_all_rows(orders):
    orders.truncate()
    assert told(orders.changes(1, 2).to_arrow()) == [("-D", 1, 10), ("-D", 2, 20)]


def test_rows_that_deletion_vectors_hide_are_not_taken_back(keyed_table):
    options = {"bucket": "1", "deletion-vectors.enabled": "true", **ASKED}
    table = keyed_table(COLUMNS, **options)
    table.write(rows(table, (1, 10), (2, 20)))
    table.compact(strategy="full")
    table.delete("id = 1")
    table.compact()
    table.truncate()
    last = table.latest_snapshot().id
    assert told(table.changes(last - 1, last).to_arrow()) == [("-D", 2, 20)]


def test_conditions_and_columns_hold_for_overwrites(orders):
    orders.write(rows(orders, (2, 22), (3, 30)), overwrite={})
    found = orders.changes(1, 2, columns=["n"], where="id = 2").to_arrow()
    assert told(found) == [("-D", 20), ("+I", 22)]


def test_an_overwrite_has_two_parts_for_each_bucket_and_the_deletions_come_first(keyed_table):
    table = keyed_table(COLUMNS, bucket="3", **ASKED)
    values = [(key, key) for key in range(20)]
    table.write(rows(table, *values))
    table.write(rows(table, *values), overwrite={})
    changes = table.changes(1, 2)
    parts = pickle.loads(pickle.dumps(changes.parts()))
    assert len(parts) == 6
    assert [row for part in parts for row in told(part.to_arrow())] == told(changes.to_arrow())
    assert [row[0] for row in told(changes.to_arrow())] == ["-D"] * 20 + ["+I"] * 20


def test_an_append_table_tells_the_rows_an_overwrite_adds(catalog):
    options = {"streaming-read-append-overwrite": "true"}
    table = catalog.create_table("shop.log", COLUMNS, options=options)
    table.write(rows(table, (1, 10)))
    table.write(rows(table, (2, 20)), overwrite={})
    assert told(table.changes(1, 2).to_arrow()) == [("+I", 2, 20)]
    assert told(table.changes(0, 1).to_arrow()) == [("+I", 1, 10)]
    stream = table.stream("from-snapshot", snapshot=2)
    assert [told(each.to_arrow()) for each in stream] == [[("+I", 2, 20)]]


def test_rows_whose_snapshot_has_expired_are_named(orders):
    orders.write(rows(orders, (3, 30)), overwrite={})
    orders.write(rows(orders, (4, 40)))
    changes = orders.changes(1, 2)
    orders.expire_snapshots(retain_max=2, retain_min=1)
    with pytest.raises(lake.LakeError, match=r"expired|missing"):
        changes.to_arrow()


NEEDS_FULL_READ = r"changes of the overwrite in snapshot 2 .* Read the whole table once: .*reset"


def test_an_overwrite_whose_earlier_rows_have_expired_needs_a_full_read(orders):
    stream = orders.stream(consumer="copy")
    assert stream.poll() is not None
    stream.acknowledge()
    orders.write(rows(orders, (3, 30)), overwrite={})
    orders.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(lake.SnapshotExpiredError, match=NEEDS_FULL_READ):
        orders.stream(consumer="copy").poll().to_arrow()
    orders.consumers.reset("copy")
    full = orders.stream(consumer="copy").poll()
    assert told(full.to_arrow()) == [("+I", 3, 30)]


def test_the_changes_of_a_repair_need_a_full_read(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"bucket": "1", **ASKED}
    table = catalog.create_table("shop.a", COLUMNS, primary_key=["id"], options=options)
    table.write(rows(table, (1, 10)))
    [lost] = tmp_path.rglob("data-*")
    lost.unlink()
    table.remove_missing_files(dry_run=False, max_share=1)
    table.write(rows(table, (2, 20)))
    with pytest.raises(lake.CorruptTableError, match=NEEDS_FULL_READ):
        table.changes(1, 2).to_arrow()


def undone(table: lake.Table, to: int) -> list[tuple[str, int, int]]:
    """The changes of a rollback to snapshot ``to``; the same ones in parts and in a stream."""
    last = table.rollback(snapshot=to).snapshot_id
    changes = table.changes(last - 1, last)
    found = told(changes.to_arrow())
    assert [row for part in changes.parts() for row in told(part.to_arrow())] == found
    [streamed] = table.stream("from-snapshot", snapshot=last)
    assert told(streamed.to_arrow()) == found
    return found


@pytest.mark.parametrize("producer", ["none", "input"])
def test_a_rollback_delivers_the_rows_that_it_restores(keyed_table, producer):
    table = keyed_table(COLUMNS, bucket="1", **ASKED, **{"changelog-producer": producer})
    table.write(rows(table, (1, 10), (2, 20)))
    table.write(rows(table, (2, 21)))
    expected = [("-D", 1, 10), ("-D", 2, 21), ("+I", 1, 10), ("+I", 2, 20)]
    assert undone(table, 1) == expected
    table.delete("id = 1")
    assert undone(table, 1) == [("-D", 2, 20), ("+I", 1, 10), ("+I", 2, 20)]
    found = table.changes(2, 3, where="id = 2", columns=["n"]).to_arrow()
    assert told(found) == [("-D", 21), ("+I", 20)]


def test_a_rollback_reads_only_the_buckets_that_it_changes(keyed_table):
    table = keyed_table(COLUMNS, bucket="3", **ASKED)
    table.write(rows(table, *((key, key) for key in range(20))))
    table.write(rows(table, (1, -1)))
    found = undone(table, 1)
    assert 2 <= len(found) < 40
    assert [row for row in found if row[1] == 1] == [("-D", 1, -1), ("+I", 1, 1)]


def test_a_rollback_of_deletion_vectors_alone_delivers_the_rows_that_they_hid(keyed_table):
    options = {"bucket": "1", "deletion-vectors.enabled": "true", **ASKED}
    table = keyed_table(COLUMNS, **options)
    table.write(rows(table, (1, 10), (2, 20)))
    table.compact(strategy="full")
    target = table.latest_snapshot()
    table.delete("id = 1")
    table.compact(strategy="minor")
    assert table.latest_snapshot().index_manifest != target.index_manifest
    assert undone(table, target.id) == [("-D", 2, 20), ("+I", 1, 10), ("+I", 2, 20)]


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_a_rollback_is_not_read_after_the_snapshot_before_it_has_expired(keyed_table, vectors):
    options = {"bucket": "1", "deletion-vectors.enabled": vectors, **ASKED}
    table = keyed_table(COLUMNS, **options)
    table.write(rows(table, (1, 10), (2, 20)))
    table.compact(strategy="full")
    table.delete("id = 1")
    if vectors == "true":
        table.compact(strategy="minor")
    last = table.rollback(snapshot=2).snapshot_id
    table.write(rows(table, (3, 30)))
    table.expire_snapshots(retain_max=2, retain_min=1)
    with pytest.raises(lake.LakeError, match=r"expired|missing|not exist"):
        table.changes(last - 1, last).to_arrow()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "2"},
        {"bucket": "2", "changelog-producer": "input"},
        {
            "bucket": "2",
            "deletion-vectors.enabled": "true",
            "deletion-vectors.merge-on-read": "true",
        },
        {"bucket": "-2", "postpone.merge-on-read": "true"},
    ],
    ids=["merged", "input", "vectors", "postponed"],
)
def test_replayed_changes_are_the_state_after_rollbacks(keyed_table, options, seed):
    chance = random.Random(seed)
    table = keyed_table(COLUMNS, **ASKED, **options)
    stream = table.stream("from-snapshot", snapshot=1)
    changes: list[tuple[str, int, int]] = []
    for number in range(14):
        values = [(key, number) for key in chance.sample(range(8), chance.randint(1, 5))]
        state = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
        match chance.choice(["write", "write", "delete", "compact", "overwrite", "rollback"]):
            case "delete" if state:
                table.delete(f"id = {chance.choice([*state])}")
            case "compact":
                table.compact(strategy=chance.choice(["full", "minor"]))
            case "overwrite":
                table.write(rows(table, *values), overwrite={})
            case "rollback" if snapshots := table.snapshots():
                table.rollback(snapshot=chance.choice(snapshots).id)
            case _:
                table.write(rows(table, *values))
        changes += [row for each in stream for row in told(each.to_arrow())]
        assert replayed(changes) == {r["id"]: r["n"] for r in table.scan().to_arrow().to_pylist()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_replayed_changes_are_the_state(catalog, keyed_table, seed):
    chance = random.Random(seed)
    table = keyed_table([("id", "BIGINT"), ("n", "INT")], bucket="2", **ASKED)
    stream = table.stream("from-snapshot", snapshot=1)
    changes: list[tuple[str, int, int]] = []
    for number in range(12):
        values = [(key, number) for key in chance.sample(range(8), chance.randint(1, 5))]
        match chance.choice(["write", "write", "overwrite", "compact", "truncate", "rescale"]):
            case "write":
                table.write(rows(table, *values))
            case "overwrite":
                table.write(rows(table, *values), overwrite={})
            case "compact":
                table.compact(strategy="full")
            case "rescale":
                buckets = str(chance.randint(1, 4))
                catalog.alter_table("shop.orders", lake.set_option("bucket", buckets))
                table = catalog.table("shop.orders")
                table.rescale()
            case _:
                table.truncate()
        changes += [row for each in stream for row in told(each.to_arrow())]
        assert replayed(changes) == {r["id"]: r["n"] for r in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_a_producer_that_would_deliver_them_again_is_refused(keyed_table, producer):
    with pytest.raises(lake.InvalidRequestError, match="streaming-read-overwrite"):
        keyed_table(COLUMNS, **ASKED, **{"changelog-producer": producer})


def test_an_append_table_is_led_to_its_own_option(catalog):
    with pytest.raises(lake.InvalidRequestError, match="streaming-read-append-overwrite"):
        catalog.create_table("shop.log", COLUMNS, options=ASKED)
