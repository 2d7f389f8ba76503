"""Compaction of small files of an Iceberg table, written before a column was renamed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from benchmarks.small_files import FILE_ROWS, compaction_question
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.table import IcebergTable

__all__ = ["QUESTION"]


def rename(table: IcebergTable) -> None:
    """Rename the column ``v``, as another engine does it."""

    def renamed(loaded: LoadedMetadata) -> TableMetadata:
        old = loaded.metadata.schema
        fields = (replace(each, name="value") if each.name == "v" else each for each in old.fields)
        new = replace(old, schema_id=1, fields=tuple(fields))
        schemas = (*loaded.metadata.schemas, new)
        return replace(loaded.metadata, schemas=schemas, current_schema_id=1)

    commit_metadata(table._handle, renamed)


def current(rows: pa.Table) -> pa.Table:
    return rows.rename_columns(["value" if name == "v" else name for name in rows.column_names])


QUESTION = compaction_question(
    "What does compacting an Iceberg table with an evolved schema cost?",
    rows=50 * FILE_ROWS,
    target=0.8,
    change=rename,
    floor_change=current,
)
