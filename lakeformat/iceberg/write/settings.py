# SPDX-License-Identifier: Apache-2.0
"""Reads the settings of new data files from table properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.files.codecs import CODECS
from lakeformat.files.column_statistics import Detail, StatisticsMode
from lakeformat.files.file_writer import FileSettings
from lakeformat.iceberg.data_paths import NEW_DATA_PATHS
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortOrder
from lakeformat.iceberg.types import PrimitiveType, Type, inner_fields

__all__ = ["WriteSettings", "data_location", "metrics_modes", "write_settings"]

_FORMAT = "write.format.default"
_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"
_TARGET = "write.target-file-size-bytes"
_ROW_GROUP = "write.parquet.row-group-size-bytes"
_METRICS = "write.metadata.metrics."
_DEFAULT_METRICS = f"{_METRICS}default"
_COLUMN_METRICS = f"{_METRICS}column."
_MOST_INFERRED = f"{_METRICS}max-inferred-column-defaults"
_TRUNCATED = StatisticsMode(Detail.BOUNDS, 16)
_NONE = StatisticsMode(Detail.NONE)
_ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """The settings of new data files."""

    file: FileSettings
    row_group_bytes: int
    """The size in memory, in bytes, at which the rows of a partition are written."""
    data_location: str
    """The URI of the directory of data files."""
    modes: Mapping[int, StatisticsMode]
    """The statistics to store for each primitive field, by field id."""


def write_settings(metadata: TableMetadata, order: SortOrder, schema: Schema) -> WriteSettings:
    """Return the settings of files with the columns of ``schema``.

    Raise ``InvalidRequestError`` if a table property has an invalid value, and ``UnsupportedError``
    for another format than Parquet.
    """
    properties = metadata.properties
    file_format = properties.get(_FORMAT, "parquet").lower()
    if file_format != "parquet":
        raise UnsupportedError(
            f"the property {_FORMAT!r} of {metadata.location} is {file_format!r}, but this version "
            "writes only Parquet files: set it to 'parquet', or write with Spark"
        )
    codec = properties.get(_CODEC, "zstd").lower()
    if codec not in CODECS["parquet"]:
        raise InvalidRequestError(
            f"the property {_CODEC!r} of {metadata.location} is {codec!r}, but Parquet files have "
            f"the codecs {', '.join(CODECS['parquet'])}: set it to one of them"
        )
    target = _number(metadata, _TARGET, 512 << 20)
    return WriteSettings(
        FileSettings(codec, _number(metadata, _LEVEL, _ZSTD_LEVEL), target, has_dictionaries=True),
        min(_number(metadata, _ROW_GROUP, 128 << 20), target),
        data_location(metadata),
        metrics_modes(schema, order, metadata),
    )


def data_location(metadata: TableMetadata) -> str:
    """Return the URI of the directory of data files, without a final slash."""
    given = (metadata.properties[key] for key in NEW_DATA_PATHS if key in metadata.properties)
    return next(given, f"{metadata.location.rstrip('/')}/data").rstrip("/")


def metrics_modes(
    schema: Schema, order: SortOrder, metadata: TableMetadata
) -> dict[int, StatisticsMode]:
    """Return the statistics to store for each primitive field, by field id.

    Columns of the sort order have bounds, unless a property sets another mode for them. If no
    property sets a default, only the first 100 fields have statistics; a property can change
    this number. Columns of primitive types are counted first, then nested fields. Raise
    ``InvalidRequestError`` for an invalid property.
    """
    properties = metadata.properties
    leaves = list(_leaves(schema.struct))
    if _DEFAULT_METRICS in properties:
        default = _mode(metadata, _DEFAULT_METRICS)
        modes = dict.fromkeys(leaves, default)
    else:
        most = _number(metadata, _MOST_INFERRED, 100)
        modes = {each: _TRUNCATED if n < most else _NONE for n, each in enumerate(leaves)}
    for field in order.fields:
        for source in field.source_ids:
            if source in modes and modes[source].detail is not Detail.BOUNDS:
                modes[source] = _TRUNCATED
    for key in properties:
        named = schema.named(key.removeprefix(_COLUMN_METRICS))
        if key.startswith(_COLUMN_METRICS) and named is not None and named.id in modes:
            modes[named.id] = _mode(metadata, key)
    return modes


def _leaves(kind: Type) -> Iterator[int]:
    inner = [*inner_fields(kind)]
    yield from (field.id for field in inner if isinstance(field.type, PrimitiveType))
    for field in inner:
        if not isinstance(field.type, PrimitiveType):
            yield from _leaves(field.type)


def _mode(metadata: TableMetadata, key: str) -> StatisticsMode:
    text = metadata.properties[key].strip().lower()
    length = text.removeprefix("truncate(").removesuffix(")")
    if text in ("none", "counts", "full"):
        return StatisticsMode.parse(text)
    if text == f"truncate({length})" and length.isdecimal() and int(length):
        return StatisticsMode.parse(text)
    raise InvalidRequestError(
        f"the property {key!r} of {metadata.location} is {text!r}: it must be none, counts, "
        "full or truncate(n) with n from 1, such as truncate(16)"
    )


def _number(metadata: TableMetadata, key: str, default: int) -> int:
    return max(int_property(metadata.properties, key, default), 1)
