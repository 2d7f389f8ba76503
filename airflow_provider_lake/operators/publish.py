# SPDX-License-Identifier: Apache-2.0
"""Brings the Iceberg metadata of a Paimon table to its newest snapshot, as an Airflow task."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.publish import PublishRequest

__all__ = ["LakePublishOperator"]


class LakePublishOperator(LakeJobOperator):
    """Publishes snapshots of a Paimon table as Iceberg metadata, so that readers of Iceberg see
    them.

    Use it after commits of other engines, after a failed publication, and for tables with
    ``iceberg.publish-mode`` = ``async``. In other tables each commit of this library publishes at
    once. The table needs the option ``metadata.iceberg.storage``, such as ``table-location``.
    Repeats and concurrent runs are safe: each snapshot is published once.

    :param check: publish nothing, but read the published table with each installed reader of
        Iceberg. The task fails at once if the metadata is behind or names wrong files, or if a
        reader fails or returns other rows than the published files. Known limits of a reader do not
        fail the task
    """

    job = "publish"
    request = PublishRequest

    def __init__(self, *, check: bool = False, **kwargs: Unpack[TableJobArguments]) -> None:
        super().__init__(**kwargs)
        self.check = check
        self._check_arguments()
