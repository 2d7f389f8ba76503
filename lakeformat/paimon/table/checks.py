# SPDX-License-Identifier: Apache-2.0
"""Checks of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakeformat.paimon.table.reads import TableReads

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.paimon.staged import TableStaged
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.checks import Columns
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableReads):
    """The part of a table that checks its rows."""

    if TYPE_CHECKING:

        @property
        def staged(self) -> TableStaged: ...

    def check(
        self,
        *,
        staged: Sequence[str] | None = None,
        replaces: int | None = None,
        where: Where | None = None,
        min_rows: int | None = None,
        max_rows: int | None = None,
        not_null: Sequence[str] = (),
        unique: Sequence[Columns] = (),
        accepted_values: Mapping[str, Sequence[Any]] = MappingProxyType({}),
        freshness: Mapping[str, str | timedelta] = MappingProxyType({}),
        conditions: Sequence[str] = (),
        warn_only: Sequence[str] = (),
        executor: Executor | None = None,
    ) -> CheckReport:
        """Check rows of the newest snapshot, or of staged results before they are published.

        ``staged`` are the addresses of staged results. Their rows are checked as they were written,
        rows of one key merged; ``unique`` is checked for the table as it will be after the commit.
        ``replaces`` is the snapshot whose rows that commit replaces (see ``CommitId``). ``where``
        restricts the rows.

        ``not_null`` lists columns, ``unique`` columns or lists of columns, ``accepted_values`` the
        values of a column, ``freshness`` the highest age of the newest time in a column, such as
        ``"1 d"``, and ``conditions`` SQL conditions that each row must meet. Nulls break only
        ``not_null``. ``warn_only`` names checks that only warn, such as ``"unique"`` or
        ``"not_null(note)"``.

        Memory is bounded: repeated values that do not fit are counted in temporary files.
        ``executor`` is an object such as ``spark_jobs.SparkExecutor``, which reads the rows in
        parallel, except for ``unique``.
        """
        from lakeformat.paimon.checks.check import check_table
        from lakeformat.tables.checks import Checks

        checks = Checks(
            min_rows=min_rows,
            max_rows=max_rows,
            not_null=not_null,
            unique=unique,
            accepted_values=accepted_values,
            freshness=freshness,
            conditions=conditions,
            warn_only=warn_only,
        )
        results = None if staged is None else self.staged.named(staged)
        return check_table(
            self._handle,
            checks,
            staged=results,
            replaces=replaces,
            where=where,
            executor=executor,
        )
