"""The number of nodes of base files follows the size of a partition, by halves and doubles."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from lakeformat.mixed.file_names import parse_file_name
from lakeformat.mixed.optimizing.node_count import next_node_count
from tests.unit.mixed.aged_table import AgedTable

SIZE = {"self-optimizing.target-size": "800", "lake.auto-buckets": "true"}
"""A node should have 8 files of this size."""


@pytest.mark.parametrize(
    ("current", "size", "expected"),
    [
        (4, 4 * 801, 4),  # grows above 1.5 * 8 * 100
        (4, 4 * 1200, 4),
        (4, 4 * 1201, 8),
        (4, 4 * 200, 4),  # shrinks below 0.25 * 8 * 100
        (4, 4 * 199, 2),
        (1, 0, 1),
        (1, 100_000, 2),  # at most doubled in one run
        (256, 10**9, 256),
    ],
)
def test_a_number_is_doubled_and_halved_with_room_between(current, size, expected):
    assert next_node_count(current, size, 100) == expected


def test_a_number_that_has_changed_stays_for_the_same_size():
    for size in range(1, 60_000, 97):
        for current in (1, 2, 4, 8, 16, 32):
            found = next_node_count(current, size, 100)
            if found != current:
                assert next_node_count(found, size, 100) in (found, 2 * found, found // 2)
                back = next_node_count(found, size, 100)
                assert back != current, (size, current, found)


def nodes(aged: AgedTable) -> set[int]:
    paths = [each.file.path for each in aged.table.base.scan().splits()]
    return {parse_file_name(each).node.mask + 1 for each in paths}


def test_nodes_double_and_halve_while_rows_arrive_and_keep_the_rows(tmp_path: Path):
    aged = AgedTable(tmp_path, SIZE)
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw, model = random.Random(seed), dict[int, str]()
    seen = []
    for _ in range(4):
        rows = [(draw.randrange(10_000), "x", str(draw.random())) for _ in range(500)]
        aged.write(*rows)
        model |= {key: value for key, _, value in rows}
        aged.merge()
        seen.append(max(nodes(aged)))
        assert aged.rows() == sorted((key, "x", value) for key, value in model.items())
    assert seen == sorted(seen)
    assert {after / before for before, after in pairwise(seen)} <= {1, 2}
    assert seen[-1] > 1
    kept = [key for key in model if key % 50 == 0]
    aged.write(*((key, "x", "") for key in model if key % 50), kind="-D")
    for _ in range(3):  # the first one still counts the bytes of the deleted rows
        aged.merge()
        aged.write((kept[0], "x", model[kept[0]]))
    assert max(nodes(aged)) < seen[-1]
    assert aged.rows() == sorted((key, "x", model[key]) for key in kept)


def test_a_new_number_rewrites_no_file_by_itself(tmp_path: Path):
    aged = AgedTable(tmp_path, SIZE)
    aged.write(*((key, "x", str(key)) for key in range(1000)))
    aged.merge()
    aged.write((1, "y", "a"))
    before = {each.file.path for each in aged.table.base.scan().splits()}
    aged.set({"self-optimizing.target-size": "20"})
    aged.table.compact()
    after = {each.file.path for each in aged.table.base.scan().splits()}
    assert {each for each in before if "/p=x/" in each} <= after
