# SPDX-License-Identifier: Apache-2.0
"""Turns the options of a read into a request for the rows of a snapshot, or for changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.tables.arguments import WindowEnd
from spark_jobs.frames.plans import (
    ReadPlan,
    has_splits,
    plan_changes,
    plan_results,
    plan_splits,
)
from spark_jobs.frames.tables import AnyTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakeformat.tables.results import Results

__all__ = ["Between", "ReadRequest", "request_of_options", "time_of", "truth", "whole_number"]


_TRAVELS = (
    "scan.snapshot-id",
    "scan.tag-name",
    "scan.timestamp",
    "scan.timestamp-millis",
    "scan.watermark",
)
"""Options that choose the snapshot of a read."""
_BETWEEN = {
    "incremental-between": "3,7",
    "incremental-between-timestamp": "2024-01-31 10:00:00,2024-01-31 11:00:00",
}
"""Options that choose the ends of a read of changes, each with an example."""


@dataclass(frozen=True, slots=True)
class Between:
    """The two ends of a read of changes, and the mode of ``Table.changes``."""

    after: WindowEnd
    upto: WindowEnd
    mode: str


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read of a table by the source. It is pickled for the process that plans the read."""

    table: AnyTable
    columns: Sequence[str] | None
    where: str | None
    with_kind: bool
    is_kind_given: bool
    between: Between | None
    rows: Results
    """The rows of the chosen snapshot; for a read of changes, those of the newest."""

    @property
    def schema(self) -> StructType:
        """The columns of the DataFrame."""
        return self._plan_of_nothing().schema

    def plan(self, at_once: int) -> ReadPlan:
        """Return the plan of a batch read with at least ``at_once`` parts, if there are enough
        splits.
        """
        if (between := self.between) is not None:
            return self.plan_changes(between.after, between.upto, between.mode, at_once)
        if has_splits(self.rows):
            return plan_splits(self.rows, self.rows.splits(), at_once, with_kind=self.with_kind)
        return plan_results(self.rows)

    def plan_changes(self, after: WindowEnd, upto: WindowEnd, mode: str, at_once: int) -> ReadPlan:
        """Return the plan for the changes after ``after``, up to and including ``upto``."""
        return plan_changes(
            self.table,
            after,
            upto,
            mode,
            at_once,
            columns=self.columns,
            where=self.where,
            with_kind=self.with_kind,
        )

    def _plan_of_nothing(self) -> ReadPlan:
        if has_splits(self.rows):
            return plan_splits(self.rows, [], 1, with_kind=self.with_kind)
        return plan_results(self.rows)


def request_of_options(table: AnyTable, options: Mapping[str, str]) -> ReadRequest:
    """Return the request for a table and the options of a read. Raise ``InvalidRequestError`` for
    invalid or contradicting options.
    """
    columns, where = _columns(options.get("columns")), options.get("where")
    between = _between(options)
    # Table options that name a state do not apply to changes.
    newest = table.scan(columns, newest=True)
    is_plain = not has_splits(newest)
    kind = options.get("rowkind")
    with_kind = between is not None if kind is None else truth("rowkind", kind)
    if is_plain and (kind is not None or between is not None):
        [name, *_] = [each for each in ("rowkind", *_BETWEEN) if each in options]
        raise lake.InvalidRequestError(
            f"option {name!r} does not apply to a system table of {table.location}: leave it out"
        )
    return ReadRequest(
        table=table,
        columns=columns,
        where=where,
        with_kind=with_kind,
        is_kind_given=kind is not None,
        between=between,
        rows=_rows(table, columns, options) if between is None else newest,
    )


def truth(name: str, text: str) -> bool:
    """Return the value of an option as a bool; raise ``InvalidRequestError`` unless it is ``true``
    or ``false``.
    """
    if text.lower() not in ("true", "false"):
        raise lake.InvalidRequestError(f"option {name!r} must be true or false, got {text!r}")
    return text.lower() == "true"


