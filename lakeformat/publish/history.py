# SPDX-License-Identifier: Apache-2.0
"""Selects the snapshots that a publication from scratch publishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.visible_files import marks_of

__all__ = ["KeptSnapshot", "kept_history"]


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot that has not expired, or that a tag keeps."""

    snapshot: Snapshot
    is_next: bool
    """True if the table's snapshot right before ``snapshot`` is published, too.

    Then the delta manifests of ``snapshot`` list all changes between the two.
    """


def kept_history(
    handle: TableHandle, head: Snapshot, schema_of: Callable[[int], TableSchema]
) -> tuple[KeptSnapshot, ...]:
    """Return the snapshots to publish, oldest first; the last one is ``head``.

    The option ``iceberg.publish-history`` limits the number of snapshots before ``head``. Snapshots
    with a tag are preferred to newer snapshots without a tag. An earlier snapshot is left out if a
    rollback removed its schema. In a primary-key table, it is also left out if its schema and the
    newest schema have different values of ``deletion-vectors.enabled``.
    """
    limit = handle.options.iceberg_publish_history
    if not limit:
        return (KeptSnapshot(head, is_next=False),)
    storage, layout = handle.storage, handle.layout
    tagged = {tag.snapshot.id: tag.snapshot for tag in read_tags(storage, layout)}
    listed = {each for each in snapshot_ids(storage, layout) if each < head.id}
    with_tag = sorted(each for each in tagged if each < head.id)[-limit:]
    others = sorted(listed - {*with_tag})
    chosen = sorted([*with_tag, *others[max(len(others) + len(with_tag) - limit, 0) :]])

    def look() -> Iterator[KeptSnapshot]:
        before: Snapshot | None = None
        for number in chosen:
            found = read_snapshot_if_present(storage, layout, number) if number in listed else None
            snapshot = found or tagged.get(number)
            if snapshot is None or not _is_shown_alike(handle, snapshot, schema_of):
                continue
            follows = found is not None and _is_before(before, found)
            yield KeptSnapshot(snapshot, follows)
            before = found
        yield KeptSnapshot(head, _is_before(before, head))

    return tuple(look())


def _is_before(before: Snapshot | None, after: Snapshot) -> bool:
    return before is not None and before.id + 1 == after.id


def _is_shown_alike(
    handle: TableHandle, snapshot: Snapshot, schema_of: Callable[[int], TableSchema]
) -> bool:
    """Return True if readers read files of the same levels in ``snapshot`` as in the newest
    snapshot.

    Return False, too, if a rollback has removed the schema of ``snapshot`` from the table.
    """
    newest = handle.schema
    return snapshot.schema_id <= newest.id and marks_of(schema_of(snapshot.schema_id)) == marks_of(
        newest
    )
