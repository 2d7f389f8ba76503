# SPDX-License-Identifier: Apache-2.0
"""The names of all jobs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spark_jobs.runtime.job import Job

__all__ = ["JOB_NAMES", "find_job"]

JOB_NAMES = (
    "ingest",
    "check",
    "commit",
    "delete",
    "update",
    "maintain",
    "compact",
    "compact_database",
    "changelog",
    "rescale",
    "expire_snapshots",
    "expire_partitions",
    "remove_orphans",
    "tag",
    "rollback",
    "analyze",
    "publish",
    "health",
)
"""The names of all jobs, in the order of the documentation."""


def find_job(name: str) -> Job[Any]:
    """Return the declaration of the job with this name, which must be in ``JOB_NAMES``."""
    found: Job[Any] = import_module(f"spark_jobs.{name}").JOB
    return found
