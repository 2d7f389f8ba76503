"""What each file format can hold: a table that asks for more is refused before it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from lakeformat.arrow_types import to_arrow_type
from lakeformat.datafile.file_format import FileFormat
from lakeformat.errors import UnsupportedError
from lakeformat.options import TableOptions
from lakeformat.type_text import type_to_json
from lakeformat.types import (
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

__all__ = ["require_format_holds"]

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MICROS_DIGITS, _MILLIS_DIGITS = 6, 3
_CODECS = {
    FileFormat.PARQUET: ("zstd", "snappy", "lz4", "gzip", "none"),
    FileFormat.ORC: ("zstd", "snappy", "lz4", "none"),
    FileFormat.AVRO: ("zstd", "snappy", "none"),
}


def require_format_holds(fields: Sequence[DataField], options: TableOptions) -> None:
    """Raise where the format of new files has no place for a column or no such compression.

    These are the types Java refuses as well: other engines could not read what they hold.
    """
    file_format = FileFormat(options.file_format)
    if options.file_compression not in _CODECS[file_format]:
        raise UnsupportedError(
            f"{file_format} files have no compression {options.file_compression!r}; set "
            f"'file.compression' to one of {', '.join(_CODECS[file_format])}"
        )
    for field in fields:
        to_arrow_type(field.type)  # refuses what no format holds
        for part in _parts(field.type):
            if _refuses(file_format)(part):
                raise UnsupportedError(
                    f"{file_format} files cannot hold {type_to_json(part)} of column "
                    f"{field.name!r}; set 'file.format' to parquet or change the column"
                )
        if file_format is FileFormat.AVRO:
            _check_avro_names(field.name, [field])


def _refuses(file_format: FileFormat) -> Callable[[DataType], bool]:
    return {
        FileFormat.PARQUET: lambda _: False,
        FileFormat.ORC: _orc_refuses,
        FileFormat.AVRO: _avro_refuses,
    }[file_format]


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


def _check_avro_names(column: str, fields: Iterable[DataField]) -> None:
    for field in fields:
        if not _AVRO_NAME.fullmatch(field.name):
            raise UnsupportedError(
                f"avro files cannot hold column {column!r}: names in them have letters, digits "
                "and underscores only; set 'file.format' to parquet or rename the column"
            )
        for part in _parts(field.type):
            if isinstance(part, RowType):
                _check_avro_names(column, part.fields)
