# SPDX-License-Identifier: Apache-2.0
"""Adds columns to a table, and gives columns wider types, in one commit of metadata.

No data file changes: older files have nulls in a new column, and readers convert narrower values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.create.arrow_schema import new_field, new_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import ListType, MapType, PrimitiveType, StructType, Type
from lakeformat.types.closest import closest

__all__ = ["ColumnChange", "NewColumn", "WiderColumn", "change_columns"]

_NAME_MAPPING = "schema.name-mapping.default"
_WIDER = {("int", "long"), ("float", "double")}
_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column, or a field inside of one, that may be null."""

    path: _Path
    """The names from the column to the new field; ``element`` and ``value`` stand for the parts of
    a list and a map.
    """
    type: pa.DataType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class WiderColumn:
    """A new type for a column, or for a field inside of one."""

    path: _Path
    type: pa.DataType


ColumnChange: TypeAlias = NewColumn | WiderColumn


def change_columns(handle: TableHandle, changes: Sequence[ColumnChange]) -> None:
    """Make all changes, or none if one of them is refused.

    ``InvalidRequestError`` names the column that cannot be added or widened. A wider type is one of
    those that the specification allows: ``int`` to ``long``, ``float`` to ``double``, and a
    ``decimal`` with more digits before the point.
    """
    commit_metadata(handle, lambda loaded: _changed(loaded.metadata, handle.uri, changes))


def _changed(metadata: TableMetadata, table: str, changes: Sequence[ColumnChange]) -> TableMetadata:
    """Return metadata with a new current schema; the same metadata if no type changes."""
    if _NAME_MAPPING in metadata.properties:
        raise UnsupportedError(
            f"the columns of {table} were not changed: the table property {_NAME_MAPPING} names "
            "them, too, and this version does not change both: use ALTER TABLE in Spark"
        )
    ids = itertools.count(metadata.last_column_id + 1)
    columns = metadata.schema.struct
    for change in changes:
        try:
            columns = _one(metadata, columns, change, ids)
        except InvalidRequestError as reason:
            raise InvalidRequestError(
                f"the columns of {table} were not changed: {reason}"
            ) from None
    if columns == metadata.schema.struct:
        return metadata
    number = max(each.schema_id for each in metadata.schemas) + 1
    schema = Schema(number, columns.fields, metadata.schema.identifier_field_ids)
    return replace(
        metadata,
        schemas=(*metadata.schemas, schema),
        current_schema_id=number,
        last_column_id=next(ids) - 1,
    )


def _one(
    metadata: TableMetadata, columns: StructType, change: ColumnChange, ids: Iterator[int]
) -> StructType:
    path = change.path
    if isinstance(change, NewColumn):
        column = pa.field(path[-1], change.type)

        def add(row: Type) -> Type:
            return _with_field(row, column, change.doc, path, ids, metadata.format_version)

        found = _edited(columns, path[:-1], add, path)
    else:
        wider = new_type(change.type, ids, metadata.format_version)
        _require_no_partition(metadata, path)
        found = _edited(columns, path, lambda old: _widened(old, wider, path), path)
    assert isinstance(found, StructType)
    return found


def _with_field(
    row: Type, column: pa.Field, doc: str | None, path: _Path, ids: Iterator[int], version: int
) -> StructType:
    """Return the struct with one more field at its end."""
    if not isinstance(row, StructType):
        raise InvalidRequestError(
            f"{_shown(path)} cannot be added, because {_shown(path[:-1])} is not a struct"
        )
    for each in row.fields:
        if each.name.casefold() == column.name.casefold():
            raise InvalidRequestError(
                f"{_shown(path)} cannot be added, because there is a column {each.name!r}: choose "
                "another name"
            )
    added = replace(new_field(next(ids), column, ids, version), doc=doc)
    return StructType((*row.fields, added))


def _widened(old: Type, wider: Type, path: _Path) -> Type:
    if isinstance(old, PrimitiveType) and isinstance(wider, PrimitiveType):
        more_digits = (
            old.name == wider.name == "decimal"
            and old.scale == wider.scale
            and old.precision <= wider.precision
        )
        if old == wider or more_digits or (old.name, wider.name) in _WIDER:
            return wider
    raise InvalidRequestError(
        f"{_shown(path)} is {_named(old)} and cannot become {_named(wider)}: only int can "
        "become long, float become double, and decimal get a higher precision. Keep the type, or "
        "add another column"
    )


def _require_no_partition(metadata: TableMetadata, path: _Path) -> None:
    """Raise for the source of a partition field, whose values manifests store."""
    found = metadata.schema.named(".".join(path))
    sources = {
        number
        for spec in metadata.partition_specs
        for field in spec.fields
        for number in field.source_ids
    }
    if found is not None and found.id in sources:
        raise InvalidRequestError(
            f"{_shown(path)} makes partitions, so this version does not change its type: use ALTER "
            "TABLE in Spark"
        )


def _edited(kind: Type, path: _Path, edit: Callable[[Type], Type], whole: _Path) -> Type:
    """Return the type after ``edit`` of the part that the path names."""
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
            near = closest(name, names)
            raise InvalidRequestError(
                f"there is no column {_shown(whole)}; the names there are {', '.join(names)}{near}"
            )
        case ListType() if name == "element":
            return replace(kind, element=_edited(kind.element, rest, edit, whole))
        case MapType() if name == "value":
            return replace(kind, value=_edited(kind.value, rest, edit, whole))
    raise InvalidRequestError(f"there is no column {_shown(whole)}")


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


def _shown(path: _Path) -> str:
    return repr(".".join(path))
