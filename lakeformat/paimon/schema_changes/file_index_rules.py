# SPDX-License-Identifier: Apache-2.0
"""Checks that the columns of file indexes exist, and have types that the indexes support."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.file_index_types import INDEXABLE, is_indexable
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.option import ColumnOption, Option
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataField

__all__ = ["check_file_indexes", "indexed_columns", "indexed_fields"]

_COLUMNS = {
    "bloom-filter": TableOptions.file_index_bloom_filter_columns,
    "bitmap": TableOptions.file_index_bitmap_columns,
    "bsi": TableOptions.file_index_bsi_columns,
    "range-bitmap": TableOptions.file_index_range_bitmap_columns,
}
_SETTINGS: dict[str, tuple[Option[Any], ...]] = {
    "bloom-filter": (
        TableOptions.file_index_bloom_filter_items,
        TableOptions.file_index_bloom_filter_false_positives,
    ),
    "bitmap": (
        TableOptions.file_index_bitmap_version,
        TableOptions.file_index_bitmap_block_bytes,
    ),
    "range-bitmap": (TableOptions.file_index_range_bitmap_chunk_bytes,),
}
_MOST_BITS = 2**31 - 8
_NO_COLUMN = "the table has no such column; values inside a MAP cannot be indexed"


def indexed_columns(options: TableOptions) -> dict[str, tuple[str, ...]]:
    """Return the names of the columns that new files get an index for, by type of index."""
    found = {}
    for index_type, option in _COLUMNS.items():
        names = option.parse(options.text(option))
        if names:
            found[index_type] = tuple(dict.fromkeys(name.strip() for name in names))
    return found


def indexed_fields(
    fields: Sequence[DataField], options: TableOptions
) -> Iterator[tuple[str, DataField]]:
    """Yield the index type and the column of each index that new files get.

    Raise UnsupportedError if an option names a column that does not exist. Tables changed by Java
    can have such an option. Java keeps the old name in the option when a column is renamed, and
    accepts ``column[key]`` for the values of one key of a MAP.
    """
    by_name = {field.name: field for field in fields}
    for index_type, columns in indexed_columns(options).items():
        for name in columns:
            if name not in by_name:
                raise UnsupportedError(
                    f"option {_COLUMNS[index_type].key!r} names {name!r}, but {_NO_COLUMN}; "
                    "nothing was written: set the option to existing columns, or remove it"
                )
            yield index_type, by_name[name]


def check_file_indexes(schema: TableSchema) -> None:
    """Raise InvalidRequestError if an option for an index does not fit the columns.

    The column must exist and have a type that the index supports. A setting of an index needs a
    column with that index.
    """
    options = schema.table_options
    types = {field.name: field.type for field in schema.fields}
    indexed = indexed_columns(options)
    for index_type, columns in indexed.items():
        for name in columns:
            if name not in types:
                reason = _NO_COLUMN
            elif not is_indexable(index_type, types[name]):
                held = ", ".join(sorted(INDEXABLE[index_type]))
                reason = f"it is {type_to_sql(types[name])}; a {index_type} index takes {held}"
            else:
                continue
            raise InvalidRequestError(
                f"option {_COLUMNS[index_type].key!r} names {name!r}, but {reason}; "
                "set the option to other columns, or leave it out"
            )
        if index_type == "bloom-filter":
            for name in columns:
                _check_size(options, name)
    for index_type, settings in _SETTINGS.items():
        for setting in settings:
            _check_setting(schema, setting, indexed.get(index_type, ()), _COLUMNS[index_type].key)


def _check_setting(
    schema: TableSchema, setting: Option[Any], columns: tuple[str, ...], columns_key: str
) -> None:
    assert isinstance(setting, ColumnOption)
    known = {setting.key_of(name) for name in columns}
    for key in filter(setting.sets, schema.options):
        if key not in known:
            raise InvalidRequestError(
                f"option {key!r} configures a column that {columns_key!r} does not name; add the "
                f"column to {columns_key!r}, or remove the option"
            )


def _check_size(options: TableOptions, column: str) -> None:
    settings = _SETTINGS["bloom-filter"]
    found = (options.of_column(setting, column) for setting in settings)
    items, rate = (
        setting.parse(setting.default) if value is None else value
        for setting, value in zip(settings, found, strict=True)
    )
    if not 0 < rate < 1 or -items * math.log(rate) / math.log(2) ** 2 > _MOST_BITS:
        raise InvalidRequestError(
            f"the bloom filter of column {column!r} would hold {items} items with a rate of "
            f"{rate} false positives; the rate must be between 0 and 1 and the filter smaller than "
            f"256 MiB: change 'file-index.bloom-filter.{column}.items' or "
            f"'file-index.bloom-filter.{column}.fpp'"
        )
