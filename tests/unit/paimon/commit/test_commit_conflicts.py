"""Commits that fit the snapshot they build on, and refused ones, with both sides named."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lakeformat as lake
from lakeformat.paimon.commit.deltas import delta_of
from lakeformat.paimon.metadata.schema_file import create_schema
from tests.paper import commit, file, head, live, message, moved, paper_table, vectors

A, B, C, D = (file(name) for name in "abcd")


def compaction(handle, before, after, **place):
    return message(handle, compact_before=before, compact_after=after, **place)


def test_an_append_and_a_compaction_of_one_call_are_two_snapshots_of_one_commit():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    merged = file("m", level=5)
    report = commit(
        orders, message(orders, B, compact_before=[A], compact_after=[merged]), user="u"
    )
    assert (report.kind, report.snapshot_id, report.compact_snapshot_id) == ("APPEND", 2, 3)
    assert live(orders, 2) == ["a", "b"]
    assert live(orders) == ["b", "m@5"]
    newest = head(orders)
    assert (newest.commit_kind, newest.commit_user, newest.commit_identifier) == ("COMPACT", "u", 1)


def test_a_compaction_of_files_that_are_gone_is_refused_with_both_users_and_the_files():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, B))
    commit(orders, compaction(orders, [A, B], [file("first", level=5)]), user="one")
    with pytest.raises(lake.CommitConflictError) as refused:
        commit(orders, compaction(orders, [A, B], [file("second", level=5)]), user="two")
    text = str(refused.value)
    assert "user 'two'" in text
    assert "snapshot 2 (COMPACT of user 'one')" in text
    assert "this commit deletes are not in the table any more: a, b (the table, bucket 0)" in text
    assert "Run the operation again" in text
    assert head(orders).id == 2


def test_two_compactions_of_other_files_must_not_share_keys_on_one_level():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, B))
    commit(orders, compaction(orders, [A], [file("x", level=5, keys=(0, 9))]))
    with pytest.raises(lake.CommitConflictError, match=r"of one level would overlap: x, y \("):
        commit(orders, compaction(orders, [B], [file("y", level=5, keys=(9, 20))]))
    commit(orders, compaction(orders, [B], [file("y", level=5, keys=(10, 20))]))
    assert live(orders) == ["x@5", "y@5"]


def test_keys_of_other_buckets_and_levels_do_not_meet():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A), message(orders, B, bucket=1), message(orders, C))
    commit(orders, compaction(orders, [A], [file("x", level=5)]))
    commit(orders, compaction(orders, [B], [file("y", level=5)], bucket=1))
    commit(orders, compaction(orders, [C], [file("z", level=4)]))
    assert live(orders) == ["x@5", "y@5", "z@4"]


def test_a_file_that_moves_up_a_level_keeps_its_name():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    up = compaction(orders, [A], [moved(A, 5)])
    assert list(up.written_files()) == []
    commit(orders, up)
    assert live(orders) == ["a@5"]


def test_a_compaction_takes_out_before_it_brings_in():
    """Readers that go by names would else take out the file that has just moved up."""
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, B))
    commit(orders, compaction(orders, [A, B], [moved(A, 5), file("m", level=4)]))
    entries = delta_of(orders, head(orders)).entries(slice(None))
    shown = [(entry.kind.name, entry.file.file_name, entry.file.level) for entry in entries]
    assert shown == [("DELETE", "a", 0), ("DELETE", "b", 0), ("ADD", "a", 5), ("ADD", "m", 4)]


def test_rows_given_in_exchange_come_in_before_the_others_go_as_in_java():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    commit(orders, message(orders, B, deleted_files=[A]))
    kinds = [entry.kind.name for entry in delta_of(orders, head(orders)).entries(slice(None))]
    assert kinds == ["ADD", "DELETE"]


def test_an_append_and_a_compaction_do_not_disturb_each_other():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    commit(orders, message(orders, B))
    commit(orders, compaction(orders, [A], [file("x", level=5)]))
    assert live(orders) == ["b", "x@5"]


def test_a_file_twice_in_one_commit_is_refused_before_anything_is_written():
    orders = paper_table()
    with pytest.raises(lake.InvalidRequestError, match=r"this commit contains .* twice"):
        commit(orders, message(orders, A), message(orders, A))
    assert [path for path in orders.storage.files() if "schema" not in path] == []


def test_a_file_that_is_there_already_is_left_out_if_the_option_says_so():
    orders = paper_table(options={"commit.discard-duplicate-files": "true"})
    commit(orders, message(orders, A))
    report = commit(orders, message(orders, A, B))
    assert (live(orders), report.files) == (["a", "b"], 1)


class TestBucketCounts:
    """A partition has one number of buckets, until it is overwritten."""

    def test_an_append_with_an_old_number_is_refused(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A, total_buckets=4), overwrite={})
        with pytest.raises(lake.CommitConflictError, match="has 2 and 4 buckets"):
            commit(orders, message(orders, B, total_buckets=2))
        commit(orders, message(orders, B, total_buckets=4))
        assert live(orders) == ["a@5", "b"]

    def test_the_newest_number_counts_however_many_commits_ago(self):
        orders = paper_table(keyed=True, partitioned=True)
        commit(orders, message(orders, A, dt="1", total_buckets=2))
        commit(orders, message(orders, B, dt="1", total_buckets=4), overwrite={})
        commit(orders, message(orders, C, dt="2"))
        with pytest.raises(lake.CommitConflictError, match="dt=1 has 2 and 4 buckets"):
            commit(orders, message(orders, D, dt="1", total_buckets=2))

    def test_of_hundreds_of_partitions_each_counts(self):
        orders = paper_table(keyed=True, partitioned=True)
        days = [f"{n:03d}" for n in range(101)]
        first = [message(orders, file(f"a{day}"), dt=day) for day in days]
        commit(orders, *first)
        other = [message(orders, file(f"b{day}"), dt=day, total_buckets=4) for day in days]
        with pytest.raises(lake.CommitConflictError, match="2 and 4 buckets"):
            commit(orders, *other)
        merged = [
            message(
                orders,
                dt=day,
                compact_before=[file(f"a{day}")],
                compact_after=[file(f"m{day}", level=5)],
            )
            for day in days
        ]
        commit(orders, *merged)
        assert live(orders) == [f"{day}/m{day}@5" for day in days]

    def test_every_partition_counts_for_itself(self):
        orders = paper_table(keyed=True, partitioned=True)
        commit(orders, message(orders, A, dt="1", total_buckets=4), overwrite={})
        commit(orders, message(orders, B, dt="2", total_buckets=2))
        with pytest.raises(lake.CommitConflictError, match="partition dt=1 has 2 and 4 buckets"):
            commit(orders, message(orders, C, dt="1", total_buckets=2))

    def test_a_partition_that_is_empty_again_takes_the_number_of_the_table_and_no_other(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A, total_buckets=4), overwrite={})
        commit(orders, message(orders, C, bucket=3, total_buckets=4))
        commit(orders, overwrite={})
        with pytest.raises(
            lake.CommitConflictError,
            match=r"for 4 buckets, but the table is empty now and new files need 2",
        ):
            commit(orders, message(orders, D, bucket=3, total_buckets=4))
        commit(orders, message(orders, B, total_buckets=2))
        assert live(orders) == ["b"]

    def test_the_number_of_the_table_is_that_of_its_newest_schema(self):
        """A writer that opened the table before the change has files with the old bucket count."""
        orders = paper_table(keyed=True)
        rescaled = replace(orders.schema, id=1, options={"bucket": "4"})
        assert create_schema(orders.storage, orders.layout, rescaled)
        with pytest.raises(
            lake.CommitConflictError, match=r"new files need 4 \('bucket' of schema 1\)"
        ):
            commit(orders, message(orders, A))
        assert head(orders) is None
        commit(replace(orders, schema=rescaled), message(orders, A, total_buckets=4))
        assert live(orders) == ["a"]

    def test_one_commit_cannot_count_in_two_ways(self):
        orders = paper_table(keyed=True)
        with pytest.raises(lake.CommitConflictError, match="2 and 4 buckets"):
            commit(orders, message(orders, A, total_buckets=2), message(orders, B, total_buckets=4))


class TestDeletionVectors:
    """A row is marked as deleted once, in a file that is there."""

    def marked(self, orders, name, *files, instead_of=()):
        return message(
            orders,
            new_index_files=[vectors(orders, name, *files)],
            deleted_index_files=[vectors(orders, old, *files) for old in instead_of],
        )

    def test_marking_rows_is_an_overwrite(self):
        orders = paper_table()
        commit(orders, message(orders, A))
        report = commit(orders, self.marked(orders, "v1", "a"))
        assert (report.kind, head(orders).total_record_count) == ("OVERWRITE", 10)

    def test_the_second_of_two_writers_on_one_file_is_refused(self):
        orders = paper_table()
        commit(orders, message(orders, A))
        commit(orders, self.marked(orders, "v1", "a"))
        with pytest.raises(
            lake.CommitConflictError, match="data file a already has a deletion vector"
        ):
            commit(orders, self.marked(orders, "v2", "a"))
        commit(orders, self.marked(orders, "v2", "a", instead_of=["v1"]))
        with pytest.raises(lake.CommitConflictError, match="vectors v1, which do not exist"):
            commit(orders, self.marked(orders, "v3", "a", instead_of=["v1"]))

    def test_in_a_bucket_the_file_that_is_replaced_must_be_the_one_that_is_there(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A))
        commit(orders, self.marked(orders, "v1", "a"))
        with pytest.raises(lake.CommitConflictError, match="v1"):
            commit(orders, self.marked(orders, "v2", "a"))
        commit(orders, self.marked(orders, "v2", "a", instead_of=["v1"]))

    def test_a_file_that_is_gone_cannot_be_marked(self):
        orders = paper_table()
        commit(orders, message(orders, A, B))
        commit(orders, compaction(orders, [A, B], [file("x")]))
        with pytest.raises(lake.CommitConflictError, match="are not in the table any more: a"):
            commit(orders, self.marked(orders, "v1", "a"))


class TestHalves:
    """Rows and a compaction in one call: the second half failing never undoes the first."""

    def both(self, orders):
        return message(orders, B, compact_before=[A], compact_after=[file("m", level=5)])

    def test_a_refused_compaction_leaves_the_rows_and_says_why(self):
        orders = paper_table(keyed=True)
        report = commit(orders, self.both(orders))
        assert (report.snapshot_id, report.compact_snapshot_id) == (1, None)
        assert "not in the table any more" in report.compact_refused
        assert live(orders) == ["b"]

    def test_repeating_the_call_finishes_the_half_that_is_missing(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A))
        commit(orders, message(orders, B), user="run")
        report = commit(orders, self.both(orders), user="run")
        assert (report.snapshot_id, report.compact_snapshot_id, report.replayed) == (2, 3, False)
        assert commit(orders, self.both(orders), user="run").replayed
        assert live(orders) == ["b", "m@5"]


def test_nothing_can_be_taken_out_of_a_table_without_a_snapshot():
    orders = paper_table(keyed=True)
    with pytest.raises(
        lake.CommitConflictError, match="conflicts with the table, which has no snapshot"
    ):
        commit(orders, compaction(orders, [A], [file("m", level=5)]))
    assert head(orders) is None


def test_the_commit_that_is_named_is_the_one_that_changed_the_file_not_the_newest():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A), user="writer")
    commit(orders, compaction(orders, [A], [file("m", level=5)]), user="compactor")
    commit(orders, message(orders, B), user="bystander")
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 2 \(COMPACT of user 'compactor'"):
        commit(orders, compaction(orders, [A], [file("n", level=5)]))


def test_files_given_in_exchange_count_buckets_as_their_partition_does():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, total_buckets=2))
    with pytest.raises(lake.CommitConflictError, match="has 2 and 4 buckets"):
        commit(orders, message(orders, B, deleted_files=[A], total_buckets=4))


def test_both_snapshots_are_named_the_one_planned_on_and_the_rivals():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, B))
    commit(orders, compaction(orders, [A, B], [file("first", level=5)]), user="one")
    late = compaction(orders, [A, B], [file("second", level=5)])
    with pytest.raises(lake.CommitConflictError) as refused:
        commit(orders, replace(late, base_snapshot=1), user="two")
    sides = "planned on snapshot 1, conflicts with snapshot 2 (COMPACT of user 'one'): "
    assert sides in str(refused.value)


def test_a_bucket_count_that_changed_names_both_writers_and_snapshots():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    commit(orders, message(orders, B, total_buckets=4), overwrite={}, user="rescaler")
    with pytest.raises(lake.CommitConflictError) as refused:
        commit(orders, replace(message(orders, C), base_snapshot=1), user="writer")
    text = str(refused.value)
    assert "user 'writer'" in text
    assert "planned on snapshot 1, conflicts with snapshot 2 (OVERWRITE of user 'rescaler')" in text
    assert "Table.abort" in text


def test_the_report_says_that_the_compaction_was_refused():
    orders = paper_table(keyed=True)
    both = message(orders, B, compact_before=[A], compact_after=[file("m", level=5)])
    report = commit(orders, both)
    assert "published as snapshot 1; the compaction was not" in report.reason
    assert "not in the table any more" in report.reason


def bystanders(orders, count):
    for number in range(count):
        commit(orders, message(orders, file(f"other-{number}")), user=f"bystander-{number}")


def test_a_rival_is_found_as_far_back_as_the_commit_was_planned():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A), user="writer")
    commit(orders, compaction(orders, [A], [file("m", level=5)]), user="compactor")
    bystanders(orders, 120)
    late = replace(compaction(orders, [A], [file("n", level=5)]), base_snapshot=1)
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 2 \(COMPACT of user 'compactor'"):
        commit(orders, late)


def test_a_rival_that_is_not_found_is_not_somebody_else(monkeypatch):
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A), user="writer")
    commit(orders, compaction(orders, [A], [file("m", level=5)]), user="compactor")
    bystanders(orders, 5)
    late = compaction(orders, [A], [file("n", level=5)])
    monkeypatch.setattr("lakeformat.paimon.commit.conflicting_snapshot.FEWEST_SEARCHED", 4)
    with pytest.raises(lake.CommitConflictError, match="with a snapshot older than 4: ") as refused:
        commit(orders, late)
    assert "bystander" not in str(refused.value)
    for number in (1, 2, 3):
        orders.storage.delete(orders.layout.snapshot(number))
    monkeypatch.setattr("lakeformat.paimon.commit.conflicting_snapshot.FEWEST_SEARCHED", 100)
    with pytest.raises(lake.CommitConflictError, match="with a snapshot older than 4: "):
        commit(orders, late)


def test_a_file_that_never_was_in_the_table_has_no_rival():
    orders = paper_table(keyed=True)
    bystanders(orders, 3)
    with pytest.raises(lake.CommitConflictError, match="with snapshot 3, the newest: "):
        commit(orders, compaction(orders, [A], [file("n", level=5)]))


def test_who_marked_rows_is_named_however_many_came_after():
    orders = paper_table()
    commit(orders, message(orders, A), user="writer")
    commit(orders, message(orders, new_index_files=[vectors(orders, "v1", "a")]), user="deleter")
    bystanders(orders, 3)
    rival = r"snapshot 2 \(OVERWRITE of user 'deleter'\): this commit deletes a without having read"
    with pytest.raises(lake.CommitConflictError, match=rival):
        commit(orders, compaction(orders, [A], [file("m")]))
