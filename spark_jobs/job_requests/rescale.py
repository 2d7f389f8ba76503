# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``rescale``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import PartitionsRequest
from spark_jobs.job_requests.values import Numbered

__all__ = ["RescaleRequest"]


@dataclass(frozen=True, kw_only=True)
class RescaleRequest(PartitionsRequest):
    """Rewrite partitions of a Paimon table with another number of buckets; skip partitions that
    already have this number.
    """

    bucket: Numbered | None = None
    """The number of buckets. Default: the table option ``bucket``. If the number differs from the
    option, the rewritten partitions refuse added rows until you set the option to this number; an
    overwrite is accepted. A table with [postponed
    buckets](buckets.md#postponed-buckets-bucket---2) needs this key; do not change its option.
    """
    dry_run: bool = False
    """Only report what would be done."""
