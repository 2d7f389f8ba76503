# SPDX-License-Identifier: Apache-2.0
"""Checks that keys are still in the buckets where a writer found them.

A writer of a table with dynamic buckets reads the hash index of its partitions. If another commit
has changed the index since, one key could end up in two buckets, which are never merged. So the
commit is refused, and its rows must be written again. In a table whose keys may move between
partitions, a commit is refused if any other commit has appended or overwritten rows since.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakeformat.errors import BucketsChangedError, InvalidRequestError
from lakeformat.paimon.commit.conflict_text import Committer, named, place
from lakeformat.paimon.commit.conflicting_snapshot import against_index_files
from lakeformat.paimon.commit.deltas import newest_first
from lakeformat.paimon.commit.rolled_back import rolled_back_base
from lakeformat.paimon.file_places import index_file_place
from lakeformat.paimon.handle import (
    TableHandle,
    crosses_partitions,
)
from lakeformat.paimon.index.hash_index import names_digest, read_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.index_manifest import HASH, IndexManifestEntry, read_index_manifest
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot

__all__ = [
    "require_distinct_keys",
    "require_no_new_rows",
    "require_one_writer",
    "require_same_index",
]


def require_same_index(
    who: Committer, head: Snapshot | None, messages: Sequence[CommitMessage]
) -> None:
    """Raise BucketsChangedError unless ``head`` has the index files that the writers read.

    ``head=None`` stands for an empty table.
    """
    read = {(each.partition, each.assigned_by) for each in messages if each.assigned_by is not None}
    if not read:
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
                f"{sides}: the hash index of {place(who.handle, partition)} has changed "
                "since the rows were written, so a key could end up in two buckets. Nothing was "
                "published; write the rows again. If this happens often, let only one job write "
                "to a partition"
            )


def require_no_new_rows(
    who: Committer, head: Snapshot | None, messages: Sequence[CommitMessage]
) -> None:
    """Raise BucketsChangedError if another commit added or overwrote rows since the writers read
    the table.

    Also raise it if a snapshot since then has expired, because its commit is unknown, and if a
    rollback deleted the snapshot that a writer read. Call this only for tables whose keys may move
    between partitions. ``head=None`` stands for an empty table.
    """
    if not messages or head is None:
        return
    if (cut := rolled_back_base(who.handle, head, messages)) is not None:
        raise BucketsChangedError(
            f"{who} conflicts with a rollback, which deleted snapshot {cut}: keys may have moved "
            "to other partitions since the rows were written, so a key could end up in two "
            "partitions. Nothing was published; write the rows again"
        )
    base = min(message.base_snapshot or 0 for message in messages)
    for found in newest_first(who.handle, head, base):
        if found is None or found.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            other = f"an expired snapshot after snapshot {base}" if found is None else named(found)
            raise BucketsChangedError(
                f"{who} conflicts with {other}: keys may have moved to other partitions since the "
                "rows were written, so a key could end up in two partitions. Nothing was "
                "published; write the rows again. If this happens often, let only one job write to "
                "the table"
            )


def require_one_writer(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError for messages of several writers if keys may move between
    partitions.
    """
    writers = {message.assigned_by for message in messages}
    if crosses_partitions(handle) and len(writers) > 1:
        raise InvalidRequestError(
            f"these messages come from {len(writers)} writers, and a key of {handle.uri} may be in "
            "any partition: independent writers could store a key twice. Discard the messages "
            "with Table.abort and write the rows with one writer"
        )


def require_distinct_keys(handle: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Raise InvalidRequestError if several new hash indexes of a partition share a hash."""
    by_partition: dict[bytes, list[IndexManifestEntry]] = {}
    for message in messages:
        for entry in message.new_index_files:
            if entry.index_type == HASH:
                by_partition.setdefault(entry.partition, []).append(entry)
    for partition, entries in by_partition.items():
        if len(entries) > 1 and _share_a_key(handle, entries):
            raise InvalidRequestError(
                f"several of these messages index the same keys of {place(handle, partition)} "
                f"({', '.join(entry.file_name for entry in entries)}), because their writers "
                "worked independently: a key could end up in two buckets. Discard the messages "
                "with Table.abort and write each partition with one writer"
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
