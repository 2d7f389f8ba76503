# SPDX-License-Identifier: Apache-2.0
"""Changes to table metadata: pure functions that return changed metadata.

A commit applies them to the newest metadata, and ``following`` makes the result ready to publish.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.snapshot import (
    BRANCH,
    MetadataLogEntry,
    Reference,
    Snapshot,
    SnapshotLogEntry,
)
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.tables.position import MAIN_BRANCH

__all__ = [
    "add_snapshot",
    "following",
    "new_snapshot_id",
    "next_sequence_number",
    "next_timestamp",
    "remove_properties",
    "remove_reference",
    "remove_snapshots",
    "set_properties",
    "set_reference",
]

_PREVIOUS_FILES = "write.metadata.previous-versions-max"
_DEFAULT_PREVIOUS_FILES = 100
_POSITIVE_LONG = (1 << 63) - 1


def next_sequence_number(metadata: TableMetadata) -> int:
    """Return the sequence number of the next snapshot; 0 in version 1, which has none."""
    return 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1


def next_timestamp(metadata: TableMetadata, now_millis: int) -> int:
    """Return the time of the next snapshot in epoch milliseconds.

    It is the latest of three times: now, the newest snapshot, and the last update of the metadata.
    """
    newest = max((each.timestamp_ms for each in metadata.snapshots), default=0)
    return max(now_millis, metadata.last_updated_ms, newest)


def new_snapshot_id(metadata: TableMetadata, new_id: Callable[[], str]) -> int:
    """Return a random id that no snapshot of the table has."""
    taken = {each.snapshot_id for each in metadata.snapshots}
    while True:
        digest = hashlib.sha256(new_id().encode()).digest()
        number = int.from_bytes(digest[:8], "big") & _POSITIVE_LONG
        if number and number not in taken:
            return number


def add_snapshot(
    metadata: TableMetadata, snapshot: Snapshot, branch: str = MAIN_BRANCH
) -> TableMetadata:
    """Add a snapshot as the newest snapshot of a branch; create the branch if it does not exist.

    The snapshot must have the next sequence number, the newest snapshot of the branch as its
    parent, and in version 3 the next row id.
    """
    old = metadata.references.get(branch)
    _require_next(metadata, snapshot, None if old is None else old.snapshot_id)
    added = replace(
        metadata,
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
    )
    if metadata.format_version > 2:
        assert metadata.next_row_id is not None
        assert snapshot.added_rows is not None
        added = replace(added, next_row_id=metadata.next_row_id + snapshot.added_rows)
    head = Reference(branch, snapshot.snapshot_id, BRANCH)
    if old is not None:
        head = replace(old, snapshot_id=snapshot.snapshot_id)
    return set_reference(added, head, snapshot.timestamp_ms)


def set_reference(metadata: TableMetadata, reference: Reference, now_millis: int) -> TableMetadata:
    """Create or move a branch or tag; a move of ``main`` is added to the snapshot log.

    Raise ``InvalidRequestError`` if the snapshot does not exist, or if the name of a branch is used
    for a tag, or the reverse.
    """
    if metadata.snapshot(reference.snapshot_id) is None:
        raise InvalidRequestError(
            f"{metadata.location} has no snapshot {reference.snapshot_id}, so the {reference.type} "
            f"{reference.name!r} cannot name it: choose a snapshot that snapshots() lists"
        )
    old = metadata.references.get(reference.name)
    if old is not None and old.type != reference.type:
        raise InvalidRequestError(
            f"{reference.name!r} is a {old.type} of {metadata.location}, not a {reference.type}: "
            "delete it first, or use another name"
        )
    changed = replace(metadata, references={**metadata.references, reference.name: reference})
    if reference.name != MAIN_BRANCH or metadata.current_snapshot_id == reference.snapshot_id:
        return changed
    # Java refuses a log with a time earlier than the one before.
    entry = SnapshotLogEntry(next_timestamp(metadata, now_millis), reference.snapshot_id)
    return replace(
        changed,
        current_snapshot_id=reference.snapshot_id,
        snapshot_log=(*metadata.snapshot_log, entry),
    )


def remove_reference(metadata: TableMetadata, name: str) -> TableMetadata:
    """Remove a branch or tag; its snapshots are kept until they expire.

    An unknown name is ignored. Raise ``InvalidRequestError`` for ``main``.
    """
    if name == MAIN_BRANCH:
        raise InvalidRequestError(
            f"the branch 'main' of {metadata.location} cannot be deleted or renamed: each "
            "table has it. To delete all rows, use truncate()"
        )
    kept = {key: each for key, each in metadata.references.items() if key != name}
    return replace(metadata, references=kept)


def set_properties(metadata: TableMetadata, properties: Mapping[str, str]) -> TableMetadata:
    """Set table properties."""
    return replace(metadata, properties={**metadata.properties, **properties})


def remove_properties(metadata: TableMetadata, keys: Collection[str]) -> TableMetadata:
    """Remove table properties; unknown keys are ignored."""
    kept = {key: value for key, value in metadata.properties.items() if key not in keys}
    return replace(metadata, properties=kept)


def remove_snapshots(metadata: TableMetadata, snapshot_ids: Iterable[int]) -> TableMetadata:
    """Remove snapshots, their statistics, and the branches and tags that refer to them.

    If the snapshot log has entries of removed snapshots, the last of them and all entries before it
    are removed, too. Otherwise, the log would have a gap, and time travel to a time in the gap
    would find the wrong snapshot. Raise ``InvalidRequestError`` for the newest snapshot of
    ``main``.
    """
    removed = frozenset(snapshot_ids)
    if metadata.current_snapshot_id in removed:
        raise InvalidRequestError(
            f"snapshot {metadata.current_snapshot_id} of {metadata.location} is the newest one of "
            "branch 'main', so it cannot be removed: leave it out"
        )
    references = metadata.references.items()
    statistics, of_partitions = metadata.statistics, metadata.partition_statistics
    return replace(
        metadata,
        snapshots=tuple(each for each in metadata.snapshots if each.snapshot_id not in removed),
        references={name: each for name, each in references if each.snapshot_id not in removed},
        statistics=tuple(each for each in statistics if each.snapshot_id not in removed),
        partition_statistics=tuple(
            each for each in of_partitions if each.snapshot_id not in removed
        ),
        snapshot_log=_without_gaps(metadata.snapshot_log, removed),
    )


def following(
    metadata: TableMetadata, base: TableMetadata, base_file: str, now_millis: int
) -> TableMetadata:
    """Return ``metadata`` with a new time, and with ``base_file`` added to the metadata log.

    ``metadata`` was changed from ``base``, the content of ``base_file``. Raise
    ``InvalidRequestError`` if the property for the length of the log is not a number.
    """
    limit = int_property(metadata.properties, _PREVIOUS_FILES, _DEFAULT_PREVIOUS_FILES)
    log = (*metadata.metadata_log, MetadataLogEntry(base.last_updated_ms, base_file))
    return replace(
        metadata,
        last_updated_ms=next_timestamp(metadata, now_millis),
        metadata_log=log[-max(limit, 1) :],
    )


def _require_next(metadata: TableMetadata, snapshot: Snapshot, head: int | None) -> None:
    """Raise ``AssertionError`` if ``snapshot`` cannot be the next one after ``head``.

    The error means a defect of this library.
    """
    assert metadata.snapshot(snapshot.snapshot_id) is None, "the snapshot id is taken"
    assert snapshot.parent_id == head, "the parent is not the head of the branch"
    assert snapshot.sequence_number == next_sequence_number(metadata), "wrong sequence number"
    if metadata.format_version > 2:
        assert snapshot.first_row_id == metadata.next_row_id, "wrong first row id"
        assert snapshot.added_rows is not None, "no count of added rows"


def _without_gaps(
    log: tuple[SnapshotLogEntry, ...], removed: frozenset[int]
) -> tuple[SnapshotLogEntry, ...]:
    gaps = [place for place, entry in enumerate(log) if entry.snapshot_id in removed]
    return log[gaps[-1] + 1 :] if gaps else log
