"""Rows that memory does not hold are sorted in ranges that wait in temporary files."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa
import pytest

from lakeformat.rows.groups import Positions
from lakeformat.rows.range_sort import sorted_batches
from lakeformat.rows.spill import SpillSettings
from lakeformat.rows.value_order import positions_by_values

SMALL = SpillSettings(write_buffer_size_bytes=4 << 10)


@dataclass(frozen=True)
class ByColumns:
    columns: tuple[str, ...]

    def positions(self, rows: pa.Table) -> Positions:
        keys = [rows.column(name).combine_chunks() for name in self.columns]
        return positions_by_values(keys, ["ascending"] * len(keys))


def table_of(kind: str, count: int = 1500) -> pa.Table:
    chance = random.Random(7)
    many = [chance.randrange(10**9) for _ in range(count)]
    texts = {
        "different": [f"{number:09}" for number in many],
        "of a long common beginning": [f"https://www.example.com/{number}" for number in many],
        "mostly one value": [f"{number % 100 // 98}" for number in many],
        "all the same": ["same"] * count,
    }[kind]
    numbers = [chance.randrange(3) for _ in range(count)]
    return pa.table({"text": texts, "number": numbers, "place": range(count)})


def sorted_rows(table: pa.Table, order: ByColumns) -> list[dict]:
    batches = table.to_batches(max_chunksize=100)

    def read(names):
        return (batch.select(names) for batch in batches)

    found = sorted_batches(batches, read, table.num_rows, order, SMALL)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", ["different", "of a long common beginning", "mostly one value", "all the same"]
)
@pytest.mark.parametrize("columns", [("text",), ("text", "number"), ("number", "text")])
def test_all_rows_are_in_order_and_equal_ones_keep_theirs(kind, columns):
    table = table_of(kind)
    expected = sorted(table.to_pylist(), key=lambda row: [row[name] for name in columns])
    assert sorted_rows(table, ByColumns(columns)) == expected
