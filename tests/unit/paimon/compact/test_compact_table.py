"""Compaction of whole tables: its files, their rows, and its report."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.compact.compact_report import BucketOutcome
from lakeformat.paimon.compact.outcomes import _reason
from lakeformat.paimon.compact.plan import plan_compaction
from lakeformat.paimon.compact.run import run_unit
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.plan import plan_files
from lakeformat.tables.compact_progress import CompactProgress
from lakeformat.types.byte_size import size
from tests.keyed_rows import MINUTE, KeyedRows, listed


def live(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table._handle, snapshot)


def files(table: lake.Table) -> list[DataFileMeta]:
    return [entry.file for entry in live(table)]


def names(table: lake.Table) -> set[str]:
    return {file.file_name for file in files(table)}


def test_a_bucket_becomes_one_file_of_the_highest_level():
    keyed = KeyedRows()
    keyed.commit(("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c"))
    keyed.commit(("+I", 2, "B"), ("-D", 3, None), ("+I", 4, "d"))
    report = keyed.table.compact()
    assert listed(keyed.table.scan()) == [(1, "a"), (2, "B"), (4, "d")]
    [file] = files(keyed.table)
    assert (file.level, file.row_count, file.delete_row_count) == (5, 3, 0)
    assert (file.min_sequence_number, file.max_sequence_number) == (0, 5)
    assert file.file_source == FileSource.COMPACT
    snapshot = keyed.table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.commit_kind is lake.CommitKind.COMPACT
    assert (snapshot.delta_record_count, snapshot.total_record_count) == (-3, 3)
    assert report.snapshot_ids == (snapshot.id,)
    assert (report.rows_in, report.rows_out, report.files_in, report.files_out) == (6, 3, 2, 1)


def test_the_table_is_read_as_before_at_every_snapshot():
    keyed = KeyedRows()
    for number in range(3):
        keyed.commit(("+I", number, "a"), ("+I", 1, f"{number}"))
    before = [listed(keyed.table.scan(snapshot=number)) for number in (1, 2, 3)]
    keyed.table.compact()
    assert [listed(keyed.table.scan(snapshot=number)) for number in (1, 2, 3)] == before
    assert listed(keyed.table.scan()) == before[-1]


def test_a_file_that_overlaps_nothing_costs_no_bytes():
    keyed = KeyedRows({"compaction.small-file-ratio": "0"})
    keyed.commit(("+I", 1, "a"), ("+I", 2, "b"))
    keyed.commit(("+I", 3, "c"))
    before = names(keyed.table)
    report = keyed.table.compact()
    assert names(keyed.table) == before
    assert {file.level for file in files(keyed.table)} == {5}
    assert (report.files_moved, report.bytes_in, report.bytes_out) == (2, 0, 0)
    assert report.write_amplification == 0
    # They fill up a new file if they are small.
    other = KeyedRows()
    other.commit(("+I", 1, "a"))
    other.commit(("+I", 3, "c"))
    assert other.table.compact().files_out == 1


def test_a_file_with_deletes_is_not_moved_to_the_highest_level():
    keyed = KeyedRows({"compaction.small-file-ratio": "0"})
    keyed.commit(("+I", 1, "a"))
    keyed.commit(("-D", 7, None), ("+I", 8, "b"))
    report = keyed.table.compact()
    assert (report.files_moved, report.files_in, report.files_out) == (1, 1, 1)
    assert [file.delete_row_count for file in files(keyed.table)] == [0, 0]


def test_a_file_of_another_format_than_its_level_has_is_rewritten():
    keyed = KeyedRows({"file.format.per.level": "0:avro"})
    keyed.commit(("+I", 1, "a"))
    keyed.table.compact()
    [file] = files(keyed.table)
    assert file.file_name.endswith(".parquet")


def test_deletes_stay_while_an_older_run_may_have_their_keys():
    keyed = KeyedRows({"num-sorted-run.compaction-trigger": "3"})
    keyed.commit(*(("+I", number, "x" * 50) for number in range(2000)))
    keyed.table.compact()
    for _ in range(2):
        keyed.commit(("-D", 7, None), ("+I", 9, "new"))
    report = keyed.table.compact(strategy="minor")
    assert report.snapshot_ids
    small, large = sorted(files(keyed.table), key=lambda file: file.file_size)
    assert (small.level, small.row_count, small.delete_row_count) == (large.level - 1, 2, 1)
    assert listed(keyed.table.scan(where="k in (7, 9)")) == [(9, "new")]
    keyed.table.compact()
    assert [file.delete_row_count for file in files(keyed.table)] == [0]


def test_rows_go_on_in_a_new_file_at_the_target_size():
    keyed = KeyedRows({"target-file-size": "1 kb"})
    for number in range(2):
        keyed.table.write(
            pa.table(
                {
                    "k": pa.array(range(number, 400_000, 2), pa.int32()),
                    "v": [str(at * 7919 % 100_003) for at in range(200_000)],
                }
            )
        )
    keyed.table.compact()
    made = files(keyed.table)
    assert len(made) > 1
    assert sum(file.row_count for file in made) == 400_000
    assert keyed.table.plan_compaction().units == ()


def test_files_of_older_schemas_come_out_under_the_newest():
    keyed = KeyedRows()
    keyed.commit(("+I", 1, "a"))
    keyed.catalog.alter_table("shop.t", lake.add_column("w", "INT"), lake.drop_column("v"))
    table = keyed.catalog.table("shop.t")
    table.write(pa.table({"k": pa.array([2], pa.int32()), "w": pa.array([5], pa.int32())}))
    keyed.table.compact()  # opened before the change, which does not undo it
    [file] = files(table)
    assert file.schema_id == table.schema.id
    assert listed(table.scan()) == [(1, None), (2, 5)]


def test_minor_compaction_goes_on_until_nothing_is_due():
    keyed = KeyedRows()
    for number in range(4):
        keyed.commit(("+I", number, "a"))
    report = keyed.table.compact(strategy="minor")
    assert report.reason == "nothing to do: 4 sorted runs; a compaction starts at 5"
    keyed.commit(("+I", 9, "a"))
    assert keyed.table.compact(strategy="minor").snapshot_ids == (6,)
    assert keyed.table.compact(strategy="minor").snapshot_ids == ()


def test_files_of_an_append_table_become_larger_ones():
    rows = KeyedRows(keyed=False)
    for number in range(6):
        rows.commit(("+I", number, "a"))
    report = rows.table.compact(strategy="minor")
    assert (report.files_in, report.files_out, report.rows_out) == (6, 1, 6)
    assert sorted(listed(rows.table.scan())) == [(number, "a") for number in range(6)]
    [file] = files(rows.table)
    assert (file.level, file.file_source, file.delete_row_count) == (0, FileSource.COMPACT, 0)


def test_a_queue_keeps_its_order():
    rows = KeyedRows({"bucket": "1", "bucket-key": "k"}, keyed=False)
    for number in (3, 1, 2, 5, 4, 0):
        rows.commit(("+I", number, "a"), ("+I", number, "b"))
    before = listed(rows.table.scan())
    rows.table.compact(strategy="minor")
    assert listed(rows.table.scan()) == before
    [made] = files(rows.table)
    assert (made.min_sequence_number, made.max_sequence_number) == (0, 11)
    for number in (7, 6):
        rows.commit(("+I", number, "a"))
    rows.table.compact()
    assert listed(rows.table.scan()) == [*before, (7, "a"), (6, "a")]
    assert len(files(rows.table)) == 1


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "there is one file only"), (2, "2 of 2 files are small, too few for a compaction")],
)
def test_it_is_said_why_files_of_an_append_table_are_left_alone(count, said):
    rows = KeyedRows(keyed=False)
    for number in range(count):
        rows.commit(("+I", number, "a"))
    assert rows.table.compact(strategy="minor").reason == f"nothing to do: {said}"


def test_small_files_between_large_ones_are_left_alone():
    rows = KeyedRows({"bucket": "1", "bucket-key": "k", "target-file-size": "20 kb"}, keyed=False)
    large = random.Random(7).randbytes(60_000).hex()
    for number in range(6):
        rows.commit(("+I", number, "a" if number % 2 else large))
    assert rows.table.compact(strategy="minor").reason == (
        "nothing to do: 3 of 6 files are small, but too few of them are adjacent for a compaction"
    )


def test_a_long_queue_is_written_once():
    """Not once more for every few files: that would be as much again for each of them."""
    rows = KeyedRows({"bucket": "1", "bucket-key": "k"}, keyed=False)
    for number in range(30):
        rows.commit(("+I", number, "a"))
    report = rows.table.compact(strategy="minor")
    assert (report.rows_in, report.files_in, report.files_out) == (30, 30, 1)
    assert len(report.snapshot_ids) == 1
    assert listed(rows.table.scan()) == [(number, "a") for number in range(30)]


@pytest.mark.parametrize("bucket", ["-1", "1"])
@pytest.mark.parametrize("how", [{}, {"strategy": "minor", "idle": "0 s"}])
def test_all_files_are_rewritten_once_if_that_is_asked_for(bucket, how):
    options = {"bucket": bucket, "compaction.force-rewrite-all-files": "true"}
    rows = KeyedRows({**options, **({"bucket-key": "k"} if bucket == "1" else {})}, keyed=False)
    for number in range(3):
        rows.commit(("+I", number, "a"))
    opened = rows.catalog.table("shop.t")
    for snapshot in (4, 5):
        report = opened.compact(**how)
        assert report.snapshot_ids == (snapshot,)
        assert report.rows_in == 3


def test_a_limit_puts_partitions_off_until_the_next_compaction_and_no_longer():
    rows = KeyedRows({"compaction.file-num-limit": "2"}, keyed=False, partitioned=True)
    for number in range(3):
        rows.commit(("+I", "a", number, "x"), ("+I", "b", number, "x"))
    first, second, third = (rows.table.compact() for _ in range(3))
    assert [(each.outcome, each.files_in) for each in first.buckets] == [
        ("not chosen", 0),
        ("compacted", 3),
    ]
    assert first.buckets[0].reason.startswith("3 files of other buckets are compacted first")
    assert [(each.outcome, each.files_in) for each in second.buckets][-1:] == [("compacted", 3)]
    assert third.snapshot_ids == ()
    assert len(files(rows.table)) == 2


def test_partitions_are_chosen_by_value_and_by_condition():
    keyed = KeyedRows(partitioned=True)
    for _ in range(2):
        keyed.commit(("+I", "a", 1, "x"), ("+I", "b", 1, "x"), ("+I", "c", 1, "x"))

    def chosen(**which: object) -> list[str]:
        return sorted(unit.path for unit in keyed.table.plan_compaction(**which).units)

    assert chosen(where="p > 'a'") == ["p=b", "p=c"]
    assert chosen(partitions={"p": "a"}) == ["p=a"]
    assert chosen(partitions=[{"p": "a"}, {"p": "c"}], where="p <> 'c'") == ["p=a"]
    assert chosen(partitions=[]) == []
    assert chosen(buckets=[]) == []
    assert chosen(buckets=range(1)) == ["p=a", "p=b", "p=c"]
    keyed.table.compact(where="p = 'b'")
    assert chosen() == ["p=a", "p=c"]
    with pytest.raises(lake.InvalidRequestError, match="name partition columns only, not 'k'"):
        keyed.table.compact(where="k = 1")


def test_partitions_that_are_written_to_still_are_left_alone():
    keyed = KeyedRows(partitioned=True)
    for _ in range(2):
        keyed.commit(("+I", "a", 1, "x"))
    keyed.clock.millis += 60 * MINUTE
    keyed.commit(("+I", "b", 1, "x"))
    plan = keyed.table.plan_compaction(idle="30 min")
    assert [unit.path for unit in plan.units] == ["p=a"]
    [other] = plan.not_chosen
    assert other.path == "p=b"
    assert other.reason == "last written 0 ms ago, but 'idle' asks for 30 min without writes"
    keyed.clock.millis += 30 * MINUTE
    assert len(keyed.table.plan_compaction(idle=timedelta(minutes=30)).units) == 2


def test_times_longer_than_any_clock_shows_are_times():
    keyed = KeyedRows({"compaction.optimization-interval": "99999999999 d"}, partitioned=True)
    for _ in range(2):
        keyed.commit(("+I", "a", 1, "x"))
        keyed.table.compact()
    [other] = keyed.table.plan_compaction(idle="99999999999 d").not_chosen
    assert other.reason.endswith("'idle' asks for 99999999999 d without writes")
    keyed.commit(("+I", "a", 1, "x"))
    assert keyed.table.plan_compaction(strategy="minor").units == ()


@pytest.mark.parametrize("looked_up", [{}, {"changelog-producer": "lookup"}])
def test_a_table_may_have_more_levels_than_a_byte_counts(looked_up):
    options = {"num-levels": "1000", "num-sorted-run.compaction-trigger": "2", **looked_up}
    keyed = KeyedRows(options)
    keyed.commit(*(("+I", number, "x" * 50) for number in range(2000)))
    keyed.table.compact()
    for value in "ab":
        keyed.commit(("+I", 1, value))
    keyed.table.compact(strategy="minor")
    assert {file.level for file in files(keyed.table)} == {998, 999}
    assert listed(keyed.table.scan(where="k = 1")) == [(1, "b")]
    keyed.table.compact()
    assert listed(keyed.table.scan(where="k = 1")) == [(1, "b")]


def test_more_levels_than_a_file_can_be_on_are_refused_by_name():
    with pytest.raises(lake.InvalidRequestError, match=r"'num-levels' .* from 1 to 1000000"):
        KeyedRows({"num-levels": "99999999999"})


def test_a_plan_says_why_and_can_be_sent_elsewhere():
    keyed = KeyedRows(partitioned=True)
    keyed.commit(("+I", "a", 1, "x"), ("+I", "b", 1, "x"))
    keyed.table.compact(where="p = 'b'")
    keyed.commit(("+I", "a", 1, "y"))
    plan = keyed.table.plan_compaction()
    assert str(plan).splitlines()[1:] == [
        f"  partition p=a, bucket 0: 2 files become about 1, {size(plan.bytes)} to read: "
        "full compaction of 2 sorted runs; gain: 1 file fewer to open, no merge when read",
        "  partition p=b, bucket 0: not chosen: all files are on level 5 already",
    ]
    said = json.loads(json.dumps(plan.to_dict()))
    assert [bucket["chosen"] for bucket in said["buckets"]] == [True, False]
    [unit] = pickle.loads(pickle.dumps(plan)).units
    message = run_unit(keyed.table._handle, unit)
    keyed.table.commit([lake.CommitMessage.from_bytes(message.to_bytes())])
    assert sorted(listed(keyed.table.scan())) == [("a", 1, "y"), ("b", 1, "x")]


def test_a_plan_says_what_readers_will_have_of_it():
    rows = KeyedRows({"deletion-vectors.enabled": "true"}, keyed=False)
    for number in range(3):
        rows.commit(("+I", number, "x"), ("+I", number + 10, "x"))
    rows.table.delete("k >= 10")
    [unit] = rows.table.plan_compaction().units
    assert unit.expected_gain == "2 files fewer to open, 3 deleted rows not read any more"
    [unit] = rows.table.plan_compaction(order_by=["v", "k"]).units
    assert unit.expected_gain.endswith("queries by v, k skip files")
    keyed = KeyedRows()
    keyed.commit(("+I", 1, "x"))
    [unit] = keyed.table.plan_compaction().units
    assert unit.expected_gain == "none estimated"


def test_a_report_says_what_was_done_and_what_was_not():
    keyed = KeyedRows(partitioned=True)
    keyed.commit(("+I", "a", 1, "x"), ("+I", "b", 1, "x"))
    keyed.table.compact(where="p = 'b'")
    keyed.commit(("+I", "a", 1, "y"))
    heard: list[CompactProgress] = []
    report = keyed.table.compact(on_progress=heard.append)
    assert [(each.partition, each.outcome) for each in report.buckets] == [
        ("p=b", "not chosen"),
        ("p=a", "compacted"),
    ]
    assert report.reason == "1 bucket compacted, 1 not chosen, published as snapshot 4"
    assert report.write_amplification == pytest.approx(report.bytes_out / report.bytes_in, abs=1e-3)
    assert [(each.done, each.units) for each in heard] == [(0, 1), (1, 1)]
    json.dumps(report.to_dict())


def test_a_bucket_with_several_groups_of_files_counts_once():
    done = [BucketOutcome(partition="", bucket=0, outcome="compacted", reason="") for _ in "ab"]
    left = BucketOutcome(partition="", bucket=1, outcome="failed", reason="")
    assert _reason([*done, left], [3]) == "1 bucket compacted, 1 failed, published as snapshot 3"


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_many_buckets_are_published_in_groups(executor):
    keyed = KeyedRows({"bucket": "40"})
    for _ in range(2):
        keyed.commit(*(("+I", number, "x") for number in range(400)))
    report = keyed.table.compact(executor=executor)
    assert report.groups == len(report.snapshot_ids) == 3
    assert len(files(keyed.table)) == 40
    assert keyed.table.scan().count() == 400


def test_a_table_without_rows_has_nothing_to_compact():
    keyed = KeyedRows()
    assert keyed.table.compact().reason == "nothing to do: the chosen buckets have no data file"
    assert keyed.table.plan_compaction().snapshot_id is None


def test_requests_that_cannot_be_right_are_refused():
    keyed = KeyedRows()
    with pytest.raises(lake.InvalidRequestError, match=r"strategy must be 'full' .* got 'big'"):
        keyed.table.compact(strategy="big")
    for buckets in (0, "0", ["x"], [0.0], [True]):
        with pytest.raises(lake.InvalidRequestError, match="buckets must be "):
            keyed.table.compact(buckets=buckets)
    with pytest.raises(lake.InvalidRequestError, match="on_progress must be a function"):
        keyed.table.compact(on_progress=5)
    with pytest.raises(lake.InvalidRequestError, match="executor must be one of serial, threads"):
        keyed.table.compact(executor="spark")
    with pytest.raises(
        lake.InvalidRequestError, match="idle must be a time such as '1 h', got 'soon'"
    ):
        keyed.table.compact(idle="soon")
    with pytest.raises(lake.InvalidRequestError, match="larger than 64 bits"):
        keyed.table.compact(idle="99999999999999999 d")
    with pytest.raises(
        lake.InvalidRequestError, match=r"idle must be a timedelta or a text .* got 5$"
    ):
        keyed.table.compact(idle=5)
    with pytest.raises(lake.InvalidRequestError, match="idle must not be negative"):
        keyed.table.compact(idle=timedelta(hours=-1))
    with pytest.raises(lake.UnsupportedError, match="is read-only"):
        keyed.catalog.table("shop.t$files").compact()


@pytest.mark.parametrize("how", [{}, {"order_by": ["v"]}])
@pytest.mark.parametrize("bucket", [99, -5])
def test_a_bucket_that_the_table_does_not_have_is_refused(how, bucket):
    rows = KeyedRows(keyed=False)
    for number in range(2):
        rows.commit(("+I", number, "a"))
    with pytest.raises(
        lake.InvalidRequestError, match=f"has no bucket {bucket}: bucket 0 is the only one"
    ):
        rows.table.plan_compaction(buckets=[bucket], **how)
    assert len(rows.table.plan_compaction(buckets=[0], **how).units) == 1


def test_a_bucket_that_is_empty_or_of_an_older_number_is_none_to_refuse():
    keyed = KeyedRows({"bucket": "8"})
    keyed.commit(*(("+I", number, "a") for number in range(50)))
    empty = KeyedRows({"bucket": "8"}).table.plan_compaction(buckets=[7])
    assert (empty.units, empty.not_chosen) == ((), ())
    keyed.catalog.alter_table("shop.t", lake.set_option("bucket", "2"))
    assert len(keyed.table.plan_compaction(buckets=[7]).units) == 1


def test_tables_it_would_damage_are_refused_by_name():
    rows = KeyedRows({"row-tracking.enabled": "true"}, keyed=False)
    with pytest.raises(lake.UnsupportedError, match=r"'row-tracking.enabled'"):
        rows.table.compact()


def test_a_plan_of_another_schema_is_not_run():
    keyed = KeyedRows()
    for _ in range(2):
        keyed.commit(("+I", 1, "a"))
    [unit] = keyed.table.plan_compaction().units
    keyed.catalog.alter_table("shop.t", lake.add_column("w", "INT"))
    newer = keyed.catalog.table("shop.t")._handle
    with pytest.raises(
        lake.CommitConflictError, match=r"bucket 0 .* under schema-0, .* plan again"
    ):
        run_unit(newer, unit)
    assert plan_compaction(keyed.table._handle).units[0].schema_id == 1


def test_a_unit_does_not_lose_the_columns_of_newer_files():
    keyed = KeyedRows()
    for _ in range(2):
        keyed.commit(("+I", 1, "a"))
    [unit] = keyed.table.plan_compaction().units
    newer = tuple(
        replace(entry, file=replace(entry.file, schema_id=entry.file.schema_id + 1))
        for entry in unit.files
    )
    with pytest.raises(lake.CommitConflictError, match=r"because some files have schema-1"):
        run_unit(keyed.table._handle, replace(unit, files=newer))


def test_partitions_that_share_a_directory_are_told_apart():
    table = KeyedRows().catalog.create_table(
        "shop.blank",
        [("p", "STRING"), ("k", "INT")],
        partition_by=["p"],
        options={"bucket": "-1", "compaction.force-rewrite-all-files": "true"},
    )
    values = [None, "", "  ", "__DEFAULT_PARTITION__", "a b"]
    table.write(pa.table({"p": values, "k": pa.array([0] * 5, pa.int32())}))
    shown = ["p=__DEFAULT_PARTITION__", "p=''", "p='  '", "p='__DEFAULT_PARTITION__'", "p=a b"]
    assert {each.partition for each in table.compact().buckets} == set(shown)
    assert {each.partition for each in table.health().worst_buckets} == set(shown)
