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
    """Keys of the jobs that change the rows which meet a condition."""

    where: str
    """The rows, as a SQL condition on any columns, such as ``"id = 7 OR note IS NULL"``. The
    condition ``"TRUE"`` selects all rows.
    """
    read_snapshot: TablePosition | None = None
    """For Paimon tables, with ``conflict``: the position at which an earlier task read the table,
    such as ``"main/7"``. The rows are searched in this state, and a row whose key other commits
    have changed since is kept as it is. Without this key the rows are searched in the newest
    snapshot.
    """
    conflict: Literal["transaction-order"] | None = None
    """With ``read_snapshot``, unless the table option ``write.conflict`` has this value. A Mixed
    table has always this order, without ``read_snapshot``: the job is a batch.
    """
    dry_run: bool = False
    """Only count the rows, and the files that they are in."""


@dataclass(frozen=True, kw_only=True)
class DeleteRequest(RowChangeRequest):
    """Delete the rows that meet a condition, in one commit. With the same commit identity they are
    deleted once.
    """


@dataclass(frozen=True, kw_only=True)
class UpdateRequest(RowChangeRequest):
    """Set columns of the rows that meet a condition to new values, in one commit. With the same
    commit identity they are updated once.
    """

    set: NewColumnValues
    """The new value of each column, such as ``{"note": "paid", "price": null}``; null stores NULL.
    A text is converted to the type of the column, as in SQL.
    """
