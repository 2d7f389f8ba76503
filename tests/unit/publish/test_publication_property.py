"""Random histories: at every head the rows of Iceberg are the rows of the publishable files.

``SEED=7`` repeats the history of that seed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.iceberg.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.sampling import SEED, count
from tests.unit.publish.published import (
    catalog_of,
    content,
    iceberg,
    published_table,
    seen,
)

COLUMNS = [("id", "BIGINT"), ("dt", "INT"), ("v", "STRING")]
KEYED: dict[str, Any] = {"primary_key": ["dt", "id"], "options": {"bucket": "1", "num-levels": "3"}}
VECTORS = {"deletion-vectors.enabled": "true"}
STEPS = 12


def some_rows(chance: Random) -> pa.Table:
    days = pa.array([chance.randrange(3) for _ in range(4)], pa.int32())
    ids = [chance.randrange(5) for _ in days]
    return pa.table({"id": ids, "dt": days, "v": [f"v{chance.randrange(99)}" for _ in days]})


def step(table: lake.Table, chance: Random, *, keyed: bool) -> None:
    rows = some_rows(chance)
    match chance.randrange(14 if keyed else 13):
        case 0 | 1 | 2:
            table.write(rows)
        case 3:
            table.write(rows, kinds=["-D"] * len(rows) if keyed else None)
        case 4:
            table.write(rows, overwrite="partitions")
        case 5:
            table.compact(strategy="full")
        case 6:
            table.compact(strategy="minor")
        case 7:
            table.expire_snapshots(retain_max=3, retain_min=1)
        case 8:
            if newest := table.latest_snapshot():
                table.tags.create(f"t{newest.id}", exist_ok=True)
        case 9:
            table.delete(f"id = {chance.randrange(5)}")
        case 10:
            table.update(f"id = {chance.randrange(5)}", {"v": "updated"})
        case 11:
            before, cuts = chance.choice(table.snapshots()), bool(chance.randrange(2))
            table.rollback(snapshot=before.id, as_latest=not cuts, force=cuts)
        case 12:
            newer = lake.set_option("metadata.iceberg.format-version", "3")
            catalog_of(table).alter_table("shop.orders", newer)
        case 13:
            levels = lake.set_option("num-levels", str(chance.randrange(2, 7)))
            catalog_of(table).alter_table("shop.orders", levels)


def rows_in_files(table: lake.Table, snapshot: int, *, keyed: bool) -> list[dict[str, Any]]:
    """The rows of the files that need no merge, read as plain Parquet files."""
    if not keyed or table.options.deletion_vectors_enabled:
        return content(table.scan(snapshot=snapshot).to_arrow())
    files = table.system_table("files").scan(snapshot=snapshot).to_arrow().to_pylist()
    highest: dict[tuple[str, int], int] = {}
    for file in files:
        place = file["partition"], file["bucket"]
        highest[place] = max(highest.get(place, 1), file["level"])
    found = []
    for file in files:
        if file["level"] == highest[file["partition"], file["bucket"]]:
            path = file["file_path"].split("://", 1)[1].split("/", 1)[1]
            with table._handle.storage.open_input(path) as stream:
                found.append(pq.read_table(stream).select(["id", "dt", "v"]))
    return content(pa.concat_tables(found)) if found else []


def check(table: lake.Table, shown: IcebergTable, *, keyed: bool) -> None:
    alive = {each.id for each in table.snapshots()}
    tags = {tag.snapshot_id: tag.name for tag in table.tags.list()}
    there = {each.snapshot_id for each in shown._loaded().metadata.snapshots}
    assert there == alive | tags.keys()
    assert {tag.name for tag in shown.tags.list()} == {tag.name for tag in table.tags.list()}
    for snapshot in sorted(alive):
        rows = content(shown.scan(snapshot=snapshot).to_arrow())
        assert rows == rows_in_files(table, snapshot, keyed=keyed), snapshot
    vectors = table.options.deletion_vectors_enabled
    for tag in shown.tags.list() if vectors or not keyed else []:
        rows = content(shown.scan(tag=tag.name).to_arrow())
        assert rows == content(table.scan(tag=tag.name).to_arrow())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", ["append", "keyed", "append-vectors", "keyed-vectors"])
@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=20)))
def test_iceberg_shows_the_rows_of_the_publishable_files(seed, kind, version):
    chance, keyed = Random(f"{seed}{kind}{version}"), kind.startswith("keyed")
    options = {"metadata.iceberg.format-version": version, **(KEYED["options"] if keyed else {})}
    if kind.endswith("vectors"):
        options |= VECTORS
    keys = {"primary_key": KEYED["primary_key"]} if keyed else {}
    storage = MemoryStorage(f"p{seed}{kind}{version}")
    table = published_table(storage, COLUMNS, partition_by=["dt"], options=options, **keys)
    table.write(some_rows(chance))
    for _ in range(STEPS):
        step(table, chance, keyed=keyed)
        table = catalog_of(table).table("shop.orders")
    check(table, iceberg(table), keyed=keyed)
    before = seen(table)
    for name in table._handle.storage.files("wh/shop.db/orders/metadata"):
        table._handle.storage.delete(name)
    assert lake.publish_table(table).rebuilt
    assert seen(table) == before
    check(table, iceberg(table), keyed=keyed)
    table.compact(strategy="full")
    assert seen(table) == content(table.scan().to_arrow())
