# SPDX-License-Identifier: Apache-2.0
"""The schemas of a Paimon table in the form of Iceberg metadata."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.schema import Schema
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.name_mapping import NAME_MAPPING, name_mapping
from lakeformat.publish.narrowed_types import narrowed_columns
from lakeformat.publish.optional_fields import (
    optional_as_before,
    optional_fields,
    with_optional_fields,
)
from lakeformat.publish.schemas import (
    iceberg_schema,
    last_column_id,
    require_promotions,
    require_readable_before,
    shown_before,
)

__all__ = ["PublishedSchemas"]

_log = logging.getLogger(__name__)


class PublishedSchemas:
    """Converts each schema of a table once, for one version of Iceberg's format."""

    def __init__(self, handle: TableHandle, version: int) -> None:
        """Convert the schemas of one table. ``handle`` must have its newest schema."""
        self._handle, self._version = handle, version
        self._found: dict[int, tuple[TableSchema, Schema]] = {}

    def of(self, number: int) -> tuple[TableSchema, Schema]:
        """Return the Paimon schema and the Iceberg schema with the id ``number``.

        Raise ``UnsupportedError`` if a column has a type that cannot be published.
        """
        if number not in self._found:
            handle = self._handle
            found = handle.schema
            if number != found.id:
                found = read_schema(handle.storage, handle.layout, number)
            require_readable_before(found, handle.schema, self._version)
            shown = shown_before(found, handle.schema, self._version)
            self._found[number] = found, iceberg_schema(shown, self._version)
        return self._found[number]

    def all_of(self, known: Mapping[int, Schema]) -> list[Schema]:
        """Return all schemas of the table, oldest first.

        ``known`` has schemas by id; only the remaining ones are read. A field is required only if
        it was required in all earlier schemas. Raise ``UnsupportedError`` if the type of a column
        changed in a way that Iceberg does not allow.
        """
        numbers = range(self._handle.schema.id + 1)
        found = (known.get(number) or self.of(number)[1] for number in numbers)
        schemas = [*optional_as_before(found)]
        for older, newer in pairwise(schemas):
            require_promotions(older, newer)
        return schemas

    def added_to(
        self,
        metadata: TableMetadata,
        snapshot: Snapshot,
        before: LoadedMetadata | None = None,
    ) -> TableMetadata:
        """Return metadata with all schemas of the table; the schema of ``snapshot`` is current.

        Log a warning for each column that gets a narrower type in a new schema. A schema is new if
        both ``metadata`` and ``before`` lack it. Raise ``UnsupportedError`` if the type of a column
        changed in a way that Iceberg does not allow.
        """
        newest = self._handle.schema
        known = {each.schema_id: each for each in metadata.schemas}
        if snapshot.schema_id in known and newest.id in known:
            shown = tuple(optional_as_before(metadata.schemas))  # earlier versions did not do so
            properties = {**metadata.properties}
            if '"item"' in properties.get(NAME_MAPPING, ""):
                # Earlier versions gave this name to several fields.
                properties[NAME_MAPPING] = name_mapping(shown, newest)
            return replace(
                metadata,
                schemas=shown,
                current_schema_id=snapshot.schema_id,
                properties=properties,
            )
        schemas = self.all_of(known)
        published = () if before is None else before.metadata.schemas
        unchanged = (each.schema_id for each in published if not self._is_redefined(each))
        self.warn_of_narrowed({*known, *unchanged})
        return replace(
            metadata,
            schemas=tuple(schemas),
            current_schema_id=snapshot.schema_id,
            last_column_id=max(metadata.last_column_id, last_column_id(schemas, newest)),
            properties={**metadata.properties, NAME_MAPPING: name_mapping(schemas, newest)},
        )

    def warn_of_narrowed(self, known: Collection[int]) -> None:
        """Log a warning for each column that gets a narrower type in a schema not in ``known``."""
        for older, newer in pairwise(range(self._handle.schema.id + 1)):
            if newer in known:
                continue
            for narrowed in narrowed_columns(self.of(older)[0], self.of(newer)[0]):
                _log.warning(
                    "%s: %s. Readers of Iceberg do not convert the values in older files, so they "
                    "may read other values than this library. To rewrite the files, overwrite the "
                    "table with its rows: scan = table.scan(), then table.write(scan.to_arrow(), "
                    "overwrite='table', read_snapshot=scan.snapshot_id)",
                    *(self._handle.uri, narrowed),
                )

    def are_redefined(self, metadata: TableMetadata, snapshot: Snapshot) -> bool:
        """Return True if the table now has another schema with the number of a published schema.

        A rollback by another engine may delete schemas; their numbers are then used again.
        """
        known = {each.schema_id: each for each in metadata.schemas}
        newest = {snapshot.schema_id, self._handle.schema.id}
        looked_at = newest if newest <= known.keys() else known.keys()
        return any(self._is_redefined(known[number]) for number in looked_at)

    def _is_redefined(self, published: Schema) -> bool:
        if published.schema_id > self._handle.schema.id:
            return False
        here = self.of(published.schema_id)[1]
        return published != with_optional_fields(here, optional_fields(published))
