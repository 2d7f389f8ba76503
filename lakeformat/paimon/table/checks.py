# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` that check its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.paimon.table.reads import TableReads

if TYPE_CHECKING:
    from lakeformat.paimon.staged import TableStaged
    from lakeformat.tables.checks import CheckRequest
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableReads):
    """The methods of ``Table`` that check its rows."""

    if TYPE_CHECKING:

        @property
        def staged(self) -> TableStaged: ...

    def _check(self, request: CheckRequest) -> CheckReport:
        from lakeformat.paimon.checks.check import check_table

        staged = None if request.staged is None else self.staged.named(request.staged)
        return check_table(
            self._handle,
            request.checks,
            staged=staged,
            replaces=request.replaces,
            where=request.where,
            executor=request.executor,
        )
