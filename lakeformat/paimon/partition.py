# SPDX-License-Identifier: Apache-2.0
"""Partitions: their values, the values as text, and the directory of their files.

The values of a partition are in its binary row. They cannot be read from the directory name,
because null, empty and blank values share a name.
"""

from __future__ import annotations

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row import decode_row, unframe_row
from lakeformat.paimon.layout import partition_directory
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.count_text import counted
from lakeformat.types.type_rules import names_a_directory
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataField
from lakeformat.types.value_text import cast_text, internal_text
from lakeformat.types.values import Value, values_to_arrow

__all__ = [
    "or_default_name",
    "partition_fields",
    "partition_name",
    "partition_path",
    "partition_texts",
    "partition_values",
]

_JAVA_WHITESPACE = (
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009"
    "\u200a\u2028\u2029\u205f\u3000"
)
"""The characters that Java counts as whitespace; unlike Python, Java excludes non-breaking
spaces.
"""


def partition_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the partition columns in the order of the partition keys."""
    by_name = {field.name: field for field in schema.fields}
    return tuple(by_name[key] for key in schema.partition_keys)


def partition_values(schema: TableSchema, partition: bytes) -> tuple[Value, ...]:
    """Decode a partition's framed binary row to its values.

    Raise CorruptTableError if it has another number of fields than the table has partition keys.
    """
    fields = partition_fields(schema)
    arity, row = unframe_row(partition)
    if arity != len(fields):
        raise CorruptTableError(
            f"a partition has {counted(arity, 'value')}, but the table is partitioned by "
            f"{counted(len(fields), 'column')}: restore the manifest from a backup, or roll the "
            "table back to an earlier snapshot"
        )
    return decode_row(row, [field.type for field in fields]) if fields else ()


def partition_texts(schema: TableSchema, partition: bytes) -> tuple[str | None, ...]:
    """Return each partition value as text in the spelling of directory names, before escaping.

    None stands for null. Raise CorruptTableError for a damaged partition, and UnsupportedError for
    a column whose type cannot name directories.
    """
    return _texts(schema, partition, legacy=schema.table_options.partition_legacy_name)


def _texts(schema: TableSchema, partition: bytes, *, legacy: bool) -> tuple[str | None, ...]:
    return tuple(
        None if value is None else _text(value, field, legacy=legacy)
        for value, field in zip(
            partition_values(schema, partition), partition_fields(schema), strict=True
        )
    )


def partition_path(schema: TableSchema, partition: bytes) -> str:
    """Return the directory of a partition below the table; empty for a table without partitions.

    The errors are those of ``partition_texts``.
    """
    default = schema.table_options.partition_default_name
    texts = partition_texts(schema, partition)
    return partition_directory(
        [
            (key, or_default_name(text, default))
            for key, text in zip(schema.partition_keys, texts, strict=True)
        ]
    )


def partition_name(schema: TableSchema, partition: bytes) -> str:
    """Return the name of a partition for messages, such as ``dt=2024-01-31/h=1``.

    A date is written like ``2024-01-31``, even if the directory has it as a number of days. A text
    that shares its directory with null, such as an empty text, is quoted. The errors are those of
    ``partition_texts``.
    """
    default = schema.table_options.partition_default_name
    texts = _texts(schema, partition, legacy=False)
    return "/".join(
        f"{key}={text!r}"
        if text is not None and or_default_name(text, default) == default
        else partition_directory([(key, default if text is None else text)])
        for key, text in zip(schema.partition_keys, texts, strict=True)
    )


def or_default_name(text: str | None, default: str) -> str:
    """Return the directory name of a value: its text, or ``default`` if it is null or blank."""
    return text if text is not None and text.strip(_JAVA_WHITESPACE) else default


def _text(value: Value, field: DataField, *, legacy: bool) -> str:
    if not names_a_directory(field.type):
        raise UnsupportedError(
            f"the table is partitioned by {field.name!r} of type {type_to_sql(field.type)}, "
            "whose values this version cannot write as directory names: use another engine"
        )
    if isinstance(value, str):
        # The casts keep texts unchanged, but taking values of an Arrow array would load pandas.
        return value
    column = values_to_arrow([value], field.type)
    try:
        shown = internal_text(column, field.type) if legacy else cast_text(column, field.type)
    except InvalidRequestError as reason:
        raise CorruptTableError(
            f"a value of partition column {field.name!r} does not fit its type: {reason}; restore "
            "the manifest from a backup, or roll the table back to an earlier snapshot"
        ) from None
    return str(shown[0].as_py())
