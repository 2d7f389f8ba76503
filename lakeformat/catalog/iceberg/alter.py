# SPDX-License-Identifier: Apache-2.0
"""Converts the changes of ``alter_table`` to changes of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from lakeformat.catalog.iceberg.created_format import require_no_store_mark
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.alter.alter import alter
from lakeformat.iceberg.alter.changes import (
    Alteration,
    ColumnChange,
    DroppedColumn,
    MovedColumn,
    NewColumn,
    NewDoc,
    OptionalColumn,
    RenamedColumn,
    WiderColumn,
)
from lakeformat.iceberg.data_paths import DATA_PATHS, refuse_data_in_tables
from lakeformat.iceberg.metadata.metadata_file import METADATA_PATH
from lakeformat.iceberg.table import IcebergTable
from lakeformat.paimon.schema_changes.changes import (
    AddColumn,
    ColumnPlace,
    ColumnPosition,
    DropColumn,
    Path,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    require_change,
)
from lakeformat.tables.credential_options import require_no_credential
from lakeformat.types.arrow_types import to_arrow_type

if TYPE_CHECKING:
    from lakeformat.mixed.table import MixedTable
    from lakeformat.paimon.schema_changes.changes import SchemaChange

__all__ = ["alter_opened", "alteration_of"]

_COMMENT = "comment"
_PLACES: Final[dict[ColumnPlace, Literal["first", "last", "after", "before"]]] = {
    ColumnPlace.FIRST: "first",
    ColumnPlace.LAST: "last",
    ColumnPlace.AFTER: "after",
    ColumnPlace.BEFORE: "before",
}


def alteration_of(table: str, changes: Sequence[SchemaChange]) -> Alteration:
    """Return the changes as one alteration.

    Raise ``InvalidRequestError`` if ``changes`` is empty, sets a credential, makes a column NOT
    NULL, or adds a column that is NOT NULL or has a default.
    """
    if not changes:
        raise InvalidRequestError(
            f"no change of {table!r} is given: pass one or more, such as add_column(…)"
        )
    columns: list[ColumnChange] = []
    properties: dict[str, str | None] = {}
    for change in changes:
        require_change(change)
        match change:
            case SetOption(key=key, value=value):
                require_no_credential(key, value)
                properties[key] = value
            case RemoveOption(key=key):
                properties[key] = None
            case UpdateComment(comment=comment):
                properties[_COMMENT] = comment
            case _:
                columns += _column_changes(table, change)
    return Alteration(tuple(columns), properties)


def alter_opened(table: IcebergTable | MixedTable, alteration: Alteration) -> None:
    """Make all changes to an opened table, or none; both stores of a Mixed table are changed.

    Raise ``InvalidRequestError`` if a property places data files in another table's directory.
    """
    given = alteration.properties
    if not given.keys().isdisjoint(DATA_PATHS):
        handle = table._handle if isinstance(table, IcebergTable) else table._pair.base
        loaded = handle.load()
        own = {**loaded.metadata.properties, **given}.get(METADATA_PATH)
        refuse_data_in_tables(loaded.places, given, own, loaded.metadata.table_uuid)
    if isinstance(table, IcebergTable):
        require_no_store_mark(alteration.properties, table.location)
        alter(table._handle, alteration)
        return
    from lakeformat.mixed.alter import alter_pair  # a plain Iceberg table does not need it

    alter_pair(table._pair, alteration)


def _column_changes(table: str, change: SchemaChange) -> Iterator[ColumnChange]:
    match change:
        case AddColumn():
            yield from _new_column(table, change)
        case DropColumn(path=path):
            yield DroppedColumn(path)
        case RenameColumn(path=path, new_name=name):
            yield RenamedColumn(path, name)
        case UpdateColumnType(path=path, type=kind):
            yield WiderColumn(path, to_arrow_type(kind))
        case UpdateColumnComment(path=path, comment=comment):
            yield NewDoc(path, comment)
        case UpdateColumnPosition(path=path, position=position):
            yield _moved(path, position)
        case UpdateColumnNullability(path=path, nullable=True):
            yield OptionalColumn(path)
        case UpdateColumnNullability(path=path):
            raise InvalidRequestError(
                f"column {'.'.join(path)!r} of {table} cannot become NOT NULL, because existing "
                "files may have nulls there: check the rows with table.check(not_null=…) (`lake "
                "check --not-null`) instead"
            )


def _new_column(table: str, change: AddColumn) -> Iterator[ColumnChange]:
    field = change.field
    if field.default_value is not None or not field.type.nullable:
        raise InvalidRequestError(
            f"column {'.'.join(change.path)!r} of {table} cannot be added with a default or as NOT "
            "NULL, because the rows of existing files would have nulls there: leave out the "
            "default and NOT NULL"
        )
    yield NewColumn(change.path, to_arrow_type(field.type), field.description)
    if change.position is not None:
        yield _moved(change.path, change.position)


def _moved(path: Path, position: ColumnPosition) -> MovedColumn:
    return MovedColumn(path, _PLACES[position.place], position.reference)
