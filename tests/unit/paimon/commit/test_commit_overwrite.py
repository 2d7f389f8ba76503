"""Overwrites: deleted rows, kept rows, and the conflicts of a pinned commit."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages, commit_statistics
from lakeformat.paimon.commit.overwrite import DYNAMIC
from lakeformat.paimon.metadata.statistics import TableStatistics
from lakeformat.paimon.partition import partition_fields, partition_texts
from lakeformat.paimon.partition_filter import some_partitions
from tests.paper import commit, file, head, index_files, live, message, paper_table, vectors

NEW_YEAR = 1_704_067_200 * 10**9
"""2024 begins, in nanoseconds since 1970."""

A, B, C, D = (file(name) for name in "abcd")


@pytest.fixture
def days():
    """Two days with a file each."""
    orders = paper_table(partitioned=True)
    commit(orders, message(orders, A, dt="1"), message(orders, B, dt="2"))
    return orders


def test_the_whole_table_is_replaced(days):
    commit(days, message(days, C, dt="3"), overwrite={})
    assert live(days) == ["3/c"]
    assert (head(days).commit_kind, head(days).total_record_count) == ("OVERWRITE", 10)
    assert head(days).delta_record_count == -10


def test_a_named_partition_is_replaced_and_the_others_stay(days):
    commit(days, message(days, C, dt="1"), overwrite={"dt": "1"})
    assert live(days) == ["1/c", "2/b"]


def test_files_outside_of_what_is_replaced_are_refused(days):
    with pytest.raises(lake.InvalidRequestError, match="c is in partition dt=2, which this"):
        commit(days, message(days, C, dt="2"), overwrite={"dt": "1"})


def test_a_partition_column_that_does_not_exist_is_refused_by_name(days):
    with pytest.raises(lake.InvalidRequestError, match=r"'day' is not a partition column.*by dt"):
        commit(days, overwrite={"day": "1"})


def test_dynamic_replaces_the_partitions_that_get_files():
    days = paper_table(partitioned=True)
    commit(days, message(days, A, dt="1"), message(days, B, dt="2"))
    commit_messages(days, [message(days, C, dt="2")], CommitOptions(), overwrite=DYNAMIC)
    assert live(days) == ["1/a", "2/c"]


def test_dynamic_without_a_file_replaces_nothing(days):
    report = commit_messages(days, [], CommitOptions(), overwrite=DYNAMIC)
    assert (report.snapshot_id, live(days)) == (None, ["1/a", "2/b"])


def test_without_new_files_the_rows_are_deleted(days):
    report = commit(days, overwrite={"dt": "1"})
    assert (live(days), report.deleted_files, report.rows) == (["2/b"], 1, 0)


def test_rows_that_wait_for_a_bucket_survive(days):
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A), message(orders, B, bucket=-2, total_buckets=-2))
    commit(orders, overwrite={})
    assert live(orders) == ["b"]


def test_index_files_go_with_the_files_they_are_about():
    orders = paper_table()
    commit(orders, message(orders, A))
    commit(orders, message(orders, new_index_files=[vectors(orders, "v", "a")]))
    commit(orders, message(orders, B), overwrite={})
    assert head(orders).index_manifest is None


def test_index_files_of_other_partitions_stay(days):
    commit(
        days,
        *(
            message(days, dt=dt, new_index_files=[vectors(days, f"v{dt}", name, dt=dt)])
            for dt, name in (("1", "a"), ("2", "b"))
        ),
    )
    commit(days, message(days, C, dt="1"), overwrite={"dt": "1"})
    assert index_files(days) == ["v2"]


def test_a_table_all_of_whose_rows_wait_for_a_bucket_is_replaced_with_them():
    orders = paper_table(keyed=True, options={"bucket": "-2"})
    commit(orders, message(orders, A, bucket=-2))
    commit(orders, message(orders, B, bucket=-2), overwrite={})
    assert live(orders) == ["b"]


def test_one_overwrite_cannot_count_buckets_in_two_ways():
    orders = paper_table(keyed=True)
    with pytest.raises(lake.CommitConflictError, match="2 and 4 buckets"):
        commit(
            orders,
            message(orders, A, total_buckets=2),
            message(orders, B, total_buckets=4),
            overwrite={},
        )
    assert head(orders) is None


class TestUpgrade:
    """New files of a primary-key table go to the highest level if nothing has to be merged."""

    def test_without_overlap_they_do(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A, file("b", keys=(10, 19))), overwrite={})
        assert live(orders) == ["a@5", "b@5"]

    def test_as_many_levels_as_the_table_has(self):
        orders = paper_table(keyed=True, options={"num-levels": "3"})
        commit(orders, message(orders, A), overwrite={})
        assert live(orders) == ["a@2"]

    def test_files_that_overlap_stay_where_they_are(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A, file("b", keys=(9, 19))), overwrite={})
        assert live(orders) == ["a", "b"]

    def test_keys_of_other_buckets_do_not_overlap(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A), message(orders, B, bucket=1), overwrite={})
        assert live(orders) == ["a@5", "b@5"]

    def test_files_that_have_a_level_keep_it(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, file("a", level=3)), overwrite={})
        assert live(orders) == ["a@3"]

    def test_not_beside_a_compaction_which_may_have_files_there(self):
        orders = paper_table(keyed=True)
        merged = file("m", level=5)
        commit(orders, message(orders, A, compact_before=[A], compact_after=[merged]), overwrite={})
        assert (live(orders, 1), live(orders)) == (["a"], ["m@5"])

    def test_nor_if_the_option_says_no(self):
        orders = paper_table(keyed=True, options={"overwrite-upgrade": "false"})
        commit(orders, message(orders, A), overwrite={})
        assert live(orders) == ["a"]


class TestPinned:
    """A commit computed from a snapshot is refused if its partitions changed since."""

    def test_an_overwrite_notices_rows_that_came_in(self, days):
        commit(days, message(days, C, dt="1"), user="late")
        with pytest.raises(lake.CommitConflictError) as refused:
            commit(
                days, message(days, D, dt="1"), overwrite={"dt": "1"}, user="me", read_snapshot=1
            )
        assert "OVERWRITE of user 'me' was computed from snapshot 1" in str(refused.value)
        assert "snapshot 2 (APPEND of user 'late')" in str(refused.value)
        assert live(days) == ["1/a", "1/c", "2/b"]

    def test_rows_of_other_partitions_do_not_matter(self, days):
        commit(days, message(days, C, dt="2"))
        commit(days, message(days, D, dt="1"), overwrite={"dt": "1"}, read_snapshot=1)
        assert live(days) == ["1/d", "2/b", "2/c"]

    def test_a_compaction_of_the_partition_does(self, days):
        merged = message(days, dt="1", compact_before=[A], compact_after=[file("m")])
        commit(days, merged)
        with pytest.raises(lake.CommitConflictError, match=r"snapshot 2 \(COMPACT"):
            commit(days, message(days, D, dt="1"), overwrite={"dt": "1"}, read_snapshot=1)

    def test_another_commit_of_the_same_user_counts_as_anybodys(self, days):
        commit(days, message(days, C, dt="1"), user="me")
        options = CommitOptions(commit=lake.CommitId("me", 2), read_snapshot=1)
        with pytest.raises(lake.CommitConflictError, match=r"c \(partition dt=1, bucket 0\)"):
            commit_messages(days, [message(days, D, dt="1")], options, overwrite=DYNAMIC)
        assert live(days) == ["1/a", "1/c", "2/b"]

    def test_marks_on_rows_are_a_change_although_no_file_comes_or_goes(self, days):
        commit(days, message(days, dt="1", new_index_files=[vectors(days, "v", "a", dt="1")]))
        commit(days, message(days, C, dt="2"), overwrite={"dt": "2"}, read_snapshot=1)
        with pytest.raises(lake.CommitConflictError, match="changed the same partitions"):
            commit(days, message(days, D, dt="1"), overwrite={"dt": "1"}, read_snapshot=1)

    def test_a_compaction_that_looked_first_notices_other_compactions_but_no_new_rows(self, days):
        commit(days, message(days, C, dt="1"))
        merged = message(days, dt="1", compact_before=[A], compact_after=[file("m")])
        commit(days, merged, user="rival", read_snapshot=1)
        late = message(days, dt="1", compact_before=[C], compact_after=[file("n")])
        with pytest.raises(lake.CommitConflictError, match=r"this COMPACT .* of user 'rival'"):
            commit(days, late, read_snapshot=2)
        assert live(days) == ["1/c", "1/m", "2/b"]

    def test_rows_that_wait_for_a_bucket_are_no_change_to_an_overwrite_which_leaves_them(self):
        orders = paper_table(keyed=True)
        commit(orders, message(orders, A))
        commit(orders, message(orders, B, bucket=-2, total_buckets=-2))
        commit(orders, message(orders, C), overwrite={}, read_snapshot=1)
        assert live(orders) == ["b", "c@5"]

    def test_statistics_change_nothing_even_if_what_came_before_them_has_expired(self, days):
        commit(days, message(days, dt="1", new_index_files=[vectors(days, "v", "a", dt="1")]))
        commit_statistics(days, TableStatistics(snapshot_id=2, schema_id=0), CommitOptions())
        days.storage.delete(days.layout.snapshot(2))
        commit(days, message(days, C, dt="1"), overwrite={"dt": "1"}, read_snapshot=2)
        assert live(days) == ["1/c", "2/b"]

    def test_a_snapshot_that_has_expired_in_between_is_no_permission(self, days):
        for name in "cde":
            commit(days, message(days, file(name), dt="2"))
        days.storage.delete(days.layout.snapshot(2))
        with pytest.raises(
            lake.CommitConflictError, match="an expired later snapshot may have changed"
        ):
            commit(days, overwrite={"dt": "1"}, read_snapshot=1)

    def test_a_snapshot_that_is_newer_than_the_newest_is_a_conflict(self, days):
        with pytest.raises(
            lake.CommitConflictError, match="read at snapshot 9, but its newest is 1"
        ):
            commit(days, overwrite={"dt": "1"}, read_snapshot=9)

    def test_the_option_may_mean_the_whole_history(self):
        option = {"commit.strict-mode.last-safe-snapshot": "0"}
        days = paper_table(partitioned=True, options=option)
        commit(days, message(days, A, dt="1"), user="one")
        with pytest.raises(lake.CommitConflictError, match="relies on snapshot 0"):
            commit(days, overwrite={"dt": "1"}, user="two")

    def test_the_option_of_the_table_pins_every_commit(self):
        option = {"commit.strict-mode.last-safe-snapshot": "1"}
        days = paper_table(partitioned=True, options=option)
        commit(days, message(days, A, dt="1"), user="one")
        commit(days, message(days, B, dt="1"), user="two")
        with pytest.raises(lake.CommitConflictError, match="relies on snapshot 1") as error:
            commit(days, overwrite={})
        assert "then set the option to the number of a newer snapshot" in str(error.value)

    def test_the_option_of_the_table_lets_rows_be_added_beside_others(self):
        option = {"commit.strict-mode.last-safe-snapshot": "1"}
        orders = paper_table(options=option)
        for name in "abc":
            commit(orders, message(orders, file(name)))
        assert live(orders) == ["a", "b", "c"]

    def test_rows_that_somebody_deleted_meanwhile_do_not_come_back(self, days):
        commit(days, overwrite={"dt": "2"}, user="late")
        with pytest.raises(lake.CommitConflictError, match="of user 'late'"):
            commit(days, message(days, C, dt="1"), overwrite={}, read_snapshot=1)

    def test_an_append_that_looked_first_notices_other_appends(self, days):
        commit(days, message(days, C, dt="1"), user="late")
        with pytest.raises(lake.CommitConflictError, match="of user 'late'"):
            commit(days, message(days, D, dt="1"), read_snapshot=1)
        commit(days, message(days, D, dt="2"), read_snapshot=1)

    def test_the_error_names_the_snapshot_that_was_read(self, days):
        commit(days, message(days, C, dt="2"))
        commit(days, message(days, D, dt="1"), user="late")
        with pytest.raises(lake.CommitConflictError, match="was computed from snapshot 1"):
            commit(days, overwrite={"dt": "1"}, read_snapshot=1)


def test_an_overwrite_of_an_empty_table_has_no_changelog_either():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A, changelog_files=[file("log")]), overwrite={})
    assert head(orders).changelog_manifest_list is None


def test_an_overwrite_finds_out_itself_what_goes(days):
    with pytest.raises(lake.InvalidRequestError, match="finds the files to delete by itself"):
        commit(days, message(days, C, dt="1", deleted_files=[A]), overwrite={"dt": "1"})


class TestPartitionValues:
    """A value names the partition that has it, or it is refused: never a neighbour."""

    def table(self, tmp_path, kind, **options):
        catalog = lake.open_catalog(str(tmp_path))
        catalog.create_database("shop", exist_ok=True)
        columns = [("id", "BIGINT"), ("p", kind)]
        return catalog.create_table("shop.t", columns, partition_by=["p"], options=options)

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("INT", 1.9),
            ("INT", "1.5"),
            ("VARCHAR(2)", "abc"),
            ("DECIMAL(10, 2)", "1.005"),
            ("DATE", "soon"),
            ("DATE", "20240131"),
            ("DATE", 20240131),
            ("DATE", "2024-01"),
            ("DATE", "2024-01-01 23:00:00"),
            ("DATE", "2024-01-01 00:00:00+02:00"),
            ("DATE", datetime(2024, 1, 1, 23)),
            ("TIMESTAMP(3)", "2024-02-31"),
            ("TIMESTAMP(3)", "2024-01-31 10:30:00.1239"),
            ("TIMESTAMP(3)", "1709164800000"),
            ("TIME(3)", "10:30:60"),
            ("FLOAT", "0.33333333"),
            ("DOUBLE", "0.10000000000000000001"),
            ("VARCHAR(3)", "abc "),
            ("CHAR(3)", "abc\t"),
        ],
    )
    def test_a_value_the_column_cannot_hold_is_refused(self, tmp_path, kind, value):
        with pytest.raises(
            lake.InvalidRequestError, match="not a value of the partition column 'p'"
        ):
            self.table(tmp_path, kind).drop_partitions([{"p": value}])

    def test_a_refused_number_names_the_nearest_value_and_no_range(self, tmp_path):
        with pytest.raises(lake.InvalidRequestError, match=r"is 0\.3333333\d*; give that value$"):
            self.table(tmp_path, "FLOAT").drop_partitions([{"p": "0.33333333"}])

    @pytest.mark.parametrize("value", ["2024", 2024, "-1"])
    def test_a_number_is_a_date_only_if_directories_are_so_named(self, tmp_path, value):
        table = self.table(tmp_path, "DATE", **{"partition.legacy-name": "false"})
        with pytest.raises(lake.InvalidRequestError, match=r"'p', which is DATE: write it as"):
            table.drop_partitions([{"p": value}])

    @pytest.mark.parametrize("legacy", ["true", "false"])
    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("DATE", 19753),
            ("DATE", -1),
            ("TIME(3)", 3723004),
            ("TIME(3)", 10),
            ("TIMESTAMP(0)", NEW_YEAR),
            ("TIMESTAMP(3)", NEW_YEAR + 120_000_000),
            ("TIMESTAMP(6) WITH LOCAL TIME ZONE", NEW_YEAR + 123_456_000),
            ("TIMESTAMP(9)", 123_456_789),
            ("FLOAT", 0.10000000149011612),
            ("FLOAT", 1.0000000200408773e20),
            ("DOUBLE", -12345678.9),
            ("DOUBLE", -0.0),
            ("DOUBLE", 4.9e-324),
            ("DOUBLE", float("-inf")),
            ("BOOLEAN", False),
            ("DECIMAL(5, 2)", Decimal("1.50")),
            ("CHAR(3)", "a"),
        ],
    )
    def test_the_name_of_a_directory_is_a_value(self, tmp_path, kind, value, legacy):
        schema = self.table(tmp_path, kind, **{"partition.legacy-name": legacy}).schema
        row = frame_row(encode_row((value,), [partition_fields(schema)[0].type]), 1)
        [text] = partition_texts(schema, row)
        found = some_partitions(schema, [{"p": text}]).mask(pa.array([row], pa.large_binary()))
        assert found.tolist() == [True], text

    @pytest.mark.parametrize(
        ("kind", "said", "meant", "other"),
        [
            ("INT", 1, 1, 2),
            ("INT", "1", 1, 2),
            ("DECIMAL(10, 2)", "1.50", Decimal("1.50"), Decimal("1.51")),
            ("DOUBLE", float("nan"), float("nan"), 1.0),
            ("FLOAT", 0.1, 0.10000000149011612, 0.0),
            ("BOOLEAN", True, True, False),
            ("BOOLEAN", "yes", True, False),
            ("DATE", date(2024, 1, 1), 19723, 0),
            ("DATE", "2024-1-1", 19723, 0),
            ("DATE", "2024-01-01 00:00:00", 19723, 0),
            ("DATE", "2024-01-01 00:00:00+00:00", 19723, 0),
            ("DATE", "2024-01-01T00:00:00Z", 19723, 0),
            ("DATE", datetime(2024, 1, 1, tzinfo=UTC), 19723, 0),
            ("DATE", datetime(2024, 1, 1), 19723, 0),
            ("DATE", 19723, 19723, 0),
            ("TIME(3)", time(1, 2, 3, 4000), 3723004, 0),
            ("TIMESTAMP(3)", datetime(2024, 1, 1), NEW_YEAR, 0),
            ("TIMESTAMP(3)", datetime(2024, 1, 1, tzinfo=UTC), NEW_YEAR, 0),
            ("TIMESTAMP(3)", "2024-01-01", NEW_YEAR, 0),
            ("STRING", None, None, "null"),
            ("TIMESTAMP(3) WITH LOCAL TIME ZONE", datetime(2024, 1, 1, tzinfo=UTC), NEW_YEAR, 0),
        ],
    )
    def test_a_value_comes_as_text_or_as_python_has_it(self, tmp_path, kind, said, meant, other):
        schema = self.table(tmp_path, kind).schema
        types = [field.type for field in partition_fields(schema)]
        rows = [frame_row(encode_row((value,), types), 1) for value in (meant, other)]
        found = some_partitions(schema, [{"p": said}]).mask(pa.array(rows, pa.large_binary()))
        assert found.tolist() == [True, False]

    def test_partitions_may_come_from_a_generator(self, tmp_path):
        table = self.table(tmp_path, "INT")
        report = table.drop_partitions({"p": n} for n in range(3))
        assert report.kind == "OVERWRITE"
