"""A change of columns that readers cannot follow is refused, or stops the publication only."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.schema_file import create_schema
from lakeformat.storage import MemoryStorage
from tests.paper import with_options
from tests.unit.publish.published import (
    catalog_of,
    changed_elsewhere,
    content,
    published_table,
    rows_of,
    seen,
)

STORAGE = "metadata.iceberg.storage"
REWRITE = lake.set_option("iceberg.on-unpublishable", "rewrite")
BEYOND = {
    "TIME column": lake.add_column("later", "TIME(3)"),
    "VARIANT in an array": lake.add_column("later", "ARRAY<VARIANT>"),
    "nanoseconds": lake.add_column("later", "TIMESTAMP(9)"),
    "other type": lake.update_column_type("id", "STRING"),
    "other files": lake.set_option("file.format", "orc"),
}
"""Changes that no publication can follow."""


@pytest.fixture
def table(request) -> lake.Table:
    """A published table with one row."""
    table = published_table(MemoryStorage(request.node.name), [("id", "INT")])
    table.write(rows_of(id=pa.array([1], pa.int32())))
    return table


@pytest.mark.parametrize("change", BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("options", [(), (REWRITE,)], ids=["fail", "rewrite"])
def test_a_change_that_no_publication_can_follow_is_refused_with_nothing_changed(
    table, change, options
):
    catalog = catalog_of(table)
    if options:
        catalog.alter_table("shop.orders", *options)
    before = catalog.table("shop.orders").schema
    with pytest.raises(lake.UnsupportedError):
        catalog.alter_table("shop.orders", lake.add_column("more", "INT"), change)
    assert catalog.table("shop.orders").schema == before
    table = catalog.alter_table("shop.orders", change, lake.set_option(STORAGE, "disabled"))
    assert table.scan().count() == 1


def test_a_refused_type_names_the_column_both_types_and_the_way_out(table):
    reason = r"'id' changes from int to string .*older files\. Add a column of the new"
    with pytest.raises(lake.UnsupportedError, match=reason):
        catalog_of(table).alter_table("shop.orders", lake.update_column_type("id", "STRING"))


def test_a_branch_refuses_the_same_changes(table):
    table.branches.create("dev", snapshot=1)
    with pytest.raises(lake.UnsupportedError, match="'later' has the type TIME"):
        catalog_of(table).alter_table("shop.orders$branch_dev", BEYOND["TIME column"])


def test_publication_is_not_switched_on_for_columns_that_readers_cannot_read(request):
    off = {STORAGE: "disabled"}
    columns = [("id", "INT"), ("t", "TIME(3)")]
    table = published_table(MemoryStorage(request.node.name), columns, options=off)
    on = lake.set_option(STORAGE, "table-location")
    with pytest.raises(lake.UnsupportedError, match="'t' has the type TIME"):
        catalog_of(table).alter_table("shop.orders", on)
    table = catalog_of(table).alter_table("shop.orders", on, lake.drop_column("t"))
    table.write(rows_of(id=pa.array([1], pa.int32())))
    assert seen(table) == [{"id": 1}]


@pytest.mark.parametrize("change", [*BEYOND][:4])
def test_a_change_of_another_engine_stops_the_publication_only_and_the_reason_is_named(
    table, caplog, change
):
    table = changed_elsewhere(table, BEYOND[change])
    kind = table.schema.arrow_schema().field("id").type
    assert table.write(pa.table({"id": pa.array([2], pa.int32()).cast(kind)})).snapshot_id == 2
    named = "'id' changes from int" if change == "other type" else "'later[.a-z]*' has the type"
    assert lake.publication_lag(table).snapshots == 1
    with pytest.raises(lake.UnsupportedError, match=named):
        lake.publish_table(table)
    assert "its Iceberg metadata is not published: column" in caplog.text
    assert table.scan().count() == 2
    assert seen(table) == [{"id": 1}]
    with pytest.raises(lake.UnsupportedError, match="Nothing was deleted"):
        table.expire_snapshots(retain_max=1, retain_min=1)


def test_health_names_the_column_that_stops_the_publication(table):
    table = changed_elsewhere(table, BEYOND["TIME column"])
    table.write(rows_of(id=pa.array([2], pa.int32())))
    [reason] = table.health().reasons
    assert "1 snapshot behind" in str(reason)
    assert "'later' has the type TIME" in str(reason)
    assert reason.advice.startswith("change the schema or the options")


def test_a_column_of_another_engine_can_be_dropped_and_the_publication_goes_on(table):
    table = changed_elsewhere(table, BEYOND["TIME column"])
    table = catalog_of(table).alter_table(
        "shop.orders", lake.set_option("target-file-size", "1 gb")
    )
    at = pa.array([dt.time(1, 2, 3)], pa.time32("ms"))
    table.write(pa.table({"id": pa.array([2], pa.int32()), "later": at}))
    table = catalog_of(table).alter_table("shop.orders", lake.drop_column("later"))
    table.write(rows_of(id=pa.array([3], pa.int32())))
    assert seen(table) == content(table.scan().to_arrow())


@pytest.mark.parametrize(
    ("key", "right"), [("metadata.iceberg.format-version", "2"), ("file.format", "parquet")]
)
def test_a_value_of_another_engine_that_cannot_be_read_can_be_corrected(table, key, right):
    handle = table._handle
    newest = replace(handle.schema, id=1, options={**handle.schema.options, key: "x"})
    assert create_schema(handle.storage, handle.layout, newest)
    assert catalog_of(table).alter_table("shop.orders", lake.set_option(key, right))
    table = catalog_of(table).alter_table("shop.orders", lake.remove_option(key))
    table.write(rows_of(id=pa.array([2], pa.int32())))
    assert seen(table) == content(table.scan().to_arrow())


def test_a_table_of_another_engine_without_snapshots_refuses_the_first_commit(request):
    table = published_table(MemoryStorage(request.node.name), [("id", "INT")])
    table = changed_elsewhere(table, BEYOND["TIME column"])
    with pytest.raises(lake.UnsupportedError, match=r"'later' has the type TIME.*Nothing was chan"):
        table.write(rows_of(id=pa.array([1], pa.int32())))
    assert table.snapshots() == []


def test_a_table_that_spark_made_a_chain_table_is_not_published(table):
    """Its rows are merged from two branches, of which readers of Iceberg would see one."""
    options = {**table._handle.schema.options, "chain-table.enabled": "true"}
    with pytest.raises(lake.UnsupportedError, match=r"'chain-table\.enabled' is 'true'"):
        lake.publish_table(lake.Table(with_options(table._handle, options)))
