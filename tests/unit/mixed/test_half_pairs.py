"""A pair of which only the change store is there is named, and commands complete or drop it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from tests.unit.mixed.edited_stores import newest_metadata

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = ["--column", "id BIGINT", "--column", "name STRING", "--primary-key", "id"]


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


def run(tmp_path: Path, *arguments: str) -> str:
    given = ["--warehouse", str(tmp_path), "--format", "iceberg", *arguments]
    return run_alone(*given)


def run_alone(*arguments: str) -> str:
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, (shown.output, shown.exception)
    return shown.output


def half_made(catalog: lake.IcebergCatalog, tmp_path: Path) -> None:
    """A process died after it created the change store."""
    catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    shutil.rmtree(tmp_path / "db/t")


def test_a_command_creates_a_mixed_table(catalog, tmp_path):
    assert run(tmp_path, "create-table", "db.t", *COLUMNS, "--mixed") == "created db.t\n"
    table = catalog.table("db.t")
    assert (table.format, table.primary_key) == ("mixed", ["id"])
    paimon = ["--warehouse", str(tmp_path), "create-table", "db.t", *COLUMNS, "--mixed"]
    refused = CliRunner().invoke(app, paimon)
    assert "--mixed creates a table in a catalog of Iceberg tables" in str(refused.exception)


def test_half_a_pair_is_named_with_commands_that_complete_it_or_drop_it(catalog, tmp_path):
    half_made(catalog, tmp_path)
    with pytest.raises(lake.NotFoundError) as missing:
        catalog.table("db.t")
    assert "change store 'db.t_change_' is there" in str(missing.value)
    assert "`lake --format iceberg create-table db.t --mixed …`" in str(missing.value)
    [drop] = re.findall("`lake ([^`]* drop-table [^`]*)`", str(missing.value))
    run(tmp_path, "create-table", "db.t", *COLUMNS, "--mixed")
    catalog.table("db.t").write(pa.table({"id": [1], "name": ["a"]}))
    assert catalog.table("db.t").scan().count() == 1
    shutil.rmtree(tmp_path / "db/t")
    dropped = CliRunner().invoke(app, ["-w", str(tmp_path), *shlex.split(drop), "--yes"])
    assert dropped.exit_code == 0, (dropped.output, dropped.exception)
    assert catalog.list_tables("db") == []
    with pytest.raises(lake.NotFoundError, match=r"lists the tables there$"):
        catalog.table("db.t")


def test_an_adoption_of_a_table_without_its_change_store_names_the_way_out(catalog, tmp_path):
    catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    shutil.rmtree(tmp_path / "db/t_change_")
    with pytest.raises(lake.CorruptTableError, match=r"detach db\.t --abandon-changes"):
        catalog.adopt_table("db.t", primary_key=["id"])


def test_a_plain_table_with_the_name_of_a_change_store_is_not_called_one(catalog, tmp_path):
    catalog.create_table("db.t_change_", SCHEMA)
    with pytest.raises(lake.NotFoundError, match="lists the tables there") as by_name:
        catalog.table("db.t")
    with pytest.raises(lake.LakeError) as by_directory:
        lake.open_table(str(tmp_path / "db/t"))
    assert "change store" not in f"{by_name.value} {by_directory.value}"


def test_half_a_pair_is_named_by_its_directory_too(catalog, tmp_path):
    half_made(catalog, tmp_path)
    with pytest.raises(lake.NotFoundError, match=r"The change store .*/db/t_change_ is there, so"):
        lake.open_table(str(tmp_path / "db/t"))
    with pytest.raises(lake.NotFoundError) as other:
        lake.open_table(str(tmp_path / "db/other"))
    assert "change store" not in str(other.value)


@pytest.mark.parametrize("by", ["name", "directory"])
def test_a_base_store_alone_becomes_a_table_again_by_the_commands_that_are_named(
    by, catalog, tmp_path
):
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1], "name": ["merged"]}))
    table.compact(strategy="full", executor="serial")
    table.write(pa.table({"id": [2], "name": ["lost"]}))
    shutil.rmtree(tmp_path / "db/t_change_")
    with pytest.raises(lake.CorruptTableError, match="does not exist: restore the change") as e:
        lake.open_table(str(tmp_path / "db/t")) if by == "directory" else catalog.table("db.t")
    detach, adopt = re.findall("`lake ([^`]+)`", str(e.value))
    before = newest_metadata(tmp_path / "db/t")
    shown = run_alone(*shlex.split(detach), "--dry-run")
    assert "db.t would be an ordinary Iceberg table with the rows of its base store" in shown
    assert newest_metadata(tmp_path / "db/t") == before
    assert "t_change_ are lost\n" in run_alone(*shlex.split(detach), "--yes")
    assert catalog.table("db.t").scan().to_arrow().to_pylist() == [{"id": 1, "name": "merged"}]
    run_alone(*shlex.split(adopt))
    table = catalog.table("db.t")
    table.write(pa.table({"id": [1, 2], "name": ["again", "new"]}))
    table.compact(strategy="full", executor="serial")
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "name": "again"}, {"id": 2, "name": "new"}]


def test_consumers_of_a_lost_change_store_are_deleted_with_its_changes(catalog, tmp_path):
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1], "name": ["a"]}))
    table.compact(strategy="full")
    stream = table.stream(consumer="mirror")
    next(iter(stream))
    stream.acknowledge()
    shutil.rmtree(tmp_path / "db/t_change_")
    catalog.detach_table("db.t", abandon_changes=True, dry_run=True)
    assert list((tmp_path / "db/t").rglob("consumer-mirror"))
    catalog.detach_table("db.t", abandon_changes=True)
    detached = catalog.table("db.t")
    assert detached.consumers.list() == []
    detached.expire_snapshots()
    catalog.adopt_table("db.t", primary_key=["id"])
    assert catalog.table("db.t").scan().count() == 1


def test_changes_of_a_change_store_that_exists_are_not_abandoned(catalog):
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1], "name": ["a"]}))
    with pytest.raises(lake.InvalidRequestError, match=r"'db\.t_change_' exists: leave out"):
        catalog.detach_table("db.t", abandon_changes=True)
    with pytest.raises(lake.InvalidRequestError, match="lost, leave out merge=True"):
        catalog.detach_table("db.t", merge=True, abandon_changes=True)
    assert catalog.table("db.t").scan().count() == 1
    catalog.detach_table("db.t", merge=True)
    with pytest.raises(lake.InvalidRequestError, match="it has no changes to abandon"):
        catalog.detach_table("db.t", abandon_changes=True)


def test_a_change_store_name_that_another_table_has_is_named(catalog, tmp_path):
    catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    shutil.rmtree(tmp_path / "db/t_change_")
    catalog.create_table("db.t_change_", SCHEMA)
    with pytest.raises(lake.CorruptTableError, match=r"Rename that table, then restore the change"):
        catalog.table("db.t")
