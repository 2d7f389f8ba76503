# SPDX-License-Identifier: Apache-2.0
"""Checks the rows of one snapshot of an Iceberg table, or the rows of staged results.

For staged rows, ``unique`` also reads the published rows, because it checks the table as it will be
after the commit. All other checks read only the staged rows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeformat.executor import Executor
from lakeformat.iceberg.read.condition_fields import condition_fields, inner_condition_fields
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.read.unpublished_files import UnpublishedFiles
from lakeformat.iceberg.read.where import row_filter
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.checks import Checks
from lakeformat.tables.row_checks.check_report import CheckReport
from lakeformat.tables.row_checks.run import CheckedRows, run_checks

__all__ = ["StagedRows", "check_rows"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """The rows of staged results."""

    addresses: tuple[str, ...]
    files: UnpublishedFiles


def check_rows(
    state: TableState,
    checks: Checks,
    now_millis: int,
    *,
    where: Where | None,
    executor: Executor | None,
    staged: StagedRows | None = None,
) -> CheckReport:
    """Check the rows of a snapshot, or the ``staged`` rows, and return the report.

    Rows that do not meet ``where`` are left out. Raise ``InvalidRequestError`` for a column that
    does not exist.
    """
    asked = row_filter(state.metadata, state.schema, where, None)
    fields = condition_fields(state.schema)
    keys = state.schema.identifier_field_ids
    identifying = tuple(each for each in fields if each.id in keys)

    files = None if staged is None else staged.files
    checked = state if staged is None else replace(state, snapshot=None)

    def scan(columns: Sequence[str]) -> Scan:
        return Scan(checked, columns, asked, unpublished=files)

    def scan_all(columns: Sequence[str]) -> Scan:
        return Scan(state, columns, asked, unpublished=files)

    rows = CheckedRows(
        location=state.places.uri,
        fields=fields,
        inner_fields=tuple(inner_condition_fields(state.schema)),
        identifying=identifying or fields[:1],
        scan=scan,
        scan_all=scan_all,
    )
    count, results = run_checks(rows, checks, now_millis, executor)
    report = CheckReport(
        table=state.places.uri,
        snapshot_id=None if state.snapshot is None else state.snapshot.snapshot_id,
        staged=() if staged is None else staged.addresses,
        rows=count,
        checks=results,
    )
    _log.info("check of %s: %s", state.places.uri, report.reason)
    return report
