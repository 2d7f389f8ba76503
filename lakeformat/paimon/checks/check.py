# SPDX-License-Identifier: Apache-2.0
"""Checks the rows of the newest snapshot, or of staged results before their publication.

Staged rows with the same key are merged before they are checked. To find repeated values, the
published rows are read, too, except those that the commit will replace.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial

from lakeformat.errors import UnsupportedError
from lakeformat.executor import Executor
from lakeformat.paimon.commit.redo import files_taken_out
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle, crosses_partitions, has_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_results import staged_results
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.staged.scan import scan_staged
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.checks import Checks
from lakeformat.tables.row_checks.check_report import CheckReport
from lakeformat.tables.row_checks.run import CheckedRows, run_checks
from lakeformat.tables.staged.files import StagedResult

__all__ = ["check_table"]

_log = logging.getLogger(__name__)

_WRITES_PARTS_OF_ROWS = ("partial-update", "aggregation")


def check_table(
    handle: TableHandle,
    checks: Checks,
    *,
    staged: Sequence[StagedResult[CommitMessage]] | None = None,
    replaces: int | None = None,
    where: Where | None = None,
    executor: Executor | None = None,
) -> CheckReport:
    """Check the rows that meet ``where``, in the newest snapshot or in staged results.

    ``staged=None`` checks the newest snapshot. ``replaces`` is the id of the snapshot whose rows
    the staged rows will replace; None if they are added. ``executor`` runs the checks of single
    rows in parallel; repeated values are always found in this process. Raise UnsupportedError for
    ``not_null`` on staged rows if the merge engine is partial-update or aggregation; columns of the
    primary key can always be checked.
    """

    def check() -> CheckReport:
        head = latest_snapshot(handle.storage, handle.layout)
        return _Check(handle, checks, head, staged, replaces, where, executor).run()

    report = again_if_overtaken(handle, check)
    _log.info("check of %s: %s", handle.name, report.reason)
    return report


@dataclass(frozen=True, slots=True)
class _Check:
    handle: TableHandle
    checks: Checks
    head: Snapshot | None
    staged: Sequence[StagedResult[CommitMessage]] | None
    replaces: int | None
    where: Where | None
    executor: Executor | None

    def run(self) -> CheckReport:
        schema = self.handle.schema
        for name in self.checks.not_null:
            self._require_whole_rows(name)
        keys = [field for field in schema.fields if field.name in schema.primary_keys]
        # Here a search of the writer puts a key into one place. Two writers may have failed to.
        is_searched = crosses_partitions(self.handle) or has_hash_index(self.handle)
        rows = CheckedRows(
            location=self.handle.uri,
            fields=schema.fields,
            identifying=tuple(keys) or schema.fields[:1],
            keys=frozenset(() if is_searched else schema.primary_keys),
            scan=self._scan,
            scan_all=partial(self._scan, with_published=True),
            memory=self.handle.options,
        )
        now = self.handle.environment.now_millis()
        count, results = run_checks(rows, self.checks, now, self.executor)
        return CheckReport(
            table=self.handle.uri,
            snapshot_id=None if self.head is None else self.head.id,
            staged=tuple(self._address(each) for each in self.staged or ()),
            rows=count,
            checks=results,
        )

    def _scan(self, columns: Sequence[str], *, with_published: bool = False) -> Scan:
        if self.staged is None:
            asked = row_filter(self.handle.schema, self.where, None)
            return Scan(self.handle, self.head, columns, asked)
        if not with_published:
            return scan_staged(self.handle, self.staged, columns, self.where, after=None)
        without: Set[str] = frozenset()
        if self.replaces is not None and self.head is not None:
            without = files_taken_out(self.handle, self.replaces, self.head)
        return scan_staged(
            self.handle, self.staged, columns, self.where, after=self.head, without=without
        )

    def _require_whole_rows(self, name: str) -> None:
        """Raise UnsupportedError if ``not_null`` cannot check staged values of the column ``name``.

        With the merge engines partial-update and aggregation, a null may leave the value in the
        table unchanged. Columns of the primary key can always be checked.
        """
        schema = self.handle.schema
        engine = schema.table_options.merge_engine
        is_key = name in schema.primary_keys
        if self.staged is not None and engine in _WRITES_PARTS_OF_ROWS and not is_key:
            raise UnsupportedError(
                f"not_null({name}) cannot check staged rows of {self.handle.uri}: with "
                f"'merge-engine' = '{engine}' a null may leave the value in the table unchanged. "
                "Check the published table instead: leave out 'staged'"
            )

    def _address(self, result: StagedResult[CommitMessage]) -> str:
        return staged_results(self.handle.storage, self.handle.layout).address(result.name)
