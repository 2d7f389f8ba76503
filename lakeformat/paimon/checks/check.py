# SPDX-License-Identifier: Apache-2.0
"""Checks the rows of the newest snapshot, or of staged results before their publication.

Staged rows are checked as they were written, rows of one key merged. Only uniqueness needs the rest
of the table: it is checked for the table as it will be after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.executor import Executor, in_order
from lakeformat.paimon.checks.check_report import CheckReport, CheckResult
from lakeformat.paimon.checks.example_rows import identifying_fields
from lakeformat.paimon.checks.findings import Findings
from lakeformat.paimon.checks.repeated_values import RepeatedValues
from lakeformat.paimon.checks.row_checks import NewestTime, RowCheck, RowCondition, is_time
from lakeformat.paimon.commit.redo import files_taken_out
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_result import StagedResult
from lakeformat.paimon.read.scan import Scan
from lakeformat.paimon.read.splits import Split
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.staged.scan import scan_staged
from lakeformat.rows.conditions.filter import Where, bind_predicate
from lakeformat.rows.conditions.predicate import IsIn, IsNull, Not
from lakeformat.tables.checks import Checks, columns_of
from lakeformat.types.closest import closest
from lakeformat.types.type_kinds import type_text
from lakeformat.types.types import AtomicType, DataField

__all__ = ["check_table"]

_log = logging.getLogger(__name__)

_WRITES_PARTS_OF_ROWS = ("partial-update", "aggregation")


def check_table(
    handle: TableHandle,
    checks: Checks,
    *,
    staged: Sequence[StagedResult] | None = None,
    replaces: int | None = None,
    where: Where | None = None,
    executor: Executor | None = None,
) -> CheckReport:
    """Check rows of the newest snapshot, or of staged results; only those that meet ``where``.

    ``replaces`` is the snapshot whose rows the staged ones will replace. ``executor`` checks single
    rows in parallel; repeated values are found in this process.
    """

    def check() -> CheckReport:
        head = latest_snapshot(handle.storage, handle.layout)
        return _Check(handle, checks, head, staged, replaces, where, executor).run()

    report = again_if_overtaken(handle, check)
    _log.info("check table=%s %s", handle.uri, report.reason)
    return report


@dataclass(frozen=True, slots=True)
class _Check:
    handle: TableHandle
    checks: Checks
    head: Snapshot | None
    staged: Sequence[StagedResult] | None
    replaces: int | None
    where: Where | None
    executor: Executor | None

    def run(self) -> CheckReport:
        nulls = {name: self._no_nulls(name) for name in self.checks.not_null}
        values = {name: self._accepted(name) for name in self.checks.accepted_values}
        times = [self._time(name) for name in self.checks.freshness]
        conditions = [self._condition(text) for text in self.checks.conditions]
        unique = [[self._key(name) for name in columns_of(each)] for each in self.checks.unique]
        rows = self._look([*nulls.values(), *values.values(), *times, *conditions])
        findings = Findings(self.checks, rows, self.handle.environment.now_millis())
        results = [
            findings.of_rows(),
            *(findings.of_nulls(found, name) for name, found in nulls.items()),
            *(self._repeated(findings, columns) for columns in unique),
            *(findings.of_other_values(found, name) for name, found in values.items()),
            *map(findings.of_time, times),
            *map(findings.of_condition, conditions),
        ]
        by_name = {result.name: result for result in results}
        return CheckReport(
            table=self.handle.uri,
            snapshot_id=None if self.head is None else self.head.id,
            staged=tuple(self._address(each) for each in self.staged or ()),
            rows=rows,
            checks=tuple(by_name[name] for name in self.checks.names()),
        )

    def _look(self, row_checks: Sequence[RowCheck]) -> int:
        """Let the checks look at each row, and return the number of rows."""
        names = {name for each in row_checks for name in each.columns}
        if not names:
            return self._scan([self.handle.schema.fields[0].name]).count()
        scan = self._scan(
            [field.name for field in self.handle.schema.fields if field.name in names]
        )
        work = partial(_checked_split, scan, [each.blank() for each in row_checks])
        rows = 0
        for found, counted in self._outcomes(work, scan.splits()):
            rows += counted
            for one, other in zip(row_checks, found, strict=True):
                one.join(other)  # type: ignore[arg-type]
        return rows

    def _outcomes(
        self, work: partial[tuple[list[RowCheck], int]], splits: Sequence[Split]
    ) -> Iterator[tuple[list[RowCheck], int]]:
        if self.executor is None:
            return map(work, splits)
        return in_order(self.executor, work, splits, lambda split: split.size_bytes)

    def _repeated(self, findings: Findings, columns: Sequence[DataField]) -> CheckResult:
        names = [column.name for column in columns]
        found = RepeatedValues(columns, self.handle.options)
        keys = self.handle.schema.primary_keys
        if not keys or not {*keys} <= {*names}:  # a table has each primary key once
            for batch in self._scan(names, with_published=True).to_batches():
                found.add(batch)
        found.finish()
        return findings.of_repeated(
            f"unique({', '.join(names)})", names, found.repeated_rows, found.examples
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

    def _no_nulls(self, name: str) -> RowCondition:
        schema = self.handle.schema
        engine = schema.table_options.merge_engine
        is_key = name in schema.primary_keys
        if self.staged is not None and engine in _WRITES_PARTS_OF_ROWS and not is_key:
            raise UnsupportedError(
                f"not_null({name}) cannot check staged rows of {self.handle.uri}: with "
                f"'merge-engine' = '{engine}' a null leaves the value in the table unchanged. "
                "Check the published table instead: leave out 'staged'"
            )
        condition = bind_predicate(Not(IsNull(self._field(name).name)), schema.fields)
        return RowCondition(f"not_null({name})", condition, self._shown(name))

    def _accepted(self, name: str) -> RowCondition:
        values = tuple(self.checks.accepted_values[self._field(name).name])
        condition = bind_predicate(IsIn(name, values), self.handle.schema.fields)
        return RowCondition(f"accepted_values({name})", condition, self._shown(name))

    def _condition(self, text: str) -> RowCondition:
        condition = bind_predicate(text, self.handle.schema.fields)
        shown = self._shown(*sorted(condition.columns))
        return RowCondition(f"condition({text})", condition, shown)

    def _time(self, name: str) -> NewestTime:
        column = self._field(name)
        if not is_time(column):
            raise InvalidRequestError(
                f"freshness({name}) needs a DATE or TIMESTAMP column, but {name!r} is "
                f"{type_text(column.type)}; choose another column"
            )
        return NewestTime(f"freshness({name})", column)

    def _key(self, name: str) -> DataField:
        column = self._field(name)
        if not isinstance(column.type, AtomicType):
            raise InvalidRequestError(
                f"unique cannot compare column {name!r} of type {type_text(column.type)}; choose "
                "columns without nested values"
            )
        return column

    def _field(self, name: str) -> DataField:
        by_name = {field.name: field for field in self.handle.schema.fields}
        if name not in by_name:
            raise InvalidRequestError(
                f"a check names {name!r}, which is not a column of {self.handle.uri}; the columns "
                f"are {', '.join(by_name)}{closest(name, by_name)}"
            )
        return by_name[name]

    def _shown(self, *names: str) -> tuple[DataField, ...]:
        """Return the columns of an example: those that identify the row, and the checked ones."""
        identifying = identifying_fields(self.handle.schema)
        fields = [*identifying, *(self._field(name) for name in names)]
        return tuple(dict.fromkeys(fields))

    def _address(self, result: StagedResult) -> str:
        return self.handle.storage.uri(self.handle.layout.staged(result.name))


def _checked_split(
    scan: Scan, row_checks: Sequence[RowCheck], split: Split
) -> tuple[list[RowCheck], int]:
    found = [each.blank() for each in row_checks]
    rows = 0
    for batch in scan.read(split):
        rows += batch.num_rows
        for each in found:
            each.add(batch)
    return found, rows
