"""DELETE and UPDATE by a condition in Mixed tables whose keys can have several rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.sampling import count
from tests.unit.mixed.named_rows import new_catalog

DAYS = pa.schema([("k", pa.int64()), ("p", pa.string()), ("v", pa.string())])
REST = [(1, "x", "a"), (1, "y", "c"), (2, "x", None)]


def days(*rows: tuple[int, str, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(DAYS.names, each, strict=True)) for each in rows], DAYS)


def of_days(table: lake.MixedTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.fixture
def repeating(tmp_path: Path) -> lake.MixedTable:
    """A table in which the key 1 has two rows in the partition x, and one in y."""
    table = new_catalog(tmp_path).create_table(
        "db.days",
        DAYS,
        format="mixed",
        primary_key=["k"],
        partition_by=["p"],
        options={"write.upsert.enabled": "false"},
    )
    table.write(days((1, "x", "a"), (2, "x", None)))
    table.compact(strategy="full")
    table.write(days((1, "x", "b"), (1, "y", "c")))
    return table


def test_a_delete_by_a_condition_keeps_the_other_rows_of_a_key(repeating):
    assert repeating.delete("v = 'b'", dry_run=True).rows == 1
    begin = repeating.position()
    assert repeating.delete("v = 'b'").rows == 1
    assert of_days(repeating) == REST
    changes = [tuple(row.values()) for row in repeating.changes(begin).to_arrow().to_pylist()]
    assert sorted(changes[:2]) == [("-D", 1, "x", "a"), ("-D", 1, "x", "b")]
    assert changes[2:] == [("+I", 1, "x", "a")]
    repeating.compact(strategy="full")
    assert of_days(repeating) == REST
    assert repeating.delete("v > ''").rows == 2
    assert of_days(repeating) == [(2, "x", None)]


def test_an_update_by_a_condition_keeps_all_rows_of_a_key(repeating):
    assert repeating.update("v = 'b'", {"v": "B"}).rows == 1
    assert of_days(repeating) == sorted([*REST, (1, "x", "B")])
    assert repeating.update("k = 1 and p = 'x'", {"v": "z"}).rows == 2
    expected = [(1, "x", "z"), (1, "x", "z"), (1, "y", "c"), (2, "x", None)]
    assert of_days(repeating) == expected
    assert repeating.update(None, {"p": "y"}).rows == 4
    moved = [(1, "y", "c"), (1, "y", "z"), (1, "y", "z"), (2, "y", None)]
    assert of_days(repeating) == moved
    repeating.compact(strategy="full")
    assert of_days(repeating) == moved


def test_rows_that_are_written_again_are_older_than_those_of_a_stream(repeating):
    with repeating.begin() as batch:
        repeating.upsert(days((1, "x", "stream")))
        assert batch.delete("v = 'b'").rows == 1
    assert of_days(repeating) == [(1, "x", "stream"), (1, "y", "c"), (2, "x", None)]


def test_a_stream_gets_the_changes_of_a_batch_to_keys_with_newer_inserts(repeating):
    """Without upsert a newer insert replaces no row, so the rows of the batch are live, too."""
    begin = repeating.position()
    with repeating.begin() as batch:
        repeating.write(days((1, "x", "stream"), (2, "y", "stream")))
        batch.write(days((1, "x", "batch"), (2, "y", "batch"), (3, "y", "batch")))
    changes = [tuple(row.values()) for row in repeating.changes(begin).to_arrow().to_pylist()]
    assert sorted(changes) == [
        ("+I", 1, "x", "batch"),
        ("+I", 1, "x", "stream"),
        ("+I", 2, "y", "batch"),
        ("+I", 2, "y", "stream"),
        ("+I", 3, "y", "batch"),
    ]
    begin = repeating.position()
    with repeating.begin() as batch:
        repeating.write(days((1, "y", "stream")))
        batch.delete("v = 'c'")
    changes = [tuple(row.values()) for row in repeating.changes(begin).to_arrow().to_pylist()]
    assert sorted(changes) == [("+I", 1, "y", "stream"), ("-D", 1, "y", "c")]


def test_a_stream_gets_no_change_of_a_batch_to_keys_that_are_deleted_or_replaced(repeating):
    begin = repeating.position()
    with repeating.begin() as batch:
        repeating.upsert(days((1, "x", "stream")))
        repeating.write(days((2, "x", None)), kinds=["-D"])
        batch.write(days((1, "x", "batch"), (2, "x", "batch"), (3, "x", "batch")))
    changes = [tuple(row.values()) for row in repeating.changes(begin).to_arrow().to_pylist()]
    assert sorted(row for row in changes if row[3] == "batch") == [("+I", 3, "x", "batch")]
    assert of_days(repeating) == [(1, "x", "stream"), (1, "y", "c"), (3, "x", "batch")]


def test_an_update_of_keys_with_one_row_has_pairs_of_changes_without_upsert_too(repeating):
    begin = repeating.position()
    assert repeating.update("v = 'c'", {"v": "new"}).rows == 1
    changes = [tuple(row.values()) for row in repeating.changes(begin).to_arrow().to_pylist()]
    assert changes == [("-U", 1, "y", "c"), ("+U", 1, "y", "new")]


@pytest.mark.parametrize("amoro", [False, True])
def test_rows_of_a_key_are_kept_after_upsert_becomes_true(repeating, tmp_path, amoro):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    if amoro:  # its tables lack the property, which is false for Amoro
        catalog.alter_table("db.days", lake.remove_option("write.upsert.enabled"))
    else:
        catalog.alter_table("db.days", lake.set_option("write.upsert.enabled", "false"))
        assert "lake.repeated-keys" not in catalog.table("db.days").properties
        catalog.alter_table("db.days", lake.set_option("write.upsert.enabled", "true"))
    table = catalog.table("db.days")
    assert table.update("v = 'b'", {"v": "B"}).rows == 1
    assert of_days(table) == sorted([*REST, (1, "x", "B")])
    assert table.delete("v = 'B'").rows == 1
    assert of_days(table) == REST
    table.write(days((1, "x", "new")))
    assert of_days(table) == [(1, "x", "new"), *REST[1:]]


def test_the_mark_of_keys_with_several_rows_is_kept_by_alters_and_left_out_by_clones(
    repeating, tmp_path
):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    for value in ("true", "false", "true"):
        catalog.alter_table("db.days", lake.set_option("write.upsert.enabled", value))
    with pytest.raises(lake.InvalidRequestError, match=r"only operations on both stores"):
        catalog.alter_table("db.days", lake.remove_option("lake.repeated-keys"))
    table = catalog.table("db.days")
    assert table.properties["lake.repeated-keys"] == "true"
    table.upsert(days((1, "x", "one")))
    table.delete("p = 'y'")
    lake.clone_table(table, catalog, "db.copy")  # refuses keys with several rows
    assert "lake.repeated-keys" not in catalog.table("db.copy").properties


def test_random_changes_by_conditions_agree_with_a_list(tmp_path):
    seed = random.randrange(1 << 30)
    print(f"SEED={seed}")
    draw = random.Random(seed)
    schema = pa.schema([("k", pa.int64()), ("t", pa.string()), ("v", pa.int64())])
    table = new_catalog(tmp_path).create_table(
        "db.t",
        schema,
        format="mixed",
        primary_key=["k", "t"],
        options={"write.upsert.enabled": "false"},
    )
    expected: list[tuple[Any, ...]] = []
    for step in range(count(6, whole=12)):
        added = [(draw.randrange(4), draw.choice("ab"), draw.randrange(6)) for _ in range(5)]
        table.write(pa.table([pa.array(each) for each in zip(*added, strict=True)], schema=schema))
        expected += added
        value = draw.randrange(6)
        if step % 2:
            assert table.delete(f"v = {value}").rows == sum(row[2] == value for row in expected)
            expected = [row for row in expected if row[2] != value]
        else:
            changed = table.update(f"v >= {value}", {"v": step}).rows
            assert changed == sum(row[2] >= value for row in expected)
            expected = [(*row[:2], step if row[2] >= value else row[2]) for row in expected]
        if step == 2:
            table.compact(strategy="full")
        assert of_days(table) == sorted(expected)
