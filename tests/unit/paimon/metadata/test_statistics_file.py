"""Statistics files: what is there is read, what is not is None."""

from __future__ import annotations

import json

import pytest

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.layout import TableLayout, statistics_name
from lakeformat.paimon.metadata.statistics import (
    ColumnStatistics,
    TableStatistics,
    read_statistics,
    write_statistics,
)
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
NAME = statistics_name("u", 0)
FULL = ColumnStatistics(0, 2, "1", "30", 0, 4, 4)


def read(content: bytes) -> TableStatistics:
    storage = MemoryStorage("statistics")
    storage.overwrite(LAYOUT.statistics(NAME), content)
    return read_statistics(storage, LAYOUT, NAME)


def test_statistics_lead_back_to_themselves():
    storage = MemoryStorage("statistics")
    statistics = TableStatistics(2, 0, 1, 100, {"k": FULL, "v": ColumnStatistics(1)})
    write_statistics(storage, LAYOUT.on_branch("dev"), NAME, statistics)
    assert read_statistics(storage, LAYOUT, NAME) == statistics


def test_absent_members_are_left_out_and_unknown_ones_ignored():
    assert json.loads(TableStatistics(2, 0, columns={"v": ColumnStatistics(1)}).to_json()) == {
        "snapshotId": 2,
        "schemaId": 0,
        "colStats": {"v": {"colId": 1}},
    }
    assert read(b'{"snapshotId": 2, "schemaId": 0, "by": "me"}') == TableStatistics(2, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b'{"snapshotId": 2}',
        b'{"snapshotId": "2", "schemaId": 0}',
        b'{"snapshotId": 2, "schemaId": 0, "colStats": []}',
        b'{"snapshotId": 2, "schemaId": 0, "colStats": [1]}',
        b'{"snapshotId": 2, "schemaId": 0, "colStats": {"k": 3}}',
        b'{"snapshotId": 2, "schemaId": 0, "colStats": {"k": {}}}',
        b'{"snapshotId": 2, "schemaId": 0, "colStats": {"k": {"colId": 1, "min": 3}}}',
    ],
)
def test_damaged_statistics_are_named_in_the_error(content):
    with pytest.raises(CorruptTableError, match=r"statistics/stat-u-0"):
        read(content)


def test_statistics_that_are_gone_say_how_to_get_new_ones():
    with pytest.raises(CorruptTableError, match="analyze the table again"):
        read_statistics(MemoryStorage("statistics"), LAYOUT, NAME)
