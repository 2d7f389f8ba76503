# SPDX-License-Identifier: Apache-2.0
"""Deletes rows by a condition as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.row_changes import DeleteRequest

__all__ = ["LakeDeleteOperator"]


class LakeDeleteOperator(LakeJobOperator):
    """Deletes the rows that meet a condition, in one commit, once per DAG run.

    A retry finds the snapshot that its run has published, and deletes no row that arrived since. A
    task that is cleared after a success deletes again: see ``on_clear``. Earlier snapshots keep the
    deleted rows until they expire. One process does the work; with engine ``spark`` it is the
    driver.

    :param where: a SQL condition on any columns, which selects the rows, such as ``"id = 7 AND note
        IS NULL"``; ``"TRUE"`` selects all rows
    :param read_snapshot: for Paimon tables with a primary key: the position at which an earlier
        task read the table, such as ``"main/7"``. The rows are searched in this state. A row
        that other commits have changed since then is kept. Default: the newest snapshot
    :param conflict: the only value is ``transaction-order``. It is required with ``read_snapshot``,
        unless the table option ``write.conflict`` has this value. A Mixed table always uses
        ``transaction-order`` and refuses ``read_snapshot``: its rows are searched in the state at
        the start of the work. An Iceberg table refuses both arguments
    :param dry_run: only count the rows, and the files that have these rows
    :param on_clear: if the task is cleared after a success: ``redo`` deletes again, also rows that
        arrived since; ``skip`` does nothing. Default: ``redo``
    """

    job = "delete"
    request = DeleteRequest
    publishes_once = True

    def __init__(
        self,
        *,
        where: str,
        read_snapshot: str | None = None,
        conflict: Literal["transaction-order"] | None = None,
        dry_run: bool = False,
        on_clear: Literal["redo", "skip"] | None = None,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.read_snapshot = read_snapshot
        self.conflict: Literal["transaction-order"] | None = conflict
        self.is_dry_run = dry_run
        self.on_clear: Literal["redo", "skip"] | None = on_clear
        self._check_arguments()
