# SPDX-License-Identifier: Apache-2.0
"""Alters the columns and the properties of a table in one commit of metadata.

No data file changes. Readers find columns by their ids. For a column that a file lacks, they return
its initial default, or nulls. They convert values that are stored in a narrower type.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.alter.changes import Alteration, DroppedColumn, RenamedColumn
from lakeformat.iceberg.alter.columns import edited_columns
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_properties, set_properties
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, StructType

__all__ = ["alter", "altered", "with_columns", "with_properties"]

_NAME_MAPPING = "schema.name-mapping.default"
_OF_COLUMNS = ("write.metadata.metrics.column.", "write.parquet.bloom-filter-enabled.column.")
"""The prefixes of properties whose names end with the dotted name of a column."""
_NOT_SET = {
    "format-version": "this library does not change the format version of an existing table; use "
    "ALTER TABLE in Spark",
    "uuid": "it identifies the table",
    "snapshot-count": "it is computed from the snapshots",
    "current-snapshot-id": "it is computed from the snapshots",
    "current-snapshot-summary": "it is computed from the snapshots",
    "current-snapshot-timestamp-ms": "it is computed from the snapshots",
    "current-schema": "it is computed from the schemas",
    "default-partition-spec": "it is computed from the partition specs",
    "default-sort-order": "it is computed from the sort orders",
}
"""Names that Iceberg reserves, each with the reason why it cannot be set as a property."""


def alter(handle: TableHandle, alteration: Alteration) -> None:
    """Make all changes in ``alteration``, or none if one of them is refused.

    ``InvalidRequestError`` names the column or the property that cannot be changed. A change of
    columns raises ``UnsupportedError`` if the table has a name mapping, or for a type that the
    format version of the table does not have.
    """
    commit_metadata(handle, lambda loaded: altered(loaded.metadata, handle.uri, alteration))


def altered(
    metadata: TableMetadata, table: str, alteration: Alteration, last_column_id: int = 0
) -> TableMetadata:
    """Return metadata with the changes in ``alteration``; ``metadata`` itself if nothing changes.

    New columns get ids above ``last_column_id`` and above all ids of the table. ``table`` is the
    URI of the table for error messages. Raise the errors of ``alter``.
    """
    _require_properties(table, alteration.properties)
    found = metadata
    if alteration.columns:
        found = _with_changed_columns(metadata, table, alteration, last_column_id)
    return with_properties(found, alteration.properties)


def with_columns(
    metadata: TableMetadata, fields: tuple[Field, ...], last_column_id: int
) -> TableMetadata:
    """Return metadata whose current schema has the columns ``fields``.

    Return ``metadata`` itself if it has them already. ``last_column_id`` is the highest id that new
    fields got.
    """
    if fields == metadata.schema.fields:
        return metadata
    identifiers = metadata.schema.identifier_field_ids
    known = [
        each
        for each in metadata.schemas
        if each.fields == fields and {*each.identifier_field_ids} == {*identifiers}
    ]
    if known:  # as Java does: a catalog service may keep equal schemas only once
        return replace(metadata, current_schema_id=known[-1].schema_id)
    number = max(each.schema_id for each in metadata.schemas) + 1
    return replace(
        metadata,
        schemas=(*metadata.schemas, Schema(number, fields, identifiers)),
        current_schema_id=number,
        last_column_id=max(metadata.last_column_id, last_column_id),
    )


def with_properties(metadata: TableMetadata, properties: Mapping[str, str | None]) -> TableMetadata:
    """Return metadata with the given properties set, and those with the value None removed.

    Return the same metadata if nothing changes.
    """
    wanted = {key: value for key, value in properties.items() if value is not None}
    removed = properties.keys() - wanted.keys()
    if wanted.items() <= metadata.properties.items() and removed.isdisjoint(metadata.properties):
        return metadata
    return remove_properties(set_properties(metadata, wanted), removed)


def _with_changed_columns(
    metadata: TableMetadata, table: str, alteration: Alteration, last_column_id: int
) -> TableMetadata:
    if _NAME_MAPPING in metadata.properties:
        raise UnsupportedError(
            f"the columns of {table} were not changed: the table property {_NAME_MAPPING} maps "
            "column names to field ids, and this version does not update the property. Use ALTER "
            "TABLE in Spark"
        )
    first = max(metadata.last_column_id, last_column_id) + 1
    ids = itertools.count(first)
    columns, found = metadata.schema.struct, metadata
    for change in alteration.columns:
        try:
            columns = edited_columns(metadata, columns, change, ids)
        except InvalidRequestError as reason:
            raise InvalidRequestError(
                f"the columns of {table} were not changed: {reason}"
            ) from None
        if isinstance(change, RenamedColumn | DroppedColumn):
            found = with_properties(found, _renamed_properties(found.properties, change))
    assert isinstance(columns, StructType)
    return with_columns(found, columns.fields, next(ids) - 1)


def _renamed_properties(
    properties: Mapping[str, str], change: RenamedColumn | DroppedColumn
) -> dict[str, str | None]:
    """Return the changes to properties that name a renamed or dropped column.

    A value of None removes the property.
    """
    old = ".".join(change.path)
    found: dict[str, str | None] = {}
    for key, value in properties.items():
        for start in _OF_COLUMNS:
            rest = key.removeprefix(start)
            if rest == key or not (rest == old or rest.startswith(f"{old}.")):
                continue
            found[key] = None
            if isinstance(change, RenamedColumn):
                new = ".".join((*change.path[:-1], change.name))
                found[f"{start}{new}{rest.removeprefix(old)}"] = value
    return found


def _require_properties(table: str, properties: Mapping[str, str | None]) -> None:
    for key in properties:
        if key in _NOT_SET:
            raise InvalidRequestError(
                f"the property {key!r} of {table} cannot be changed: {_NOT_SET[key]}"
            )
