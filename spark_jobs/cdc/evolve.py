# SPDX-License-Identifier: Apache-2.0
"""Finds the schema changes that messages need; a column is widened only to a type that holds all
old values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

import lakeformat as lake
from lakeformat import SchemaChange, add_column, update_column_type
from lakeformat.catalog.row_schema import row_schema
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import (
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeName,
    with_nullability,
)
from spark_jobs.cdc.columns import MessageColumn, MessageColumns
from spark_jobs.cdc.declared import type_text
from spark_jobs.ingestion.type_widening import INTEGERS, widest

__all__ = ["changes_for", "column_list", "declaration", "evolved", "parts_beside"]

T = TypeName
_Path: TypeAlias = tuple[str, ...]

_OF_NUMBERS = {*INTEGERS, T.DECIMAL, T.FLOAT, T.DOUBLE}
_TIMES = {T.DATE, T.TIME, T.TIME_MICROS, T.TIMESTAMP, T.TIMESTAMP_LTZ}
_OF_TEXTS = {T.CHAR, T.VARCHAR}
_ALSO_AS_TEXT = {T.DECIMAL, T.BINARY, T.VARBINARY, *_TIMES}


def changes_for(
    table: lake.Table, columns: MessageColumns, *, texts_hold_all: bool
) -> list[SchemaChange]:
    """Return the schema changes that a table needs before it can take the rows of messages.

    With ``texts_hold_all`` the messages give every value as text, so text fits every type. Raise
    ``InvalidRequestError`` if the rows lack a column that is NOT NULL and has no default. Also
    raise it, with a list of the columns, if no allowed change makes columns fit.
    """
    _require_needed(table, columns)
    fields = {field.name: field for field in row_schema(table).fields}
    unfilled = [name for name in fields if name not in columns.by_name]
    changes: list[SchemaChange] = []
    differences: list[str] = []
    for column in columns.by_name.values():
        there = fields.get(column.name)
        try:
            if there is None and column.type is not None:
                _require_other_letters(column.name, unfilled)
            changes += _change(column, there, texts_hold_all)
        except _Difference as found:
            differences.append(str(found))
    if differences:
        raise lake.InvalidRequestError(
            f"the rows do not fit {table.location}: "
            + "; ".join(differences)
            + ". Nothing was changed. Change the table first, or let the source leave out these "
            "columns"
        )
    return changes


def evolved(
    catalog: lake.Catalog,
    name: str,
    changes_of: Callable[[lake.Table], list[SchemaChange]],
) -> lake.Table:
    """Apply the changes that ``changes_of`` returns for a table; return the table with its newest
    schema.

    The error of a failed change is ignored if another run has made all changes meanwhile.
    """
    table = catalog.table(name)
    changes = changes_of(table)
    if not changes:
        return table
    try:
        return catalog.alter_table(name, *changes)
    except lake.LakeError:
        table = catalog.table(name)
        if changes_of(table):
            raise
        return table


def _require_needed(table: lake.Table, columns: MessageColumns) -> None:
    """Raise ``InvalidRequestError`` if the rows lack a column that is NOT NULL and has no default,
    for example a key that has another name in the rows.
    """
    fields = row_schema(table).fields
    needed = [f.name for f in fields if not f.type.nullable and not f.default_value]
    lacking = [name for name in needed if name not in columns.by_name]
    if lacking and columns.by_name:
        raise lake.InvalidRequestError(
            f"the rows do not fit {table.location}: they lack "
            f"{', '.join(map(repr, lacking))} (NOT NULL in the table). The rows have the columns "
            + f"{', '.join(columns.by_name)}. Nothing was changed. Correct the names, or send the "
            "missing columns"
        )


class _Difference(Exception):
    """Raised if a column of the messages does not fit the table."""


def _require_other_letters(new: str, unfilled: Sequence[str]) -> None:
    """Raise ``_Difference`` if the name of a new column differs only in case from one of
    ``unfilled``, the columns of the table that the rows lack.
    """
    for name in unfilled:
        if name.casefold() == new.casefold():
            raise _Difference(
                f"column {new!r} differs only in case from column {name!r} of the table, and "
                f"the rows lack {name!r}"
            )


def _change(
    column: MessageColumn, there: DataField | None, texts_hold_all: bool
) -> list[SchemaChange]:
    found = column.type
    if there is None:  # without a known type the column is added by a later batch
        return [] if found is None else [_added(column, (column.name,), found)]
    if found is not None and not isinstance(there.type, AtomicType):
        return [*_changes_inside(column, found, there.type)]
    wanted = _wanted(column, there, texts_hold_all)
    if wanted is None or wanted == with_nullability(there.type, nullable=True):
        return []
    return [update_column_type((column.name,), declaration(wanted))]


def _changes_inside(
    column: MessageColumn, found: DataType, there: DataType
) -> Iterator[SchemaChange]:
    """Yield the changes that a nested column of the table needs. ``found`` is the type of the
    column in the messages, ``there`` its type in the table.

    Parts without a declared type keep the type of the table. Raise ``_Difference`` if no type holds
    the values of the messages and those of the table.
    """
    for path, part, old in parts_beside(found, there, (column.name,)):
        if old is None:
            yield _added(column, path, part)
        elif column.is_declared or type(part) is not type(old):
            wider = widest(old, part)
            if wider is None:
                raise _differs(column, ".".join(path), old, part)
            if wider != with_nullability(old, nullable=True):
                yield update_column_type(path, declaration(wider))


def _added(column: MessageColumn, path: _Path, type: DataType) -> SchemaChange:
    column.require_exact(path)
    return add_column(path, declaration(type))


def _wanted(column: MessageColumn, there: DataField, texts_hold_all: bool) -> DataType | None:
    """Return the new type of the table's column; None to keep its type in ``there``.

    Raise ``_Difference`` if no type holds the values of the messages and those of the table.
    """
    if column.declared is not None and column.declared.type is not None:
        if _is_small_number(column.declared.type, there.type, texts_hold_all):
            return None
        if column.declared.type == STRING and _is_decimal(there.type):
            return None  # Debezium writes this with 'decimal.handling.mode' = 'string'
        wider = widest(there.type, column.declared.type)
        if wider is None:
            raise _differs(column, column.name, there.type, column.declared.type)
        return wider
    if column.type is None or not isinstance(there.type, AtomicType):
        return None
    return _by_values(column, there.type, column.type, texts_hold_all)


def _is_small_number(declared: DataType, there: DataType, texts_hold_all: bool) -> bool:
    """Return True if the messages give every value as text, and declare BOOLEAN for an integer
    column of the table.

    BOOLEAN then stands for MySQL's tinyint(1), whose texts are numbers.
    """
    names = [each.name for each in (declared, there) if isinstance(each, AtomicType)]
    return texts_hold_all and len(names) == 2 and names[0] is T.BOOLEAN and names[1] in INTEGERS


def _is_decimal(type: DataType) -> bool:
    return isinstance(type, AtomicType) and type.name is T.DECIMAL


def _by_values(
    column: MessageColumn, type: AtomicType, found: DataType, texts_hold_all: bool
) -> DataType | None:
    """Return the new type of a column of type ``type`` for JSON values without a declared type.
    Return None to keep ``type``. ``found`` is the type of the JSON values.

    Raise ``_Difference`` if the values do not fit. With ``texts_hold_all`` text fits every type.
    """
    if not isinstance(found, AtomicType):
        raise _differs(column, column.name, type, found)
    if found.name is T.BIGINT and type.name in INTEGERS:
        return widest(type, column.integer)
    if found.name is T.BIGINT and type.name is T.BOOLEAN and 0 <= column.least <= column.most <= 1:
        return None
    fits = (
        (found.name is T.BIGINT and type.name in _OF_NUMBERS)
        or (found.name is T.DOUBLE and type.name in (T.DECIMAL, T.FLOAT, T.DOUBLE))
        or (found.name is T.BOOLEAN and type.name is T.BOOLEAN)
        or (found.name is T.VARCHAR and (type.name in {*_OF_TEXTS, *_ALSO_AS_TEXT}))
        or (found.name is T.VARCHAR and texts_hold_all)
    )
    if not fits:
        raise _differs(column, column.name, type, found)
    return None


def _differs(column: MessageColumn, name: str, there: DataType, found: DataType) -> _Difference:
    origin = "declared as" if column.is_declared else "written as"
    is_time = isinstance(there, AtomicType) and there.name in _TIMES
    may_be_number = is_time and not column.is_declared
    hint = (
        " (the job reads a number as a time only if the messages contain a schema)"
        if may_be_number
        else ""
    )
    return _Difference(
        f"column {name!r} is {type_text(there)} in the table and "
        f"{origin} {type_text(found)} in the source{hint}"
    )


def declaration(type: DataType) -> str | pa.DataType:
    """Return a type in the form that schema changes take: an atomic type as SQL text, any other as
    an Arrow type.
    """
    return type_text(type) if isinstance(type, AtomicType) else to_arrow_type(type)


def column_list(found: Mapping[str, DataType]) -> list[tuple[str, str]] | pa.Schema:
    """Return columns in the form that ``create_table`` takes: SQL texts if all types are atomic,
    else an Arrow schema.
    """
    if all(isinstance(type, AtomicType) for type in found.values()):
        return [(name, type_text(type)) for name, type in found.items()]
    return pa.schema([(name, to_arrow_type(type)) for name, type in found.items()])


def parts_beside(
    found: DataType, there: DataType, path: _Path
) -> Iterator[tuple[_Path, DataType, DataType | None]]:
    """Yield the path of each part of a nested column, with its types in ``found`` and in ``there``.

    A part is divided further while both types are nested in the same way. The second type is None
    if ``there`` lacks the field. Fields are matched by name, because messages have no field ids.
    """
    if isinstance(found, ArrayType) and isinstance(there, ArrayType):
        yield from parts_beside(found.element, there.element, (*path, "element"))
    elif isinstance(found, MapType) and isinstance(there, MapType):
        yield (*path, "key"), found.key, there.key
        yield from parts_beside(found.value, there.value, (*path, "value"))
    elif isinstance(found, RowType) and isinstance(there, RowType):
        parts = {part.name: part.type for part in there.fields}
        for part in found.fields:
            inner = (*path, part.name)
            if part.name in parts:
                yield from parts_beside(part.type, parts[part.name], inner)
            else:
                yield inner, part.type, None
    else:
        yield path, found, there
