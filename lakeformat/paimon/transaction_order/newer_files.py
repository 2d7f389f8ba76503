# SPDX-License-Identifier: Apache-2.0
"""The rows that an overwrite in transaction order keeps: those committed after the snapshot that
the overwrite read.

A file that has only such rows is kept. Rows that a compaction has merged with older rows are
written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.paimon.commit.base_files import in_partitions
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.handle import TableHandle, has_hash_index
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.merge.streams import batch_rows_of, merge_runs
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.partition_filter import PartitionFilter
from lakeformat.paimon.read.buckets import skips_level_zero
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.transaction_order.changes_since import ChangesSince
from lakeformat.rows.row_kinds import is_retract

__all__ = ["NO_FILES", "NewerFiles", "newer_files"]


@dataclass(frozen=True, slots=True)
class NewerFiles:
    """The files that were added after the snapshot that an overwrite read, in the partitions that
    it replaces.
    """

    kept: frozenset[str]
    """The names of the files that the overwrite keeps."""
    written_again: tuple[tuple[ManifestEntry, ...], ...]
    """The files to write again, in one group for each bucket, oldest first.

    The newest snapshot may lack some of them, because a compaction has replaced them. With dynamic
    buckets, the files of a whole partition are one group, because an overwrite can give a key to
    another bucket.
    """

    def rows(self, changes: ChangesSince) -> Iterator[pa.RecordBatch]:
        """Stream the newest row of each key in the files to write again, unless it is deleted.

        The newest row is that of the latest commit. Sequence numbers do not show which commit is
        the latest, because they start again after a compaction has dropped deleted rows.
        """
        handle = changes.handle
        files = DataFiles(handle, changes.head, DeletedRows(handle, ()))
        order, engine = merge_order(handle.schema), merge_engine(handle.schema)
        names = [field.name for field in handle.schema.fields]
        for entries in self.written_again:
            batch_rows = batch_rows_of(len(entries))
            runs = [
                files.key_values(entry, handle.schema.fields, batch_rows=batch_rows)
                for entry in entries
            ]
            for merged in merge_runs(runs, order, engine, numbered=False):
                for batch in merged.to_batches():
                    retracts = is_retract(batch.column(VALUE_KIND.name).to_numpy())
                    if not retracts.all():
                        yield batch.filter(pa.array(~retracts)).select(names)


NO_FILES = NewerFiles(frozenset(), ())


def newer_files(
    changes: ChangesSince,
    replaced: PartitionFilter,
    hidden: Set[str] = frozenset(),
    highest: Mapping[tuple[bytes, int], int] | None = None,
    written: Set[str] = frozenset(),
) -> NewerFiles:
    """Return the files that other commits added to the partitions ``replaced``, divided into files
    to keep and files to write again.

    Only files that are still on level 0 may be kept. If some readers of the table skip level 0,
    only the files named in ``hidden`` may be kept: those readers see the rows of a kept file only
    after a compaction. ``highest`` has the highest sequence number of the rows that are
    already written, by partition and bucket; None before they are written. ``written`` are the
    files whose rows are among them.
    """
    handle, head = changes.handle, changes.head
    is_dynamic = has_hash_index(handle)
    buckets: dict[tuple[bytes, int], list[tuple[int, ManifestEntry]]] = {}
    for number, added in enumerate(changes.added):
        chosen = added.filter(replaced.mask(added.partition.to_arrow()))
        for entry in sorted(chosen.entries(), key=lambda each: each.file.min_sequence_number):
            place = entry.partition, 0 if is_dynamic else entry.bucket
            buckets.setdefault(place, []).append((number, entry))
    if head is None or not buckets:
        return NO_FILES
    partitions = pa.array(sorted({place[0] for place in buckets}), pa.large_binary())
    live = in_partitions(handle, partitions).at(head)
    unmerged = {
        entry.file.file_name
        for entry in live.filter(live.level.numbers == 0).entries()
        if entry.total_buckets == handle.options.bucket and not is_dynamic
    }
    if _has_hidden_rows(handle):
        unmerged &= hidden
    unmerged -= written
    kept: set[str] = set()
    again = []
    for place, entries in buckets.items():
        names = _kept(entries, unmerged, None if highest is None else highest.get(place, -1))
        kept |= names
        if rest := tuple(each for _, each in entries if each.file.file_name not in names):
            again.append(rest)
    return NewerFiles(frozenset(kept), tuple(again))


def _has_hidden_rows(handle: TableHandle) -> bool:
    """Return True if some readers of the table, or of its Iceberg metadata, skip level 0."""
    return skips_level_zero(handle.schema) or handle.options.publishes_iceberg


def _kept(
    entries: Sequence[tuple[int, ManifestEntry]], unmerged: Set[str], highest: int | None
) -> set[str]:
    """Return the names of the newer files of a bucket that the overwrite keeps.

    ``entries`` are all newer files of the bucket, each with the number of its commit. If all of
    them are in ``unmerged``, all are kept. Otherwise, the rows of the files that are not in
    ``unmerged`` must be written again. Until these rows are written (``highest`` is None), no file
    is kept. After that, the files in ``unmerged`` are kept if every one of them was committed after
    all files that are not in ``unmerged``, and has only sequence numbers above ``highest``. If one
    of them does not meet these conditions, none is kept.
    """
    kept = [(number, each.file) for number, each in entries if each.file.file_name in unmerged]
    merged = [number for number, each in entries if each.file.file_name not in unmerged]
    if merged and any(
        highest is None or number <= max(merged) or file.min_sequence_number <= highest
        for number, file in kept
    ):
        return set()
    return {file.file_name for _, file in kept}
