"""Deletes of a node that do not fit into memory are searched in parts, with the same rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.mixed.read import node_deletes
from lakeformat.mixed.read.key_deletes import KeyDeletes

COLUMNS = pa.schema([("k", pa.int64()), ("t", pa.string()), ("v", pa.int64())])
COMMITS, ROWS = 4, 40


def rows(keys: Sequence[int], value: int) -> pa.Table:
    return pa.table([keys, [f"t{key % 7}" for key in keys], [value] * len(keys)], schema=COLUMNS)


@pytest.fixture
def changed(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[lake.MixedTable, Any]:
    """A table with a merged base store and random changes after it, and its rows as a dict."""
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS, format="mixed", primary_key=request.param)
    assert isinstance(table, lake.MixedTable)
    known: dict[int, int] = {}
    for number in range(COMMITS):
        keys = [draw.randrange(ROWS) for _ in range(ROWS)]
        table.write(rows(keys, number))
        known |= dict.fromkeys(keys, number)
        gone = draw.sample(range(ROWS), 5)
        table.write(rows(gone, number), kinds=["-D"] * len(gone))
        known = {key: value for key, value in known.items() if key not in gone}
        if number == 1:
            table.compact(strategy="full")
    return table, known


def contents(table: lake.MixedTable, **how: Any) -> dict[int, int]:
    found = table.scan(["v", "k"], **how).to_arrow().to_pydict()
    assert len({*found["k"]}) == len(found["k"])
    return dict(zip(found["k"], found["v"], strict=True))


@pytest.mark.parametrize("changed", [["k"], ["t", "k"]], indirect=True)
def test_rows_are_the_same_and_no_part_exceeds_the_limit(changed, monkeypatch):
    table, known = changed
    parts: list[tuple[int, int]] = []

    def index(self: Any, held: Any, base_files: Any) -> KeyDeletes:
        parts.append((len(held), sum(rows.nbytes for _, rows in held)))
        return whole(self, held, base_files)

    whole = node_deletes.NodeDeletes._index
    live = positions(table)
    monkeypatch.setattr(node_deletes.NodeDeletes, "_index", index)
    assert contents(table) == known
    undivided = len(parts)
    for most in (1, 300):
        monkeypatch.setattr(node_deletes, "_MOST_BYTES", most)
        parts.clear()
        assert contents(table) == known
        assert len(parts) > undivided
        assert all(size <= most or files == 1 for files, size in parts), parts
        assert positions(table) == live
    assert table.scan(where="v > 2").count() == sum(value > 2 for value in known.values())
    some = {key: value for key, value in known.items() if key < 9}
    assert contents(table, where="k < 9") == some


@pytest.mark.parametrize("changed", [["k"]], indirect=True)
def test_an_optimizing_writes_the_same_rows(changed, monkeypatch):
    table, known = changed
    monkeypatch.setattr(node_deletes, "_MOST_BYTES", 1)
    assert table.compact(strategy="full").reason
    monkeypatch.undo()
    assert contents(table) == known


def positions(table: lake.MixedTable) -> list[list[int]]:
    """The positions of the live rows of each file."""
    scan = table.scan()
    files = [(split, file) for split in scan.splits() for file in split.files]
    alone = (scan.positions(replace(split, files=(file,))) for split, file in files)
    return [[each for part in parts for each in part.tolist()] for parts in alone]
