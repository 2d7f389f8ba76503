"""Which columns of a Parquet file hold the same as a column before: they are encoded once.

A primary key stands in a file twice, as ``_KEY_…`` and as a column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakeformat.datafile.field_ids import parquet_schema
from lakeformat.datafile.file_writer import FileContent
from lakeformat.datafile.system_fields import KEY_PREFIX

__all__ = ["RepeatedColumn", "repeated_columns"]

_FIELD_ID = b"PARQUET:field_id"
_ROWS_PER_COLUMN = 1500
"""So many save what it costs to change the footer, which names every column."""


@dataclass(frozen=True, slots=True)
class RepeatedColumn:
    """A column that is not encoded; numbers are those of columns that are."""

    name: str
    field_id: int
    source: int
    """The column whose pages it has."""
    before: int
    """The column it stands before, or one more than there are."""


def repeated_columns(content: FileContent, rows: int) -> list[RepeatedColumn]:
    """The key columns of a table whose files have them in front as well, in their order.

    None where row groups of so many ``rows`` gain nothing. Columns behind one that is nested are
    not looked at: nobody knows how many values that has.
    """
    if rows * len(content.key_columns) < _ROWS_PER_COLUMN * len(content.fields):
        return []
    found: list[RepeatedColumn] = []
    numbers: dict[str, int] = {}
    schema = parquet_schema(content.fields)
    modes = {field.name: mode for field, mode in zip(schema, content.modes, strict=True)}
    for field in schema:
        if pa.types.is_nested(field.type):
            break
        key = KEY_PREFIX + field.name
        if field.name in content.key_columns and key in numbers:
            is_same = _kind(schema.field(key)) == _kind(field)
            if is_same and modes[key].detail.value >= modes[field.name].detail.value:
                field_id = int(field.metadata[_FIELD_ID])
                found.append(RepeatedColumn(field.name, field_id, numbers[key], len(numbers)))
                continue
        numbers[field.name] = len(numbers)
    return found


def _kind(field: pa.Field) -> tuple[pa.DataType, bool]:
    return field.type, field.nullable
