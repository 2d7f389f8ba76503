# SPDX-License-Identifier: Apache-2.0
"""Checks of the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.tables.checks import CheckRequest
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableHistory):
    """The part of a table that checks its rows."""

    def _check(self, request: CheckRequest) -> CheckReport:
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.checked_rows import check_rows
        from lakeformat.iceberg.read.time_travel import find_state

        if request.staged is not None or request.replaces is not None:
            raise UnsupportedError(
                f"{self.location} is an Iceberg table, which has no staged results: leave out "
                "'staged' and 'replaces' to check the published rows"
            )
        loaded, now = self._loaded(), self._handle.environment.now_millis()
        state = find_state(loaded.places, loaded.metadata, **choose(loaded, self._history()))
        return check_rows(
            state, request.checks, now, where=request.where, executor=request.executor
        )
