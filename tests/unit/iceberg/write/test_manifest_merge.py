"""Manifests are packed as Java packs them: neighbours, the oldest ones into full packs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.manifest_merge import pack
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.write.made_tables import made_table

PACKS = {
    "nothing": ([], []),
    "one": ([5], [[0]]),
    "all fit": ([3, 3, 4], [[0, 1, 2]]),
    "the newest are left over": ([5, 5, 5], [[0], [1, 2]]),
    "one larger than the target": ([3, 30, 3], [[0], [1], [2]]),
    "order is kept": ([9, 1, 2, 3, 9], [[0], [1, 2, 3], [4]]),
    "an empty manifest adds nothing": ([0, 10, 0], [[0, 1, 2]]),
}


@pytest.mark.parametrize("case", PACKS)
def test_neighbours_are_packed_from_the_oldest_one_on(case):
    sizes, expected = PACKS[case]
    assert [list(each) for each in pack(sizes, 10)] == expected


def test_rows_keep_their_ids_if_a_manifest_without_a_file_is_merged_at_once():
    least = {"commit_manifest_min-count-to-merge": "2"}
    handle = made_table(MemoryStorage("t"), 3, partition={"id": "identity"}, **least)
    table = IcebergTable(handle)
    for ids in ([1, 2], [3, 4]):
        table.write(pa.table({"id": ids}))
    before = table.scan(["id", "_row_id"]).to_arrow().sort_by("id")
    table.write(pa.table({"id": [2]}), overwrite="partitions")
    after = table.scan(["id", "_row_id"]).to_arrow().sort_by("id")
    assert after.to_pylist()[::2] == before.to_pylist()[::2]
    assert after.to_pylist()[3] == before.to_pylist()[3]
