"""What may be asked for: one value per change, made by one function each.

A column is named by its path: ``"note"``, ``"address.city"`` or ``("address", "city")``, the
tuple where names hold dots. The steps ``element`` of an ARRAY and ``value`` of a MAP lead into
them: ``"items.element.price"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.schema import new_schema
from lakeformat.types.type_rules import is_text, require_text
from lakeformat.types.types import DataField, DataType

__all__ = [
    "AddColumn",
    "ColumnPath",
    "DropColumn",
    "Path",
    "Place",
    "Position",
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
    "set_option",
    "update_column_comment",
    "update_column_nullability",
    "update_column_position",
    "update_column_type",
    "update_comment",
]

ColumnPath: TypeAlias = str | Sequence[str]
"""A column, or a field inside one: text with dots between names, or the names."""

Path: TypeAlias = tuple[str, ...]
"""The names of a column path, from the table inwards."""


class Place(Enum):
    """Where among its siblings a column may go."""

    FIRST = auto()
    LAST = auto()
    AFTER = auto()
    BEFORE = auto()


@dataclass(frozen=True, slots=True)
class Position:
    """A place, with the sibling it refers to for AFTER and BEFORE."""

    place: Place
    reference: str = ""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column without values in the files that exist."""

    path: Path
    field: DataField
    """Numbered as the only column of a table, its nested fields after it."""
    position: Position | None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that is no longer read."""

    path: Path


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """The same column by another name."""

    path: Path
    new_name: str


@dataclass(frozen=True, slots=True)
class UpdateColumnType:
    """A column whose values are cast when they are read."""

    path: Path
    type: DataType


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability:
    """A column that may, or must not, be null from now on."""

    path: Path
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateColumnComment:
    """What people say about a column."""

    path: Path
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition:
    """A column elsewhere among its siblings."""

    path: Path
    position: Position


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """What people say about the table."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class SetOption:
    """A table option with a value of its own."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """A table option back at its default."""

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
"""One change to a table's schema, as the functions of this module make it."""


def add_column(
    column: ColumnPath,
    type: str | pa.DataType,
    *,
    comment: str | None = None,
    first: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> SchemaChange:
    """Add a nullable column, or a field to a ROW; rows that exist are null there."""
    path = _path(column)
    _check_comment(comment)
    position = _position(column, first=first, after=after, before=before)
    return AddColumn(path, replace(_only_column(path[-1], type), description=comment), position)


def drop_column(column: ColumnPath) -> SchemaChange:
    """Drop a column; its values stay in old files, a later column of that name is another one."""
    return DropColumn(_path(column))


def rename_column(column: ColumnPath, new_name: str) -> SchemaChange:
    """Call a column something else; keys and options that name it follow."""
    require_text("new_name", new_name)
    _only_column(new_name, "INT")  # refuses a name no column may have
    return RenameColumn(_path(column), new_name)


def update_column_type(column: ColumnPath, type: str | pa.DataType) -> SchemaChange:
    """Let a column have another type, to which values in old files are cast when read.

    Whether it may be null stays as it is; see ``update_column_nullability``.
    """
    return UpdateColumnType(_path(column), _type(type))


def update_column_nullability(column: ColumnPath, *, nullable: bool) -> SchemaChange:
    """Allow nulls in a column, or forbid them.

    They are forbidden only where ``alter-column-null-to-not-null.disabled`` is ``false``.
    """
    if not isinstance(nullable, bool):
        raise InvalidRequestError(f"nullable must be True or False, got {nullable!r}")
    return UpdateColumnNullability(_path(column), nullable)


def update_column_comment(column: ColumnPath, comment: str | None) -> SchemaChange:
    """Say something else about a column; None says nothing."""
    _check_comment(comment)
    return UpdateColumnComment(_path(column), comment)


def update_column_position(
    column: ColumnPath,
    *,
    first: bool = False,
    last: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> SchemaChange:
    """Move a column among its siblings; files stay as they are."""
    position = _position(column, first=first, last=last, after=after, before=before)
    if position is None:
        raise InvalidRequestError(f"say where {_shown(column)} goes: first, last, after or before")
    return UpdateColumnPosition(_path(column), position)


def update_comment(comment: str | None) -> SchemaChange:
    """Say something else about the table; None says nothing."""
    _check_comment(comment)
    return UpdateComment(comment)


def set_option(key: str, value: str) -> SchemaChange:
    """Give a table option a value; some may not change once the table has a snapshot."""
    require_text("an option's key", key)
    if not key.strip():
        raise InvalidRequestError(
            f"the option's name is empty, and its value is {value!r}: name an option, such as "
            "'bucket'; `lake options` lists those that are set"
        )
    require_text(f"the value of option {key!r}", value)
    return SetOption(key, value)


def remove_option(key: str) -> SchemaChange:
    """Let a table option have its default again."""
    require_text("an option's key", key)
    return RemoveOption(key)


def _path(column: ColumnPath) -> Path:
    names: object = column.split(".") if isinstance(column, str) else column
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(name and is_text(name) for name in names)
    ):
        raise InvalidRequestError(
            f"a column is named by text such as 'address.city' or a tuple of names, got {column!r}"
        )
    return tuple(names)


def _check_comment(comment: object) -> None:
    if comment is not None:
        require_text("comment", comment)


def _only_column(name: str, wanted: str | pa.DataType) -> DataField:
    """The column, checked and numbered as that of a table which has no other."""
    named = pa.schema([(name, wanted)]) if isinstance(wanted, pa.DataType) else [(name, wanted)]
    return new_schema(named, time_millis=0).fields[0]


def _type(wanted: str | pa.DataType) -> DataType:
    """The type, checked as that of a column."""
    return _only_column("type", wanted).type


def _position(
    column: ColumnPath,
    *,
    first: bool = False,
    last: bool = False,
    after: str | None = None,
    before: str | None = None,
) -> Position | None:
    chosen = [
        *([Position(Place.FIRST)] if first else []),
        *([Position(Place.LAST)] if last else []),
        *([Position(Place.AFTER, after)] if after is not None else []),
        *([Position(Place.BEFORE, before)] if before is not None else []),
    ]
    if len(chosen) > 1:
        raise InvalidRequestError(f"{_shown(column)} can have one place only, got {len(chosen)}")
    return chosen[0] if chosen else None


def _shown(column: ColumnPath) -> str:
    return repr(column if isinstance(column, str) else ".".join(column))
