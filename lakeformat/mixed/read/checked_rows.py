# SPDX-License-Identifier: Apache-2.0
"""Checks the merged rows of a Mixed table."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakeformat.iceberg.read.condition_fields import condition_fields, inner_condition_fields
from lakeformat.iceberg.read.where import row_filter
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.read.state import MixedState
from lakeformat.tables.checks import CheckRequest
from lakeformat.tables.row_checks.check_report import CheckReport
from lakeformat.tables.row_checks.run import CheckedRows, run_checks

__all__ = ["check_rows"]

_log = logging.getLogger(__name__)


def check_rows(state: MixedState, request: CheckRequest, now_millis: int) -> CheckReport:
    """Check those rows of a state that meet the condition of the request.

    A key can have duplicate rows if Amoro merged newer changes before a batch committed. A check
    ``unique`` on the key columns finds these duplicates.
    """
    asked = row_filter(state.base.metadata, state.schema, request.where, None)
    fields = condition_fields(state.schema)
    keys = {each.id for each in state.key}

    def scan(columns: Sequence[str]) -> MixedScan:
        return MixedScan(state, columns, asked)

    location = state.base.places.uri
    rows = CheckedRows(
        location=location,
        fields=fields,
        inner_fields=tuple(inner_condition_fields(state.schema)),
        identifying=tuple(each for each in fields if each.id in keys),
        scan=scan,
        scan_all=scan,
    )
    count, results = run_checks(rows, request.checks, now_millis, request.executor)
    newest = state.change.snapshot or state.base.snapshot
    report = CheckReport(
        table=location,
        snapshot_id=None if newest is None else newest.snapshot_id,
        staged=(),
        rows=count,
        checks=results,
    )
    _log.info("check of %s: %s", location, report.reason)
    return report
