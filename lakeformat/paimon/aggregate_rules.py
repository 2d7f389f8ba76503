# SPDX-License-Identifier: Apache-2.0
"""The names of the aggregate functions, and the column types and options that each allows.

This module only declares and checks; the package ``merge/functions`` computes the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.option import ColumnOption, Option
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.closest import closest
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeName,
)

__all__ = [
    "DEFAULT_FUNCTION",
    "accumulating_columns",
    "canonical_name",
    "check_aggregation",
    "check_function",
    "counted_columns",
    "extreme_columns",
    "timestamp_member",
]

COUNT = "count"
"""The function ``count`` of older releases of Paimon, for tables that still have it.

A written value becomes 1, a null 0, and merges add these numbers. Later releases of Paimon refuse
this function.
"""
DEFAULT_FUNCTION = "last_non_null_value"
_AGGREGATE = ("aggregation", "partial-update")
_ACCUMULATING: dict[str | None, Option[Any] | None] = {
    COUNT: None,
    "product": None,
    "sum": None,
    "collect": TableOptions.distinct,
    "listagg": TableOptions.distinct,
    "nested_update": TableOptions.nested_key,
}
"""The functions whose result changes if a value is added a second time. Each maps to the option
that prevents this; None if there is none.
"""
_EXTREMES = ("max", "min")
_ALIASES = {"first_not_null_value": "first_non_null_value"}

_NUMBERS = {
    TypeName.DECIMAL,
    TypeName.TINYINT,
    TypeName.SMALLINT,
    TypeName.INT,
    TypeName.BIGINT,
    TypeName.FLOAT,
    TypeName.DOUBLE,
}
_UNORDERED = {TypeName.VARIANT, TypeName.BLOB, TypeName.GEOMETRY, TypeName.GEOGRAPHY}
_TEXTS = {TypeName.CHAR, TypeName.VARCHAR}


def _value_columns(schema: TableSchema) -> list[str]:
    """Return the columns to which an aggregate function may apply."""
    options = schema.table_options
    if options.merge_engine not in _AGGREGATE:
        return []
    sequence = (name.strip() for name in options.sequence_field)
    others = {*schema.primary_keys, *schema.partition_keys, *sequence}
    return [name for name in schema.column_names if name not in others]


def _is_rows(data_type: DataType) -> bool:
    return isinstance(data_type, ArrayType) and isinstance(data_type.element, RowType)


def _is_timed_map(data_type: DataType) -> bool:
    if not isinstance(data_type, MapType) or not isinstance(data_type.value, RowType):
        return False
    return len(data_type.value.fields) >= 2


def _is(*names: TypeName) -> Callable[[DataType], bool]:
    return lambda data_type: isinstance(data_type, AtomicType) and data_type.name in names


@dataclass(frozen=True, slots=True)
class _Domain:
    """The column types that an aggregate function accepts, as words for errors and as a test."""

    words: str
    takes: Callable[[DataType], bool]


_ANY = _Domain("every type", lambda data_type: True)
_NUMERIC = _Domain("numbers", _is(*_NUMBERS))
_ORDERED = _Domain(
    "types whose values have an order",
    lambda t: isinstance(t, AtomicType) and t.name not in _UNORDERED,
)
_BOOLEANS = _Domain("BOOLEAN", _is(TypeName.BOOLEAN))
_BYTES = _Domain("VARBINARY", _is(TypeName.VARBINARY))
_ROWS = _Domain("ARRAY<ROW>", _is_rows)

_DOMAINS: dict[str, _Domain] = {
    "sum": _NUMERIC,
    COUNT: _Domain("INT or BIGINT", _is(TypeName.INT, TypeName.BIGINT)),
    "product": _NUMERIC,
    "max": _ORDERED,
    "min": _ORDERED,
    "last_value": _ANY,
    "last_non_null_value": _ANY,
    "first_value": _ANY,
    "first_non_null_value": _ANY,
    "listagg": _Domain(
        "STRING, not VARCHAR(n)",
        lambda t: (
            isinstance(t, AtomicType) and t.name is TypeName.VARCHAR and t.length == MAX_LENGTH
        ),
    ),
    "bool_and": _BOOLEANS,
    "bool_or": _BOOLEANS,
    "collect": _Domain("ARRAY", lambda t: isinstance(t, ArrayType)),
    "merge_map": _Domain("MAP", lambda t: isinstance(t, MapType)),
    "merge_map_with_keytime": _Domain(
        "MAP<K, ROW> whose ROW has two members or more", _is_timed_map
    ),
    "nested_update": _ROWS,
    "nested_partial_update": _ROWS,
    "rbm32": _BYTES,
    "rbm64": _BYTES,
    "hll_sketch": _BYTES,
    "theta_sketch": _BYTES,
}
FUNCTION_NAMES = (*_DOMAINS, *_ALIASES)
"""The function names that the option ``fields.<column>.aggregate-function`` accepts, with
aliases.
"""


def canonical_name(name: str, column: str) -> str:
    """Return the function's name, with an alias replaced by the name that it stands for.

    Raise InvalidRequestError, which lists all names, if ``name`` is unknown.
    """
    name = _ALIASES.get(name, name)
    if name not in _DOMAINS:
        raise InvalidRequestError(
            f"column {column!r} has the aggregate function {name!r}, which does not exist; choose "
            f"one of {', '.join(FUNCTION_NAMES)}{closest(name, FUNCTION_NAMES)}"
        )
    return name


def counted_columns(schema: TableSchema) -> list[str]:
    """Return the columns with the function ``count``, which count the values written to them."""
    options = schema.table_options
    return [name for name in _value_columns(schema) if options.aggregate_function_of(name) == COUNT]


def extreme_columns(schema: TableSchema) -> dict[str, str]:
    """Return the columns with the function ``max`` or ``min``, each with the key of its option."""
    options = schema.table_options
    names = (n for n in _value_columns(schema) if options.aggregate_function_of(n) in _EXTREMES)
    return {
        name: TableOptions.aggregate_function.key.replace("<column>", name)
        if options.of_column(TableOptions.aggregate_function, name)
        else TableOptions.default_aggregate_function.key
        for name in names
    }


def accumulating_columns(schema: TableSchema) -> list[str]:
    """Return the columns that change if an equal row is written a second time, such as sums."""
    options, found = schema.table_options, []
    for name in _value_columns(schema):
        function = options.aggregate_function_of(name)
        if function in _ACCUMULATING:
            once = _ACCUMULATING[function]
            if once is None or not options.of_column(once, name):
                found.append(name)
    return found


def check_aggregation(schema: TableSchema) -> None:
    """Check the functions of all columns of a table with the merge engine ``aggregation``.

    Raise InvalidRequestError or UnsupportedError for the first column or option that cannot work.
    """
    options = schema.table_options
    sequence = {name.strip() for name in options.sequence_field}
    for field in schema.fields:
        if field.name in sequence:
            if options.of_column(TableOptions.aggregate_function, field.name):
                raise InvalidRequestError(
                    f"column {field.name!r} is in 'sequence.field' and always has its last "
                    f"value: leave out {_key(TableOptions.aggregate_function, field)!r}"
                )
        elif field.name not in schema.primary_keys:
            name = options.aggregate_function_of(field.name) or DEFAULT_FUNCTION
            check_function(name, field, options)
        if options.remove_record_on_delete_of_aggregation and options.of_column(
            TableOptions.ignore_retract, field.name
        ):
            raise InvalidRequestError(
                f"options 'aggregation.remove-record-on-delete' and "
                f"{_key(TableOptions.ignore_retract, field)!r} contradict each other, because a "
                "delete either removes the row or leaves its columns alone: remove one of the two"
            )


def check_function(name: str, field: DataField, options: TableOptions) -> None:
    """Raise InvalidRequestError if the function is unknown or cannot aggregate the type of
    ``field``.

    Options of the column that the function cannot use raise InvalidRequestError or
    UnsupportedError.
    """
    function = canonical_name(name, field.name)
    domain = _DOMAINS[function]
    if not domain.takes(field.type):
        raise InvalidRequestError(
            f"column {field.name!r} is {type_to_sql(field.type)}, but its aggregate function "
            f"{name!r} takes {domain.words}: choose another function with "
            f"{_key(TableOptions.aggregate_function, field)!r}"
        )
    if function in ("nested_update", "nested_partial_update"):
        _check_nested(function, field, options)
    elif function == "merge_map_with_keytime":
        timestamp_member(field, options)
    elif function == "listagg":
        _check_listagg(field, options)


def timestamp_member(field: DataField, options: TableOptions) -> str:
    """Return the ROW member by whose value ``merge_map_with_keytime`` picks the newer map entry.

    ``fields.<column>.ts-field`` names the member; the default is the last member. Raise
    InvalidRequestError if the member does not exist or is not a text.
    """
    assert isinstance(field.type, MapType)
    assert isinstance(field.type.value, RowType)
    members = field.type.value.fields
    named = options.of_column(TableOptions.ts_field, field.name)
    if named:
        _require_members((named,), members, _key(TableOptions.ts_field, field))
    name = named or members[-1].name
    member = next(member for member in members if member.name == name)
    if not isinstance(member.type, AtomicType) or member.type.name not in _TEXTS:
        raise InvalidRequestError(
            f"member {name!r} of column {field.name!r} is {type_to_sql(member.type)}, but "
            "'merge_map_with_keytime' compares times as texts: make it a STRING, or name "
            f"another member with {_key(TableOptions.ts_field, field)!r}"
        )
    return name


def _check_nested(function: str, field: DataField, options: TableOptions) -> None:
    assert isinstance(field.type, ArrayType)
    assert isinstance(field.type.element, RowType)
    members = field.type.element.fields
    nested_key = options.of_column(TableOptions.nested_key, field.name)
    key = _key(TableOptions.nested_key, field)
    if nested_key:
        _require_members(nested_key, members, key)
    elif function == "nested_partial_update":
        raise InvalidRequestError(
            f"the aggregate function 'nested_partial_update' of column {field.name!r} needs option "
            f"{key!r}: set it to the members that identify an element"
        )
    needing: tuple[Option[Any], ...] = (
        TableOptions.nested_key_null_strategy,
        TableOptions.nested_sequence_field,
    )
    for option in needing:
        if options.of_column(option, field.name) and not nested_key:
            raise InvalidRequestError(
                f"option {_key(option, field)!r} needs option {key!r}: set it to the members that "
                "identify an element"
            )
    sequence = options.of_column(TableOptions.nested_sequence_field, field.name) or ()
    name = _key(TableOptions.nested_sequence_field, field)
    _require_members(sequence, members, name)
    for member in members:
        if member.name in sequence and not _ORDERED.takes(member.type):
            raise InvalidRequestError(
                f"option {name!r} names {member.name!r}, but its type {type_to_sql(member.type)} "
                "has no order: name another member"
            )
    if function == "nested_partial_update":
        others: tuple[Option[Any], ...] = (
            TableOptions.nested_sequence_field,
            TableOptions.count_limit,
        )
        for option in others:
            if options.of_column(option, field.name):
                raise UnsupportedError(
                    f"option {_key(option, field)!r} has no effect with 'nested_partial_update', "
                    "which takes every element in the order of arrival: leave the option out, or "
                    "choose 'nested_update'"
                )


def _check_listagg(field: DataField, options: TableOptions) -> None:
    delimiter = options.of_column(TableOptions.list_agg_delimiter, field.name)
    if delimiter == "" and options.of_column(TableOptions.distinct, field.name):
        raise UnsupportedError(
            f"option {_key(TableOptions.list_agg_delimiter, field)!r} is empty, so that "
            f"{_key(TableOptions.distinct, field)!r} cannot separate values: set a delimiter"
        )


def _require_members(names: Sequence[str], members: Sequence[DataField], key: str) -> None:
    known = [member.name for member in members]
    for name in names:
        if name not in known:
            raise InvalidRequestError(
                f"option {key!r} names {name!r}, which is not a member of the column; its "
                f"members are {', '.join(known)}{closest(name, known)}"
            )


def _key(option: Option[Any], field: DataField) -> str:
    assert isinstance(option, ColumnOption)
    return option.key_of(field.name)
