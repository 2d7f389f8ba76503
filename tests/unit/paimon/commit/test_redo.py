"""A commit in place of an earlier one: its rows are replaced, or nothing is published."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake

FIRST = lake.CommitId("run", 1)
AGAIN = lake.CommitId("run", 2, replaces=1)
COLUMNS = [("id", "BIGINT NOT NULL"), ("note", "STRING")]


@pytest.fixture
def catalog(tmp_path):
    opened = lake.open_catalog(str(tmp_path))
    opened.create_database("shop")
    return opened


@pytest.fixture
def events(catalog):
    return catalog.create_table("shop.events", COLUMNS)


def keyed(catalog, **options):
    return catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["id"], options={"bucket": "1", **options}
    )


def rows(*ids, note="a"):
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def found(table):
    return sorted((row["id"], row["note"]) for row in table.scan().to_arrow().to_pylist())


def refused(table, why, commit=AGAIN):
    before = found(table), len(table.snapshots())
    with pytest.raises(lake.InvalidRequestError, match=why) as reason:
        table.write(rows(1, note="b"), commit=commit)
    assert (found(table), len(table.snapshots())) == before
    return str(reason.value)


def test_the_rows_of_the_first_commit_are_taken_out_with_the_same_commit(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(3), commit=lake.CommitId("other", 1))
    done = events.write(rows(1, note="b"), commit=AGAIN)
    assert found(events) == [(1, "b"), (3, "a")]
    assert (done.snapshot_id, done.deleted_files) == (3, 1)
    assert str(events.latest_snapshot().commit_kind) == "OVERWRITE"


def test_no_rows_take_the_first_ones_out(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(), commit=AGAIN)
    assert found(events) == []


def test_a_retry_publishes_once(events):
    events.write(rows(1, 2), commit=FIRST)
    for _ in range(2):
        done = events.write(rows(1, note="b"), commit=AGAIN)
    assert (found(events), done.replayed) == ([(1, "b")], True)


def test_each_redo_replaces_the_one_before(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(1, note="b"), commit=AGAIN)
    events.write(rows(1, note="c"), commit=lake.CommitId("run", 3, replaces=2))
    assert found(events) == [(1, "c")]


def test_an_attempt_of_the_first_run_that_comes_late_publishes_nothing(events):
    events.write(rows(1, 2), commit=lake.CommitId("run", 2))
    events.write(rows(1, note="b"), commit=lake.CommitId("run", 3, replaces=1))
    assert events.write(rows(1, 2), commit=lake.CommitId("run", 2)).replayed
    with pytest.raises(lake.InvalidRequestError, match="arrived after commit 2 of the same user"):
        events.write(rows(9), commit=FIRST)
    assert found(events) == [(1, "b")]


def test_rows_that_a_rollback_removed_come_back_once(events):
    events.write(rows(0), commit=lake.CommitId("other", 1))
    events.write(rows(1, 2), commit=FIRST)
    events.rollback(snapshot=1, as_latest=False)
    events.write(rows(1, note="b"), commit=lake.CommitId("run", 2, replaces=2))
    assert found(events) == [(0, "a"), (1, "b")]


def test_rows_that_a_rollback_with_a_new_snapshot_removed_come_back_once(catalog, events):
    for table in (events, keyed(catalog)):
        table.write(rows(0), commit=lake.CommitId("other", 1))
        table.write(rows(1, 2), commit=FIRST)
        table.rollback(snapshot=1, as_latest=True)
        table.write(rows(1, note="b"), commit=lake.CommitId("run", 2, replaces=2))
        assert found(table) == [(0, "a"), (1, "b")]


def test_rows_of_dropped_partitions_come_back_once(catalog):
    days = catalog.create_table("shop.days", COLUMNS, partition_by=["note"])
    days.write(rows(1, note="a"), commit=FIRST)
    days.drop_partitions([{"note": "a"}])
    days.write(rows(2, note="a"), commit=AGAIN)
    assert found(days) == [(2, "a")]


def test_a_partition_that_others_replaced_is_left_to_them(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(5), overwrite={})
    refused(events, "has rewritten files of snapshot")


def test_an_attempt_that_published_after_a_rollback_is_replaced_too(events):
    """The first run was rolled back, and a process of it that outlived its task committed again."""
    events.write(rows(0), commit=lake.CommitId("other", 1))
    events.write(rows(1, 2), commit=FIRST)
    events.rollback(snapshot=1, as_latest=False)
    events.write(rows(7), commit=lake.CommitId("other", 2))
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(1, note="b"), commit=lake.CommitId("run", 2, replaces=2))
    assert found(events) == [(0, "a"), (1, "b"), (7, "a")]


def test_a_late_attempt_below_the_snapshot_that_was_rolled_back_is_replaced_too(events):
    for number in range(4):
        events.write(rows(10 + number))
    events.write(rows(1, 2), commit=FIRST)
    events.rollback(snapshot=3, as_latest=False)
    assert events.write(rows(1, 2), commit=FIRST).snapshot_id == 4
    events.write(rows(1, note="b"), commit=lake.CommitId("run", 2, replaces=5))
    assert found(events) == [(1, "b"), (10, "a"), (11, "a"), (12, "a")]


def test_compacted_rows_are_not_taken_out_and_the_command_is_named(events):
    for number in (1, 2):
        events.write(rows(number), commit=lake.CommitId(f"run-{number}", 1))
    events.compact(strategy="full")
    said = refused(
        events,
        "snapshot 3 .* has rewritten files of snapshot",
        lake.CommitId("run-1", 2, replaces=1),
    )
    assert "lake delete shop.events --where" in said
    assert "on_clear='force'" in said


def written_in_files(table, *files, commit):
    """One commit of several files, so that a compaction has something to do."""
    messages = []
    for ids in files:
        with table.new_writer() as writer:
            writer.write(rows(*ids))
            messages += writer.prepare()
    table.commit(messages, commit=commit)


@pytest.fixture
def days(catalog):
    """A day's files are compacted with those of no other day."""
    return catalog.create_table("shop.days", COLUMNS, partition_by=["note"])


