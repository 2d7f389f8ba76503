# SPDX-License-Identifier: Apache-2.0
"""The record of the base store about each partition: which changes are merged, and the time of the
merge.

The record has the sequence number of the change store up to which changes are merged. A base
snapshot that changes the record has a mark in its summary, and a statistics file with the record;
later snapshots inherit the record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError, NotFoundError, UnsupportedError
from lakeformat.files.puffin import read_blobs
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.tables.json_file import NO_JSON, RESTORE

__all__ = [
    "MARK",
    "NOTHING_MERGED",
    "OPTIMIZED",
    "SEQUENCES",
    "TIMES",
    "OptimizedSequences",
    "is_optimizing",
    "optimized_sequences",
    "require_possible_sequences",
]

SEQUENCES, TIMES = "optimized-sequence", "base-optimized-time"
"""The types of the two blobs in the statistics file."""
MARK = ".exist"
"""The suffix of the marks in summaries, after the type of a blob."""
OPTIMIZED = {"snapshot.producer": "OPTIMIZE"}
"""A base snapshot that changes no row of the table has this member in its summary, as in Amoro."""
_EARLIER_FORM = "table.partition-properties"
"""The table property in which old versions of Amoro kept the record."""


@dataclass(frozen=True, slots=True)
class OptimizedSequences:
    """The record at one base snapshot, by the path of the partition."""

    sequences: Mapping[str, int]
    """The sequence number of the change store up to which changes are merged."""
    times: Mapping[str, int]
    """The time of the newest merge of changes into the partition, or of its newest overwrite, in
    epoch milliseconds.
    """

    def sequence(self, partition: str) -> int:
        """Return the sequence number of a partition; 0 if nothing was merged yet."""
        return self.sequences.get(partition, 0)


NOTHING_MERGED = OptimizedSequences({}, {})


def optimized_sequences(base: LoadedMetadata, snapshot: Snapshot | None) -> OptimizedSequences:
    """Return the record of the base store at a snapshot; it is empty if nothing was ever merged.

    Raise ``CorruptTableError`` for a missing or damaged record, and ``UnsupportedError`` for a
    record in the form of old versions of Amoro. Raise ``NotFoundError`` for a snapshot from before
    the table was detached and adopted again, because a detach deletes the records.
    """
    if snapshot is None:
        return NOTHING_MERGED
    found = [_record(base, snapshot, kind) for kind in (SEQUENCES, TIMES)]
    if not found[0] and _EARLIER_FORM in base.metadata.properties:
        raise UnsupportedError(
            f"{base.places.uri} records its optimized sequences in the table property "
            f"{_EARLIER_FORM!r}, as old versions of Amoro did. Run one optimizing with a "
            "newer Amoro, which records them in statistics files"
        )
    return OptimizedSequences(*found)


def is_optimizing(summary: Mapping[str, str]) -> bool:
    """Return True if a base snapshot with this summary changes no row of the Mixed table."""
    return OPTIMIZED.items() <= summary.items()


def require_possible_sequences(
    base: LoadedMetadata, change: LoadedMetadata, merged: OptimizedSequences
) -> None:
    """Raise ``CorruptTableError`` if ``merged`` has a number that the change store has never used.

    Changes up to the recorded number are not read, so with a number that is too high the next
    writes would be lost.
    """
    newest = change.metadata.last_sequence_number
    for partition, number in merged.sequences.items():
        if not 0 <= number <= newest:
            where = f"partition {partition!r}" if partition else "the table"
            raise CorruptTableError(
                f"the base store {base.places.uri} records that the changes of {where} up to "
                f"sequence number {number} are merged, but the numbers of the change store "
                f"{change.places.uri} are from 0 to {newest}: one of the stores was restored from "
                "a backup of another time. Restore both stores from backups of the same time. "
                "Until then, table.base.scan() reads the base store alone"
            )


def _record(base: LoadedMetadata, snapshot: Snapshot, kind: str) -> dict[str, int]:
    oldest = snapshot
    for each in base.metadata.ancestry(snapshot.snapshot_id):
        if each.summary.get(f"{kind}{MARK}") == "true":
            return _read(base, each.snapshot_id, kind)
        oldest = each
    if oldest.parent_id is not None:
        raise CorruptTableError(
            f"none of the snapshots {snapshot.snapshot_id} back to {oldest.snapshot_id} of "
            f"{base.places.uri} records which changes are merged ({kind}), and older snapshots "
            "have expired, so the rows of the table cannot be merged correctly: restore the "
            "metadata file from a backup, and expire snapshots only with `lake expire` or Amoro"
        )
    return {}


def _read(base: LoadedMetadata, snapshot_id: int, kind: str) -> dict[str, int]:
    for file in base.metadata.statistics:
        if file.snapshot_id == snapshot_id and any(
            blob.get("type") == kind for blob in file.blob_metadata
        ):
            path = file.statistics_path
            for described, content in read_blobs(base.places.read(path), path):
                if described.get("type") == kind:
                    return _numbers(content, path)
    if _has_newer_mark(base, snapshot_id, kind):
        raise NotFoundError(
            f"snapshot {snapshot_id} of {base.places.uri} has no record of merged changes "
            f"({kind}), but a newer snapshot has one. After this snapshot the table was detached, "
            "which deleted the records, and then adopted again. Choose a state since the "
            "adoption, or read the rows of the base store alone with table.base.scan(snapshot=…)"
        )
    raise CorruptTableError(
        f"the summary of snapshot {snapshot_id} of {base.places.uri} has '{kind}{MARK}', but the "
        f"metadata lists no statistics file of this snapshot with the record {kind!r}: restore the "
        "metadata file from a backup"
    )


def _has_newer_mark(base: LoadedMetadata, snapshot_id: int, kind: str) -> bool:
    for each in base.metadata.ancestry(base.metadata.current_snapshot_id):
        if each.snapshot_id == snapshot_id:
            return False
        if each.summary.get(f"{kind}{MARK}") == "true":
            return True
    return False


def _numbers(content: bytes, path: str) -> dict[str, int]:
    try:
        members = json.loads(content)
    except NO_JSON as reason:
        raise CorruptTableError(
            f"a record in {path} ({len(content)} bytes) is not JSON: {reason}; {RESTORE}"
        ) from None
    if not isinstance(members, dict) or not all(type(each) is int for each in members.values()):
        raise CorruptTableError(
            f"a record in {path} is {members!r}, not a number for each partition; {RESTORE}"
        )
    return members
