"""A file is read in the columns of a schema; skipped row groups move no position."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import CorruptTableError
from lakeformat.files.file_format import FileFormat
from lakeformat.iceberg.file_places import places_of
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.file_rows import LINEAGE, FileRows, Lineage, RowGroupPruning
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, PrimitiveType
from lakeformat.rows.prune import ColumnTest, Op
from lakeformat.storage import NO_ROOTS, MemoryStorage
from lakeformat.tables.scan_report import ScanReport

LONG = PrimitiveType("long")
SCHEMA = Schema(0, (Field(1, "renamed", LONG), Field(2, "added", LONG), Field(3, "day", LONG)))
ROWS, GROUP = 12, 4
PATH = "data.parquet"


def written(columns: dict[str, tuple[int, list[Any]]]) -> tuple[FileRows, str]:
    """A Parquet file with three row groups; columns have ids."""
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(field_id)})
        for name, (field_id, _) in columns.items()
    ]
    arrays = [pa.array(values, pa.int64()) for _, values in columns.values()]
    stream = io.BytesIO()
    table = pa.table(arrays, schema=pa.schema(fields))
    pq.write_table(table, stream, row_group_size=GROUP, store_schema=False)
    storage = MemoryStorage("rows")
    storage.overwrite(f"t/{PATH}", stream.getvalue())
    location = storage.uri("t")
    return FileRows(places_of(storage, "t", location, NO_ROOTS)), f"{location}/{PATH}"


def read(found: tuple[FileRows, str], *columns: Field, **arguments: Any) -> list[dict[str, Any]]:
    files, path = found
    batches = files.read(path, FileFormat.PARQUET, columns, row_count=ROWS, **arguments)
    return [row for batch in batches for row in batch.to_pylist()]


NUMBERED = {"id": (1, list(range(ROWS)))}


def pruning(report: ScanReport, least: int) -> RowGroupPruning:
    test = ColumnTest("renamed", Op.GREATER_EQUAL, least)
    return RowGroupPruning([test], condition_fields(SCHEMA), report)


def test_columns_are_found_by_id_and_missing_ones_are_constant_or_null():
    rows = read(written(NUMBERED), *SCHEMA.fields, constants={3: pa.scalar(7, pa.int32())})
    assert rows == [{"renamed": each, "added": None, "day": 7} for each in range(ROWS)]


def test_a_column_that_the_file_has_wins_over_the_value_of_its_partition():
    rows = read(written({"day": (3, [5] * ROWS)}), SCHEMA.fields[2], constants={3: pa.scalar(7)})
    assert rows == [{"day": 5}] * ROWS


def test_row_groups_that_cannot_match_are_skipped_by_the_id_of_their_column():
    report = ScanReport()
    rows = read(written(NUMBERED), SCHEMA.fields[0], pruning=pruning(report, 8))
    assert [row["renamed"] for row in rows] == [8, 9, 10, 11]
    assert (report.row_groups, report.row_groups_read) == (3, 1)


def test_rows_keep_their_positions_when_row_groups_are_skipped():
    def keep(start: int, count: int) -> np.ndarray:
        return np.arange(start, start + count) != 9

    rows = read(
        written(NUMBERED),
        SCHEMA.fields[0],
        *LINEAGE,
        keep=keep,
        lineage=Lineage(100, 5),
        pruning=pruning(ScanReport(), 8),
    )
    assert [(row["renamed"], row["_row_id"]) for row in rows] == [(8, 108), (10, 110), (11, 111)]
    assert {row["_last_updated_sequence_number"] for row in rows} == {5}


def test_rows_that_were_moved_keep_the_lineage_that_their_file_stores():
    row_id, updated = LINEAGE
    moved = {
        **NUMBERED,
        "_row_id": (row_id.id, [50, *[None] * 11]),
        "_last_updated_sequence_number": (updated.id, [3, *[None] * 11]),
    }
    rows = read(written(moved), *LINEAGE, lineage=Lineage(100, 5))
    assert list(rows[0].values()) == [50, 3]
    assert list(rows[1].values()) == [101, 5]


def test_rows_from_before_version_3_have_no_lineage():
    rows = read(written(NUMBERED), *LINEAGE, lineage=Lineage(None, 5))
    assert list(rows[0].values()) == [None, None]


@pytest.mark.parametrize("rows", [ROWS - 1, ROWS + 1])
def test_a_file_with_another_number_of_rows_than_its_manifest_is_damage(rows):
    files, path = written(NUMBERED)
    with pytest.raises(CorruptTableError, match=f"the manifest records {rows}"):
        list(files.read(path, FileFormat.PARQUET, SCHEMA.fields[:1], row_count=rows))


def test_a_required_column_that_the_file_lacks_is_damage():
    required = Field(9, "needed", LONG, required=True)
    with pytest.raises(CorruptTableError, match=r"lacks the required column 'needed'"):
        read(written(NUMBERED), required)
