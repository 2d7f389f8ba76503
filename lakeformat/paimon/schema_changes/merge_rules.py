# SPDX-License-Identifier: Apache-2.0
"""Checks the options for merging rows against the columns and keys of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.aggregate_rules import check_aggregation
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.option import Option
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.changelog_rules import (
    check_changelog,
    check_without_changelog,
)
from lakeformat.paimon.schema_changes.column_options import referenced_columns
from lakeformat.paimon.schema_changes.partial_update_rules import check_partial_update
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["check_merging", "check_sequence_columns"]

_NEEDS_KEY: tuple[Option[Any], ...] = (
    TableOptions.merge_engine,
    TableOptions.sequence_field,
    TableOptions.sequence_field_sort_order,
    TableOptions.row_kind_field,
    TableOptions.ignore_delete,
    TableOptions.ignore_update_before,
    TableOptions.remove_record_on_delete_of_partial_update,
    TableOptions.remove_record_on_sequence_group,
    TableOptions.remove_record_on_delete_of_aggregation,
    TableOptions.default_aggregate_function,
)
_OF_COLUMNS: tuple[Option[Any], ...] = (
    TableOptions.aggregate_function,
    TableOptions.ignore_retract,
    TableOptions.sequence_group,
)
_OF_ENGINE: dict[Option[Any], str] = {
    TableOptions.remove_record_on_delete_of_partial_update: "partial-update",
    TableOptions.remove_record_on_sequence_group: "partial-update",
    TableOptions.sequence_group: "partial-update",
    TableOptions.remove_record_on_delete_of_aggregation: "aggregation",
}
_TEXTS = (TypeName.CHAR, TypeName.VARCHAR)


def check_merging(schema: TableSchema) -> None:
    """Raise InvalidRequestError if options for merging contradict each other or the table's
    columns.
    """
    _check_named_columns(schema)
    if not schema.primary_keys:
        _check_without_key(schema)
        return
    _check_engine_options(schema)
    _check_sequence_field(schema)
    _check_row_kind_field(schema)
    _check_first_row(schema)
    _check_moving_rows(schema)
    check_changelog(schema)
    if schema.table_options.merge_engine == "partial-update":
        check_partial_update(schema)
    if schema.table_options.merge_engine == "aggregation":
        check_aggregation(schema)


def _check_named_columns(schema: TableSchema) -> None:
    for column, key in referenced_columns(schema.options).items():
        if key.startswith("fields.") and column not in schema.column_names:
            raise InvalidRequestError(
                f"option {key!r} names {column!r}, which is not a column; the columns are "
                f"{', '.join(schema.column_names)}"
            )


def _check_without_key(schema: TableSchema) -> None:
    for key in _set_keys(schema, (*_NEEDS_KEY, *_OF_COLUMNS)):
        raise InvalidRequestError(
            f"option {key!r} controls how rows with the same primary key are merged, and the table "
            "has no primary key; leave the option out, or create a table with a primary key"
        )
    check_without_changelog(schema)


def _check_engine_options(schema: TableSchema) -> None:
    engine = schema.table_options.merge_engine
    for option, owner in _OF_ENGINE.items():
        for key in _set_keys(schema, [option]):
            if owner != engine and not _is_false(option, key, schema.options[key]):
                raise InvalidRequestError(
                    f"option {key!r} is for merge engine {owner!r}, but the table has {engine!r}; "
                    f"leave it out, or set 'merge-engine' to {owner!r}"
                )


def _check_sequence_field(schema: TableSchema) -> None:
    names = [name.strip() for name in schema.table_options.sequence_field]
    key = TableOptions.sequence_field.key
    if not names:
        return
    check_sequence_columns(schema, names)
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(f"option {key!r} names {name!r} twice; name it once")
        if schema.table_options.of_column(TableOptions.aggregate_function, name):
            raise InvalidRequestError(
                f"option 'fields.{name}.aggregate-function' aggregates {name!r}, a column of "
                f"{key!r}, but such a column always keeps its newest value; leave one of the two "
                "options out"
            )
    if schema.table_options.merge_engine == "first-row":
        raise InvalidRequestError(
            f"option {key!r} is {','.join(names)!r}, but merge engine 'first-row' keeps the row "
            "that came first; leave the option out, or set another 'merge-engine'"
        )
    missing = [name for name in schema.partition_keys if name not in schema.primary_keys]
    if missing:
        raise InvalidRequestError(
            f"option {key!r} is {','.join(names)!r}, but the primary key lacks the partition "
            f"column {missing[0]!r}, so the order of the writes, not this option, decides which "
            f"partition has a key; add {missing[0]!r} to the primary key, or leave the option out"
        )


def check_sequence_columns(schema: TableSchema, names: Sequence[str]) -> None:
    """Raise InvalidRequestError if one of ``names``, from ``sequence.field``, is not a column."""
    for name in names:
        if name not in schema.column_names:
            raise InvalidRequestError(
                f"option {TableOptions.sequence_field.key!r} names {name!r}, which is not a "
                f"column; the columns are {', '.join(schema.column_names)}"
            )


def _check_moving_rows(schema: TableSchema) -> None:
    missing = [name for name in schema.partition_keys if name not in schema.primary_keys]
    if missing and schema.table_options.keeps_moved_rows:
        raise InvalidRequestError(
            "option 'ignore-delete' is 'true', but the primary key lacks the partition column "
            f"{missing[0]!r}: a row that moves to another partition would not be deleted in the "
            f"old one, so its key would appear twice; add {missing[0]!r} to the primary key, or "
            "remove the option"
        )


def _check_row_kind_field(schema: TableSchema) -> None:
    name = schema.table_options.row_kind_field
    if not name:
        return
    column = _column(schema, name)
    if column is None or not _is_text(column):
        reason = "is not a column" if column is None else f"is {type_to_sql(column.type)}"
        raise InvalidRequestError(
            f"option 'rowkind.field' names {name!r}, which {reason}; name a STRING column that "
            "holds +I, -U, +U or -D"
        )


def _check_first_row(schema: TableSchema) -> None:
    options = schema.table_options
    if options.merge_engine != "first-row":
        return
    if options.changelog_producer not in ("none", "lookup"):
        raise InvalidRequestError(
            f"option 'changelog-producer' is {options.changelog_producer!r}, which merge engine "
            "'first-row' does not support; set it to 'none' or 'lookup'"
        )
    if options.deletion_vectors_enabled:
        raise InvalidRequestError(
            "option 'deletion-vectors.enabled' is 'true', but with merge engine 'first-row' no row "
            "is ever replaced; leave it out, or set another 'merge-engine'"
        )


def _set_keys(schema: TableSchema, options: Iterable[Option[Any]]) -> list[str]:
    """Return the keys in the table's schema that set one of ``options``, or set it for a column."""
    wanted = list(options)
    return [key for key in sorted(schema.options) if any(option.sets(key) for option in wanted)]


def _is_false(option: Option[Any], key: str, text: str) -> bool:
    return option.parse(text, key) is False


def _column(schema: TableSchema, name: str) -> DataField | None:
    return next((field for field in schema.fields if field.name == name), None)


def _is_text(column: DataField) -> bool:
    return isinstance(column.type, AtomicType) and column.type.name in _TEXTS
