"""Random histories of writes: a follower always has the rows of the table, however it follows."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.sampling import SEED, count, sample

Rows: TypeAlias = "Counter[tuple[Any, ...]]"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.int32())])
SIGNS = {"+I": 1, "+U": 1, "-D": -1, "-U": -1}


def some_rows(chance: random.Random) -> pa.Table:
    """Few values, so that rows repeat within a file and are written again unchanged."""
    rows = [
        {"id": chance.randrange(4), "v": chance.choice(["a", "b", None]), "p": chance.randrange(3)}
        for _ in range(chance.randrange(1, 8))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def commit(table: Any, chance: random.Random) -> None:
    match chance.randrange(7):
        case 0:
            kept = table.scan().to_arrow()
            table.write(pa.concat_tables([kept, some_rows(chance)]), overwrite="table")
        case 1:
            table.write(some_rows(chance), overwrite="partitions")
        case 2:
            table.drop_partitions([{"p": chance.randrange(3)}])
        case 3 if chance.random() < 0.3:
            table.truncate()
        case 4:
            table.compact(strategy="full", rewrite_all=chance.random() < 0.5)
        case _:
            table.write(some_rows(chance))


def state(found: Any) -> Rows:
    return Counter(tuple(row.values()) for row in found.to_arrow().to_pylist())


def applied(before: Rows, changes: Any) -> Rows:
    after = before.copy()
    for kind, *row in (each.values() for each in changes.to_arrow().to_pylist()):
        after[tuple(row)] += SIGNS[kind]
        assert after[tuple(row)] >= 0
    return +after


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("number", range(count(1, 40, "FOLLOWED_HISTORIES")))
def test_a_follower_has_the_rows_of_the_table_after_each_commit(tmp_path: Path, version, number):
    chance = random.Random(f"{SEED}:{version}:{number}")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA, partition_by=["p"], format_version=version)
    states, mine = [Counter[tuple[Any, ...]]()], Counter[tuple[Any, ...]]()
    ids = [0]
    keys = chance.choice([None, ["id"], ["id", "p"]])
    for _ in range(8):
        commit(table, chance)
        ids = [0, *(each.snapshot_id for each in table.snapshots())]
        states += [state(table.scan())] * (len(ids) - len(states))
        if version > 1 and chance.random() < 0.7:
            mine = followed(table, mine, keys)
            assert mine == states[-1]
    for first, last in sample(combinations(range(len(ids)), 2), 6):
        for mode in ("changelog", "diff"):
            found = table.changes(ids[first], ids[last], mode, keys=keys)
            assert applied(states[first], found) == states[last]


def followed(table: Any, mine: Rows, keys: Any) -> Rows:
    """The rows of a follower after a restart with its consumer."""
    stream = table.stream(consumer="job", keys=keys)
    for delivered in stream:
        mine = applied(Counter() if delivered.is_full else mine, delivered)
        stream.acknowledge()
    return mine
