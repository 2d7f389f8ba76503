# SPDX-License-Identifier: Apache-2.0
"""Finds the columns that a writer copies to files without using their values.

Such columns may be passed as numbers: texts as dictionary indices, decimals in 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.files.file_format import FileFormat
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.file_index_rules import indexed_columns
from lakeformat.rows.lossless_cast import short_type
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import STRING, AtomicType, DataField, TypeName

__all__ = ["decimals_as_numbers", "texts_as_numbers"]


def texts_as_numbers(schema: TableSchema) -> frozenset[str]:
    """Return the text columns that a writer accepts as dictionaries."""
    return frozenset(field.name for field in _copied_columns(schema) if field.type == STRING)


def decimals_as_numbers(schema: TableSchema) -> frozenset[str]:
    """Return the decimal columns that a writer accepts as 64-bit decimals."""
    indexed = {name for names in indexed_columns(schema.table_options).values() for name in names}
    return frozenset(
        field.name
        for field in _copied_columns(schema)
        if field.name not in indexed and _is_short(field.type)
    )


def _copied_columns(schema: TableSchema) -> Iterator[DataField]:
    options = schema.table_options
    is_moved = bool(schema.primary_keys) and isinstance(merge_engine(schema), Deduplicate)
    formats = {options.of_level(0).file_format, options.of_changelog(0).file_format}
    if not is_moved or options.bucket <= 0 or formats != {FileFormat.PARQUET.value}:
        return
    used = {*schema.primary_keys, *schema.partition_keys, *merge_order(schema).sequence}
    used |= {options.row_kind_field, *(options.bucket_key or ())}
    for field in schema.fields:
        is_optional = field.type.nullable and field.default_value is None
        if field.name not in used and is_optional:
            yield field


def _is_short(kind: object) -> bool:
    if not isinstance(kind, AtomicType) or kind.name is not TypeName.DECIMAL:
        return False
    return short_type(to_arrow_type(kind)) is not None
