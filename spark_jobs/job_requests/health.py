# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``health``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import TableRequest

__all__ = ["HealthRequest"]


@dataclass(frozen=True, kw_only=True)
class HealthRequest(TableRequest):
    """Report the health of a table: facts, a score, and reasons with advice."""

    time_travel: bool = True
    """Also read every snapshot, tag and branch, to count the bytes that only they keep."""
    unknown: bool = False
    """Also list the directories, to find unreferenced, missing and truncated files. Only for Paimon
    tables.
    """
    fail_when: Literal["degraded", "unhealthy"] | None = None
    """``degraded``: fail, with the reasons and advice, if the [verdict](health.md) is ``degraded``
    or ``unhealthy``; ``unhealthy``: fail only if it is ``unhealthy``. Default: never fail because
    of the verdict.
    """
