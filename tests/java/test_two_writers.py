"""Two writers of one bucket number rows alike: what Java makes of it, and where it is undefined."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.wire import json_rows

COLUMNS = [("k", "INT NOT NULL"), ("v", "STRING")]


def table_of(
    catalog: lake.Catalog, first: list[int], second: list[int], **options: str
) -> lake.Table:
    """Two writers that began at once, each with a row of every key in this order."""
    table = catalog.create_table(
        "shop.tied", COLUMNS, primary_key=["k"], options={"bucket": "1", **options}
    )
    opened = [table.new_writer() for _ in range(2)]
    prepared = []
    for writer, keys, value in zip(opened, (first, second), ("first", "second"), strict=True):
        rows = {"k": keys, "v": [value] * len(keys)}
        writer.write(pa.table(rows, schema=table.schema.arrow_schema()))
        prepared.append(writer.prepare())
    for messages in prepared:
        table.commit(messages)
    return table


def values(rows: list[list[object]]) -> list[object]:
    return [value for _, value in sorted(rows)]


@pytest.mark.parametrize(
    ("first", "second"), [([5, 1], [1]), ([1], [5, 1]), ([3, 2, 1], [2, 3]), ([2, 9], [1, 8, 2])]
)
def test_the_larger_number_wins_in_both(
    catalog: lake.Catalog, peer: JavaPeer, first: list[int], second: list[int]
):
    table = table_of(catalog, first, second)
    assert values(peer.read("shop.tied").rows) == values(json_rows(table.scan().to_arrow()))


def test_of_equal_numbers_java_takes_one_writer_and_the_other_by_turns(
    catalog: lake.Catalog, peer: JavaPeer
):
    """Java's merge takes the file that came to the key last; the keys beside it decide which."""
    table = table_of(catalog, [1, 2, 3, 4], [1, 2, 3, 4])
    by_turns = ["first", "second"] * 2
    assert values(peer.read("shop.tied").rows) == by_turns
    heap = peer.read("shop.tied", options={"sort-engine": "min-heap"})
    assert values(heap.rows) == ["second"] * 4
    assert values(json_rows(table.scan().to_arrow())) == ["second"] * 4


def test_once_compacted_here_both_read_the_same(catalog: lake.Catalog, peer: JavaPeer):
    table = table_of(catalog, [1, 2, 3, 4], [1, 2, 3, 4])
    table.compact()
    assert values(peer.read("shop.tied").rows) == values(json_rows(table.scan().to_arrow()))


def test_with_a_sequence_field_both_agree(catalog: lake.Catalog, peer: JavaPeer):
    table = table_of(catalog, [1, 2, 3, 4], [1, 2, 3, 4], **{"sequence.field": "v"})
    assert values(peer.read("shop.tied").rows) == ["second"] * 4
    assert values(json_rows(table.scan().to_arrow())) == ["second"] * 4
