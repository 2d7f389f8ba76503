# SPDX-License-Identifier: Apache-2.0
"""The changes of a schema: a class for each kind of change, and a function that creates it.

A column is named by its path: ``"note"``, ``"address.city"`` or ``("address", "city")``. Use the
tuple for names with dots. In a path, ``element`` means the elements of an ARRAY, and ``value`` the
values of a MAP: ``"items.element.price"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias, get_args

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.schema import new_schema
from lakeformat.tables.table import offering_arguments
from lakeformat.types.amounts import Setting, setting_text
from lakeformat.types.type_rules import is_text, require_text
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataField, DataType

__all__ = [
    "AddColumn",
    "ColumnPath",
    "ColumnPlace",
    "ColumnPosition",
    "DropColumn",
    "Path",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetOption",
    "UpdateColumnComment",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "add_column",
    "drop_column",
    "remove_option",
    "rename_column",
    "require_change",
    "set_option",
    "update_column_comment",
    "update_column_nullability",
    "update_column_position",
    "update_column_type",
    "update_comment",
]

ColumnPath: TypeAlias = str | Sequence[str]
"""A column, or a field inside one: a str with dots between the names, or a tuple of names."""

Path: TypeAlias = tuple[str, ...]
"""The names of a column path, from the column of the table to the innermost field."""


class ColumnPlace(Enum):
    """The position of a column among the columns, or of a field among the fields of its ROW."""

    FIRST = auto()
    LAST = auto()
    AFTER = auto()
    BEFORE = auto()


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """A position; for AFTER and BEFORE, ``reference`` is the name of the neighbour."""

    place: ColumnPlace
    reference: str = ""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column, which is null in existing rows."""

    path: Path
    field: DataField
    """The column; its field ids begin with 0 here, and ``apply_changes`` replaces them."""
    position: ColumnPosition | None

    def __str__(self) -> str:
        return f"add column {'.'.join(self.path)} {type_to_sql(self.field.type)}"


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column: readers skip its values in existing files."""

    path: Path


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column."""

    path: Path
    new_name: str


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """Change the type of a column; values in existing files are cast when they are read."""

    path: Path
    type: DataType

    def __str__(self) -> str:
        return f"change column {'.'.join(self.path)} to {type_to_sql(self.type)}"


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """Allow or forbid nulls in a column."""

    path: Path
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """Change the comment of a column."""

    path: Path
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """Move a column among the columns, or a field among the fields of its ROW."""

    path: Path
    position: ColumnPosition


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """Change the comment of the table."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Reset a table option to its default."""

    key: str


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnPosition
    | UpdateComment
    | SetOption
    | RemoveOption
)
"""One change of a table's schema, as the functions of this module create it."""


def require_change(change: object) -> None:
    """Raise InvalidRequestError unless the value is a SchemaChange."""
    if not isinstance(change, get_args(SchemaChange)):
        raise InvalidRequestError(
            f"{change!r} is not a change of a schema: pass the results of lake.add_column(...), "
            "lake.set_option(...) and so on, each as a separate argument"
        )


