"""The snapshots that an expiry by the properties of a table would remove."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.snapshot import Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.retention import overdue_snapshots, retention_of
from lakeformat.iceberg.schema import Schema

DAY = 24 * 60 * 60 * 1000
NOW = 100 * DAY


def overdue(
    *references: Reference, properties: Mapping[str, str] | None = None, count: int = 9
) -> list[int]:
    """Return the ids that are overdue among snapshots 1, 2 ..., the last one day old."""
    snapshots = tuple(
        Snapshot(number, NOW - (count + 1 - number) * DAY, number, number - 1 or None)
        for number in range(1, count + 1)
    )
    metadata = TableMetadata(
        format_version=2,
        location="file:///t",
        last_updated_ms=NOW,
        last_column_id=1,
        schemas=(Schema(0, ()),),
        current_schema_id=0,
        partition_specs=(PartitionSpec(0),),
        default_spec_id=0,
        properties=properties or {},
        current_snapshot_id=count,
        snapshots=snapshots,
        references={each.name: each for each in (Reference("main", count, "branch"), *references)},
    )
    retention = retention_of(metadata.properties, NOW)
    return [each.snapshot_id for each in overdue_snapshots(metadata, retention)]


def test_five_days_of_the_main_branch_are_kept():
    assert overdue() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("history.expire.max-snapshot-age-ms", str(2 * DAY), [1, 2, 3, 4, 5, 6, 7]),
        ("history.expire.min-snapshots-to-keep", "7", [1, 2]),
    ],
)
def test_properties_set_the_age_and_the_number(key, value, expected):
    assert overdue(properties={key: value}) == expected


def test_a_branch_has_limits_of_its_own():
    main = Reference("main", 9, "branch", min_snapshots_to_keep=2, max_snapshot_age_ms=1)
    assert overdue(main) == [1, 2, 3, 4, 5, 6, 7]


def test_a_tag_keeps_its_snapshot_and_none_before_it():
    assert overdue(Reference("v2", 2, "tag")) == [1, 3, 4]


def test_a_tag_that_is_too_old_keeps_nothing():
    assert overdue(Reference("v2", 2, "tag", max_ref_age_ms=3 * DAY)) == [1, 2, 3, 4]


def test_the_newest_snapshot_is_kept_whatever_its_age():
    assert overdue(properties={"history.expire.max-snapshot-age-ms": "1"}, count=1) == []


def test_a_property_that_is_no_number_is_named():
    with pytest.raises(InvalidRequestError, match="min-snapshots-to-keep' is 'few'"):
        overdue(properties={"history.expire.min-snapshots-to-keep": "few"})