def whole_number(name: str, text: str | None) -> int | None:
    """Return the value of an option as an int; None if the option is not set. Raise
    ``InvalidRequestError`` for text that is not a whole number.
    """
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise lake.InvalidRequestError(
            f"option {name!r} must be a whole number, got {text!r}"
        ) from None


def time_of(options: Mapping[str, str]) -> str | int | None:
    """Return the time in the options, as text or in epoch milliseconds; None if there is none.
    Raise ``InvalidRequestError`` if both forms are given.
    """
    millis = whole_number("scan.timestamp-millis", options.get("scan.timestamp-millis"))
    text = options.get("scan.timestamp")
    if millis is not None and text is not None:
        raise lake.InvalidRequestError(
            "scan.timestamp and scan.timestamp-millis exclude each other: leave one of them out"
        )
    return text if millis is None else millis


def _rows(table: AnyTable, columns: Sequence[str] | None, options: Mapping[str, str]) -> Results:
    is_stream = "scan.mode" in options
    asked = {
        "where": options.get("where"),
        "snapshot": whole_number("scan.snapshot-id", options.get("scan.snapshot-id")),
        "tag": options.get("scan.tag-name"),
        "as_of": time_of(options),
        "watermark": whole_number("scan.watermark", options.get("scan.watermark")),
    }
    if is_stream:  # snapshot and time are the start of the stream then
        asked = {"where": asked["where"], "newest": True}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return table.scan(columns, **given)


def _columns(text: str | None) -> list[str] | None:
    names = None if text is None else [name.strip() for name in text.split(",")]
    if names and (twice := [name for name in names if names.count(name) > 1]):
        raise lake.InvalidRequestError(f"option 'columns' names {twice[0]!r} twice: name it once")
    return names


def _between(options: Mapping[str, str]) -> Between | None:
    mode = options.get("incremental-between-scan-mode", "auto").lower()
    ends, times = options.get("incremental-between"), options.get("incremental-between-timestamp")
    if ends is None and times is None:
        if "incremental-between-scan-mode" in options:
            raise lake.InvalidRequestError(
                "option 'incremental-between-scan-mode' needs option 'incremental-between' or "
                "'incremental-between-timestamp': add one, or leave the mode out"
            )
        return None
    if travels := [name for name in _TRAVELS if name in options]:
        name = "incremental-between" if times is None else "incremental-between-timestamp"
        raise lake.InvalidRequestError(
            f"{travels[0]} reads rows, and {name} reads changes: leave one of them out"
        )
    if ends is not None and times is not None:
        raise lake.InvalidRequestError(
            "give incremental-between or incremental-between-timestamp, not both"
        )
    if ends is not None:
        after, upto = (_snapshot_or_tag(end) for end in _two("incremental-between", ends))
        return Between(after, upto, mode)
    assert times is not None
    first, last = (_moment(end) for end in _two("incremental-between-timestamp", times))
    return Between(first, last, mode)


def _two(name: str, text: str) -> list[str]:
    ends = [end.strip() for end in text.split(",")]
    if len(ends) != 2 or not all(ends):
        raise lake.InvalidRequestError(
            f"option {name!r} must be two ends separated by a comma, such as {_BETWEEN[name]!r}, "
            f"got {text!r}"
        )
    return ends


def _snapshot_or_tag(end: str) -> WindowEnd:
    return int(end) if end.isdecimal() else end


def _moment(end: str) -> WindowEnd:
    from datetime import UTC, datetime

    from lakeformat.tables.moment import to_millis

    try:
        millis = to_millis(int(end) if end.isdecimal() else end)
    except lake.InvalidRequestError as reason:
        raise lake.InvalidRequestError(
            f"option 'incremental-between-timestamp': {reason}"
        ) from None
    return datetime.fromtimestamp(millis / 1000, UTC)
