# SPDX-License-Identifier: Apache-2.0
"""Selects the snapshots, branches and tags that expire, and makes metadata without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import remove_reference, remove_snapshots
from lakeformat.iceberg.properties import bool_property
from lakeformat.iceberg.read.key_columns import newest_schemas
from lakeformat.iceberg.retention import (
    Retention,
    overdue_references,
    overdue_snapshots,
)
from lakeformat.iceberg.schema import named_fields
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["Needed", "Selection", "Unread", "require_gc", "select"]

_GC = "gc.enabled"

Needed: TypeAlias = Callable[[TableMetadata, Collection[int]], Collection[int]]
"""A function that gets metadata and the ids of snapshots that would expire, and returns the ids of
those that the table still needs.
"""

Unread: TypeAlias = Callable[[Collection[str]], Collection[int]]
"""A function that gets the names of the branches and tags that would be removed, and returns the
ids of the snapshots that a consumer of another branch has not read yet.
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshots, branches and tags that expire in one state of the table."""

    loaded: LoadedMetadata
    """The metadata before the expiry."""
    metadata: TableMetadata
    """The metadata after the expiry; the same object if nothing expires."""
    snapshots: tuple[int, ...] = ()
    """The ids of the expired snapshots, oldest first."""
    references: tuple[str, ...] = ()
    """The names of the branches and tags that are too old."""
    held: int = 0
    """The number of snapshots that are kept only because a consumer has not read them."""
    needed: int = 0
    """The number of snapshots that are kept only because the table still needs them."""


def require_gc(metadata: TableMetadata) -> None:
    """Raise ``UnsupportedError`` if files of the table must not be deleted.

    They must not be deleted if the metadata shows the files of a Paimon table as an Iceberg table,
    or if the property ``gc.enabled`` is false. Raise ``InvalidRequestError`` if the property is
    neither true nor false.
    """
    metadata.refuse_published()
    if not bool_property(metadata.properties, _GC, default=True):
        raise UnsupportedError(
            f"the property 'gc.enabled' of {metadata.location} is false, so nothing was deleted: "
            "other tables may share its files. If none does, set the property to true"
        )


def select(
    loaded: LoadedMetadata,
    retention: Retention,
    snapshots: Collection[int],
    unread: Unread,
    *,
    needed: Needed | None = None,
    clean_metadata: bool,
) -> Selection:
    """Select the snapshots that ``retention`` does not keep, and those with an id in ``snapshots``.

    An id in ``snapshots`` that does not exist is ignored. Snapshots that ``unread`` or ``needed``
    returns are kept. ``clean_metadata`` also removes old schemas and partition specs that no kept
    snapshot uses. Raise ``InvalidRequestError`` if a kept branch or tag is at a snapshot in
    ``snapshots``.
    """
    metadata = loaded.metadata
    overdue = overdue_references(metadata, retention)
    expired = {each.snapshot_id for each in overdue_snapshots(metadata, retention)}
    kept_references = [each for each in metadata.references.values() if each not in overdue]
    expired |= _named(metadata, snapshots, kept_references)
    held = expired.intersection(unread([each.name for each in overdue]))
    expired -= held
    still_needed = set() if needed is None else expired.intersection(needed(metadata, expired))
    expired -= still_needed
    left = metadata
    for reference in overdue:
        left = remove_reference(left, reference.name)
    left = remove_snapshots(left, expired) if expired else left
    if clean_metadata:
        left = _without_unused(loaded, left)
    ordered = sorted(
        (each.timestamp_ms, each.snapshot_id)
        for each in metadata.snapshots
        if each.snapshot_id in expired
    )
    return Selection(
        loaded,
        metadata if left == metadata else left,
        tuple(number for _, number in ordered),
        tuple(sorted(each.name for each in overdue)),
        len(held),
        len(still_needed),
    )


def _named(
    metadata: TableMetadata, snapshots: Collection[int], references: Collection[Reference]
) -> set[int]:
    """Return the ids in ``snapshots`` that exist.

    Raise ``InvalidRequestError`` if one of ``references`` is at a snapshot in ``snapshots``.
    """
    for each in references:
        if each.snapshot_id in snapshots:
            first = "" if each.name == MAIN_BRANCH else f"delete this {each.type} first, or "
            raise InvalidRequestError(
                f"snapshot {each.snapshot_id} of {metadata.location} cannot expire, because the "
                f"{each.type} {each.name!r} names it: {first}leave the snapshot out"
            )
    return {each.snapshot_id for each in metadata.snapshots if each.snapshot_id in snapshots}


def _without_unused(loaded: LoadedMetadata, metadata: TableMetadata) -> TableMetadata:
    """Return metadata without the old schemas and partition specs that no kept snapshot uses.

    A column that was dropped may still give a partition field its type, or be compared by equality
    deletes. So the newest schema that has such a column is kept. The spec with the highest id is
    kept, too. Otherwise a new spec would get this id, although files that are not committed yet
    may be written with the old spec.
    """
    highest = max(each.spec_id for each in metadata.partition_specs)
    specs, schemas, has_deletes = {metadata.default_spec_id, highest}, set(), False
    for snapshot in metadata.snapshots:
        listed = read_manifest_list(loaded.places, snapshot)
        specs |= set(listed.column("partition_spec_id").unique().to_pylist())
        has_deletes |= not set(listed.column("content").to_pylist()) <= {DATA}
        if snapshot.schema_id is not None:
            schemas.add(snapshot.schema_id)
    kept = tuple(each for each in metadata.partition_specs if each.spec_id in specs)
    # Only the delete files name the columns that they compare, so any column may be one of them.
    sources = {source for spec in kept for field in spec.fields for source in field.source_ids}
    schemas |= _newest_with(metadata, None if has_deletes else sources)
    return replace(
        metadata,
        schemas=tuple(each for each in metadata.schemas if each.schema_id in schemas),
        partition_specs=kept,
    )


def _newest_with(metadata: TableMetadata, wanted: Set[int] | None) -> set[int]:
    """Return the ids of the current schema and of the newest schema with each wanted field.

    ``wanted`` has the ids of fields; None means all fields of all schemas.
    """
    found: set[int] = set()
    seen: set[int] = set()
    for schema in newest_schemas(metadata):
        ids = {field.id for _, field in named_fields(schema.struct)}
        new = (ids if wanted is None else ids & wanted) - seen
        if new or schema.schema_id == metadata.current_schema_id:
            found.add(schema.schema_id)
        seen |= new
    return found
