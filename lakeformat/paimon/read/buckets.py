"""What a batch read sees of a snapshot: the visible files of each bucket."""

from __future__ import annotations

from collections.abc import Iterable

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.partition_order import partition_ranks
from lakeformat.paimon.schema import TableSchema

__all__ = ["POSTPONE_BUCKET", "has_unique_rows", "skips_level_zero", "visible_buckets"]

POSTPONE_BUCKET = -2
"""Where rows wait that have no bucket yet."""

_FIRST_ROW = "first-row"


def visible_buckets(
    schema: TableSchema, files: Iterable[ManifestEntry], *, level_zero: bool = False
) -> list[tuple[ManifestEntry, ...]]:
    """Group files by partition and bucket, in the order their first file was committed.

    A table may want partitions in the order of their values instead. ``level_zero`` includes the
    rows that wait for a compaction.
    """
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in files:
        if _is_visible(schema, entry, level_zero):
            groups.setdefault((entry.partition, entry.bucket), []).append(entry)
    if schema.table_options.scan_plan_sort_partition and schema.partition_keys:
        ranks = partition_ranks(schema, {partition for partition, _ in groups})
        return [tuple(groups[place]) for place in sorted(groups, key=lambda p: ranks[p[0]])]
    return [tuple(group) for group in groups.values()]


def skips_level_zero(schema: TableSchema) -> bool:
    """Whether rows wait for a compaction until a batch read sees them.

    With deletion vectors and for first rows only a compaction finds out which of them count.
    """
    options = schema.table_options
    if not schema.primary_keys:
        return False
    if options.merge_engine == _FIRST_ROW:
        return True
    return options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read


def has_unique_rows(schema: TableSchema) -> bool:
    """Whether no key is in two files above level 0, on whichever levels these are."""
    options = schema.table_options
    return options.deletion_vectors_enabled or options.merge_engine == _FIRST_ROW


def _is_visible(schema: TableSchema, entry: ManifestEntry, level_zero: bool) -> bool:
    """Postponed rows have no bucket yet."""
    if entry.bucket == POSTPONE_BUCKET:
        return False
    if entry.bucket < 0:
        raise CorruptTableError(
            f"data file {entry.file.file_name} is in bucket {entry.bucket}, which no table has; "
            "restore its manifest from a backup or roll the table back to an earlier snapshot"
        )
    return level_zero or not (entry.file.level == 0 and skips_level_zero(schema))
