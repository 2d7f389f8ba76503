# SPDX-License-Identifier: Apache-2.0
"""Checks that the file formats of a table can store its columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakeformat.errors import UnsupportedError
from lakeformat.files.codecs import CODECS
from lakeformat.paimon.options import TableOptions
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["DATA_FILES", "OptionKeys", "files_of_table", "require_format_holds"]

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MICROS_DIGITS, _MILLIS_DIGITS = 6, 3
PARQUET, ORC, AVRO = "parquet", "orc", "avro"
ZSTD, ORC_ZSTD_LEVEL = "zstd", 1


@dataclass(frozen=True, slots=True)
class OptionKeys:
    """The options for the format and the compression of one kind of file, as errors name them."""

    format: str
    compression: str


DATA_FILES = OptionKeys("'file.format'", "'file.compression'")
_CHANGELOG = OptionKeys("'changelog-file.format'", "'changelog-file.compression'")


def files_of_table(options: TableOptions) -> Iterator[tuple[OptionKeys, TableOptions]]:
    """Yield the option keys and the options for each kind of file of a primary-key table."""
    yield DATA_FILES, options
    levels = sorted({*options.file_format_per_level, *options.file_compression_per_level})
    for level in levels:
        yield _of_level(level), options.of_level(level)
    for level in levels or [0]:
        yield _CHANGELOG, options.of_changelog(level)


def _of_level(level: int) -> OptionKeys:
    return OptionKeys(
        f"level {level} in 'file.format.per.level'",
        f"level {level} in 'file.compression.per.level'",
    )


def require_format_holds(
    fields: Sequence[DataField], options: TableOptions, keys: OptionKeys = DATA_FILES
) -> None:
    """Raise UnsupportedError if the file format lacks a column type, the compression or its level.

    ``keys`` names the options in the error.
    """
    file_format = options.file_format
    if options.file_compression not in CODECS[file_format]:
        raise UnsupportedError(
            f"{file_format} files have no compression {options.file_compression!r}; set "
            f"{keys.compression} to one of {', '.join(CODECS[file_format])}"
        )
    if (file_format, options.file_compression) == (ORC, ZSTD):
        _check_zstd_level(options, keys)
    for field in fields:
        to_arrow_type(field.type)  # raises for types that no format holds
        for part in _parts(field.type):
            if _refuses(file_format)(part):
                raise UnsupportedError(
                    f"{file_format} files cannot hold {type_to_sql(part)} of column "
                    f"{field.name!r}; set {keys.format} to parquet or change the column"
                )
        if file_format == AVRO:
            _check_avro_names(field, keys)


def _check_zstd_level(options: TableOptions, keys: OptionKeys) -> None:
    if options.file_compression_zstd_level != ORC_ZSTD_LEVEL:
        level = TableOptions.file_compression_zstd_level
        raise UnsupportedError(
            f"option {level.key!r} is {options.text(level)!r}, but this version compresses orc "
            f"files only with level {ORC_ZSTD_LEVEL}; remove the option or set {keys.format} to "
            "parquet or avro"
        )


def _refuses(file_format: str) -> Callable[[DataType], bool]:
    return {PARQUET: lambda _: False, ORC: _orc_refuses, AVRO: _avro_refuses}[file_format]


def _parts(data_type: DataType) -> Iterator[DataType]:
    yield data_type
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            yield from _parts(element)
        case MapType(key=key, value=value):
            yield from _parts(key)
            yield from _parts(value)
        case RowType(fields=fields):
            for field in fields:
                yield from _parts(field.type)


def _orc_refuses(data_type: DataType) -> bool:
    if not isinstance(data_type, AtomicType):
        return isinstance(data_type, MultisetType)
    if data_type.name is TypeName.VARBINARY:
        return data_type.length != MAX_LENGTH
    return data_type.name in (TypeName.BINARY, TypeName.VARIANT)


def _avro_refuses(data_type: DataType) -> bool:
    if not isinstance(data_type, AtomicType):
        return False
    if data_type.name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return data_type.precision > _MICROS_DIGITS
    if data_type.name is TypeName.TIME:
        return data_type.precision > _MILLIS_DIGITS
    return data_type.name is TypeName.VARIANT


def _check_avro_names(column: DataField, keys: OptionKeys) -> None:
    rows = [part for part in _parts(column.type) if isinstance(part, RowType)]
    for name in (column.name, *(field.name for row in rows for field in row.fields)):
        if not _AVRO_NAME.fullmatch(name):
            raise UnsupportedError(
                f"avro files cannot hold column {column.name!r}, because of the name {name!r}: a "
                "name may have only the letters A to Z and a to z, digits and underscores, and "
                f"must not begin with a digit; set {keys.format} to parquet, or choose another name"
            )