@offering_arguments
def add_column(
    column: ColumnPath,
    type: str | pa.DataType,
    *,
    comment: str | None = None,
    first: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> SchemaChange:
    """Return the change that adds a nullable column, or a field to a ROW; existing rows get null.

    Pass at most one of ``first``, ``after`` and ``before``. Without a position, the column is the
    last; with the table option ``add-column-before-partition``, it is before the partition columns.
    """
    path = _path(column)
    _check_comment(comment)
    position = _position(column, first=first, after=after, before=before)
    return AddColumn(path, replace(_only_column(path[-1], type), description=comment), position)


@offering_arguments
def drop_column(column: ColumnPath) -> SchemaChange:
    """Return the change that drops a column.

    Old files keep the values; a later column of the same name does not show them.
    """
    return DropColumn(_path(column))


@offering_arguments
def rename_column(column: ColumnPath, new_name: str) -> SchemaChange:
    """Return the change that renames a column.

    The primary key and the options that name the column get the new name, too.
    """
    require_text("new_name", new_name)
    _only_column(new_name, "INT")  # raises for a name that no column may have
    return RenameColumn(_path(column), new_name)


@offering_arguments
def update_column_type(column: ColumnPath, type: str | pa.DataType) -> SchemaChange:
    """Return the change of a column's type; values in old files are cast when they are read.

    A type without NOT NULL does not change the nullability; see ``update_column_nullability``.
    """
    return UpdateColumnType(_path(column), _type(type))


@offering_arguments
def update_column_nullability(column: ColumnPath, *, nullable: bool) -> SchemaChange:
    """Return the change that allows nulls in a column, or forbids them.

    To forbid nulls, first set the option ``alter-column-null-to-not-null.disabled`` to ``false``.
    Raise InvalidRequestError if ``nullable`` is not a bool.
    """
    if not isinstance(nullable, bool):
        raise InvalidRequestError(f"nullable must be True or False, got {nullable!r}")
    return UpdateColumnNullability(_path(column), nullable)


@offering_arguments
def update_column_comment(column: ColumnPath, comment: str | None) -> SchemaChange:
    """Return the change of a column's comment; None removes the comment."""
    _check_comment(comment)
    return UpdateColumnComment(_path(column), comment)


@offering_arguments
def update_column_position(
    column: ColumnPath,
    *,
    first: bool = False,
    last: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> SchemaChange:
    """Return the change that moves a column, or moves a field within its ROW; files do not change.

    Pass exactly one of ``first``, ``last``, ``after`` and ``before``; otherwise InvalidRequestError
    is raised.
    """
    position = _position(column, first=first, last=last, after=after, before=before)
    if position is None:
        raise InvalidRequestError(f"give {_shown(column)} a position: first, last, after or before")
    return UpdateColumnPosition(_path(column), position)


@offering_arguments
def update_comment(comment: str | None) -> SchemaChange:
    """Return the change of the table's comment; None removes the comment."""
    _check_comment(comment)
    return UpdateComment(comment)


@offering_arguments
def set_option(key: str, value: Setting) -> SchemaChange:
    """Return the change that sets a table option; some options are fixed once a snapshot exists.

    Raise InvalidRequestError for an empty key, or a value that is not text, a number, a bool or a
    timedelta.
    """
    require_text("an option's key", key)
    if not key.strip():
        raise InvalidRequestError(
            f"the option's name is empty, and its value is {value!r}: name an option, such as "
            "'bucket'; `lake options` lists those that are set"
        )
    return SetOption(key, setting_text(f"the value of option {key!r}", value))


@offering_arguments
def remove_option(key: str) -> SchemaChange:
    """Return the change that resets a table option to its default.

    Raise InvalidRequestError for an empty key.
    """
    require_text("an option's key", key)
    if not key.strip():
        raise InvalidRequestError(
            "the option's name is empty: name an option, such as 'bucket'; `lake options` lists "
            "those that are set"
        )
    return RemoveOption(key)


def _path(column: ColumnPath) -> Path:
    names: object = column.split(".") if isinstance(column, str) else column
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(name and is_text(name) for name in names)
    ):
        raise InvalidRequestError(
            "a column must be named by text such as 'address.city' or a tuple of names, got "
            f"{column!r}"
        )
    return tuple(names)


def _check_comment(comment: object) -> None:
    if comment is not None:
        require_text("comment", comment)


def _only_column(name: str, wanted: str | pa.DataType) -> DataField:
    """Return a column whose field ids start at 0.

    Raise InvalidRequestError if no column may have this name or type.
    """
    named = pa.schema([(name, wanted)]) if isinstance(wanted, pa.DataType) else [(name, wanted)]
    return new_schema(named, time_millis=0).fields[0]


def _type(wanted: str | pa.DataType) -> DataType:
    return _only_column("type", wanted).type


def _position(
    column: ColumnPath,
    *,
    first: bool = False,
    last: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> ColumnPosition | None:
    chosen = [
        *([ColumnPosition(ColumnPlace.FIRST)] if first else []),
        *([ColumnPosition(ColumnPlace.LAST)] if last else []),
        *([ColumnPosition(ColumnPlace.AFTER, after)] if after is not None else []),
        *([ColumnPosition(ColumnPlace.BEFORE, before)] if before is not None else []),
    ]
    if len(chosen) > 1:
        names = " and ".join(each.place.name.lower() for each in chosen)
        raise InvalidRequestError(
            f"{_shown(column)} can have only one position, got {len(chosen)}: pass only one of "
            f"{names}"
        )
    return chosen[0] if chosen else None


def _shown(column: ColumnPath) -> str:
    return repr(column if isinstance(column, str) else ".".join(column))
