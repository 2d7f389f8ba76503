# SPDX-License-Identifier: Apache-2.0
"""Updates rows by a condition as an Airflow task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.row_changes import UpdateRequest
from spark_jobs.job_requests.values import Value

__all__ = ["LakeUpdateOperator"]


class LakeUpdateOperator(LakeJobOperator):
    """Sets columns to new values in the rows that meet a condition, in one commit, once per DAG
    run.

    A retry finds the snapshot that its run has published, and updates no row that arrived since. A
    task that is cleared after a success updates again: see ``on_clear``. One process does the work;
    with engine ``spark`` it is the driver.

    :param where: a SQL condition on any columns, which selects the rows, such as ``"id = 7 AND note
        IS NULL"``; ``"TRUE"`` selects all rows
    :param set: the new value of each column, such as ``{"note": "paid", "price": None}``; None
        stores NULL. A text is converted to the type of the column, as in SQL. Columns of the
        primary key cannot be set, except in an Iceberg table
    :param read_snapshot: for Paimon tables with a primary key: the position at which an earlier
        task read the table, such as ``"main/7"``. The rows are searched in this state. A row that
        other commits have changed since then is not updated. Default: the newest snapshot
    :param conflict: pass ``transaction-order``, the only value, together with ``read_snapshot``;
        you can omit ``conflict`` if the table option ``write.conflict`` has this value. A Mixed
        table always uses ``transaction-order`` and refuses ``read_snapshot``: its rows are searched
        in the state at the start of the work. An Iceberg table refuses both arguments
    :param dry_run: only count the rows, and the files that have these rows
    :param on_clear: if the task is cleared after a success: ``redo`` updates again, also rows that
        arrived since; ``skip`` does nothing. Default: ``redo``
    """

    job = "update"
    request = UpdateRequest
    publishes_once = True

    def __init__(
        self,
        *,
        where: str,
        set: Mapping[str, Value],
        read_snapshot: str | None = None,
        conflict: Literal["transaction-order"] | None = None,
        dry_run: bool = False,
        on_clear: Literal["redo", "skip"] | None = None,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.set = set
        self.read_snapshot = read_snapshot
        self.conflict: Literal["transaction-order"] | None = conflict
        self.is_dry_run = dry_run
        self.on_clear: Literal["redo", "skip"] | None = on_clear
        self._check_arguments()
