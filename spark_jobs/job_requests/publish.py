# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``publish``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest

__all__ = ["PublishRequest"]


@dataclass(frozen=True, kw_only=True)
class PublishRequest(TableRequest):
    """Publish the snapshots of a Paimon table, up to the newest, as Iceberg metadata. Use the job
    after commits of other engines, after a failed publication, and if the table option
    ``iceberg.publish-mode`` is ``async``. The table needs the option ``metadata.iceberg.storage``,
    such as ``table-location``.
    """

    check: bool = False
    """Publish nothing, but read the published table with each installed reader of Iceberg. The job
    fails if the metadata is behind the table or names wrong files, or if a reader fails or returns
    wrong rows. Known limits of a reader do not make the job fail.
    """
