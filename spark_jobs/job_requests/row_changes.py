# SPDX-License-Identifier: Apache-2.0
"""Keys of the jobs ``delete`` and ``update``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.values import NewColumnValues, TablePosition

__all__ = ["DeleteRequest", "RowChangeRequest", "UpdateRequest"]


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class RowChangeRequest(CommitRequest):
    """Keys that the jobs ``delete`` and ``update`` share."""

    where: str
    """A SQL condition on any columns, which selects the rows, such as ``"id = 7 OR note IS NULL"``;
    ``"TRUE"`` selects all rows.
    """
    read_snapshot: TablePosition | None = None
    """For Paimon tables with a primary key: the position at which an earlier task read the table,
    such as ``"main/7"``. The rows are searched in this state. If other commits have changed a row
    since then, their version is kept. Default: the newest snapshot.
    """
    conflict: Literal["transaction-order"] | None = None
    """Required with ``read_snapshot``, unless the table option ``write.conflict`` is
    ``transaction-order``. A Mixed table always uses ``transaction-order`` and refuses
    ``read_snapshot``, because the job itself begins a [batch](mixed-batches.md). An Iceberg table
    refuses both keys.
    """
    dry_run: bool = False
    """Only count the rows, and the files that have these rows."""


@dataclass(frozen=True, kw_only=True)
class DeleteRequest(RowChangeRequest):
    """Delete the rows that meet a condition, in one commit. Jobs with the same commit identity
    delete the rows once.
    """


@dataclass(frozen=True, kw_only=True)
class UpdateRequest(RowChangeRequest):
    """Set columns to new values in the rows that meet a condition, in one commit. Jobs with the
    same commit identity update the rows once.
    """

    set: NewColumnValues
    """The new value of each column, such as ``{"note": "paid", "price": null}``; null stores NULL.
    A text is converted to the type of the column, as in SQL. Columns of the primary key cannot be
    set, except in an Iceberg table.
    """
