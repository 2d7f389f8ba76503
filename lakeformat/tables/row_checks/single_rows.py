# SPDX-License-Identifier: Apache-2.0
"""Checks that look at one row at a time, so that parts of the rows can be checked in parallel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.tables.row_checks.example_rows import MOST_EXAMPLES, example_texts
from lakeformat.types.types import AtomicType, DataField, TypeName

__all__ = ["NewestTime", "RowCheck", "RowCondition", "is_time"]

_DAY_MILLIS = 86_400_000
_TIMES = (TypeName.DATE, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)


@dataclass(slots=True)
class RowCondition:
    """A count of the rows that do not meet a condition.

    If the result of the condition is unknown because of a null, the row passes, as in a SQL CHECK.
    """

    name: str
    condition: PredicateFilter
    shown: tuple[DataField, ...]
    """The columns that are shown in an example."""
    bad_rows: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        is_bad = pc.fill_null(pc.invert(self.condition.mask(batch)), False)
        if not (bad := pc.sum(is_bad).as_py() or 0):
            return
        self.bad_rows += bad
        if (missing := MOST_EXAMPLES - len(self.examples)) > 0:
            self.examples += example_texts(batch.filter(is_bad), self.shown, missing)

    def join(self, other: RowCondition) -> None:
        """Add the counts that the same check found in another part of the rows."""
        self.bad_rows += other.bad_rows
        self.examples = [*self.examples, *other.examples][:MOST_EXAMPLES]

    def blank(self) -> RowCondition:
        """Return the same check with all counts at 0."""
        return replace(self, bad_rows=0, examples=[])

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the check reads."""
        return self.condition.columns | {field.name for field in self.shown}


@dataclass(slots=True)
class NewestTime:
    """The newest time of a column. Times of a column without a zone are in UTC."""

    name: str
    column: DataField
    newest_millis: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Replace the newest time if the batch has a newer one."""
        self._take(_millis(pc.max(batch.column(self.column.name))))

    def join(self, other: NewestTime) -> None:
        """Replace the newest time if another part of the rows has a newer one."""
        self._take(other.newest_millis)

    def blank(self) -> NewestTime:
        """Return the same check without a newest time."""
        return replace(self, newest_millis=None)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the check reads."""
        return frozenset({self.column.name})

    def _take(self, millis: int | None) -> None:
        known = [each for each in (self.newest_millis, millis) if each is not None]
        self.newest_millis = max(known, default=None)


RowCheck: TypeAlias = RowCondition | NewestTime


def is_time(column: DataField) -> bool:
    """Return True if a column has dates or timestamps."""
    return isinstance(column.type, AtomicType) and column.type.name in _TIMES


def _millis(newest: pa.Scalar) -> int | None:
    if not newest.is_valid:
        return None
    if pa.types.is_date(newest.type):
        days: int = newest.cast(pa.date32()).value
        return days * _DAY_MILLIS
    millis: int = newest.cast(pa.timestamp("ms", newest.type.tz), safe=False).value
    return millis
