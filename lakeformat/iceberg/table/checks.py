# SPDX-License-Identifier: Apache-2.0
"""Checks of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from datetime import timedelta

    from lakeformat.executor import Executor
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.checks import Columns
    from lakeformat.tables.row_checks.check_report import CheckReport

__all__ = ["TableChecks"]


class TableChecks(TableHistory):
    """The part of a table that checks its rows."""

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
        """Check the rows of the newest snapshot of the branch, or those that meet ``where``.

        The checks are those of Paimon tables: see ``Table.check``. ``staged`` and ``replaces`` are
        refused, because an Iceberg table has no staged results.
        """
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.checked_rows import check_rows
        from lakeformat.iceberg.read.time_travel import find_state
        from lakeformat.tables.checks import Checks

        if staged is not None or replaces is not None:
            raise UnsupportedError(
                f"{self.location} is an Iceberg table, which has no staged results: leave out "
                "'staged' and 'replaces' to check the published rows"
            )
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
        loaded, now = self._loaded(), self._handle.environment.now_millis()
        state = find_state(loaded.places, loaded.metadata, **choose(loaded, self._history()))
        return check_rows(state, checks, now, where=where, executor=executor)
