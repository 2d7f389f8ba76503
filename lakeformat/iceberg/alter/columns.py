# SPDX-License-Identifier: Apache-2.0
"""Edits the columns of a schema: adds, drops, renames, moves and widens them, at any depth.

The functions raise ``InvalidRequestError`` for a change that would break existing files, partitions
or sort orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.alter.changes import (
    ColumnChange,
    DroppedColumn,
    MovedColumn,
    NewColumn,
    NewDoc,
    OptionalColumn,
    Path,
    RenamedColumn,
    WiderColumn,
)
from lakeformat.iceberg.create.arrow_schema import new_field, new_type, require_not_reserved
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import (
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    Type,
    inner_fields,
)
from lakeformat.types.closest import closest

__all__ = ["edited_columns"]

_WIDER = {("int", "long"), ("float", "double")}


def edited_columns(
    metadata: TableMetadata, columns: StructType, change: ColumnChange, ids: Iterator[int]
) -> StructType:
    """Return the columns after one change; new fields get their ids from ``ids``.

    ``columns`` is the current schema after the earlier changes of the same ``Alteration``. Raise
    ``InvalidRequestError`` if the change is not possible, and ``UnsupportedError`` for a type that
    the format version of the table does not have.
    """
    path = change.path
    match change:
        case NewColumn():
            found = _edited(
                columns, path[:-1], lambda row: _added(row, change, ids, metadata), path
            )
        case WiderColumn():
            wider = new_type(change.type, ids, metadata.format_version)
            _require_no_partition(metadata, columns, path)
            found = _edited(columns, path, lambda old: _widened(old, wider, path), path)
        case OptionalColumn():
            found = _with_optional(metadata, columns, path)
        case _:
            named = _named_field(columns, path)
            if isinstance(change, DroppedColumn):
                _require_unused(metadata, named, path)

            def edit(row: Type) -> Type:
                return _with_changed_fields(row, change, path)

            found = _edited(columns, path[:-1], edit, path)
    assert isinstance(found, StructType)
    return found


def _with_changed_fields(
    row: Type, change: DroppedColumn | RenamedColumn | NewDoc | MovedColumn, path: Path
) -> StructType:
    if not isinstance(row, StructType):
        raise InvalidRequestError(
            f"{_shown(path)} cannot be changed, because {_shown(path[:-1])} is not a struct: only "
            "fields of a struct can be dropped, renamed, moved or commented. Change "
            f"{_shown(path[:-1])} itself"
        )
    fields = [*row.fields]
    place = [each.name for each in fields].index(path[-1])
    match change:
        case DroppedColumn():
            del fields[place]
            if not fields:
                raise InvalidRequestError(
                    f"{_shown(path)} cannot be dropped, because it is the only "
                    f"{'column' if len(path) == 1 else 'field of its struct'}: add another first"
                )
        case RenamedColumn(name=name):
            others = [each for each in fields if each is not fields[place]]
            _require_free(name, others, (*path[:-1], name), "renamed")
            fields[place] = replace(fields[place], name=name)
        case NewDoc(doc=doc):
            fields[place] = replace(fields[place], doc=doc)
        case MovedColumn():
            fields = _moved(fields, place, change)
    return StructType(tuple(fields))


def _moved(fields: list[Field], place: int, change: MovedColumn) -> list[Field]:
    moved = fields.pop(place)
    names = [each.name for each in fields]
    if change.place == "first":
        target = 0
    elif change.place == "last":
        target = len(fields)
    elif change.neighbour not in names:
        raise InvalidRequestError(
            f"{_shown(change.path)} cannot be placed {change.place} {change.neighbour!r}: the "
            f"other columns at its level are {', '.join(names) or 'none'}"
            f"{closest(change.neighbour, names)}"
        )
    else:
        target = names.index(change.neighbour) + (change.place == "after")
    return [*fields[:target], moved, *fields[target:]]


def _with_optional(metadata: TableMetadata, columns: StructType, path: Path) -> Type:
    """Return ``columns`` with the field at ``path`` changed so that it may be null.

    Raise ``InvalidRequestError`` for an identifier field, or for the key of a map.
    """
    field = _named_field(columns, path)
    if field.id in metadata.schema.identifier_field_ids:
        raise InvalidRequestError(
            f"{_shown(path)} identifies rows, so it is never null: keep it as NOT NULL"
        )

    def edit(owner: Type) -> Type:
        match owner:
            case StructType(fields=fields):
                optional = replace(field, required=False)
                return StructType(
                    tuple(optional if each.id == field.id else each for each in fields)
                )
            case ListType():
                return replace(owner, element_required=False)
            case MapType() if path[-1] == "value":
                return replace(owner, value_required=False)
        raise InvalidRequestError(
            f"{_shown(path)} is the key of a map, so it is never null: leave this change out"
        )

    return _edited(columns, path[:-1], edit, path)


def _named_field(columns: StructType, path: Path) -> Field:
    """Return the field at ``path``; raise ``InvalidRequestError`` if there is none."""
    fields, found = [*columns.fields], None
    for depth, name in enumerate(path):
        found = next((each for each in fields if each.name == name), None)
        if found is None:
            raise _missing(path, depth, [each.name for each in fields])
        fields = [*inner_fields(found.type)]
    assert found is not None
    return found


def _require_free(name: str, fields: list[Field] | tuple[Field, ...], path: Path, how: str) -> None:
    """Raise ``InvalidRequestError`` if one of ``fields`` has the name; case is ignored.

    A column at the top must not have a reserved name either. ``how`` is the refused change for the
    error message: ``added`` or ``renamed``.
    """
    if len(path) == 1:
        require_not_reserved(name)
    for each in fields:
        if each.name.casefold() == name.casefold():
            subject = "a column cannot be renamed to " if how == "renamed" else ""
            rest = "" if how == "renamed" else f" cannot be {how}"
            found = _shown((*path[:-1], each.name))
            raise InvalidRequestError(
                f"{subject}{_shown(path)}{rest}, because there is a column {found}: choose another "
                "name"
            )


def _require_unused(metadata: TableMetadata, dropped: Field, path: Path) -> None:
    """Raise ``InvalidRequestError`` if a partition spec, a sort order or the identifier fields use
    the dropped field or a field inside of it.
    """
    ids = {dropped.id, *_ids(dropped.type)}
    specs = (each for spec in metadata.partition_specs for each in spec.fields)
    orders = (each for order in metadata.sort_orders for each in order.fields)
    uses = {
        "the current or an earlier partition spec uses it": {
            number for each in specs for number in each.source_ids
        },
        "the current or an earlier sort order uses it": {
            number for each in orders for number in each.source_ids
        },
        "it is an identifier field": {*metadata.schema.identifier_field_ids},
    }
    for use, used in uses.items():
        if ids & used:
            raise InvalidRequestError(
                f"{_shown(path)} cannot be dropped, because {use}: keep it, "
                "or copy the rows to a new table without it"
            )


def _ids(kind: Type) -> Iterator[int]:
    for field in inner_fields(kind):
        yield field.id
        yield from _ids(field.type)


def _added(row: Type, change: NewColumn, ids: Iterator[int], metadata: TableMetadata) -> Type:
    path = change.path
    if not isinstance(row, StructType):
        raise InvalidRequestError(
            f"{_shown(path)} cannot be added, because {_shown(path[:-1])} is not a struct: add a "
            "column, or a field of a struct"
        )
    _require_free(path[-1], row.fields, path, "added")
    column = pa.field(path[-1], change.type)
    added = replace(new_field(next(ids), column, ids, metadata.format_version), doc=change.doc)
    return StructType((*row.fields, added))


def _widened(old: Type, wider: Type, path: Path) -> Type:
    if isinstance(old, PrimitiveType) and isinstance(wider, PrimitiveType):
        more_digits = (
            old.name == wider.name == "decimal"
            and old.scale == wider.scale
            and old.precision <= wider.precision
        )
        if old == wider or more_digits or (old.name, wider.name) in _WIDER:
            return wider
    raise InvalidRequestError(
        f"{_shown(path)} is {_named(old)} and cannot become {_named(wider)}: the only "
        "possible changes are int to long, float to double, and decimal to a higher precision with "
        "the same scale. Keep the type, or add another column"
    )


def _require_no_partition(metadata: TableMetadata, columns: StructType, path: Path) -> None:
    """Raise ``InvalidRequestError`` if the column at ``path`` is the source of a partition field.

    Manifests store the partition values of such a column, so its type cannot be changed.
    """
    found = Schema(0, columns.fields).named(".".join(path))
    sources = {
        number
        for spec in metadata.partition_specs
        for field in spec.fields
        for number in field.source_ids
    }
    if found is not None and found.id in sources:
        raise InvalidRequestError(
            f"the current or an earlier partition spec uses {_shown(path)}, so this version does "
            "not change the type of this column: use ALTER TABLE in Spark"
        )


def _edited(kind: Type, path: Path, edit: Callable[[Type], Type], whole: Path) -> Type:
    """Return ``kind`` with ``edit`` applied to the type at ``path`` inside of it.

    Error messages name ``whole``, the path from the top of the schema.
    """
    if not path:
        return edit(kind)
    name, rest = path[0], path[1:]
    match kind:
        case StructType(fields=fields):
            names = [each.name for each in fields]
            if name in names:
                return StructType(
                    tuple(
                        replace(each, type=_edited(each.type, rest, edit, whole))
                        if each.name == name
                        else each
                        for each in fields
                    )
                )
            raise _missing(whole, len(whole) - len(path), names)
        case ListType() if name == "element":
            return replace(kind, element=_edited(kind.element, rest, edit, whole))
        case MapType() if name == "value":
            return replace(kind, value=_edited(kind.value, rest, edit, whole))
    raise InvalidRequestError(
        f"there is no column {_shown(whole)}: only a struct has named fields; in a list "
        "write 'element', in a map 'value'"
    )


def _missing(path: Path, depth: int, names: Sequence[str]) -> InvalidRequestError:
    if not names:
        return InvalidRequestError(
            f"there is no column {_shown(path)}: only a struct has named fields"
        )
    parent = "".join(f"{each}." for each in path[:depth])
    way = closest(path[depth], names, inside=parent)
    if (dotted := ".".join(path)) != path[depth] and dotted in names:
        way = (
            f"; the text {dotted!r} names a field of a struct: to name the column {dotted!r} "
            f"itself, write it as a tuple, ({dotted!r},)"
        )
    return InvalidRequestError(
        f"there is no column {_shown(path)}; choose one of "
        f"{', '.join(parent + each for each in names)}{way}"
    )


def _named(kind: Type) -> str:
    match kind:
        case PrimitiveType():
            return str(kind)
        case StructType():
            return "a struct"
        case ListType():
            return "a list"
        case MapType():
            return "a map"


def _shown(path: Path) -> str:
    return repr(".".join(path))
