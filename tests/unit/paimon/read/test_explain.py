"""The explanation of a scan before it reads."""

from __future__ import annotations

import pytest

from tests.keyed_rows import KeyedRows


@pytest.fixture
def table() -> KeyedRows:
    """Two partitions; the first has two files with overlapping keys."""
    table = KeyedRows(partitioned=True)
    table.commit(("+I", "mon", 1, "a"), ("+I", "tue", 50, "b"))
    table.commit(("+I", "mon", 1, "c"))
    return table


def test_a_scan_tells_what_it_would_read_and_what_leaves_out_the_rest(table):
    told = table.table.scan(partitions={"p": "mon"}, where="k < 10").explain()
    assert (told.snapshot_id, told.files, told.files_to_read) == (2, 3, 2)
    assert (told.left_out_by_partition, told.left_out_by_statistics) == (1, 0)
    assert (told.splits, told.raw_splits) == (1, 0)
    assert told.bytes_to_read > 0
    assert told.to_dict()["splits"] == 1
    assert "files skipped: 1 by partition, 0 by statistics" in str(told)


def test_key_ranges_leave_out_files_whatever_the_partition(table):
    told = table.table.scan(where="k > 10").explain()
    assert (told.left_out_by_statistics, told.files_to_read, told.raw_splits) == (2, 1, 1)


def test_all_files_are_read_where_nothing_is_asked(table):
    told = table.table.scan().explain()
    assert (told.files, told.files_to_read, told.splits, told.raw_splits) == (3, 3, 2, 1)


def test_without_a_snapshot_there_is_nothing_to_read():
    told = KeyedRows().table.scan().explain()
    assert (told.snapshot_id, told.files, str(told)) == (
        None,
        0,
        "no snapshot yet: nothing to read",
    )
