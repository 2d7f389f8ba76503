"""Errors of Mixed tables name what was found, and how to repair it; the repair works."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.table import load_iceberg_table
from lakeformat.storage import LocalStorage
from tests.unit.mixed.edited_stores import edit, newest_metadata
from tests.unit.mixed.named_rows import (
    IMPORTED,
    contents,
    names,
    new_catalog,
    new_table,
    up_to_the_begin,
)


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    return new_table(new_catalog(tmp_path))


def test_a_file_with_a_foreign_name_is_named_with_the_snapshot_to_roll_back_to(table, tmp_path):
    table.write(names(_1="a"))
    change = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_"))
    change.write(names(_5="foreign"))
    table = lake.open_table(table.location)
    for work in (
        lambda: table.scan().to_arrow(),
        lambda: table.compact(strategy="full", executor="serial"),
        lambda: table.write(names(_2="b"), overwrite="table"),
        lambda: table.health(),
    ):
        with pytest.raises(lake.CorruptTableError, match=r"\.parquet is a file of the change") as e:
            work()
    found = re.search(r"CALL system\.rollback_to_snapshot\('db\.t_change_', (\d+)\)", str(e.value))
    assert found is not None
    change.rollback(snapshot=int(found[1]))
    table = lake.open_table(table.location)
    assert contents(table) == {1: "a"}


def test_changes_that_expired_under_a_batch_are_named_without_a_partition(
    table, tmp_path, monkeypatch
):
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full", executor="serial")
    load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_")).truncate()
    with pytest.raises(
        lake.SnapshotExpiredError,
        match=r"sequence number 4 are merged, and snapshot \d+ has deleted files from the change "
        r"store .*Begin a new batch, and keep changes longer .*'change\.data\.ttl\.minutes'",
    ):
        batch.overwrite(names(**IMPORTED), "table")
    batch.abort()
    with table.begin() as another:
        another.overwrite(names(**IMPORTED), "table")
    assert contents(table) == {1: "join-fixed", 2: "AMY", 9: "zed"}


def test_a_key_that_cannot_be_hashed_is_named_with_the_types_that_can(table, tmp_path):
    table.write(names(_1="a"))
    for store in ("t", "t_change_"):
        schemas = json.loads(newest_metadata(tmp_path / "db" / store).read_text())["schemas"]
        schemas[0]["fields"][0]["type"] = "timestamp_ns"
        edit(tmp_path / "db" / store, schemas=schemas)
    table = lake.open_table(table.location)
    rows = pa.table({"id": pa.array([1], pa.timestamp("ns")), "name": ["a"]})
    for work in (
        lambda: table.write(rows),
        lambda: table.write(rows, overwrite="table"),
        lambda: table.delete("name = 'a'"),
    ):
        with pytest.raises(lake.LakeError, match=r"'id' has the type timestamp_ns.* key columns"):
            work()


def test_half_a_pair_and_a_lost_lease_name_the_next_step(table, tmp_path):
    batch = table.begin()
    table.end_batch()
    with pytest.raises(
        lake.LockUnavailableError,
        match=r"the batch with transaction 1 on .* lost its lease .*lease-0000000001: another "
        r"batch took it over after 60 s without a renewal, or `lake end-batch` has.* Nothing "
        r"was published: begin a new batch",
    ):
        batch.write(names(_1="late"))
    shutil.move(tmp_path / "db/t_change_", tmp_path / "elsewhere")
    with pytest.raises(lake.CorruptTableError, match=r"does not exist: restore it from a backup"):
        lake.open_table(table.location)
    shutil.move(tmp_path / "elsewhere", tmp_path / "db/t_change_")
    shutil.move(tmp_path / "db/t", tmp_path / "elsewhere")
    catalog: Any = lake.open_catalog(str(tmp_path), format="iceberg")
    with pytest.raises(lake.NotFoundError, match=r"`lake drop-table db\.t_change_`"):
        catalog.table("db.t")
