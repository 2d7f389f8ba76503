"""Mixed tables whose changes Amoro also writes to a message queue: no change that misses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lakeformat as lake
from lakeformat.cli.app import app
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.mixed.write.write_changes import change_handle
from tests.unit.mixed.edited_stores import edit

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
PROPERTIES = {
    "log-store.enabled": "true",
    "log-store.type": "kafka",
    "log-store.address": "127.0.0.1:9092",
    "log-store.topic": "shop.orders",
}


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: lake.IcebergCatalog, tmp_path: Path) -> lake.MixedTable:
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    table.write(rows(1, 2))
    for store in ("t", "t_change_"):
        edit(tmp_path / "db" / store, properties=PROPERTIES)
    return reopened(table)


def reopened(table: Any) -> lake.MixedTable:
    """The table with its edited metadata: a table reads each metadata file once."""
    found = lake.open_table(table.location)
    assert isinstance(found, lake.MixedTable)
    return found


def rows(*ids: int) -> pa.Table:
    return pa.table([ids, ["a"] * len(ids)], schema=SCHEMA)


def ids(table: Any) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.write(rows(3)),
        lambda table: table.upsert(rows(3)),
        lambda table: table.write(rows(3), overwrite="table"),
        lambda table: table.write(rows(3), conflict="transaction-order"),
        lambda table: table.delete("id = 1"),
        lambda table: table.update("id = 1", {"note": "b"}),
        lambda table: table.truncate(),
        lambda table: table.begin(),
        lambda table: table.new_writer(),
    ],
)
def test_changes_are_refused_because_readers_of_the_topic_would_miss_them(
    table: lake.MixedTable, change: Callable[[lake.MixedTable], object]
) -> None:
    before = table.position()
    with pytest.raises(lake.UnsupportedError) as refused:
        change(table)
    assert f"{table.location} has a LogStore" in str(refused.value)
    assert f"`lake set-option {table.location} log-store.enabled=false`" in str(refused.value)
    assert table.position().is_exactly(before)


def test_an_overwrite_whose_batch_began_before_the_log_store_is_refused(
    catalog: lake.IcebergCatalog,
) -> None:
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    with table.begin() as batch:
        writer = table.new_writer(overwrite="table", transaction=batch.transaction)
        writer.write(rows(3))
        messages = writer.prepare()
        for store in (table._pair.base, change_handle(table._pair)):
            commit_metadata(store, lambda found: set_properties(found.metadata, PROPERTIES))
        with pytest.raises(lake.UnsupportedError, match=r"has a LogStore"):
            batch.overwrite(rows(3), "table")
        with pytest.raises(lake.UnsupportedError, match=r"has a LogStore"):
            batch.commit(messages, overwrite="table")
    assert ids(reopened(table)) == []


def test_reading_optimizing_expiry_and_turning_it_off_work(table: lake.MixedTable) -> None:
    assert ids(table) == [1, 2]
    table.compact(strategy="full")
    table.expire_snapshots()
    assert table.health().table == table.location
    done = CliRunner().invoke(app, ["set-option", table.location, "log-store.enabled=false"])
    assert done.exit_code == 0, done.output
    table.write(rows(3))
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("store", ["t", "t_change_"])
@pytest.mark.parametrize("name", ["log-store.enabled", "log-store.enable"])
def test_the_property_counts_in_either_store_and_by_its_earlier_name(
    catalog: lake.IcebergCatalog, tmp_path: Path, store: str, name: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA, format="mixed", primary_key=["id"])
    edit(tmp_path / "db" / store, properties={name: " TRUE"})
    with pytest.raises(lake.UnsupportedError, match=rf"its property '{name}' is true"):
        reopened(table).write(rows(1))


@pytest.mark.parametrize("name", PROPERTIES)
def test_its_properties_cannot_be_set(catalog: lake.IcebergCatalog, name: str) -> None:
    options = {name: PROPERTIES[name]}
    how: Any = {"format": "mixed", "primary_key": ["id"]}
    said = f"the property '{name}' describes a LogStore"
    with pytest.raises(lake.UnsupportedError, match=said):
        catalog.create_table("db.t", SCHEMA, options=options, **how)
    assert catalog.list_tables("db") == []
    catalog.create_table("db.t", SCHEMA, options={"log-store.enabled": "false"}, **how)
    with pytest.raises(lake.UnsupportedError, match=said):
        catalog.alter_table("db.t", lake.set_option(name, options[name]))
    catalog.alter_table("db.t", lake.remove_option(name))
    catalog.create_table("db.plain", SCHEMA, options=options)
    with pytest.raises(lake.UnsupportedError, match=said):
        catalog.adopt_table("db.plain", primary_key=["id"])


def test_a_clone_has_none(
    catalog: lake.IcebergCatalog, table: lake.MixedTable, tmp_path: Path
) -> None:
    lake.clone_table(table, catalog, "db.clone")
    clone = catalog.table("db.clone")
    assert not [name for name in clone.properties if name.startswith("log-store.")]
    clone.write(rows(3))
    assert ids(clone) == [1, 2, 3]
    assert ids(table) == [1, 2]
