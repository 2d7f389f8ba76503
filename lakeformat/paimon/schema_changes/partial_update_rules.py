# SPDX-License-Identifier: Apache-2.0
"""Checks the options of a partial-update table against its columns."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.aggregate_rules import check_function
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.sequence_groups import SequenceGroup, sequence_groups
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["check_partial_update"]

_SEQUENCES = (
    TypeName.DECIMAL,
    TypeName.TINYINT,
    TypeName.SMALLINT,
    TypeName.INT,
    TypeName.BIGINT,
    TypeName.FLOAT,
    TypeName.DOUBLE,
    TypeName.DATE,
    TypeName.TIME,
    TypeName.TIMESTAMP,
    TypeName.TIMESTAMP_LTZ,
)
_NEEDS_NO_GROUP = "last_non_null_value"
_REMOVE = TableOptions.remove_record_on_delete_of_partial_update.key
_REMOVE_BY_GROUP = TableOptions.remove_record_on_sequence_group.key


def check_partial_update(schema: TableSchema) -> None:
    """Raise InvalidRequestError if sequence groups, aggregate functions or delete options do not
    fit together.
    """
    groups = sequence_groups(schema)
    for group in groups:
        _check_group(schema, group)
    _check_deletes(schema, groups)
    _check_functions(schema, groups)


def _check_group(schema: TableSchema, group: SequenceGroup) -> None:
    by_name = {field.name: field for field in schema.fields}
    for name in (*group.sequence, *group.protected):
        if name not in by_name:
            reason = f"which is not a column; the columns are {', '.join(by_name)}"
        elif name in schema.primary_keys:
            reason = "a column of the primary key, which never changes; leave it out of the group"
        elif name in group.sequence and not _is_sequence(by_name[name]):
            reason = (
                f"whose type {type_to_sql(by_name[name].type)} cannot be the sequence of a group; "
                "take a column of numbers, dates, times or timestamps"
            )
        else:
            continue
        raise InvalidRequestError(f"option {group.option!r} names {name!r}, {reason}")


def _is_sequence(column: DataField) -> bool:
    return isinstance(column.type, AtomicType) and column.type.name in _SEQUENCES


def _check_deletes(schema: TableSchema, groups: tuple[SequenceGroup, ...]) -> None:
    options = schema.table_options
    removes = options.remove_record_on_delete_of_partial_update
    by_group = options.remove_record_on_sequence_group
    for is_set, key in ((removes, _REMOVE), (bool(by_group), _REMOVE_BY_GROUP)):
        if is_set and options.ignore_delete:
            raise InvalidRequestError(
                f"option {key!r} lets deletes remove rows, but option 'ignore-delete' ignores "
                "deletes; remove one of the two"
            )
    if removes and groups:
        raise InvalidRequestError(
            f"option {_REMOVE!r} lets deletes remove the whole row, but option "
            f"{groups[0].option!r} lets deletes set columns to null; leave one out, or replace "
            f"{_REMOVE!r} by {_REMOVE_BY_GROUP!r}, and set it to the sequence columns of the "
            "groups in which a delete removes the whole row"
        )
    sequences = {name for group in groups for name in group.sequence}
    for name in by_group:
        if name not in sequences:
            there = (
                f"the sequence columns of the groups are {', '.join(sorted(sequences))}; name one "
                "of these"
                if sequences
                else f"the table has no sequence group; add 'fields.{name}.sequence-group', or "
                "remove the option"
            )
            raise InvalidRequestError(f"option {_REMOVE_BY_GROUP!r} names {name!r}, but {there}")


def _check_functions(schema: TableSchema, groups: tuple[SequenceGroup, ...]) -> None:
    options = schema.table_options
    protected = {name for group in groups for name in group.protected}
    never = {*schema.primary_keys, *(name for group in groups for name in group.sequence)}
    for field in schema.fields:
        function = options.aggregate_function_of(field.name)
        if function is None or field.name in never:
            continue
        if field.name in protected:
            check_function(function, field, options)
        elif function != _NEEDS_NO_GROUP:
            own = options.of_column(TableOptions.aggregate_function, field.name)
            default = TableOptions.default_aggregate_function.key
            key = f"fields.{field.name}.aggregate-function" if own else default
            raise InvalidRequestError(
                f"option {key!r} aggregates {field.name!r} with {function!r}, which needs a "
                f"sequence group in merge engine 'partial-update'; add {field.name!r} to the "
                "value of a 'fields.<sequence column>.sequence-group', or set its function to "
                f"{_NEEDS_NO_GROUP!r}"
            )
