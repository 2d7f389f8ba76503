# SPDX-License-Identifier: Apache-2.0
"""Checks the columns, keys and options of a table against the rules of the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET, UNAWARE_BUCKET
from lakeformat.paimon.options.option import Option
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.file_index_rules import check_file_indexes
from lakeformat.paimon.schema_changes.format_rules import (
    DATA_FILES,
    files_of_table,
    require_format_holds,
)
from lakeformat.paimon.schema_changes.merge_rules import check_merging
from lakeformat.paimon.schema_changes.time_travel_rules import named_state
from lakeformat.types.count_text import counted
from lakeformat.types.type_rules import check_fields, names_a_directory
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["check_bucket_key", "check_external_paths", "check_table"]

_NO_KEYS = (TypeName.VARIANT, TypeName.BLOB, TypeName.GEOMETRY, TypeName.GEOGRAPHY)
_MOD_KEYS = (TypeName.INT, TypeName.BIGINT)
_OF_LEVELS: tuple[Option[Any], ...] = (
    TableOptions.file_format_per_level,
    TableOptions.file_compression_per_level,
    TableOptions.statistics_mode_per_level,
    TableOptions.changelog_file_format,
    TableOptions.changelog_file_compression,
    TableOptions.changelog_statistics_mode,
)


def check_table(schema: TableSchema) -> None:
    """Raise InvalidRequestError if the columns, keys and options of a schema contradict each other.

    Raise UnsupportedError if a file format of the table cannot store a column.
    """
    check_fields(schema.fields)
    _check_key_types(schema)
    if schema.primary_keys and set(schema.primary_keys) <= set(schema.partition_keys):
        raise InvalidRequestError(
            f"the primary key {_listed(schema.primary_keys)} has partition columns only, so each "
            "partition would have at most one row; add another column to the key"
        )
    _check_buckets(schema)
    _check_row_numbers(schema)
    _check_files(schema)
    check_file_indexes(schema)
    check_merging(schema)
    check_external_paths(schema.table_options)
    named_state(schema.table_options)  # this call raises if the options choose two states


def _check_key_types(schema: TableSchema) -> None:
    by_name = {field.name: field for field in schema.fields}
    for what, keys in (
        ("the primary key", schema.primary_keys),
        ("the partition keys", schema.partition_keys),
    ):
        for name in keys:
            if not _has_order(by_name[name]):
                shown = type_to_sql(by_name[name].type)
                raise InvalidRequestError(
                    f"column {name!r} is {shown}, which cannot be in {what}: its values have "
                    "no order; choose another column"
                )
    for name in schema.partition_keys:
        if not names_a_directory(by_name[name].type):
            raise InvalidRequestError(
                f"column {name!r} is {type_to_sql(by_name[name].type)}, which cannot be in the "
                "partition keys: its values have no text for the name of a directory; choose "
                "another column"
            )


def _has_order(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.name not in _NO_KEYS


def _check_buckets(schema: TableSchema) -> None:
    options = schema.table_options
    bucket, keys = options.bucket, options.bucket_key
    if bucket == UNAWARE_BUCKET:
        if keys:
            raise InvalidRequestError(
                "option 'bucket-key' needs a number of buckets, but 'bucket' is -1: set 'bucket' "
                "to 1 or more, or remove 'bucket-key'"
            )
        return
    if bucket == POSTPONE_BUCKET and not schema.primary_keys:
        raise InvalidRequestError(
            "option 'bucket' is '-2', but the table has no primary key: only primary-key tables "
            "can postpone the choice of a bucket. Give the table a primary key, or set 'bucket' "
            "to -1"
        )
    if not keys and not schema.primary_keys:
        raise InvalidRequestError(
            f"option 'bucket' is '{bucket}' and the table has no primary key: set 'bucket-key' "
            "to the columns that decide which bucket a row is in"
        )
    if schema.primary_keys and (outside := {*schema.partition_keys} - {*schema.primary_keys}):
        columns = "column" if len(outside) == 1 else "columns"
        raise InvalidRequestError(
            f"the primary key {_listed(schema.primary_keys)} lacks the partition {columns} "
            f"{_listed(sorted(outside))}, so a row may have to move between partitions, which "
            f"'bucket' = '{bucket}' does not allow: add the {columns} to the key, or set 'bucket' "
            "to -1"
        )
    check_bucket_key(schema, keys)
    if options.bucket_function == "mod":
        _check_mod(schema, keys)


def _check_row_numbers(schema: TableSchema) -> None:
    options = schema.table_options
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise InvalidRequestError(
            "option 'data-evolution.enabled' joins files by row id, which the table does not have; "
            "set 'row-tracking.enabled' = 'true' too"
        )
    if options.data_evolution_enabled and (schema.primary_keys or options.bucket != UNAWARE_BUCKET):
        keys = _listed(schema.primary_keys)
        has = f"the primary key {keys}" if schema.primary_keys else f"'bucket' = '{options.bucket}'"
        raise InvalidRequestError(
            "option 'data-evolution.enabled' is only for tables without a primary key and with "
            f"'bucket' = '-1', but this table has {has}: leave the option out, or change the key "
            "or the buckets"
        )


def check_bucket_key(schema: TableSchema, keys: tuple[str, ...]) -> None:
    """Raise InvalidRequestError if a column cannot be in the bucket key.

    A column of the bucket key must exist, and must be neither nested nor a partition column. In a
    table with a primary key, it must be in the primary key, too.
    """
    by_name = {field.name: field for field in schema.fields}
    allowed = [
        field.name
        for field in schema.fields
        if field.name not in schema.partition_keys
        and (not schema.primary_keys or field.name in schema.primary_keys)
        and isinstance(field.type, AtomicType)
    ]
    for name in keys:
        if name in allowed:
            continue
        if name not in by_name:
            reason = "the table has no such column"
        elif name in schema.partition_keys:
            reason = "it is a partition column"
        elif schema.primary_keys and name not in schema.primary_keys:
            reason = f"it is not in the primary key {_listed(schema.primary_keys)}"
        else:
            reason = f"it is {type_to_sql(by_name[name].type)}"
        advice = (
            "no column of this table can be in the bucket key: set 'bucket' to -1, and leave out "
            "'bucket-key'"
        )
        if allowed:
            advice = f"choose from the columns {', '.join(allowed)}"
        raise InvalidRequestError(f"option 'bucket-key' names {name!r}, but {reason}; {advice}")


def _check_mod(schema: TableSchema, keys: tuple[str, ...]) -> None:
    names = keys or tuple(field.name for field in schema.key_fields)
    types = [field.type for field in schema.fields if field.name in names]
    if len(types) != 1 or not isinstance(types[0], AtomicType) or types[0].name not in _MOD_KEYS:
        raise InvalidRequestError(
            f"option 'bucket-function.type' is 'mod', which takes one INT or BIGINT column; the "
            f"bucket key is {_listed(names)}: set 'bucket-key' to such a column, or remove "
            "'bucket-function.type'"
        )


def _check_files(schema: TableSchema) -> None:
    """Raise UnsupportedError if a format of the table's files cannot store a column.

    Raise InvalidRequestError if a table without a primary key has options for levels or changelog
    files.
    """
    options = schema.table_options
    if schema.primary_keys:
        for keys, of_files in files_of_table(options):
            require_format_holds(schema.fields, of_files, keys)
        return
    for option in _OF_LEVELS:
        if option.key in schema.options:
            raise InvalidRequestError(
                f"option {option.key!r} is for tables with a primary key: other tables have "
                "no levels or changelog files; remove the option"
            )
    require_format_holds(schema.fields, options, DATA_FILES)


def check_external_paths(options: TableOptions) -> None:
    """Raise InvalidRequestError if the options for external paths contradict each other."""
    strategy = options.data_file_external_paths_strategy
    if strategy == "none":
        return
    setting = TableOptions.data_file_external_paths_strategy.key
    if not options.data_file_external_paths:
        raise InvalidRequestError(
            f"option {setting!r} is {strategy!r}, but 'data-file.external-paths' names no path: "
            "set 'data-file.external-paths', or set the strategy to 'none'"
        )
    _check_weights(options, strategy)
    wanted = options.data_file_external_paths_specific_fs
    schemes = [path.partition(":")[0].lower() for path in options.data_file_external_paths]
    if strategy == "specific-fs" and wanted not in schemes:
        key = TableOptions.data_file_external_paths_specific_fs.key
        why = f"no path of 'data-file.external-paths' has the scheme {wanted!r}"
        why = why if wanted else f"{key!r} is not set"
        raise InvalidRequestError(
            f"option {setting!r} is 'specific-fs', but {why}; name a path's scheme in {key!r}"
        )


def _check_weights(options: TableOptions, strategy: str) -> None:
    weights, paths = options.data_file_external_paths_weights, options.data_file_external_paths
    if strategy == "weight-robin" and weights and len(weights) != len(paths):
        raise InvalidRequestError(
            f"option 'data-file.external-paths.weights' has {counted(len(weights), 'weight')} for "
            f"the {counted(len(paths), 'path')} of 'data-file.external-paths'; write one weight "
            "for each path, in the same order"
        )


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