def test_rows_that_were_compacted_among_themselves_are_replaced(days):
    days.write(rows(8, note="b"), commit=lake.CommitId("other", 1))
    written_in_files(days, [1], [2], commit=FIRST)
    days.compact(strategy="full")
    done = days.write(rows(1), commit=lake.CommitId("run", 2, replaces=2))
    assert (found(days), done.snapshot_id, done.deleted_files) == ([(1, "a"), (8, "b")], 4, 1)


def test_rows_that_were_compacted_twice_are_replaced(days):
    written_in_files(days, [1], [2], commit=FIRST)
    for _ in range(2):
        days.compact(strategy="full", order_by=["id"])
    assert len(days.snapshots()) == 3
    days.write(rows(1), commit=AGAIN)
    assert found(days) == [(1, "a")]


def test_rows_compacted_with_those_of_a_later_commit_are_not_replaced(days):
    written_in_files(days, [1], [2], commit=FIRST)
    days.compact(strategy="full")
    days.write(rows(3))
    days.compact(strategy="full")
    refused(days, "snapshot 4 .* has rewritten files of snapshot", AGAIN)


@pytest.mark.parametrize("other", [FIRST, lake.CommitId("other", 1)])
def test_a_compaction_that_dropped_deleted_rows_brings_none_back(catalog, other):
    """The new file may have as many rows as the first run's, but not the same ones."""
    options = {"deletion-vectors.enabled": "true"}
    days = catalog.create_table("shop.days", COLUMNS, partition_by=["note"], options=options)
    if other is FIRST:
        written_in_files(days, [1, 2], [3, 4], commit=FIRST)
    else:
        days.write(rows(1, 2), commit=FIRST)
        days.write(rows(3, 4), commit=other)
    days.delete("id IN (2, 4)")
    days.compact(strategy="full")
    refused(days, "has rewritten files of snapshot", AGAIN)


