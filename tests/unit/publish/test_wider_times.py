"""``iceberg.on-unpublishable`` = ``rewrite`` creates short times with the digits of Iceberg."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.storage import MemoryStorage
from lakeformat.types.type_text import type_to_sql
from tests.unit.publish.published import (
    PUBLISHED,
    catalog_in,
    catalog_of,
    content,
    published_table,
    seen,
)

REWRITE = {"iceberg.on-unpublishable": "rewrite"}
WIDENED = {
    "TIMESTAMP(3)": "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(0) NOT NULL": "TIMESTAMP_LTZ(6) NOT NULL",
    "TIMESTAMP(4)": "TIMESTAMP(4)",
    "ARRAY<TIMESTAMP(1)>": "ARRAY<TIMESTAMP(6)>",
    "MAP<STRING, ROW<at TIMESTAMP(2)>>": "MAP<STRING, ROW<at TIMESTAMP(6)>>",
    "MULTISET<TIMESTAMP(3)>": "MULTISET<TIMESTAMP(6)>",
    "INT": "INT",
}


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def types(table: lake.Table) -> dict[str, str]:
    return {each.name: type_to_sql(each.type) for each in table.schema.fields}


def test_new_columns_get_six_digits_at_any_depth(storage):
    columns = [(f"c{place}", kind) for place, kind in enumerate(WIDENED)]
    table = published_table(storage, columns, options=REWRITE)
    expected = catalog_in(MemoryStorage(f"{storage}2")).create_table(
        "shop.orders", [(f"c{place}", kind) for place, kind in enumerate(WIDENED.values())]
    )
    assert types(table) == types(expected)


def test_the_values_are_those_of_the_writer_and_files_hold_microseconds(storage):
    table = published_table(storage, [("at", "TIMESTAMP(3)")], options=REWRITE)
    at = dt.datetime(1969, 1, 1, 1, 2, 3, 4000)
    table.write(pa.table({"at": pa.array([at, None], pa.timestamp("ms"))}))
    assert seen(table) == content(table.scan().to_arrow()) == [{"at": None}, {"at": at}]
    [file] = table.system_table("files").scan().to_arrow().column("file_path").to_pylist()
    with storage.open_input(file.split("://", 1)[1].split("/", 1)[1]) as stream:
        found = pq.ParquetFile(stream).schema.column(0)
    assert '"timeUnit":"microseconds"' in found.logical_type.to_json()


def test_added_columns_are_rewritten_and_those_with_files_are_kept(storage):
    table = published_table(storage, [("at", "TIMESTAMP(3)"), ("r", "ROW<a TIMESTAMP(3)>")])
    catalog = catalog_of(table)
    catalog.alter_table("shop.orders", lake.set_option(*next(iter(REWRITE.items()))))
    table = catalog.alter_table(
        "shop.orders",
        lake.add_column("later", "TIMESTAMP(0)"),
        lake.add_column("r.b", "TIMESTAMP(3)"),
    )
    found = types(table)
    assert (found["at"], found["later"]) == ("TIMESTAMP(3)", "TIMESTAMP(6)")
    assert "TIMESTAMP(3)" in found["r"]
    assert "TIMESTAMP(6)" in found["r"]


@pytest.mark.parametrize(
    "options", [PUBLISHED, {**REWRITE}, {**PUBLISHED, "iceberg.on-unpublishable": "fail"}]
)
def test_types_are_kept_without_the_option_or_without_publication(storage, options):
    table = catalog_in(storage).create_table(
        "shop.orders", [("at", "TIMESTAMP(3)")], options=options
    )
    assert types(table) == {"at": "TIMESTAMP(3)"}


@pytest.mark.parametrize("kind", ["TIME(3)", "TIMESTAMP(9)", "VARIANT"])
def test_types_without_an_equal_one_are_refused_also_with_the_option(storage, kind):
    with pytest.raises(lake.UnsupportedError, match="column 'odd' has the type"):
        published_table(storage, [("id", "INT"), ("odd", kind)], options=REWRITE)
