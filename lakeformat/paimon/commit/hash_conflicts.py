"""Whether keys are still in the buckets a writer found them in, or in none.

A writer of a table with dynamic buckets reads the hash index of its partitions. If another one has
added keys or overwritten them meanwhile, the same key might end up in two buckets, and nobody would
ever merge its rows: such a commit is refused, and its rows are written again. Where a key may move
between partitions the whole table says where it is, and whoever adds rows to it changes that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakeformat.errors import BucketsChangedError, InvalidRequestError
from lakeformat.paimon.commit.conflict_text import Committer, named, place
from lakeformat.paimon.commit.conflicting_snapshot import against_index_files
from lakeformat.paimon.commit.deltas import newest_first
from lakeformat.paimon.file_places import index_file_place
from lakeformat.paimon.handle import (
    TableHandle,
    crosses_partitions,
    has_hash_index,
)
from lakeformat.paimon.index.hash_index import names_digest, read_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot

__all__ = [
    "require_distinct_keys",
    "require_nobody_wrote",
    "require_one_writer",
    "require_same_index",
]


def require_same_index(
    who: Committer, head: Snapshot | None, messages: Sequence[CommitMessage]
) -> None:
    """Refuse messages whose writers have read other index files than ``head`` has."""
    read = {(each.partition, each.assigned_by) for each in messages if each.assigned_by is not None}
    if not read or not has_hash_index(who.handle):
        return
    names: dict[bytes, list[str]] = {}
    for entry in _index_files(who.handle, head):
        if entry.index_type == HASH:
            names.setdefault(entry.partition, []).append(entry.file_name)
    for partition, digest in read:
        now = names.get(partition, [])
        if names_digest(now) != digest:
            sides = against_index_files(who, head, now)
            raise BucketsChangedError(
                f"{sides} conflicts: the hash index of {place(who.handle, partition)} says of "
                "other keys which bucket they are in than it did when the rows were written, and "
                "a key could end up in two buckets. Nothing was published; write the rows again, "
                "and let one job alone write to a partition if it keeps happening"
            )


def require_nobody_wrote(
    who: Committer, head: Snapshot | None, messages: Sequence[CommitMessage]
) -> None:
    """Refuse rows whose keys may move between partitions once somebody else has added rows."""
    if not messages or head is None or not crosses_partitions(who.handle):
        return
    base = min(message.base_snapshot or 0 for message in messages)
    for found in newest_first(who.handle, head, base):
        if found is None or found.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            rival = f"a snapshot that has expired after {base}" if found is None else named(found)
            raise BucketsChangedError(
                f"{who} conflicts with {rival}: keys may have moved to other partitions since the "
                "rows were written, and one could end up in two. Nothing was published; write the "
                "rows again, and let one job alone write to the table if it keeps happening"
            )


def require_one_writer(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of several writers where each may have moved the same key."""
    writers = {message.assigned_by for message in messages}
    if crosses_partitions(handle) and len(writers) > 1:
        raise InvalidRequestError(
            f"these messages are of {len(writers)} writers, and keys of {handle.uri} may be in any "
            "partition: two that do not know of each other could put one into two. Give them up "
            "(Table.abort) and write the rows with one writer"
        )


def require_distinct_keys(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of several writers that have put one key into different buckets."""
    by_partition: dict[bytes, list[IndexManifestEntry]] = {}
    for message in messages:
        for entry in message.new_index_files:
            if entry.index_type == HASH:
                by_partition.setdefault(entry.partition, []).append(entry)
    for partition, entries in by_partition.items():
        if len(entries) > 1 and _share_a_key(handle, entries):
            raise InvalidRequestError(
                f"these messages put keys of {place(handle, partition)} into two buckets "
                f"({', '.join(entry.file_name for entry in entries)}): they are of writers that "
                "did not know of each other. Give them up (Table.abort) and write a partition "
                "with one writer"
            )


def _share_a_key(handle: TableHandle, entries: Sequence[IndexManifestEntry]) -> bool:
    found = []
    for entry in entries:
        storage, path = index_file_place(handle, entry)
        found.append(read_hash_index(storage, path, count=entry.row_count))
    hashes = np.sort(np.concatenate(found))
    return bool((hashes[1:] == hashes[:-1]).any())


def _index_files(handle: TableHandle, head: Snapshot | None) -> list[IndexManifestEntry]:
    if head is None or head.index_manifest is None:
        return []
    return read_index_manifest(handle.storage, handle.layout, head.index_manifest)