def test_compacted_rows_that_a_rollback_restored_are_replaced_once(days):
    written_in_files(days, [1], [2], commit=FIRST)
    days.compact(strategy="full")
    days.drop_partitions([{"note": "a"}])
    days.rollback(snapshot=2, as_latest=True)
    assert found(days) == [(1, "a"), (2, "a")]
    days.write(rows(1), commit=AGAIN)
    assert found(days) == [(1, "a")]


def test_an_expired_snapshot_is_refused(events):
    for number in (1, 2, 3):
        events.write(rows(number), commit=lake.CommitId(f"run-{number}", 1))
    events.expire_snapshots(retain_max=1, retain_min=1)
    refused(events, "has expired", lake.CommitId("run-1", 2, replaces=1))


def test_rows_that_were_deleted_since_are_not_taken_out_again(catalog):
    events = catalog.create_table(
        "shop.events", COLUMNS, options={"deletion-vectors.enabled": "true"}
    )
    events.write(rows(1, 2), commit=FIRST)
    events.delete("id = 2")
    refused(events, "rows of file .* were deleted or updated")


def test_prepared_files_replace_too_and_are_checked_before_they_are_written(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(3))
    assert events.find_commit(AGAIN) is None
    with events.new_writer() as writer:
        writer.write(rows(1, note="b"))
        messages = writer.prepare()
    events.commit(messages, commit=AGAIN)
    assert found(events) == [(1, "b"), (3, "a")]
    events.compact(strategy="full")
    with pytest.raises(lake.InvalidRequestError, match="cannot take the place of snapshot 1"):
        events.find_commit(lake.CommitId("run", 3, replaces=1))


def test_with_a_primary_key_the_new_row_of_a_key_wins(catalog):
    orders = keyed(catalog)
    orders.write(rows(1, 2), commit=FIRST)
    orders.write(rows(1, note="b"), commit=AGAIN)
    assert found(orders) == [(1, "b"), (2, "a")]
    assert str(orders.latest_snapshot().commit_kind) == "APPEND"


def test_newer_rows_of_others_are_not_undone(catalog):
    orders = keyed(catalog)
    orders.write(rows(1), commit=FIRST)
    orders.write(rows(1, note="newer"))
    said = refused(orders, "snapshot 2 .* has written to bucket 0 .*'sequence.field'")
    assert "lake delete" not in said
    orders.write(rows(1, note="b"), commit=lake.CommitId("run", 2))
    assert found(orders) == [(1, "b")]


def test_a_compaction_of_others_does_not_matter(catalog):
    orders = keyed(catalog)
    orders.write(rows(1), commit=FIRST)
    orders.compact(strategy="full")
    orders.write(rows(1, note="b"), commit=AGAIN)
    assert found(orders) == [(1, "b")]


def test_a_sequence_field_decides_for_itself(catalog):
    orders = keyed(catalog, **{"sequence.field": "note"})
    orders.write(rows(1, note="a"), commit=FIRST)
    orders.write(rows(1, note="z"))
    orders.write(rows(1, note="b"), commit=AGAIN)
    assert found(orders) == [(1, "z")]


@pytest.mark.parametrize("engine", ["aggregation", "first-row"])
def test_rows_that_would_be_merged_again_are_refused(catalog, engine):
    orders = keyed(catalog, **{"merge-engine": engine})
    orders.write(rows(1), commit=FIRST)
    refused(orders, f"'merge-engine' = '{engine}' the new row of a key would be merged")


def test_an_overwrite_replaces_by_itself(events):
    events.write(rows(1, 2), commit=FIRST)
    events.write(rows(3), commit=lake.CommitId("other", 1))
    events.compact(strategy="full")
    events.write(rows(1, note="b"), overwrite={}, commit=AGAIN)
    assert found(events) == [(1, "b")]


@pytest.mark.parametrize("number", [0, -1, "1", True])
def test_a_replaced_snapshot_is_a_number(number):
    with pytest.raises(lake.InvalidRequestError, match="replaces must be the number of a snapshot"):
        lake.CommitId("run", 2, replaces=number)
