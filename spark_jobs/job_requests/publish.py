# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``publish``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest

__all__ = ["PublishRequest"]


@dataclass(frozen=True, kw_only=True)
class PublishRequest(TableRequest):
    """Bring the Iceberg metadata of a Paimon table to its newest snapshot, after commits of other
    engines. The table needs the option `metadata.iceberg.storage`, such as `table-location`.
    """

    check: bool = False
    """Publish nothing: read the published table with each installed reader of Iceberg, and fail if
    the rows differ from those of the published files, or if the metadata is behind.
    """
