# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``maintain``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import JobRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import PastTime, RegularExpression

__all__ = ["MaintainRequest"]


@dataclass(frozen=True, kw_only=True)
class MaintainRequest(JobRequest):
    """Run all maintenance that one table, or each table of the matching databases, needs: expire
    partitions, compact, expire snapshots, delete orphan files.

    Only partitions of Paimon tables expire. The delete files and manifests of an Iceberg table are
    compacted, too.
    """

    table: str | None = None
    """``database.table``, or a branch of it; give this or ``database``."""
    database: RegularExpression | None = None
    """Maintain the tables of the databases whose whole name matches, one after the other; a failed
    table does not stop the next.
    """
    including: RegularExpression = ".*"
    """With ``database``: maintain only tables whose whole name ``database.table`` matches."""
    excluding: RegularExpression | None = None
    """With ``database``: do not maintain tables whose whole name ``database.table`` matches."""
    expire_consumers: PastTime | None = None
    """Delete [consumers](expiry.md#consumers) without progress since this time, or for this long.
    In a Paimon table, the option ``consumer.expiration-time`` also sets such a limit, even without
    this key.
    """
    fail_when: Literal["degraded", "unhealthy"] | None = None
    """``degraded``: fail, with the remaining problems, if the [verdict](health.md) after the work
    is ``degraded`` or ``unhealthy``; ``unhealthy``: fail only if it is ``unhealthy``. Default:
    never fail because of the verdict.
    """
    dry_run: bool = False
    """Only report what each step would do. ``fail_when`` is then refused."""

    def __post_init__(self) -> None:
        JobRequest.__post_init__(self)
        if (self.table is None) == (self.database is None):
            raise refusal(
                "give exactly one of the keys 'table' and 'database': the name of a table, or a "
                "regular expression for names of databases"
            )
        if self.table is not None and (self.excluding is not None or self.including != ".*"):
            raise refusal("keys 'including' and 'excluding' need key 'database': leave them out")
        if self.dry_run and self.fail_when is not None:
            raise refusal(
                "keys 'fail_when' and 'dry_run' exclude each other, because 'fail_when' checks the "
                "table after the work: leave one of them out"
            )
