"""A table whose option forbids commits: each way to publish a snapshot is refused by its name."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.compact.run import run_unit
from lakeformat.storage import MemoryStorage
from tests.paper import with_options

FORBIDS = {"metadata.iceberg.storage": "glue-catalog"}

Publish = Callable[[lake.Table, lake.CommitMessage, lake.CommitMessage], object]


@pytest.fixture
def table(request) -> lake.Table:
    catalog = FileSystemCatalog(MemoryStorage(request.node.name), "wh")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in range(6):
        table.write(pa.table({"id": [number]}))
    return table


@pytest.mark.parametrize(
    "publish",
    [
        lambda table, written, compacted: table.commit([written]),
        lambda table, written, compacted: table.commit([compacted]),
        lambda table, written, compacted: table.commit([], overwrite={}),
        lambda table, written, compacted: table.compact_manifests(),
        lambda table, written, compacted: table.compact_manifests(dry_run=True),
        lambda table, written, compacted: table.analyze(),
        lambda table, written, compacted: table.truncate(),
    ],
)
def test_nothing_is_published_and_no_file_is_written(table, publish: Publish):
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [7]}))
        [written] = writer.prepare()
    [unit] = table.plan_compaction().units
    compacted = run_unit(table._handle, unit)
    files = table._handle.storage.files()
    options = {**table._handle.schema.options, **FORBIDS}
    forbidding = lake.Table(with_options(table._handle, options))
    with pytest.raises(lake.UnsupportedError, match=r"'metadata\.iceberg\.storage'"):
        publish(forbidding, written, compacted)
    assert table._handle.storage.files() == files
