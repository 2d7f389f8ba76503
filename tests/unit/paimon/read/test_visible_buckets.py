"""The files of a snapshot that a batch read sees, and those that it must merge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeformat.errors import CorruptTableError
from tests.conformance.format_checklist.keyed_table import DELETE, KeyedTable

COLUMNS = (("k", "INT NOT NULL"), ("v", "STRING"))


@pytest.fixture
def table(tmp_path) -> KeyedTable:
    return KeyedTable(str(tmp_path / "t"), COLUMNS, ["k"], {"bucket": "1"})


def keys(table: KeyedTable) -> list[int]:
    scan = table.open().scan()
    found = scan.to_arrow()["k"].to_pylist()
    assert scan.count() == len(found)
    return found


@pytest.mark.parametrize("known", [True, False])
def test_a_single_file_whose_deleted_rows_nobody_counted_is_merged(table, known):
    [entry] = table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b", "kind": DELETE}], level=5)
    if not known:
        entry = replace(entry, file=replace(entry.file, delete_row_count=None))
    table.commit([entry])
    assert keys(table) == [1]


def test_postponed_rows_are_not_seen(table):
    table.commit([*table.write([{"k": 1}], bucket=-2), *table.write([{"k": 2}])])
    assert keys(table) == [2]


@pytest.mark.parametrize("bucket", [-1, -3, -77])
def test_a_bucket_that_no_table_has_is_damage(table, bucket):
    [entry] = table.write([{"k": 1}])
    table.commit([replace(entry, bucket=bucket)])
    with pytest.raises(
        CorruptTableError, match=f"data-.* is in bucket {bucket}, which is not valid"
    ):
        table.open().scan().to_arrow()
