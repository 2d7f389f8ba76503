"""Two different changes at once: which go together, which is refused, and what then is there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.overwrite import DYNAMIC
from lakeformat.paimon.deletion.abort import abort_messages
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.read.plan import plan_files
from lakeformat.storage import MemoryStorage
from tests.crash.interrupted import Interrupted
from tests.crash.references import metadata_files, referenced_metadata
from tests.paper import commit, file, head, live, message, moved, paper_table

A, B, C, D = (file(name) for name in "abcd")
MERGED = file("merged", level=5)
_names = itertools.count()


def on(handle: TableHandle, storage) -> TableHandle:
    return TableHandle(storage, handle.layout, handle.schema, handle.environment)


def at_every_moment(
    table: Callable[[], TableHandle],
    one: Callable[[TableHandle], object],
    other: Callable[[TableHandle], object],
    check: Callable[[TableHandle], object],
) -> None:
    """Let ``other`` happen before each storage call of ``one`` in turn, and after all of them."""
    for moment in itertools.count(1):
        handle = table()
        interrupted = Interrupted(handle.storage, moment, lambda handle=handle: other(handle))
        one(on(handle, interrupted))
        if not interrupted.happened:
            other(handle)
        try:
            check(handle)
        except AssertionError as error:
            error.add_note(f"at call {moment}: {interrupted.calls[moment - 1 :][:1]}")
            raise
        if not interrupted.happened:
            return


def two_files() -> TableHandle:
    handle = paper_table(keyed=True)
    commit(handle, message(handle, A, B))
    return handle


def two_days() -> TableHandle:
    handle = paper_table(partitioned=True)
    commit(handle, message(handle, A, dt="1"), message(handle, B, dt="2"))
    return handle


def compact(handle: TableHandle) -> None:
    commit(handle, message(handle, compact_before=[A, B], compact_after=[MERGED]))


def append(handle: TableHandle) -> None:
    commit(handle, message(handle, C))


@pytest.mark.parametrize("first", [compact, append])
def test_an_append_and_a_compaction_both_succeed_in_either_order(first):
    def check(handle):
        assert live(handle) == ["c", "merged@5"]
        assert head(handle).id == 3

    second = append if first is compact else compact
    at_every_moment(two_files, first, second, check)


REPLACING = {
    "overwrite": lambda days: commit(days, message(days, C, dt="1"), overwrite={"dt": "1"}),
    "drop": lambda days: commit(days, overwrite={"dt": "1"}),
    "truncate": lambda days: commit(days, overwrite={}),
}


@pytest.mark.parametrize("how", REPLACING)
def test_rows_that_were_replaced_do_not_come_back_by_a_compaction(how):
    """The replacement wins at every moment; the compaction is refused unless it was faster."""
    outcomes = set()

    def compact_first_day(days):
        merged = message(days, dt="1", compact_before=[A], compact_after=[file("old-rows")])
        try:
            commit(days, merged)
            outcomes.add("published")
        except lake.CommitConflictError as refused:
            outcomes.add(re.search(r"this commit deletes .* bucket 0\)", str(refused))[0])

    def check(days):
        rest = {"overwrite": ["1/c", "2/b"], "drop": ["2/b"], "truncate": []}
        assert live(days) == rest[how]

    at_every_moment(two_days, compact_first_day, REPLACING[how], check)
    gone = "this commit deletes are not in the table any more: a (partition dt=1, bucket 0)"
    assert outcomes == {"published", gone}


def test_two_dynamic_overwrites_of_other_partitions_are_both_there():
    def overwrite(day, new):
        def act(days):
            fresh = [message(days, new, dt=day)]
            commit_messages(days, fresh, CommitOptions(), overwrite=DYNAMIC)

        return act

    def check(days):
        assert live(days) == ["1/c", "2/d"]

    at_every_moment(two_days, overwrite("1", C), overwrite("2", D), check)


def test_a_rescale_that_has_not_read_what_came_in_is_refused_and_can_be_planned_again():
    orders = two_files()
    commit(orders, message(orders, C), user="stream")
    rescaled = message(orders, file("x"), file("y", keys=(10, 19)), total_buckets=4)
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 2 \(APPEND of user 'stream'\)"):
        commit(orders, rescaled, overwrite={}, read_snapshot=1)
    assert live(orders) == ["a", "b", "c"]
    assert {entry.total_buckets for entry in plan_files(orders, head(orders))} == {2}
    commit(orders, rescaled, overwrite={}, read_snapshot=2)
    assert {entry.total_buckets for entry in plan_files(orders, head(orders))} == {4}
    with pytest.raises(lake.CommitConflictError, match="has 2 and 4 buckets"):
        commit(orders, message(orders, D))


def test_an_overwrite_of_what_it_has_read_is_planned_again_and_keeps_what_came_in():
    days = two_days()
    commit(days, message(days, C, dt="1"))
    again = message(days, file("all"), dt="1")
    with pytest.raises(lake.CommitConflictError, match="read again"):
        commit(days, again, overwrite={"dt": "1"}, read_snapshot=1)
    assert live(days) == ["1/a", "1/c", "2/b"]
    commit(days, again, overwrite={"dt": "1"}, read_snapshot=2)
    assert live(days) == ["1/all", "2/b"]


def test_the_files_of_a_compaction_that_lost_are_removed_and_no_others():
    orders = two_files()
    storage, place = orders.storage, orders.layout.bucket_directory(0)
    upgraded = file("up")
    commit(orders, message(orders, upgraded))
    for name in ("a", "b", "up", "merged", "slower"):
        storage.create(f"{place}/{name}", b"rows")
    compact(orders)
    late = message(
        orders,
        compact_before=[A, B, upgraded],
        compact_after=[file("slower", level=4), moved(upgraded, 4)],
    )
    with pytest.raises(lake.CommitConflictError):
        commit(orders, late)
    assert abort_messages(orders, [late]) == []
    assert [info.name for info in storage.list(place)] == ["a", "b", "merged", "up"]


def test_racing_appends_number_their_rows_without_gap_and_overlap():
    def empty():
        return paper_table(options={"row-tracking.enabled": "true"})

    def append_rows(name, rows):
        return lambda orders: commit(orders, message(orders, file(name, rows=rows)))

    def check(orders):
        ranges = sorted(
            (entry.file.first_row_id, entry.file.row_count)
            for entry in plan_files(orders, head(orders))
        )
        (first, rows), (second, more) = ranges
        assert (first, second, second + more) == (0, rows, head(orders).next_row_id)
        assert {rows, more} == {3, 5}

    at_every_moment(empty, append_rows("x", 3), append_rows("y", 5), check)


def test_manifests_merged_while_others_append_hold_every_file():
    def five_manifests():
        handle = paper_table(options={"manifest.merge-min-count": "4"})
        for name in "abcd":
            commit(handle, message(handle, file(name)))
        return handle

    def append_one(name):
        return lambda handle: commit(handle, message(handle, file(name)))

    def check(handle):
        assert live(handle) == ["a", "b", "c", "d", "x", "y"]
        assert head(handle).total_record_count == 60
        base = head(handle).base_manifest_list
        assert len(read_manifest_list(handle.storage, handle.layout, base)) <= 2

    at_every_moment(five_manifests, append_one("x"), append_one("y"), check)


def test_a_schema_that_changes_at_any_moment_is_the_one_of_the_snapshot_or_the_one_before():
    def table():
        return paper_table(storage=MemoryStorage(f"schema-{next(_names)}"))

    def add_a_column(orders):
        FileSystemCatalog(orders.storage, "wh").alter_table(
            "shop.orders", lake.add_column("more", "INT")
        )

    def check(orders):
        [entry] = plan_files(orders, head(orders))
        assert entry.file.schema_id == 0
        assert head(orders).schema_id in (0, 1)

    at_every_moment(table, append, add_a_column, check)


def expire_all_but_the_newest(handle: TableHandle) -> None:
    """As fast as an expiry can be: what only older snapshots lead to, and then these."""
    *old, newest = snapshot_ids(handle.storage, handle.layout)
    for path in referenced_metadata(handle, old) - referenced_metadata(handle, [newest]):
        handle.storage.delete(path)
    for number in old:
        handle.storage.delete(handle.layout.snapshot(number))


OVERTAKEN = {
    "append": lambda handle: commit(handle, message(handle, D)),
    "compaction": compact,
    "overwrite": lambda handle: commit(handle, message(handle, D), overwrite={}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keyed", [False, True], ids=["append table", "keyed"])
@pytest.mark.parametrize("what", OVERTAKEN)
def test_a_commit_overtaken_by_others_and_by_expiry_is_tried_again_and_succeeds(what, keyed):
    """The snapshot it began on has expired, with all files that only it referenced."""

    def three_snapshots():
        options = {"manifest.merge-min-count": "3"}
        handle = paper_table(keyed=keyed, options=options)
        commit(handle, message(handle, A, B))
        commit(handle, message(handle, C))
        return handle

    def others_and_expiry(handle):
        for name in "xyz":
            commit(handle, message(handle, file(name)))
        expire_all_but_the_newest(handle)

    def check(handle):
        top = "d@5" if keyed else "d"
        expected = {
            "append": [["a", "b", "c", "d", "x", "y", "z"]],
            "compaction": [["c", "merged@5", "x", "y", "z"]],
            "overwrite": [[top], sorted([top, "x", "y", "z"])],
        }
        assert live(handle) in expected[what]
        expire_all_but_the_newest(handle)
        assert metadata_files(handle) == referenced_metadata(handle)

    at_every_moment(three_snapshots, OVERTAKEN[what], others_and_expiry, check)
