"""A pair of which only the change store is there is named, and commands complete or drop it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = ["--column", "id BIGINT", "--column", "name STRING", "--primary-key", "id"]


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


def run(tmp_path: Path, *arguments: str) -> str:
    given = ["--warehouse", str(tmp_path), "--format", "iceberg", *arguments]
    shown = CliRunner().invoke(app, given)
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
    assert "`lake create-table db.t --mixed …`" in str(missing.value)
    assert "`lake drop-table db.t_change_`" in str(missing.value)
    run(tmp_path, "create-table", "db.t", *COLUMNS, "--mixed")
    catalog.table("db.t").write(pa.table({"id": [1], "name": ["a"]}))
    assert catalog.table("db.t").scan().count() == 1
    shutil.rmtree(tmp_path / "db/t")
    run(tmp_path, "drop-table", "db.t_change_", "--purge", "--yes")
    assert catalog.list_tables("db") == []
    with pytest.raises(lake.NotFoundError, match=r"lists the tables there$"):
        catalog.table("db.t")


def test_half_a_pair_is_named_by_its_directory_too(catalog, tmp_path):
    half_made(catalog, tmp_path)
    with pytest.raises(lake.NotFoundError, match=r"The change store .*/db/t_change_ is there, so"):
        lake.open_table(str(tmp_path / "db/t"))
    with pytest.raises(lake.NotFoundError) as other:
        lake.open_table(str(tmp_path / "db/other"))
    assert "change store" not in str(other.value)
