"""What a batch read sees of a snapshot: the files of each bucket, merged or as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.schema import TableSchema

__all__ = ["POSTPONE_BUCKET", "Bucket", "visible_buckets"]

POSTPONE_BUCKET = -2
"""Where rows wait that have no bucket yet."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The visible files of one bucket of one partition."""

    files: tuple[ManifestEntry, ...]
    needs_merge: bool
    """Whether rows of one key may be in several files, or deleted rows among them."""


def visible_buckets(schema: TableSchema, files: Iterable[ManifestEntry]) -> list[Bucket]:
    """Group files by partition and bucket, in the order their first file was committed."""
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in files:
        if _is_visible(schema, entry):
            groups.setdefault((entry.partition, entry.bucket), []).append(entry)
    return [_bucket(schema, group) for group in groups.values()]


def _is_visible(schema: TableSchema, entry: ManifestEntry) -> bool:
    """Postponed rows have no bucket yet; with deletion vectors, level 0 waits for compaction."""
    if entry.bucket == POSTPONE_BUCKET:
        return False
    if entry.bucket < 0:
        raise CorruptTableError(
            f"data file {entry.file.file_name} is in bucket {entry.bucket}, which no table has; "
            "restore its manifest from a backup or roll the table back to an earlier snapshot"
        )
    options = schema.table_options
    waits = options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read
    return not (schema.primary_keys and waits and entry.file.level == 0)


def _bucket(schema: TableSchema, files: list[ManifestEntry]) -> Bucket:
    if not schema.primary_keys:
        return Bucket(tuple(files), needs_merge=False)
    return Bucket(tuple(files), needs_merge=not _is_merged(schema, files))


def _is_merged(schema: TableSchema, files: list[ManifestEntry]) -> bool:
    """Whether the files can be read one after the other: no key twice, no deleted row inside."""
    if any(entry.file.delete_row_count != 0 for entry in files):
        return False
    if len(files) == 1:
        return True
    levels = {entry.file.level for entry in files}
    if 0 in levels:
        return False
    return schema.table_options.deletion_vectors_enabled or len(levels) == 1
