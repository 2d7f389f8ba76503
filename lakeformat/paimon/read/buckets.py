# SPDX-License-Identifier: Apache-2.0
"""Groups the data files of a snapshot by bucket, without files that batch reads skip."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.key_order import orderable
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.schema import TableSchema

__all__ = ["has_unique_rows", "skips_level_zero", "visible_buckets"]

_FIRST_ROW = "first-row"


def visible_buckets(
    schema: TableSchema, files: Iterable[ManifestEntry], *, level_zero: bool = False
) -> list[tuple[ManifestEntry, ...]]:
    """Return the files that a batch read reads, grouped by partition and bucket.

    Files of postponed rows are left out: a read of these rows calls ``merged_buckets`` instead.
    Groups have the order of their first files; with ``scan.plan-sort-partition`` they are sorted by
    partition value. ``level_zero=True`` includes level-0 files even if batch reads of the table
    skip them. Raise CorruptTableError if a file has a bucket number that is not valid.
    """
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in files:
        if _is_visible(schema, entry, level_zero):
            groups.setdefault((entry.partition, entry.bucket), []).append(entry)
    if schema.table_options.scan_plan_sort_partition and schema.partition_keys:
        ranks = _partition_ranks(schema, {partition for partition, _ in groups})
        return [tuple(groups[place]) for place in sorted(groups, key=lambda p: ranks[p[0]])]
    return [tuple(group) for group in groups.values()]


def skips_level_zero(schema: TableSchema) -> bool:
    """Return True if batch reads skip level-0 files.

    Primary-key tables with deletion vectors skip level 0, unless ``deletion-vectors.merge-on-read``
    is set. Tables with the merge engine first-row always skip level 0: a compaction decides which
    rows of level 0 are valid.
    """
    options = schema.table_options
    if not schema.primary_keys:
        return False
    if options.merge_engine == _FIRST_ROW:
        return True
    return options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read


def has_unique_rows(schema: TableSchema) -> bool:
    """Return True if each key has at most one live row in the files above level 0."""
    options = schema.table_options
    return options.deletion_vectors_enabled or options.merge_engine == _FIRST_ROW


def _is_visible(schema: TableSchema, entry: ManifestEntry, level_zero: bool) -> bool:
    """Return True if ``visible_buckets`` returns the file.

    Files of postponed rows are left out. If ``level_zero`` is True, level-0 files are returned even
    if batch reads of the table skip them. Raise CorruptTableError if the bucket number is not
    valid.
    """
    if entry.bucket == POSTPONE_BUCKET:
        return False
    if entry.bucket < 0:
        raise CorruptTableError(
            f"data file {entry.file.file_name} is in bucket {entry.bucket}, which is not valid; "
            "roll the table back to an earlier snapshot, or restore the manifest with its entry "
            "from a backup"
        )
    return level_zero or not (entry.file.level == 0 and skips_level_zero(schema))


def _partition_ranks(schema: TableSchema, partitions: Collection[bytes]) -> dict[bytes, int]:
    """Return the rank of each partition in ascending order of values, nulls first."""
    rows = [*partitions]
    types = [field.type for field in partition_fields(schema)]
    keys: list[pa.ChunkedArray] = []
    for values in decode_columns(pa.array(rows, pa.large_binary()), types):
        column = orderable(pa.chunked_array([values]))
        keys += [pc.is_valid(column), column]
    names = [str(number) for number in range(len(keys))]
    table = pa.table(keys, names=names)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    return {rows[row]: rank for rank, row in enumerate(order.to_pylist())}
