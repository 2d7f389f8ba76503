"""Tables of other writers are published for readers of Iceberg, with their deletion vectors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import lakeformat as lake
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of

UNPUBLISHABLE = {
    "format/all_types_avro": "written as avro",
    "format/all_types_orc": "written as orc",
    "format/deletion_vectors": "data-evolution.enabled",
    "format/odd_types_parquet": "TIME",
    "format-java/all_types_avro": "written as avro",
    "format-java/all_types_orc": "written as orc",
    "format-java/all_types_parquet": "TIME",
    "format-java/partition_names_legacy_false": "TIME",
    "format-java/partition_names_legacy_true": "TIME",
    "format-java/special_types": "VARIANT",
}
"""The tables that are refused, with a part of the reason."""
WITH_VECTORS = ("format-java/pk_dv_bitmap32", "format-java/pk_dv_bitmap64")
TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)


def publishing(golden: GoldenTable, folder: Path, version: str) -> lake.Table:
    """A copy of a golden table, with the options that publish it."""
    copy = folder / "table"
    shutil.copytree(golden.location, copy)
    newest = max((copy / "schema").glob("schema-*"), key=lambda path: int(path.name[7:]))
    schema = json.loads(newest.read_text(encoding="utf-8"))
    schema["options"] |= {
        "metadata.iceberg.storage": "table-location",
        "metadata.iceberg.format-version": version,
    }
    newest.write_text(json.dumps(schema), encoding="utf-8")
    table = lake.open_table(str(copy))
    assert isinstance(table, lake.Table)
    return table


def check(table: lake.Table, expected: lake.Table) -> None:
    """Compare the columns that the newest snapshot has: a later schema may have more."""
    file = lake.publish_table(table).metadata_file
    assert file is not None
    shown = lake.open_table(file).scan().to_arrow()
    ours = expected.scan().to_arrow().select(shown.column_names)
    assert_same_rows(rows_of(shown), rows_of(ours))


@needs_golden_tables
@pytest.mark.sampled(8)
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", sorted(TABLES.keys() - UNPUBLISHABLE.keys()))
def test_readers_of_iceberg_see_the_rows_of_a_golden_table(tmp_path: Path, name: str, version: str):
    table = publishing(TABLES[name], tmp_path, version)
    if name in WITH_VECTORS or not table.schema.primary_keys:
        check(table, table)
    if table.schema.primary_keys:
        table.compact(strategy="full")
        check(table, table)


@needs_golden_tables
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", WITH_VECTORS)
def test_vectors_of_java_are_published(tmp_path: Path, name: str, version: str):
    table = publishing(TABLES[name], tmp_path, version)
    file = lake.publish_table(table).metadata_file
    assert file is not None
    files = lake.open_table(file).system_table("files").scan().to_arrow()
    expected = {(0, "PARQUET"), (1, "PARQUET" if version == "2" else "PUFFIN")}
    columns = (files["content"].to_pylist(), files["file_format"].to_pylist())
    assert {*zip(*columns, strict=True)} == expected
    check(table, table)


@needs_golden_tables
@pytest.mark.parametrize("name", sorted(TABLES.keys() & UNPUBLISHABLE.keys()))
def test_other_golden_tables_are_refused_with_the_reason(tmp_path: Path, name: str):
    table = publishing(TABLES[name], tmp_path, "3")
    with pytest.raises(lake.UnsupportedError, match=UNPUBLISHABLE[name]):
        lake.publish_table(table)
