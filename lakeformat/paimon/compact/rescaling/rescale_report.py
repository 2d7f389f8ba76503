# SPDX-License-Identifier: Apache-2.0
"""The report of a rescale, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.paimon.handle import TableHandle
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["RescaleReport", "RescaledPartition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaledPartition:
    """The outcome of one partition of a rescale."""

    partition: str
    """The directory of the partition below the table; empty for a table without partitions."""
    buckets_before: int
    buckets: int
    outcome: str
    """``rescaled``, ``planned`` in a dry run, or ``not due`` if the partition has the new number of
    buckets already.
    """
    rows_in: int
    bytes_in: int
    rows_out: int = 0
    bytes_out: int = 0
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleReport(Report):
    """The outcomes of a rescale; each rescaled partition is published as its own snapshot."""

    table: str
    bucket: int
    dry_run: bool
    snapshot_ids: tuple[int, ...]
    partitions: tuple[RescaledPartition, ...]
    reason: str
    """One sentence for the log: what was rescaled, or why nothing was."""

    @classmethod
    def of(
        cls,
        handle: TableHandle,
        bucket: int,
        partitions: Sequence[RescaledPartition],
        *,
        dry_run: bool,
    ) -> RescaleReport:
        """Return the report with the outcomes ``partitions``."""
        snapshots = [each.snapshot_id for each in partitions if each.snapshot_id is not None]
        return cls(
            table=handle.uri,
            bucket=bucket,
            dry_run=dry_run,
            snapshot_ids=tuple(sorted(snapshots)),
            partitions=tuple(partitions),
            reason=_reason(partitions, bucket, int(handle.options.bucket), dry_run=dry_run),
        )


def _reason(
    partitions: Sequence[RescaledPartition], bucket: int, option: int, *, dry_run: bool
) -> str:
    moved = [each for each in partitions if each.outcome in ("rescaled", "planned")]
    if not partitions:
        return "nothing to do: the chosen partitions have no data file in a bucket"
    if not moved:
        return f"nothing to do: every chosen partition has {counted(bucket, 'bucket')}"
    said = "would be rescaled" if dry_run else "rescaled"
    what = f"{len(moved)} of {len(partitions)} partitions {said} to {counted(bucket, 'bucket')}"
    if option in (bucket, -2):
        return what
    return (
        f"{what}; option 'bucket' is '{option}', so writes to partitions with another number are "
        f"refused. Once all partitions have {counted(bucket, 'bucket')}, call alter_table(…, "
        f"set_option('bucket', '{bucket}'))"
    )
