"""The number of nodes of base files follows the size of a partition, by halves and doubles."""

from __future__ import annotations

import random
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from lakeformat.mixed.file_names import parse_file_name
from lakeformat.mixed.optimizing.node_count import next_node_count
from tests.unit.mixed.aged_table import HOUR, AgedTable
from tests.unit.mixed.named_rows import NAMES, names, new_catalog

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
    for _ in range(3):
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


def test_nodes_grow_to_sixteen_and_shrink_to_one_by_a_factor_of_two_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Between both limits repeated runs keep the number, also in a partition of another size.

    A node has one file of the target size here, so that the test makes few files.
    """
    monkeypatch.setattr("lakeformat.mixed.optimizing.node_count._FILES", 1)
    aged = AgedTable(tmp_path, {**SIZE, "self-optimizing.target-size": "8000"})
    model = {key: sha256(str(key).encode()).hexdigest() for key in range(3500)}
    aged.write((0, "y", "small"), *((key, "x", value) for key, value in model.items()))

    def numbers_of_runs(most: int) -> list[tuple[int, int]]:
        """The number of nodes of both partitions after each run, until it has not changed twice."""
        found: list[tuple[int, int]] = []
        while len(found) < most and (len(found) < 3 or found[-3] != found[-1]):
            assert aged.merge().snapshot_ids
            found.append((number_of(aged, "x"), number_of(aged, "y")))
            aged.write((1, "x", model[1]), (0, "y", "small"))
        return found

    seen = numbers_of_runs(8)
    assert seen == [(number, 1) for number in (2, 4, 8, 16, 16, 16)]
    rows = [(0, "y", "small"), *((key, "x", value) for key, value in model.items())]
    assert aged.rows() == sorted(rows)
    aged.write(*((key, "x", "") for key in model if key > 20), kind="-D")
    seen = numbers_of_runs(8)  # the first run still counts the bytes of the deleted rows
    assert seen == [(number, 1) for number in (16, 8, 4, 2, 1, 1, 1)]
    assert aged.rows() == sorted(row for row in rows if row[0] <= 20)


def test_fragments_in_each_of_several_nodes_are_not_rewritten_again(tmp_path: Path, monkeypatch):
    """A table property of one node does not make a run due for a partition with two."""
    monkeypatch.setattr("lakeformat.mixed.optimizing.node_count._FILES", 1)
    properties = {"self-optimizing.target-size": "16000", "self-optimizing.fragment-ratio": "1"}
    aged = AgedTable(tmp_path, {**SIZE, **properties})
    rows = [(key, "x", sha256(str(key).encode()).hexdigest()) for key in range(700)]
    aged.write(*rows)
    assert aged.merge().snapshot_ids
    assert nodes(aged) == {2}
    assert aged.table.properties["base.file-index.hash-bucket"] == "1"
    assert len(aged.table.base.scan().splits()) == 2
    aged.now += 2 * HOUR
    assert not aged.merge().snapshot_ids
    assert not aged.table.compact(strategy="minor", executor="serial").snapshot_ids
    assert aged.rows() == sorted(rows)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "true"),
        ({"lake.auto-buckets": "false"}, "false"),
        ({"base.file-index.hash-bucket": "8"}, None),
    ],
)
def test_a_new_table_has_automatic_buckets_unless_its_number_is_given(options, found, tmp_path):
    catalog = new_catalog(tmp_path)
    made = catalog.create_table("db.t", NAMES, format="mixed", primary_key=["id"], options=options)
    for store in (made.base, made.change):
        assert store.properties.get("lake.auto-buckets") == found
    made.write(names(_1="a", _2="b"))
    made.compact(strategy="full", executor="serial")
    made.write(names(_3="c"))
    made.compact(strategy="full", executor="serial")
    paths = [each.file.path for each in made.base.scan().splits()]
    numbers = {parse_file_name(each).node.mask + 1 for each in paths}
    assert numbers == {1 if found == "true" else int(options.get("base.file-index.hash-bucket", 4))}


def number_of(aged: AgedTable, partition: str) -> int:
    """The largest number of nodes of the base files of a partition."""
    paths = [each.file.path for each in aged.table.base.scan().splits()]
    return max(parse_file_name(each).node.mask + 1 for each in paths if f"/p={partition}/" in each)


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
