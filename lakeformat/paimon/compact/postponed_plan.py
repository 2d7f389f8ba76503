# SPDX-License-Identifier: Apache-2.0
"""Plans the buckets of rows that were written without a bucket (``'bucket' = '-2'``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeformat.paimon.compact.steps import Rewrite
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.options.table import TableOptions
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["plan_postponed"]


def plan_postponed(
    unit: CompactUnit, handle: TableHandle, live: Sequence[ManifestEntry]
) -> CompactUnit:
    """Return ``unit`` with the number of buckets for its rows, and the reason for this number.

    ``unit`` has the postponed files of a partition; ``live`` are the entries of all live files of
    the partition.
    """
    files = [entry.file for entry in unit.files]
    count, reason = _bucket_count(handle, live)
    rows = sum(file.row_count for file in files)
    return replace(
        unit,
        steps=(Rewrite(((tuple(files),),)),),
        buckets=count,
        expected_files=count,
        reason=f"{counted(rows, 'row waits', 'rows wait')} for a bucket: {reason}",
    )


def _bucket_count(handle: TableHandle, live: Sequence[ManifestEntry]) -> tuple[int, str]:
    """Return the number of buckets that the partition has, or that its compaction will create, and
    a text with the reason.
    """
    options = handle.options
    counts = {entry.total_buckets for entry in live if entry.bucket >= 0}
    if counts:
        return max(counts), f"the partition has {counted(max(counts), 'bucket')}"
    most = options.postpone_max_buckets
    if (given := options.postpone_default_bucket_num) is not None:
        return given, f"'postpone.default-bucket-num' is {given}"
    waiting = [entry.file for entry in live]
    if (rows := options.postpone_target_row_num) is not None:
        needed = -(-sum(file.row_count for file in waiting) // rows)
        what = f"up to {rows} rows for each"
    else:
        target = options.postpone_target_size_bytes
        needed = -(-sum(file.file_size for file in waiting) // target)
        what = f"up to {size(target)} for each"
    count = min(max(needed, 1), most)
    if needed > most:
        what = f"the most that {TableOptions.postpone_max_buckets.key!r} allows"
    return count, f"{count} new bucket{'s' if count > 1 else ''}, {what}"
