# SPDX-License-Identifier: Apache-2.0
"""Applies changes to a schema, and refuses a change that the format does not allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeformat.errors import AlreadyExistsError, InvalidRequestError
from lakeformat.paimon.schema import CURRENT_VERSION, TableSchema
from lakeformat.paimon.schema_changes import column_rules
from lakeformat.paimon.schema_changes.changelog_rules import check_change_of_lookups
from lakeformat.paimon.schema_changes.changes import (
    AddColumn,
    ColumnPlace,
    ColumnPosition,
    DropColumn,
    Path,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    require_change,
)
from lakeformat.paimon.schema_changes.column_options import referenced_columns, rename_in_options
from lakeformat.paimon.schema_changes.column_path import (
    Fields,
    edit_siblings,
    edit_type,
    position_of,
    put,
    shown,
)
from lakeformat.paimon.schema_changes.numbering import highest_id, moved_behind
from lakeformat.paimon.schema_changes.option_rules import check_removal, check_setting
from lakeformat.paimon.schema_changes.order_rules import check_order
from lakeformat.paimon.schema_changes.table_rules import check_table
from lakeformat.types.types import DataField, DataType, with_nullability

__all__ = ["apply_changes"]


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], *, has_snapshots: bool, now: int
) -> TableSchema:
    """Return the next schema version, with all ``changes``; ``schema`` itself if nothing changes.

    With ``has_snapshots``, options on which existing files depend cannot change. ``now`` is in
    epoch milliseconds. Raise InvalidRequestError or UnsupportedError for a change that is not
    allowed, and AlreadyExistsError for the name of an existing column.
    """
    # Add the defaults of older versions as explicit options: the new version has other defaults.
    explicit = replace(schema, options=schema.table_options.to_dict(), version=CURRENT_VERSION)
    altered = explicit
    for change in changes:
        require_change(change)
        altered = _apply(altered, explicit, change, has_snapshots=has_snapshots)
    if altered == explicit:
        return schema
    _check_references(explicit, altered)
    if has_snapshots:
        check_change_of_lookups(explicit, altered)
    _check_table(explicit, altered)
    return replace(altered, id=schema.id + 1, time_millis=now)


def _apply(
    schema: TableSchema, before: TableSchema, change: SchemaChange, *, has_snapshots: bool
) -> TableSchema:
    match change:
        case SetOption() | RemoveOption():
            return _change_option(schema, before, change, has_snapshots=has_snapshots)
        case UpdateComment(comment=comment):
            return replace(schema, comment=comment)
        case AddColumn():
            return _add(schema, change)
        case RenameColumn():
            return _rename(schema, change)
    return replace(schema, fields=_changed_fields(schema, change, has_snapshots=has_snapshots))


def _changed_fields(
    schema: TableSchema,
    change: DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnPosition,
    *,
    has_snapshots: bool,
) -> Fields:
    fields, path = schema.fields, change.path
    match change:
        case DropColumn():
            column_rules.check_drop(schema, path)
            return edit_siblings(fields, path, lambda beside: _without(beside, path))
        case UpdateColumnType(type=wanted):
            column_rules.check_type_change(schema, path)
            edit = _TypeEdit(schema, path, wanted, has_snapshots)
            return edit_type(fields, path, edit.changed)
        case UpdateColumnNullability(nullable=nullable):
            column_rules.check_key_nullability(schema, path, nullable=nullable)
            edit = _TypeEdit(schema, path, None)
            return edit_type(fields, path, lambda old: edit.nullability(old, nullable=nullable))
        case UpdateColumnComment(comment=comment):
            return edit_siblings(fields, path, lambda beside: _commented(beside, path, comment))
        case UpdateColumnPosition(position=position):
            return edit_siblings(fields, path, lambda beside: _moved(beside, path, position))


def _change_option(
    schema: TableSchema,
    before: TableSchema,
    change: SetOption | RemoveOption,
    *,
    has_snapshots: bool,
) -> TableSchema:
    options = dict(schema.options)
    if isinstance(change, RemoveOption):
        if change.key in options:
            check_removal(before.options, change.key, has_snapshots=has_snapshots)
        options.pop(change.key, None)
    elif before.options.get(change.key) == change.value:
        options[change.key] = change.value  # an unchanged value is accepted, even if unsupported
    else:
        check_setting(before.options, change.key, change.value, has_snapshots=has_snapshots)
        options[change.key] = change.value
    return replace(schema, options=options)


def _add(schema: TableSchema, change: AddColumn) -> TableSchema:
    path = change.path
    if not change.field.type.nullable:
        raise InvalidRequestError(
            f"column {shown(path)} must allow nulls, because existing rows have no value for it: "
            "leave out NOT NULL"
        )
    # Not the highest id of the existing columns, because old files still have the ids of dropped
    # columns.
    field = moved_behind(change.field, max(schema.highest_field_id, highest_id(schema.fields)))
    position = change.position or column_rules.default_position(schema, path)

    def with_column(beside: Fields) -> Fields:
        _refuse_taken(beside, path, path[-1])
        return _placed(beside, field, position)

    fields = edit_siblings(schema.fields, path, with_column)
    return replace(schema, fields=fields, highest_field_id=highest_id((field,)))


def _rename(schema: TableSchema, change: RenameColumn) -> TableSchema:
    path, new = change.path, change.new_name
    column_rules.check_rename(schema, path)

    def renamed(beside: Fields) -> Fields:
        position = position_of(beside, path[-1], path)
        _refuse_taken(beside, path, new)
        column_rules.check_renamed_type(beside[position], path)
        return put(beside, position, replace(beside[position], name=new))

    fields = edit_siblings(schema.fields, path, renamed)
    if len(path) > 1:  # keys and options name only columns
        return replace(schema, fields=fields)
    old = path[0]
    return replace(
        schema,
        fields=fields,
        primary_keys=tuple(new if key == old else key for key in schema.primary_keys),
        options=rename_in_options(schema.options, old, new),
    )


@dataclass(frozen=True, slots=True)
class _TypeEdit:
    """Changes the type or the nullability of one column, after a check of the change.

    ``wanted`` is the new type; None if only the nullability changes.
    """

    schema: TableSchema
    path: Path
    wanted: DataType | None
    has_snapshots: bool = False

    def changed(self, old: DataType) -> DataType:
        assert self.wanted is not None
        if not self.wanted.nullable:
            column_rules.check_nullability(self.schema, self.path, old, nullable=False)
        nullable = old.nullable and self.wanted.nullable
        new = with_nullability(self.wanted, nullable=nullable)
        if new != old:
            column_rules.check_bucket_key_type(self.schema, self.path, old, new)
            column_rules.check_cast(self.schema, self.path, old, new)
            if self.has_snapshots:
                check_order(self.schema, self.path, old, new)
        return new

    def nullability(self, old: DataType, *, nullable: bool) -> DataType:
        column_rules.check_nullability(self.schema, self.path, old, nullable=nullable)
        return with_nullability(old, nullable=nullable)


def _without(beside: Fields, path: Path) -> Fields:
    position = position_of(beside, path[-1], path)
    if len(beside) == 1:
        what, whole = ("column", "the table") if len(path) == 1 else ("field", shown(path[:-1]))
        raise InvalidRequestError(
            f"{shown(path)} cannot be dropped: no {what} would be left. Add another one first, or "
            f"drop {whole}"
        )
    return (*beside[:position], *beside[position + 1 :])


def _commented(beside: Fields, path: Path, comment: str | None) -> Fields:
    position = position_of(beside, path[-1], path)
    return put(beside, position, replace(beside[position], description=comment))


def _moved(beside: Fields, path: Path, position: ColumnPosition) -> Fields:
    at = position_of(beside, path[-1], path)
    if position.reference == path[-1]:
        raise InvalidRequestError(
            f"{shown(path)} cannot be moved before or after itself: name another column"
        )
    others = (*beside[:at], *beside[at + 1 :])
    return _placed(others, beside[at], position)


def _placed(beside: Fields, field: DataField, position: ColumnPosition) -> Fields:
    match position.place:
        case ColumnPlace.FIRST:
            at = 0
        case ColumnPlace.LAST:
            at = len(beside)
        case _:
            # The error lists plain names: 'after' and 'before' take no path.
            at = position_of(beside, position.reference, (position.reference,))
            at += position.place is ColumnPlace.AFTER
    return (*beside[:at], field, *beside[at:])


def _refuse_taken(beside: Fields, path: Path, name: str) -> None:
    if any(field.name == name for field in beside):
        raise AlreadyExistsError(
            f"column {shown((*path[:-1], name))} exists already: choose another name"
        )


def _check_references(before: TableSchema, after: TableSchema) -> None:
    """Raise InvalidRequestError if an option newly names a column that does not exist."""
    columns = set(after.column_names)
    dangling_before = referenced_columns(before.options).keys() - set(before.column_names)
    for column, key in referenced_columns(after.options).items():
        if column not in columns and column not in dangling_before:
            if column not in before.column_names:
                raise InvalidRequestError(
                    f"option {key!r} names the column {column!r}, which does not exist; the "
                    f"columns are {', '.join(after.column_names)}"
                )
            raise InvalidRequestError(
                f"option {key!r} names the column {column!r}, which this change removes; "
                "correct or remove the option first, or keep the column"
            )


def _check_table(before: TableSchema, after: TableSchema) -> None:
    """Raise InvalidRequestError if the new schema breaks a rule for new tables.

    Nothing is checked if the old schema already breaks a rule: another engine may have written it.
    """
    try:
        check_table(before)
    except InvalidRequestError:
        return
    check_table(after)
