# SPDX-License-Identifier: Apache-2.0
"""The method ``check`` of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.iceberg.read.checked_rows import StagedRows
    from lakeformat.iceberg.read.plan import TableState
    from lakeformat.tables.checks import CheckRequest
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableHistory):
    """The methods of a table that check rows."""

    def _check(self, request: CheckRequest) -> CheckReport:
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.checked_rows import check_rows
        from lakeformat.iceberg.read.time_travel import find_state

        loaded, now = self._loaded(), self._handle.environment.now_millis()
        state = find_state(loaded.places, loaded.metadata, **choose(loaded, self._history()))
        return check_rows(
            state,
            request.checks,
            now,
            where=request.where,
            executor=request.executor,
            staged=self._staged_rows(state, request),
        )

    def _staged_rows(self, state: TableState, request: CheckRequest) -> StagedRows | None:
        """Return the rows of staged results to check; None if the request is for published rows."""
        if request.staged is None:
            return None
        from lakeformat.iceberg.read.checked_rows import StagedRows
        from lakeformat.iceberg.staged.staged_rows import staged_files
        from lakeformat.iceberg.staged.table_staged import TableStaged

        staged = TableStaged(self._handle)
        results = staged.named(request.staged)
        files = staged_files(
            self._loaded(),
            state,
            results,
            replaces=request.replaces,
            with_published=bool(request.checks.unique),
        )
        return StagedRows(tuple(staged.address(each.name) for each in results), files)
