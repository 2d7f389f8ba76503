# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot to read, by id, tag, branch or time, and the schema to read it with."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.snapshot import Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.plan import TableState
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.types.closest import closest

__all__ = ["find_state"]

_SHOWN = 10
"""The largest number of snapshots that a message names."""


def find_state(
    places: FilePlaces,
    metadata: TableMetadata,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    as_of: Moment | None = None,
) -> TableState:
    """Return the snapshot and schema to read; by default the newest snapshot of the main branch.

    For a branch, and by default, the schema is the current schema of the table. For any other
    choice it is the schema of the snapshot. Raise ``InvalidRequestError`` if more than one argument
    is given. Raise ``NotFoundError`` if the snapshot, tag or branch does not exist, or if the table
    had no snapshot at ``as_of``.
    """
    asked = {"snapshot": snapshot, "tag": tag, "branch": branch, "as_of": as_of}
    given = [f"{name}={value!r}" for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidRequestError(f"pass only one of {', '.join(given)}: each chooses a snapshot")
    if branch is not None:
        head = _existing(metadata, _reference(metadata, branch, "branch").snapshot_id)
        return TableState(places, metadata, head, metadata.schema)
    if not given:
        return TableState(places, metadata, metadata.current_snapshot, metadata.schema)
    if snapshot is not None:
        found = _existing(metadata, snapshot)
    elif tag is not None:
        found = _existing(metadata, _reference(metadata, tag, "tag").snapshot_id)
    else:
        assert as_of is not None
        found = _at(metadata, as_of)
    return TableState(places, metadata, found, metadata.schema_at(found))


def _existing(metadata: TableMetadata, snapshot_id: int) -> Snapshot:
    found = metadata.snapshot(snapshot_id)
    if found is None:
        kept = [str(each.snapshot_id) for each in metadata.snapshots]
        which = (
            f"the last of its {len(kept):,} snapshots" if len(kept) > _SHOWN else "the snapshots"
        )
        shown = f"{which} are {', '.join(kept[-_SHOWN:])}" if kept else "the table has no snapshots"
        raise NotFoundError(
            f"{metadata.location} has no snapshot {snapshot_id}: it may have expired; {shown}"
        )
    return found


def _reference(metadata: TableMetadata, name: str, kind: str) -> Reference:
    if not isinstance(name, str):
        raise InvalidRequestError(f"{kind} must be a str, got {name!r}")
    known = {each.name: each for each in metadata.references.values() if each.type == kind}
    if name not in known:
        plural = "branches" if kind == "branch" else "tags"
        listed = f"its {plural} are {', '.join(known)}" if known else f"it has no {plural}"
        raise NotFoundError(
            f"{metadata.location} has no {kind} {name!r}; {listed}{closest(name, known)}"
        )
    return known[name]


def _at(metadata: TableMetadata, as_of: Moment) -> Snapshot:
    """Return the newest snapshot of the main branch at a time; raise ``NotFoundError`` if there was
    none.
    """
    millis = to_millis(as_of)
    found = metadata.current_id_at(millis)
    if found is not None:
        return _existing(metadata, found)
    oldest = min((entry.timestamp_ms for entry in metadata.snapshot_log), default=None)
    if oldest is not None:
        since = f"its history begins at {moment_text(oldest)}; choose a later time"
    elif metadata.snapshots:
        since = "its metadata has no snapshot times, so choose a snapshot by its id"
    else:
        since = "it has no snapshot yet"
    raise NotFoundError(f"{metadata.location} had no snapshot at {moment_text(millis)}: {since}")
