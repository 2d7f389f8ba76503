# SPDX-License-Identifier: Apache-2.0
"""Chooses Parquet in place of ORC for new files if JVMs outside UTC write ORC files of the table.

This concerns only tables with TIMESTAMP_LTZ columns. A JVM outside UTC shifts every TIMESTAMP_LTZ
that it reads from an ORC file by the offset of its zone. This version writes ORC files like a JVM
in UTC: a JVM outside UTC would read wrong instants from them. Parquet files do not have this
problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lakeformat.files.file_format import FileFormat
from lakeformat.files.orc.instants import is_outside_utc
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["keeping_instants", "lacks_zone"]

_FORMATS = (
    TableOptions.file_format,
    TableOptions.file_format_per_level,
    TableOptions.changelog_file_format,
)


def keeping_instants(schema: TableSchema, zones: Iterable[str] = ()) -> TableSchema:
    """Return the schema, with Parquet in place of ORC if JVMs outside UTC would misread new ORC
    files.

    ``zones`` are the time zones of the writers of existing files. If the option
    ``lake.orc-writer-timezone`` names a zone outside UTC, ``zones`` is not iterated.
    """
    options = schema.table_options
    if not _shifts_instants(schema):
        return schema
    texts = {option.key: options.text(option).lower() for option in _FORMATS}
    zone = options.orc_writer_timezone
    if not (zone and is_outside_utc(zone)) and not any(map(is_outside_utc, zones)):
        return schema
    changed = {
        key: text.replace(FileFormat.ORC, FileFormat.PARQUET)
        for key, text in texts.items()
        if FileFormat.ORC in text
    }
    return replace(schema, options={**schema.options, **changed})


def lacks_zone(schema: TableSchema) -> bool:
    """Return True if the table's ORC files have TIMESTAMP_LTZ, and their writer's zone is unknown.

    An option can name the zone. ORC files name it only if they have a TIMESTAMP column.
    """
    if not _shifts_instants(schema) or schema.table_options.orc_writer_timezone:
        return False
    return not any(_has(TypeName.TIMESTAMP, field.type) for field in schema.fields)


def _shifts_instants(schema: TableSchema) -> bool:
    """Return True if JVMs shift TIMESTAMP_LTZ of the table's ORC files by their own time zone."""
    options = schema.table_options
    if not any(FileFormat.ORC in options.text(option).lower() for option in _FORMATS):
        return False
    has_instants = any(_has(TypeName.TIMESTAMP_LTZ, field.type) for field in schema.fields)
    return has_instants and options.orc_timestamp_ltz_legacy_type


def _has(name: TypeName, data_type: DataType) -> bool:
    match data_type:
        case RowType(fields=fields):
            return any(_has(name, field.type) for field in fields)
        case ArrayType(element=element) | MultisetType(element=element):
            return _has(name, element)
        case MapType(key=key, value=value):
            return _has(name, key) or _has(name, value)
    return isinstance(data_type, AtomicType) and data_type.name is name
