"""Errors of Mixed tables name what was found, and how to repair it; the repair works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.catalog.names import TableName
from lakeformat.cli.app import app
from lakeformat.iceberg.table import IcebergTable, load_iceberg_table
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


def run_in_text(text: str, beginning: str, *before: str) -> str:
    """Run the command in the text of an error that begins so; return what it prints."""
    [command] = [e for e in re.findall("`lake ([^`]+)`", text) if e.startswith(beginning)]
    shown = CliRunner().invoke(app, [*before, *shlex.split(command)])
    assert shown.exit_code == 0, (command, shown.output, shown.exception)
    return shown.output


@pytest.mark.parametrize("kind", ["directory", "sql"])
def test_a_file_with_a_foreign_name_is_removed_by_the_command_that_is_named(kind, tmp_path):
    """The earliest foreign file counts; a catalog knows the store by its name."""
    how = {} if kind == "directory" else {"metastore": "sql", "uri": f"sqlite:///{tmp_path}/c.db"}
    catalog: Any = lake.open_catalog(str(tmp_path), format="iceberg", **how)
    catalog.create_database("db")
    table = new_table(catalog)
    table.write(names(_1="a"))
    handle = catalog._handle(TableName("db", "t_change_"))
    for foreign in (names(_5="foreign"), names(_6="again")):
        IcebergTable(handle).write(foreign)
    location = table.change.location
    table = catalog.table("db.t")
    for work in (
        lambda: table.scan().to_arrow(),
        lambda: table.compact(strategy="full", executor="serial"),
        lambda: table.write(names(_2="b"), overwrite="table"),
        lambda: table.health(),
    ):
        with pytest.raises(lake.CorruptTableError, match=r"\.parquet is a file of the change") as e:
            work()
    store, before = ("db.t_change_", [f"--warehouse={tmp_path}", "--format=iceberg"])
    if kind == "directory":
        store, before = location, []
    assert f"`lake rollback {store} --snapshot " in str(e.value)
    given = [f"--{key}={value}" for key, value in how.items()]
    assert "returned to snapshot" in run_in_text(str(e.value), "rollback", *before, *given)
    table = catalog.table("db.t")
    assert contents(table) == {1: "a"}
    table.write(names(_1="b", _5="foreign"))
    table.compact(strategy="full", executor="serial")
    assert contents(table.base) == {1: "b", 5: "foreign"}


def test_a_change_store_is_rolled_back_only_to_remove_foreign_files(table):
    table.write(names(_1="a"))
    table.write(names(_1="b"))
    [first, _] = table.change.snapshots()
    with pytest.raises(lake.UnsupportedError, match=r"has no such files, so nothing was changed"):
        table.change.rollback(snapshot=first.snapshot_id)
    with pytest.raises(lake.UnsupportedError, match="read-only"):
        table.base.rollback(snapshot=first.snapshot_id)
    assert contents(table) == {1: "b"}


def test_a_foreign_file_in_the_first_snapshot_names_the_backup(table, tmp_path):
    change = load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_"))
    change.write(names(_5="foreign"))
    with pytest.raises(lake.CorruptTableError, match=r"No earlier snapshot is left to roll back"):
        table.scan().to_arrow()


def test_changes_that_expired_under_a_batch_are_named_without_a_partition(
    table, tmp_path, monkeypatch
):
    batch = up_to_the_begin(table)
    monkeypatch.setattr("lakeformat.mixed.compact.plan.oldest_open_batch", lambda *given: None)
    table.compact(strategy="full", executor="serial")
    load_iceberg_table(LocalStorage(), str(tmp_path / "db/t_change_")).truncate()
    with pytest.raises(lake.SnapshotExpiredError) as expired:
        batch.overwrite(names(**IMPORTED), "table")
    text = str(expired.value)
    assert re.search(r"number 4, are already merged, and must be merged again", text)
    assert re.search(r"But snapshot \d+ has deleted files from the change store", text)
    assert "Begin a new batch with table.begin(). Keep changes longer than batches run" in text
    assert run_in_text(text, f"set-option {table.location} change.data.ttl.minutes=20160")
    assert lake.open_table(table.location).properties["change.data.ttl.minutes"] == "20160"
    batch.abort()
    with table.begin() as another:
        another.overwrite(names(**IMPORTED), "table")
    assert contents(table) == {1: "join-fixed", 2: "AMY", 9: "zed"}


def test_a_key_that_cannot_be_hashed_is_named_with_a_type_that_can(table, tmp_path):
    table.write(names(_1="a"))
    for store in ("t", "t_change_"):
        schemas = json.loads(newest_metadata(tmp_path / "db" / store).read_text())["schemas"]
        schemas[0]["fields"][0]["type"] = "timestamp_ns"
        edit(tmp_path / "db" / store, schemas=schemas)
    table = lake.open_table(table.location)
    rows = pa.table({"id": pa.array([1000], pa.timestamp("ns")), "name": ["a"]})
    for work in (
        lambda: table.write(rows),
        lambda: table.write(rows, overwrite="table"),
        lambda: table.delete("name = 'a'"),
    ):
        with pytest.raises(
            lake.LakeError,
            match=r"'id' has the type timestamp_ns.* Create a table whose primary_key has only",
        ):
            work()


@pytest.mark.parametrize(
    ("column", "value"),
    [(pa.timestamp("ns"), 1000), (pa.timestamp("ns", "UTC"), 1000), (pa.list_(pa.int64()), [7])],
)
def test_a_key_without_a_hash_is_created_with_the_type_that_is_named(column, value, tmp_path):
    catalog = new_catalog(tmp_path)
    rows = pa.table({"id": pa.array([value], column), "name": ["a"]})
    with pytest.raises(lake.UnsupportedError, match="'id' has the type") as refused:
        catalog.create_table(
            "db.t", rows.schema, format="mixed", primary_key=["id"], format_version=3
        )
    found = re.search(r"declare this column as \('id', '([^']+)'\)", str(refused.value))
    assert found is not None
    table = catalog.create_table(
        "db.t", [("id", found[1]), ("name", "STRING")], format="mixed", primary_key=["id"]
    )
    if found[1] == "STRING":
        rows = rows.set_column(0, "id", [["7"]])
    table.write(rows)
    assert table.scan(["name"]).to_arrow().to_pylist() == [{"name": "a"}]


def test_a_lost_lease_names_the_call_that_begins_again(table):
    batch = table.begin()
    table.end_batch()
    with pytest.raises(
        lake.LockUnavailableError,
        match=r"the batch with transaction 1 on .* lost its lease .*lease-0000000001: another "
        r"batch took it over after 60 s without a renewal, or `lake end-batch` has.* Nothing "
        r"was published: begin a new batch with table\.begin\(\)$",
    ):
        batch.write(names(_1="late"))
    with table.begin() as again:
        again.write(names(_1="late"))
    assert contents(table) == {1: "late"}
