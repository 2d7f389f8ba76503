"""Plans of manifests with so many entries that they are decoded field after field."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.unit.iceberg.made_table import MadeTable

COLUMNS = {(1, "id"): "long", (2, "other"): "long"}
FILES = 40


def numbered(number: int, **members: Any) -> dict[str, Any]:
    """A file with the ids from ten times its number up to nine more."""
    low, high = (struct.pack("<q", each) for each in (10 * number, 10 * number + 9))
    return {
        "file_path": f"file:///elsewhere/{number}.parquet",
        "record_count": 10,
        "lower_bounds": {1: low, 2: struct.pack("<q", 0)},
        "upper_bounds": {1: high, 2: struct.pack("<q", 9)},
        "null_value_counts": {1: 0, 2: 0},
        **members,
    }


def made_table(root: Path) -> MadeTable:
    made = MadeTable(root, COLUMNS)
    made.manifest(*map(numbered, range(FILES)))
    return made


def names(splits: list[Any]) -> list[str]:
    return [Path(split.file.path).stem for split in splits]


def test_all_files_are_planned_in_their_order(tmp_path):
    splits = made_table(tmp_path / "t").commit().scan().splits()
    assert names(splits) == [str(number) for number in range(FILES)]
    assert {(split.file.record_count, split.deletes) for split in splits} == {(10, ())}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id = 75", ["7"]),
        ("id < 15 or id >= 390", ["0", "1", "39"]),
        ("id < 15 and other > 9", []),
        ("other = 3 and id = 0", ["0"]),
        ("id is null", []),
    ],
)
def test_statistics_of_the_columns_of_a_condition_leave_out_files(tmp_path, where, found):
    assert names(made_table(tmp_path / "t").commit().scan(where=where).splits()) == found


def test_keys_of_equality_deletes_are_compared_with_files_that_no_condition_asks_about(tmp_path):
    made = made_table(tmp_path / "t")
    made.manifest(numbered(7, content=2, equality_ids=[1]), number=2)
    table = made.commit()
    deleted = [split for split in table.scan(where="other = 3").splits() if split.deletes]
    assert names(deleted) == ["7"]


def test_small_manifests_are_pruned_as_a_large_one(tmp_path):
    made = MadeTable(tmp_path / "t", COLUMNS)
    for number in range(3):
        made.manifest(numbered(number))
    scan = made.commit().scan(where="id >= 10 and id < 20")
    assert names(scan.splits()) == ["1"]
    assert (scan.explain().manifests_read, scan.explain().files) == (3, 3)
