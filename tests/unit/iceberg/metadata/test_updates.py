"""Updates of table metadata keep its numbers, its log and its references consistent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import (
    following,
    next_timestamp,
    remove_properties,
    remove_reference,
    remove_snapshots,
    set_properties,
    set_reference,
)
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.path_table import appended, empty_metadata, names


def logged(metadata: TableMetadata) -> list[int]:
    return [entry.snapshot_id for entry in metadata.snapshot_log]


def of_ids(*ids: int, version: int = 2) -> TableMetadata:
    metadata = empty_metadata(version=version)
    for number in ids:
        metadata = appended(metadata, f"s{number}", snapshot_id=number)
    return metadata


def test_a_snapshot_becomes_the_newest_of_main():
    metadata = of_ids(10, 20)
    assert metadata.current_snapshot_id == 20
    assert metadata.references == {"main": Reference("main", 20, "branch")}
    assert logged(metadata) == [10, 20]
    assert metadata.last_sequence_number == 2
    assert [each.sequence_number for each in metadata.snapshots] == [1, 2]


def test_version_3_counts_the_ids_of_rows():
    metadata = appended(empty_metadata(version=3), "a", rows=5)
    metadata = appended(metadata, "b", rows=2)
    assert [each.first_row_id for each in metadata.snapshots] == [0, 5]
    assert metadata.next_row_id == 7


def test_version_1_has_no_sequence_numbers():
    metadata = of_ids(10, 20, version=1)
    assert (metadata.last_sequence_number, metadata.snapshots[1].sequence_number) == (0, 0)


def test_a_snapshot_of_another_branch_leaves_main_and_its_log():
    kept = Reference("dev", 10, "branch", min_snapshots_to_keep=3)
    metadata = appended(set_reference(of_ids(10), kept, NOW_MILLIS), "d", "dev", snapshot_id=30)
    assert metadata.references["dev"] == replace(kept, snapshot_id=30)
    assert (metadata.current_snapshot_id, logged(metadata)) == (10, [10])
    assert names(metadata, "dev") == ["s10", "d"]


def test_moving_main_is_logged_with_its_time():
    moved = NOW_MILLIS + 77
    back = set_reference(of_ids(10, 20), Reference("main", 10, "branch"), moved)
    assert (back.current_snapshot_id, logged(back)) == (10, [10, 20, 10])
    assert back.snapshot_log[-1].timestamp_ms == moved


def test_a_reference_names_a_kept_snapshot_and_keeps_its_type():
    metadata = set_reference(of_ids(10), Reference("v1", 10, "tag"), NOW_MILLIS)
    with pytest.raises(InvalidRequestError, match="has no snapshot 99, so the tag 'v2' cannot"):
        set_reference(metadata, Reference("v2", 99, "tag"), NOW_MILLIS)
    with pytest.raises(InvalidRequestError, match="'v1' is a tag of file:///t, not a branch"):
        set_reference(metadata, Reference("v1", 10, "branch"), NOW_MILLIS)
    assert [*remove_reference(metadata, "v1").references] == ["main"]
    with pytest.raises(InvalidRequestError, match="'main' of file:///t cannot be deleted"):
        remove_reference(metadata, "main")


def test_properties_are_set_and_removed():
    metadata = set_properties(empty_metadata(), {"a": "1", "b": "2"})
    assert remove_properties(metadata, ["a", "c"]).properties == {"b": "2"}


def test_removed_snapshots_take_statistics_and_references_with_them():
    metadata = replace(
        set_reference(of_ids(10, 20, 30), Reference("old", 20, "tag"), NOW_MILLIS),
        statistics=tuple(StatisticsFile(number, "p", 1, 1) for number in (20, 30)),
        partition_statistics=tuple(PartitionStatisticsFile(number, "q", 1) for number in (20, 30)),
    )
    left = remove_snapshots(metadata, [20])
    assert [each.snapshot_id for each in left.snapshots] == [10, 30]
    assert [*left.references] == ["main"]
    assert [each.snapshot_id for each in left.statistics] == [30]
    assert [each.snapshot_id for each in left.partition_statistics] == [30]
    # What the log has before a gap would give wrong answers about times.
    assert logged(left) == [30]
    with pytest.raises(InvalidRequestError, match="snapshot 30 of file:///t is the newest one"):
        remove_snapshots(metadata, [30])


def test_time_never_runs_backwards():
    ahead = appended(empty_metadata(), "a", timestamp_ms=NOW_MILLIS + 5000)
    assert next_timestamp(ahead, NOW_MILLIS) == NOW_MILLIS + 5000
    assert following(ahead, ahead, "v1", NOW_MILLIS).last_updated_ms == NOW_MILLIS + 5000
    later = NOW_MILLIS + 9000
    assert following(ahead, ahead, "v1", later).last_updated_ms == later


def test_the_log_of_metadata_files_is_as_long_as_the_property_says():
    metadata = set_properties(empty_metadata(), {"write.metadata.previous-versions-max": "2"})
    for number in range(1, 5):
        metadata = following(metadata, metadata, f"v{number}", NOW_MILLIS)
    assert [entry.metadata_file for entry in metadata.metadata_log] == ["v3", "v4"]
