"""The changes of one snapshot, by partition."""

import pyarrow as pa
import pytest

COLUMNS = [("id", "BIGINT"), ("dt", "STRING")]


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"])


def write(table, *days):
    return table.write(pa.table({"id": list(range(len(days))), "dt": list(days)}))


def counts(change):
    added = (change.added_files, change.added_rows)
    return (change.partition, *added, change.deleted_files, change.deleted_rows)


def test_a_write_adds_files_to_its_partitions_alone(orders):
    write(orders, "a")
    report = write(orders, "a", "b", "b", "b")

    change = orders.snapshot_change(2)

    assert change.snapshot == orders.latest_snapshot()
    assert sorted(counts(each) for each in change.partitions) == [
        ("dt=a", 1, 1, 0, 0),
        ("dt=b", 1, 3, 0, 0),
    ]
    assert counts(change.total) == ("", 2, 4, 0, 0)
    assert change.total.added_bytes == report.bytes
    assert change.changes_index is False


def test_a_compaction_deletes_what_it_wrote_anew(orders):
    for _ in range(3):
        write(orders, "a")
    before = sum(orders.snapshot_change(number).total.added_bytes for number in (1, 2, 3))
    orders.compact()

    change = orders.snapshot_change(4)

    assert [counts(each) for each in change.partitions] == [("dt=a", 1, 3, 3, 3)]
    assert change.total.deleted_bytes == before


def test_partitions_with_most_bytes_come_first(orders):
    write(orders, *"a", *"b" * 1000, *"c" * 100)

    assert [each.partition for each in orders.snapshot_change(1).partitions] == [
        "dt=b",
        "dt=c",
        "dt=a",
    ]


def test_a_table_without_partitions_has_a_total(catalog):
    table = catalog.create_table("shop.plain", COLUMNS)
    write(table, "a", "b")
    table.truncate()

    change = table.snapshot_change(2)

    assert change.partitions == ()
    assert counts(change.total) == ("", 0, 0, 1, 2)


def test_a_commit_that_changes_no_file_has_empty_sums(orders):
    write(orders, "a")
    orders.analyze()

    change = orders.snapshot_change(2)

    assert change.partitions == ()
    assert counts(change.total) == ("", 0, 0, 0, 0)


def test_deletion_vectors_are_an_index_that_changes(catalog):
    options = {"bucket": "-1", "deletion-vectors.enabled": "true"}
    table = catalog.create_table("shop.marked", COLUMNS, options=options)
    write(table, *"a" * 100)
    table.delete("id = 7")

    assert table.snapshot_change(1).changes_index is False
    assert table.snapshot_change(2).changes_index is True


def test_what_has_expired_is_none_and_what_it_would_tell_is_not_known(orders):
    for _ in range(3):
        write(orders, "a")
    orders.expire_snapshots(retain_max=1, retain_min=1, older_than="0 ms")

    assert orders.snapshot_change(2) is None
    assert orders.snapshot_change(4) is None
    assert orders.snapshot_change(3).changes_index is None
