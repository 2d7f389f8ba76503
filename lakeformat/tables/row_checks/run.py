# SPDX-License-Identifier: Apache-2.0
"""Runs checks on the rows of a table of any format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.executor import Executor, in_order
from lakeformat.rows.conditions.filter import bind_predicate
from lakeformat.rows.conditions.predicate import IsIn, IsNull, Not
from lakeformat.rows.spill import SpillOptions, SpillSettings
from lakeformat.tables.checks import Checks, columns_of
from lakeformat.tables.row_checks.check_report import CheckResult
from lakeformat.tables.row_checks.findings import Findings
from lakeformat.tables.row_checks.repeated_values import RepeatedValues
from lakeformat.tables.row_checks.single_rows import NewestTime, RowCheck, RowCondition, is_time
from lakeformat.types.closest import closest
from lakeformat.types.type_kinds import type_text
from lakeformat.types.types import AtomicType, DataField

__all__ = ["CheckedRows", "SplitScan", "run_checks"]


class SplitScan(Protocol):
    """A scan whose splits can be read one by one, also on other machines."""

    def splits(self) -> Sequence[Any]:
        """Return the splits of the scan."""

    def read(self, split: Any) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one split."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream all rows."""

    def count(self) -> int:
        """Return the number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRows:
    """The rows to check, and the columns that identify them."""

    location: str
    fields: Sequence[DataField]
    inner_fields: Sequence[DataField] = ()
    """The fields of structs, with dotted names such as ``address.city``, for conditions."""
    identifying: Sequence[DataField]
    """The columns that are shown in examples, so that a user finds the rows."""
    keys: frozenset[str] = frozenset()
    """The columns of the primary key, if the partition and the bucket of a row depend only on its
    key: then two rows never have the same key. In all other tables, the set is empty.
    """
    scan: Callable[[Sequence[str]], SplitScan]
    """Returns a scan of the given columns over the rows to check."""
    scan_all: Callable[[Sequence[str]], SplitScan]
    """Returns a scan of the given columns over the rows in which the check ``unique`` searches for
    repeated values.

    With staged results, this includes the published rows.
    """
    memory: SpillOptions = field(default_factory=SpillSettings)


def run_checks(
    rows: CheckedRows, checks: Checks, now_millis: int, executor: Executor | None
) -> tuple[int, tuple[CheckResult, ...]]:
    """Return the number of checked rows, and the result of each check in the order of
    ``checks.names()``.

    ``executor`` reads the rows in parallel, except for ``unique``, which runs in this process.
    ``executor=None`` runs all checks in this process. A check of an unknown or unsuitable column
    raises ``InvalidRequestError``.
    """
    run = _RowCheckRun(rows, checks, executor)
    nulls = {name: run.no_nulls(name) for name in checks.not_null}
    values = {name: run.accepted(name) for name in checks.accepted_values}
    times = [run.time(name) for name in checks.freshness]
    conditions = [run.condition(text) for text in checks.conditions]
    unique = [[run.key(name) for name in columns_of(each)] for each in checks.unique]
    count = run.look([*nulls.values(), *values.values(), *times, *conditions])
    findings = Findings(checks, count, now_millis)
    results = [
        findings.of_rows(),
        *(findings.of_nulls(found, name) for name, found in nulls.items()),
        *(run.repeated(findings, columns) for columns in unique),
        *(findings.of_other_values(found, name) for name, found in values.items()),
        *map(findings.of_time, times),
        *map(findings.of_condition, conditions),
    ]
    by_name = {result.name: result for result in results}
    return count, tuple(by_name[name] for name in checks.names())


@dataclass(frozen=True, slots=True)
class _RowCheckRun:
    rows: CheckedRows
    checks: Checks
    executor: Executor | None

    def look(self, row_checks: Sequence[RowCheck]) -> int:
        """Read the rows once for all checks in ``row_checks``, and return the number of rows."""
        names = {name for each in row_checks for name in each.columns}
        if not names:
            return self.rows.scan([self.rows.fields[0].name]).count()
        scan = self.rows.scan([each.name for each in self.rows.fields if each.name in names])
        work = partial(_checked_split, scan, [each.blank() for each in row_checks])
        rows = 0
        for found, counted in self._outcomes(work, scan.splits()):
            rows += counted
            for one, other in zip(row_checks, found, strict=True):
                one.join(other)  # type: ignore[arg-type]
        return rows

    def _outcomes(
        self, work: partial[tuple[list[RowCheck], int]], splits: Sequence[Any]
    ) -> Iterator[tuple[list[RowCheck], int]]:
        if self.executor is None:
            return map(work, splits)
        return in_order(self.executor, work, splits, lambda split: split.size_bytes)

    def repeated(self, findings: Findings, columns: Sequence[DataField]) -> CheckResult:
        names = [column.name for column in columns]
        found = RepeatedValues(columns, self.rows.memory)
        keys = self.rows.keys
        if not keys or not keys <= {*names}:
            for batch in self.rows.scan_all(names).to_batches():
                found.add(batch)
        found.finish()
        return findings.of_repeated(
            f"unique({', '.join(names)})", names, found.repeated_rows, found.examples
        )

    def no_nulls(self, name: str) -> RowCondition:
        condition = bind_predicate(Not(IsNull(self._field(name).name)), self.rows.fields)
        return RowCondition(f"not_null({name})", condition, self._shown(name))

    def accepted(self, name: str) -> RowCondition:
        given = self.checks.accepted_values[self._field(name).name]
        # In SQL, no value is outside of a list with NULL. A null passes without being listed.
        values = tuple(value for value in given if value is not None)
        accepted = IsIn(name, values) if values else IsNull(name)
        condition = bind_predicate(accepted, self.rows.fields)
        return RowCondition(f"accepted_values({name})", condition, self._shown(name))

    def condition(self, text: str) -> RowCondition:
        condition = bind_predicate(text, (*self.rows.fields, *self.rows.inner_fields))
        names = {each.name for each in self.rows.fields}
        used = (name if name in names else self._column_around(name) for name in condition.columns)
        shown = self._shown(*sorted({*used}))
        return RowCondition(f"condition({text})", condition, shown)

    def time(self, name: str) -> NewestTime:
        column = self._field(name)
        if not is_time(column):
            raise InvalidRequestError(
                f"freshness({name}) needs a DATE or TIMESTAMP column, but {name!r} is "
                f"{type_text(column.type)}; choose another column"
            )
        return NewestTime(f"freshness({name})", column)

    def key(self, name: str) -> DataField:
        column = self._field(name)
        if not isinstance(column.type, AtomicType):
            raise InvalidRequestError(
                f"unique cannot compare column {name!r} of type {type_text(column.type)}; choose "
                "columns without nested values"
            )
        return column

    def _field(self, name: str) -> DataField:
        by_name = {each.name: each for each in self.rows.fields}
        if name not in by_name:
            raise InvalidRequestError(
                f"a check names {name!r}, which is not a column of {self.rows.location}; the "
                f"columns are {', '.join(by_name)}{closest(name, by_name)}"
            )
        return by_name[name]

    def _column_around(self, name: str) -> str:
        """Return the top-level column that contains the field ``name`` of a struct."""
        return next(each.name for each in self.rows.fields if name.startswith(f"{each.name}."))

    def _shown(self, *names: str) -> tuple[DataField, ...]:
        """Return the columns of an example: the identifying columns and the checked columns."""
        fields = [*self.rows.identifying, *(self._field(name) for name in names)]
        return tuple(dict.fromkeys(fields))


def _checked_split(
    scan: SplitScan, row_checks: Sequence[RowCheck], split: Any
) -> tuple[list[RowCheck], int]:
    found = [each.blank() for each in row_checks]
    rows = 0
    for batch in scan.read(split):
        rows += batch.num_rows
        for each in found:
            each.add(batch)
    return found, rows
