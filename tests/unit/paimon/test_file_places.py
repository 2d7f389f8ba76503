"""Data and index files are read from the places in the table's options and manifests."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.tables import HOW_TO_UNSKIP, golden_tables
from tests.golden.values import assert_same_rows, rows_of
from tests.rewriting import rewrite_entries

ROWS = pa.table({"id": [1, 2]})
GOLDEN = {table.name: table for table in golden_tables()}


def new_table(tmp_path, **options) -> lake.Table:
    elsewhere = {"external-roots": str(tmp_path / "elsewhere")}
    catalog = lake.open_catalog(str(tmp_path / "wh"), options=elsewhere)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)


def test_data_files_may_lie_in_a_directory_of_their_own(tmp_path):
    table = new_table(tmp_path, **{"data-file.path-directory": "data/v1"})
    table.write(ROWS)
    [file] = tmp_path.rglob("*.parquet")
    assert file.parent == tmp_path / "wh" / "shop.db" / "orders" / "data" / "v1" / "bucket-0"
    assert lake.open_table(table.location).scan().to_arrow() == ROWS


@pytest.mark.parametrize("path", ["../elsewhere", "a//b", "a/./b"])
def test_a_directory_outside_the_table_is_refused(tmp_path, path):
    with pytest.raises(lake.InvalidRequestError, match=r"'\.' or '\.\.' between slashes"):
        new_table(tmp_path, **{"data-file.path-directory": path})


def test_a_directory_with_a_null_character_is_refused_for_this_character(tmp_path):
    with pytest.raises(lake.InvalidRequestError, match="it has a null character"):
        new_table(tmp_path, **{"data-file.path-directory": "da\0ta"})


def test_a_file_outside_the_table_is_read_by_its_own_address(tmp_path):
    outside = f"file://{tmp_path}/elsewhere"
    table = new_table(tmp_path, **{"data-file.external-paths": outside})
    table.write(ROWS)
    [file] = tmp_path.rglob("*.parquet")
    elsewhere = tmp_path / "elsewhere" / "bucket-0" / file.name
    elsewhere.parent.mkdir(parents=True)
    file.rename(elsewhere)
    point_to(table, elsewhere.as_uri())
    assert table.scan().to_arrow() == ROWS


def point_to(table: lake.Table, address: str) -> None:
    """Rewrite the table's only manifest so that its file has an external path."""
    rewrite_entries(table, lambda e: replace(e, file=replace(e.file, external_path=address)))


@pytest.mark.skipif(not GOLDEN, reason=HOW_TO_UNSKIP)
def test_index_files_may_lie_beside_the_data_files(tmp_path):
    golden = GOLDEN["format-java/pk_dv_bitmap32"]
    root = tmp_path / "table"
    shutil.copytree(golden.location, root)
    [bucket] = root.glob("bucket-*")
    for file in (root / "index").iterdir():
        file.rename(bucket / file.name)
    schema = root / "schema" / "schema-0"
    beside = '"options" : {"index-file-in-data-file-dir": "true",'
    schema.write_text(schema.read_text().replace('"options" : {', beside))
    assert_same_rows(rows_of(lake.open_table(str(root)).scan().to_arrow()), golden.rows())
