# SPDX-License-Identifier: Apache-2.0
"""Checks of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeformat.paimon.table.reads import TableReads

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.paimon.staged import TableStaged
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.checks import Checks
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableReads):
    """The part of a table that checks its rows."""

    if TYPE_CHECKING:

        @property
        def staged(self) -> TableStaged: ...

    def _check(
        self,
        checks: Checks,
        where: Where | None,
        executor: Executor | None,
        *,
        staged: Sequence[str] | None,
        replaces: int | None,
    ) -> CheckReport:
        from lakeformat.paimon.checks.check import check_table

        results = None if staged is None else self.staged.named(staged)
        return check_table(
            self._handle,
            checks,
            staged=results,
            replaces=replaces,
            where=where,
            executor=executor,
        )
