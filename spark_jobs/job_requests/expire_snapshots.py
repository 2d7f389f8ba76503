# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``expire_snapshots``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Numbered, PastTime

__all__ = ["ExpireSnapshotsRequest"]


@dataclass(frozen=True, kw_only=True)
class ExpireSnapshotsRequest(TableRequest):
    """Delete old snapshots and the files that only they need; the newest snapshot is always
    kept.
    """

    retain_max: Numbered | None = None
    """Keep at most this many of the newest snapshots. If the table option
    ``snapshot.num-retained.min`` (10 by default) is larger, also give ``retain_min``. Default: the
    table option ``snapshot.num-retained.max``. Only for Paimon tables.
    """
    retain_min: Numbered | None = None
    """Keep at least this many of the newest snapshots, of any age. Default: the table option
    ``snapshot.num-retained.min``; of an Iceberg table ``history.expire.min-snapshots-to-keep``; of
    a Mixed table ``snapshot.keep.min-count``.
    """
    older_than: PastTime | None = None
    """Delete snapshots older than this, except the newest ``retain_min``. The age of a Paimon
    snapshot is the time since the commit of the next snapshot. In Iceberg and Mixed tables, the age
    of a snapshot is the time since its own commit. Default: the table option
    ``snapshot.time-retained``; of an Iceberg table ``history.expire.max-snapshot-age-ms``; of a
    Mixed table ``snapshot.keep.duration``, and for its change store ``change.data.ttl.minutes``.
    """
    limit: Numbered | None = None
    """Delete at most this many snapshots. Default: the table option ``snapshot.expire.limit``.
    Only for Paimon tables.
    """
    dry_run: bool = False
    """Only report what would be deleted."""

    def __post_init__(self) -> None:
        TableRequest.__post_init__(self)
        least, most = self.retain_min, self.retain_max
        if least is not None and most is not None and least > most:
            raise refusal(
                f"key 'retain_min' is {least}, which is more than 'retain_max', {most}: lower "
                "'retain_min' or raise 'retain_max'"
            )
