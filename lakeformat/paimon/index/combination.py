# SPDX-License-Identifier: Apache-2.0
"""Applies the index files that a commit adds and removes to the entries of an index manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from lakeformat.errors import CommitConflictError, CorruptTableError, InvalidRequestError
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    HASH,
    GlobalIndexMeta,
    IndexManifestEntry,
)
from lakeformat.paimon.metadata.manifest import FileKind

__all__ = ["VectorFiles", "combine"]

_DATA_EVOLUTION_MAGIC = b"DEIX"
"""The first bytes of the source metadata of a global index on a data-evolution table."""


class VectorFiles(Enum):
    """The number of files of deletion vectors that a bucket may have, by the kind of table."""

    ONE_PER_BUCKET = "one per bucket"
    """For tables with buckets: a new file replaces the file of its bucket."""
    ANY_NUMBER = "any number"
    """For append tables without buckets; a data file still has at most one vector."""


def combine(
    previous: Sequence[IndexManifestEntry],
    *,
    removed: Iterable[IndexManifestEntry] = (),
    added: Iterable[IndexManifestEntry] = (),
    vector_files: VectorFiles = VectorFiles.ONE_PER_BUCKET,
) -> list[IndexManifestEntry]:
    """Return the entries of the next index manifest: the remaining entries in order, then the new
    ones.

    If nothing changes, the caller must keep the previous index manifest, because readers compare
    its name to detect changes. Raise CommitConflictError if the changes contradict the entries in
    ``previous``. Raise InvalidRequestError for two new files of a bucket that may have only one,
    and CorruptTableError if ``previous`` has DELETE entries.
    """
    _refuse_deletes(previous)
    removed, added = list(removed), list(added)
    state = list(previous)
    for index_type in dict.fromkeys(entry.index_type for entry in (*removed, *added)):
        out = [entry for entry in removed if entry.index_type == index_type]
        new = [entry for entry in added if entry.index_type == index_type]
        if index_type == HASH:
            state = _replace_buckets(state, out, new)
        elif index_type != DELETION_VECTORS:
            state = _exchange_global_indexes(state, out, new)
        elif vector_files is VectorFiles.ONE_PER_BUCKET:
            state = _replace_buckets(state, out, new)
        else:
            state = _exchange_vector_files(state, out, new)
    return state


def _refuse_deletes(state: Sequence[IndexManifestEntry]) -> None:
    for entry in state:
        if entry.kind is not FileKind.ADD:
            raise CorruptTableError(
                "the index manifest of the newest snapshot must list only existing files, but has "
                f"an entry that deletes {entry.file_name}; roll the table back to an earlier "
                "snapshot with another index manifest"
            )


def _bucket_of(entry: IndexManifestEntry) -> tuple[bytes, int, str]:
    return entry.partition, entry.bucket, entry.index_type


def _replace_buckets(
    state: list[IndexManifestEntry],
    removed: list[IndexManifestEntry],
    added: list[IndexManifestEntry],
) -> list[IndexManifestEntry]:
    """Return ``state`` without ``removed`` and with ``added``, for an index type with one file per
    bucket.

    The old file of each bucket in ``removed`` or ``added`` is left out. Raise InvalidRequestError
    for two new files of one bucket.
    """
    buckets = [_bucket_of(entry) for entry in added]
    if len(set(buckets)) < len(buckets):
        [(twice, count)] = Counter(buckets).most_common(1)
        names = ", ".join(entry.file_name for entry in added if _bucket_of(entry) == twice)
        raise InvalidRequestError(
            f"a commit adds {count} {twice[2]} files for one bucket ({names}), but a bucket "
            "can have only one: several writers wrote to it. Nothing was published. Commit the "
            "messages of one writer; discard those of the other writers with Table.abort, and "
            "write their rows again"
        )
    touched = {*buckets, *map(_bucket_of, removed)}
    return [entry for entry in state if _bucket_of(entry) not in touched] + added


def _exchange_vector_files(
    state: list[IndexManifestEntry],
    removed: list[IndexManifestEntry],
    added: list[IndexManifestEntry],
) -> list[IndexManifestEntry]:
    """Return ``state`` without the deletion-vector files ``removed``, and with those in ``added``.

    Files are matched by name. Raise CommitConflictError if a data file would have two vectors, if a
    vector or file to remove does not exist any more, or if a file to add exists already.
    """
    known = {name for entry in state for name in _data_files_of(entry)}
    for entry in removed:
        for name in _data_files_of(entry):
            if name not in known:
                raise CommitConflictError(
                    f"cannot remove {entry.file_name}: the data file {name} has no deletion "
                    "vector any more; plan again from the latest snapshot"
                )
    left = _without_named(state, removed)
    vectors = {name for entry in left for name in _data_files_of(entry)}
    for entry in added:
        for name in _data_files_of(entry):
            if name in vectors:
                raise CommitConflictError(
                    f"cannot add {entry.file_name}: the data file {name} already has a deletion "
                    "vector; plan again from the latest snapshot, and replace the existing vector"
                )
            vectors.add(name)
    return left + _new_names(left, added)


def _data_files_of(entry: IndexManifestEntry) -> list[str]:
    if entry.index_type != DELETION_VECTORS:
        return []
    return [found.data_file_name for found in entry.ranges or ()]


def _exchange_global_indexes(
    state: list[IndexManifestEntry],
    removed: list[IndexManifestEntry],
    added: list[IndexManifestEntry],
) -> list[IndexManifestEntry]:
    """Return ``state`` without the global index files ``removed``, and with those in ``added``.

    Files are matched by name. Raise CommitConflictError if a file to remove does not exist any
    more, or if a file to add exists already. A kept index and a new index of the same type and
    field are also a conflict if they share rows, or if their extra fields differ.
    """
    left = _without_named(state, removed)
    for old in left:
        for new in added:
            # Only files of one type are compared, as Java does.
            if old.index_type == new.index_type and _cover_the_same(old, new):
                raise CommitConflictError(
                    f"cannot add the {new.index_type} index {new.file_name}: {old.file_name} "
                    "covers rows of the same field; remove the existing file in the same commit"
                )
    return left + _new_names(left, added)


def _cover_the_same(old: IndexManifestEntry, new: IndexManifestEntry) -> bool:
    first, second = old.global_index, new.global_index
    if first is None or second is None or first.index_field_id != second.index_field_id:
        return False
    if _is_primary_key_source(first) and _is_primary_key_source(second):
        return False
    # As in Java, different extra fields are a conflict, even without common rows.
    return first.extra_field_ids != second.extra_field_ids or (
        first.row_range_start <= second.row_range_end
        and second.row_range_start <= first.row_range_end
    )


def _is_primary_key_source(meta: GlobalIndexMeta) -> bool:
    source = meta.source_meta
    return source is not None and not source.startswith(_DATA_EVOLUTION_MAGIC)


def _without_named(
    state: list[IndexManifestEntry], removed: list[IndexManifestEntry]
) -> list[IndexManifestEntry]:
    names = {(entry.index_type, entry.file_name) for entry in removed}
    left = [entry for entry in state if (entry.index_type, entry.file_name) not in names]
    present = {(entry.index_type, entry.file_name) for entry in state}
    for index_type, name in sorted(names - present):
        raise CommitConflictError(
            f"cannot remove the {index_type} index file {name}: the snapshot does not have it, "
            "so another commit removed it first; plan again from the latest snapshot"
        )
    return left


def _new_names(
    left: list[IndexManifestEntry], added: list[IndexManifestEntry]
) -> list[IndexManifestEntry]:
    taken = {(entry.index_type, entry.file_name) for entry in left}
    for entry in added:
        if (entry.index_type, entry.file_name) in taken:
            raise CommitConflictError(
                f"cannot add the {entry.index_type} index file {entry.file_name}: the snapshot, "
                "or another message of this commit, has it already: do not commit a message twice"
            )
        taken.add((entry.index_type, entry.file_name))
    return added
