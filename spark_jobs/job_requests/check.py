# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``check``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import (
    AcceptedValues,
    AgesByColumn,
    ColumnNames,
    Numbered,
    RowCount,
    UniqueColumns,
)

if TYPE_CHECKING:
    from lakeformat.tables.checks import Checks

__all__ = ["CheckRequest"]

_CHECKS = (
    "min_rows",
    "max_rows",
    "not_null",
    "unique",
    "accepted_values",
    "freshness",
    "conditions",
    "warn_only",
)


@dataclass(frozen=True, kw_only=True)
class CheckRequest(TableRequest):
    """Check staged rows before they are published, or the published rows of the table. Give at
    least one check. Except for ``not_null``, checks ignore nulls, as in SQL.
    """

    staged: Sequence[str] | None = None
    """Addresses of staged results. The job ``ingest`` returns an address as ``staged`` in its
    result. Default: check the published rows.
    """
    replaces: Numbered | None = None
    """With ``staged``: the number of the snapshot (in an Iceberg table its id) whose rows the
    commit will replace, so that ``unique`` ignores these rows. Default: the commit only adds rows.
    """
    where: str | None = None
    """Check only rows that meet this SQL condition."""
    min_rows: RowCount | None = None
    """The least number of rows. Default: no limit."""
    max_rows: RowCount | None = None
    """The largest number of rows. Default: no limit."""
    not_null: ColumnNames | None = None
    """Columns that must not have nulls."""
    unique: UniqueColumns | None = None
    """Columns, or lists of columns, whose values no two rows may share, such as ``["id", ["shop",
    "number"]]``. Staged rows are compared with the table as it will be after the commit. One
    process reads these columns, even with engine ``spark``.
    """
    accepted_values: AcceptedValues | None = None
    """The values that a column may have, such as ``{"status": ["new", "paid"]}``."""
    freshness: AgesByColumn | None = None
    """For DATE and TIMESTAMP columns: the age that the newest time in the column must not exceed,
    such as ``{"ordered_at": "1 d"}``. The check fails if no row has a time.
    """
    conditions: Sequence[str] | None = None
    """SQL conditions that each row must meet, such as ``["amount >= 0"]``."""
    warn_only: Sequence[str] | None = None
    """Checks that only warn, by their names, such as ``["not_null(note)"]``, or by their kind, such
    as ``["unique"]``; ``rows`` names the check of ``min_rows`` and ``max_rows``.
    """
    discard_failed: bool = False
    """With ``staged``: if a check fails, delete the staged results with their files."""

    def __post_init__(self) -> None:
        TableRequest.__post_init__(self)
        if self.staged is not None and not self.staged:
            raise refusal("key 'staged' is empty: give the addresses that the job ingest returned")
        for key in ("discard_failed", "replaces"):
            if getattr(self, key) and self.staged is None:
                raise refusal(
                    f"key {key!r} needs key 'staged', the addresses of staged results: add it, or "
                    f"leave out {key!r}"
                )
        self.checks()  # refuses checks without a meaning

    def checks(self) -> Checks:
        """Return the checks; raise ``InvalidRequestError`` if there are none, or if a check is
        invalid or given twice.
        """
        from lakeformat.tables.checks import Checks

        return Checks(**self.given_checks())

    def given_checks(self) -> dict[str, Any]:
        """Return the values of the given checks by key, such as ``{"min_rows": 1}``."""
        return {key: each for key in _CHECKS if (each := getattr(self, key)) is not None}
