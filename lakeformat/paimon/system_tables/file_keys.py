"""The least and greatest key of files as text; each schema has key columns of its own."""

from __future__ import annotations

import numpy as np

from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.types import DataType
from lakeformat.types.value_text import internal_text, join_texts

__all__ = ["key_texts"]


def key_texts(source: Source, files: ManifestColumns, keys: BytesColumn) -> list[str | None]:
    """Return ``[2, b]`` for each file; None for files without key."""
    shown: list[str | None] = [None] * len(files)
    has_key = keys.sizes > len(EMPTY_ROW)
    for schema_id in np.unique(files.schema_id.numbers[has_key]).tolist():
        rows = np.flatnonzero(has_key & (files.schema_id.numbers == schema_id))
        types = _key_types(source.schema(schema_id))
        columns = decode_columns(keys.take(rows).to_arrow(), types)
        parts = [internal_text(column, type) for column, type in zip(columns, types, strict=True)]
        texts = join_texts(parts, rows=len(rows), brackets="[]").to_pylist()
        for row, text in zip(rows.tolist(), texts, strict=True):
            shown[row] = text
    return shown


def _key_types(schema: TableSchema) -> list[DataType]:
    """Return the types of the key without partition columns; of all columns without a key."""
    return [field.type for field in schema.key_fields or schema.fields]
