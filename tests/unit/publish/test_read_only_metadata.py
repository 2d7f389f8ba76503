"""Iceberg tables refuse changes of published metadata, so that a Paimon table keeps its files."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.publish import publish
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.unit.publish.catalogs import KINDS, opened
from tests.unit.publish.published import content, iceberg, published_table, rows_of, seen

COLUMNS = [("id", "BIGINT")]
IDENTITY = "paimon-commit-identity"
REFUSED = r"is published for a Paimon table.*nothing was written or deleted\. Change, maintain or"
CHANGES = {
    "write": lambda table: table.write(rows_of(id=[9])),
    "overwrite": lambda table: table.write(rows_of(id=[9]), overwrite="table"),
    "writer": lambda table: table.new_writer(),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"id": "5"}, "id = 1"),
    "compact": lambda table: table.compact(strategy="full"),
    "compact manifests": lambda table: table.compact_manifests(),
    "maintain": lambda table: table.maintain(),
    "expire": lambda table: table.expire_snapshots(older_than="0 s"),
    "orphans": lambda table: table.remove_orphans(older_than="1 d", dry_run=False),
    "tag": lambda table: table.tags.create("mine"),
    "delete tag": lambda table: table.tags.delete("v1"),
    "branch": lambda table: table.branches.create("mine"),
    "rollback": lambda table: table.rollback(snapshot=1),
    "analyze": lambda table: table.analyze(),
}


def files_in(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


def filled(place: Path) -> Path:
    catalog = lake.open_catalog(str(place))
    catalog.create_database("shop")
    options = {"metadata.iceberg.storage": "hadoop-catalog"}
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    for number in range(3):
        table.write(rows_of(id=[number]))
    table.tags.create("v1", snapshot=1)
    return place


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return filled(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of tests that prove that they change no file."""
    return filled(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def readers_of(warehouse: Path):
    roots = {"external-roots": str(warehouse)}
    return lake.open_catalog(str(warehouse / "iceberg"), format="iceberg", options=roots)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_published_metadata_is_refused_and_writes_no_file(unchanged, change):
    before = files_in(unchanged)
    with pytest.raises(lake.UnsupportedError, match=REFUSED):
        CHANGES[change](readers_of(unchanged).table("shop.orders"))
    assert files_in(unchanged) == before


def test_an_alteration_and_a_drop_of_published_metadata_are_refused(warehouse):
    before, catalog = files_in(warehouse), readers_of(warehouse)
    for change in (
        lambda: catalog.alter_table("shop.orders", lake.add_column("more", "INT")),
        lambda: catalog.alter_table("shop.orders", lake.set_option("gc.enabled", "true")),
        lambda: catalog.drop_table("shop.orders", purge=True),
    ):
        with pytest.raises(lake.UnsupportedError, match=REFUSED):
            change()
    assert files_in(warehouse) == before


def test_a_published_table_is_dropped_with_its_metadata(warehouse):
    lake.open_catalog(str(warehouse)).drop_table("shop.orders")
    assert readers_of(warehouse).list_tables("shop") == []


def test_a_refusal_names_the_directory_of_metadata_that_is_left_over(warehouse):
    shutil.rmtree(warehouse / "shop.db/orders")
    catalog = readers_of(warehouse)
    left = warehouse / "iceberg/shop/orders/metadata"
    advice = re.escape(f"delete only the directory file://{left}")
    with pytest.raises(lake.UnsupportedError, match=advice):
        catalog.drop_table("shop.orders", purge=True)
    shutil.rmtree(left)
    assert catalog.list_tables("shop") == []


def test_a_change_is_refused_after_a_commit_of_another_program(warehouse):
    path = max((warehouse / "iceberg/shop/orders/metadata").glob("v*.json"), key=lambda p: p.name)
    metadata = json.loads(path.read_text())
    metadata["snapshots"][-1]["summary"].pop(IDENTITY)
    path.write_text(json.dumps(metadata))
    with pytest.raises(lake.UnsupportedError, match=REFUSED):
        readers_of(warehouse).table("shop.orders").write(rows_of(id=[9]))


def test_each_commit_looks_at_the_newest_metadata(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    published = {IDENTITY: "as published"}
    catalog.table("shop.orders").write(rows_of(id=[1]), properties=published)
    with pytest.raises(lake.UnsupportedError, match=REFUSED):
        table.tags.create("mine")


def test_only_the_entry_of_a_published_table_can_be_dropped_from_a_database(tmp_path):
    with opened("sql", tmp_path) as published:
        table = published.table()
        table.write(rows_of(id=[1], note=["a"]))
        catalog = lake.open_catalog(
            str(tmp_path),
            format="iceberg",
            metastore="sql",
            uri=published.service.uri,
            options={"catalog-name": "lake"},
        )
        for change in (
            lambda: catalog.table("shop.orders").write(rows_of(id=[2], note=["b"])),
            lambda: catalog.drop_table("shop.orders", purge=True),
        ):
            with pytest.raises(lake.UnsupportedError, match=REFUSED):
                change()
        catalog.drop_table("shop.orders", purge=False)
        assert catalog.list_tables("shop") == []
        assert content(table.scan().to_arrow()) == [{"id": 1, "note": "a"}]


@pytest.mark.parametrize("kind", KINDS)
def test_engines_of_iceberg_are_forbidden_to_delete_files(tmp_path, kind):
    with opened(kind, tmp_path) as published:
        published.table().write(rows_of(id=[1], note=["a"]))
        loaded = published.service.client().load_table("shop.orders")
        assert loaded.metadata.properties["gc.enabled"] == "false"


@pytest.mark.parametrize("commits", [False, True], ids=["publish", "commit"])
def test_the_next_publication_protects_the_files_of_earlier_metadata(storage, monkeypatch, commits):
    table = published_table(storage, COLUMNS)
    with monkeypatch.context() as earlier:
        earlier.setattr(publish, "PROPERTIES", {"write.metadata.previous-versions-max": "10"})
        earlier.setattr(publish, "protected", lambda metadata: metadata)
        table.write(pa.table({"id": [1]}))
    assert "gc.enabled" not in iceberg(table).properties
    if commits:
        table.write(pa.table({"id": [2]}))
    else:
        lake.publish_table(table)
    assert iceberg(table).properties["gc.enabled"] == "false"
    path = versions_of(table._handle).shown().path
    lake.publish_table(table)
    assert versions_of(table._handle).shown().path == path
    assert len(iceberg(table)._loaded().metadata.metadata_log) == 1  # not published from scratch
    assert seen(table) == content(table.scan().to_arrow())
