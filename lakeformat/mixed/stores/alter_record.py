# SPDX-License-Identifier: Apache-2.0
"""The record of the newest alteration of both stores, and the state between its two commits.

The record is in the properties of the stores. An alteration takes effect with the commit of the
change store; the commit of the base store follows. Between the two commits, readers see the base
store as it will be after the alteration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.alter.alter import with_columns, with_properties
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, Type
from lakeformat.mixed.stores.file_offset import FILE_OFFSET

__all__ = [
    "ALTERED",
    "AlterRecord",
    "adopted_columns",
    "altered_base",
    "altered_change",
]

ALTERED = "lake.altered"
"""The property with the record of the newest alteration.

If both stores have the same record, or none, no alteration is pending.
"""


@dataclass(frozen=True, slots=True)
class AlterRecord:
    """One alteration, as the stores record it."""

    id: str
    """A random text, which no other alteration has."""
    base_schema_id: int
    """The id of the schema of the base store before the alteration."""
    properties: tuple[str, ...]
    """The names of the properties that the alteration sets or removes."""
    digest: str
    """A digest of all requested changes."""

    def to_text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(
            {
                "id": self.id,
                "base-schema-id": self.base_schema_id,
                "properties": [*self.properties],
                "digest": self.digest,
            }
        )

    @classmethod
    def of(cls, store: str, properties: Mapping[str, str]) -> AlterRecord | None:
        """Return the record in the properties of a store; None if the store has none.

        Raise ``CorruptTableError``, which names ``store``, for an invalid record.
        """
        text = properties.get(ALTERED)
        if text is None:
            return None
        try:
            found = json.loads(text)
            record = cls(
                found["id"], found["base-schema-id"], (*found["properties"],), found["digest"]
            )
            if type(record.base_schema_id) is int and all(
                isinstance(each, str) for each in (record.id, record.digest, *record.properties)
            ):
                return record
        except (ValueError, TypeError, LookupError):
            pass
        raise CorruptTableError(
            f"the property {ALTERED!r} of {store} is {text!r}, which is not a record of "
            "an alteration. With the program that wrote this value, set the property to its value "
            "in the other store of the Mixed table, or remove the property from both stores"
        )


def altered_base(base: TableMetadata, change: TableMetadata) -> TableMetadata | None:
    """Return the base store with an alteration that so far only the change store has.

    Return None if there is no such alteration, or if the base store no longer has the schema from
    before the alteration.
    """
    record = AlterRecord.of(change.location, change.properties)
    if record is None or base.properties.get(ALTERED) == change.properties[ALTERED]:
        return None
    if base.current_schema_id != record.base_schema_id:
        return None  # another program has altered the base store in between
    names = (*record.properties, ALTERED)
    properties = {name: change.properties.get(name) for name in names}
    columns = _without_offset(change.schema)
    return with_properties(with_columns(base, columns, change.last_column_id), properties)


def altered_change(base: TableMetadata, change: TableMetadata) -> TableMetadata | None:
    """Return the change store with the columns of the base store, if only the base store has them.

    Amoro can leave the stores in this state, because it alters the base store first. Two things
    show it: the base store once had the columns of the change store, and the change store never had
    the columns of the base store. Return None in any other state.
    """
    if not _was_altered_alone(base, change):
        return None
    hidden = tuple(each for each in change.schema.fields if each.id == FILE_OFFSET.id)
    return with_columns(change, (*base.schema.fields, *hidden), base.last_column_id)


def adopted_columns(base: TableMetadata, change: TableMetadata) -> TableMetadata | None:
    """Return the base store with the columns of the change store.

    This is for an alteration of the change store alone, by a program that leaves no record. Return
    None if it is not certain that only the change store was altered.
    """
    if not _was_altered_alone(change, base):
        return None
    return with_columns(base, _without_offset(change.schema), change.last_column_id)


def _without_offset(schema: Schema) -> tuple[Field, ...]:
    return tuple(each for each in schema.fields if each.id != FILE_OFFSET.id)


def _was_altered_alone(ahead: TableMetadata, behind: TableMetadata) -> bool:
    old, new = _columns(behind.schema), _columns(ahead.schema)
    earlier = [each for each in ahead.schemas if each.schema_id != ahead.current_schema_id]
    return (
        old != new
        and any(_columns(each) == old for each in earlier)
        and all(_columns(each) != new for each in behind.schemas)
    )


def _columns(schema: Schema) -> dict[int, tuple[str, Type]]:
    return {each.id: (each.name, each.type) for each in _without_offset(schema)}
