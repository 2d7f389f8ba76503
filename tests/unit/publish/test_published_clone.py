"""The clone of a published table is an Iceberg table of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake


@pytest.fixture
def table(tmp_path: Path) -> lake.Table:
    """A published table with three snapshots, of which one has a tag, and a branch."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"metadata.iceberg.storage": "table-location"}
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    for number in range(3):
        table.write(pa.table({"id": [number]}))
    table.tags.create("two", snapshot=2)
    table.branches.create("dev", snapshot=1)
    return table


def shown(table: lake.Table) -> lake.IcebergTable:
    file = lake.publish_table(table).metadata_file
    assert file is not None
    found = lake.open_table(file, external_roots=[table.location])
    assert isinstance(found, lake.IcebergTable)
    return found


@pytest.mark.parametrize("full", [True, False])
def test_readers_see_a_clone_at_once_and_the_source_is_not_changed(
    table: lake.Table, tmp_path: Path, full: bool
):
    catalog = lake.open_catalog(str(tmp_path))
    before = shown(table)._loaded().metadata
    lake.clone_table(table, catalog, "shop.copy", full=full)
    copy = catalog.table("shop.copy")
    assert lake.publication_lag(copy).finding is None
    theirs = shown(copy)
    assert theirs.scan().count() == 3
    assert theirs._loaded().metadata.table_uuid != before.table_uuid
    assert [each.id for each in theirs.snapshots()] == ([1, 2, 3] if full else [3])
    assert [tag.name for tag in theirs.tags.list()] == (["two"] if full else [])
    assert shown(table)._loaded().metadata == before
    if full:
        branch = catalog.table("shop.copy$branch_dev")
        assert lake.publication_lag(branch).finding is None


def test_a_clone_whose_publication_fails_is_complete(
    table: lake.Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    place = tmp_path / "shop.db" / "copy"
    place.mkdir()
    (place / "metadata").write_text("a file in place of the directory")
    catalog = lake.open_catalog(str(tmp_path))
    lake.clone_table(table, catalog, "shop.copy")
    assert "its Iceberg metadata is not published" in caplog.text
    assert catalog.table("shop.copy").scan().count() == 3
