# SPDX-License-Identifier: Apache-2.0
"""Conditions that a sensor waits for; each is checked on one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_lake.assets.change import (
    ROW_KINDS,
    counts,
    describe_change,
    position_of,
)
from spark_jobs.job_requests.request import check_millis

if TYPE_CHECKING:
    from lakeformat import Position, Table

__all__ = [
    "CompactionNeeded",
    "Condition",
    "ConsumerLag",
    "PartitionThere",
    "PublicationCurrent",
    "SnapshotAdvanced",
    "WatermarkReached",
    "at_least",
    "check_position",
    "fell_behind",
    "read_condition",
    "to_millis",
    "write_condition",
]


class Condition(Protocol):
    """A condition on a table, with fields that ``write_condition`` can write as JSON."""

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the findings as JSON values if the table meets the condition, else None. ``name``
        is the table name for the findings.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAdvanced:
    """The table has a matching commit after ``after_snapshot``, not earlier than ``since_millis``.

    A commit matches if its kind is in ``kinds``. With ``changelog``, a commit of any kind matches
    if it has changelog rows.

    The newest commit, of any kind, matches if the table was recreated, or if a rollback removed
    ``after_snapshot``.

    If snapshots after ``after_snapshot`` have expired, and no remaining commit matches by the rules
    above, the newest commit matches, because an expired one may have matched. This rule does not
    apply with ``since_millis``.
    """

    after_snapshot: int | str = 0
    """A snapshot number, or a position as text such as ``"main/7"``."""
    since_millis: int = 0
    kinds: tuple[str, ...] = ROW_KINDS
    changelog: bool = False

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the payload about all commits that meet the condition; None if there are none.

        If the table was recreated, or a rollback removed ``after_snapshot``, return a payload about
        the newest commit, with ``rewound`` true. Do the same if a Mixed table does not have that
        snapshot any more. With ``changelog``, raise ``UnsupportedError`` for a table without
        changelogs.
        """
        if self.changelog:
            table.require("changelog")
        after = position_of(table, self.after_snapshot)
        if after is None:
            return self._rewound(name, table)
        since = table.since(after)
        if since.rewound:
            return self._rewound(name, table)
        counted = [
            snapshot
            for snapshot in since.snapshots
            if snapshot.time_millis >= self.since_millis
            and counts(snapshot, self.kinds, changelog=self.changelog)
        ]
        if not counted and since.missed and since.snapshots and not self.since_millis:
            counted = [since.snapshots[-1]]  # those that expired may have counted
        if not counted:
            return None
        # Expired snapshots are older than the oldest one that is left.
        missed = since.missed and since.snapshots[0].time_millis >= self.since_millis
        previous = table.position_before(counted[0].position) if self.since_millis else after
        return describe_change(name, table, counted, previous=previous, missed=missed)

    def _rewound(self, name: str, table: Table) -> dict[str, Any] | None:
        head = table.latest_snapshot()
        if head is None or head.time_millis < self.since_millis:
            return None
        return describe_change(name, table, [head], previous=None, rewound=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkReached:
    """The watermark of the table has reached an event time, in epoch milliseconds."""

    millis: int

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the newest snapshot and its watermark; None before the watermark reaches
        ``millis``.

        Raise ``UnsupportedError`` for a table without watermarks.
        """
        table.require("watermarks")
        head = table.latest_snapshot()
        if head is None or head.watermark is None or head.watermark < self.millis:
            return None
        return {"table": name, "snapshot_id": head.id, "watermark": head.watermark}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionThere:
    """A partition has rows; with ``done``, the partition is marked as done."""

    partition: Mapping[str, str | int]
    done: bool = False

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the matching partitions, each with its number of rows; None if none has rows.

        Stored rows are counted, before any merge. With ``done``, return the one partition if it is
        marked as done; None if it is not marked. With ``done``, raise ``UnsupportedError`` for a
        table whose format does not mark partitions as done.
        """
        if self.done:
            table.require("partition_marks")
            return self._marked(name, table)
        found = table.partition_rows(self.partition)
        if not found.rows:
            return None
        return {"table": name, "snapshot_id": found.snapshot_id, "partitions": dict(found.rows)}

    def _marked(self, name: str, table: Table) -> dict[str, Any] | None:
        report = table.mark_partitions_done(
            [self.partition], actions=["success-file"], allow_empty=True, dry_run=True
        )
        [one] = report.partitions
        return {"table": name, "partitions": {one.partition: one.rows}} if one.repeated else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionNeeded:
    """A compaction with ``strategy`` would read at least ``min_files`` files."""

    strategy: str = "minor"
    min_files: int = 1

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the numbers of units, files and bytes that a compaction would read; None for fewer
        than ``min_files`` files. A unit is the files that are compacted together.

        Raise ``UnsupportedError`` for a table that cannot be compacted.
        """
        table.require("compact")
        plan = table.plan_compaction(strategy=self.strategy)
        files = sum(len(unit.files) for unit in plan.units)
        if files < self.min_files:
            return None
        return {
            "table": name,
            "snapshot_id": plan.snapshot_id,
            "strategy": self.strategy,
            "units": len(plan.units),
            "files": files,
            "bytes": plan.bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLag:
    """The consumer has at most ``max_behind`` snapshots left to read."""

    consumer: str
    max_behind: int = 0

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the next snapshot of the consumer, and the number of snapshots left to read.

        Return None if more than ``max_behind`` are left, if there is no such consumer, or if a
        rollback removed the snapshot up to which the consumer has read. Raise
        ``InvalidRequestError`` if the next snapshot has expired.
        """
        found = next((each for each in table.consumers.list() if each.id == self.consumer), None)
        if found is None:
            return None
        if found.is_stale:
            raise fell_behind(name, self.consumer, found.position)
        if found.behind > self.max_behind:
            return None
        if table.since(found.position, found.position).rewound:
            return None
        return {
            "table": name,
            "consumer": self.consumer,
            "next_snapshot": found.next_snapshot,
            "behind": found.behind,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCurrent:
    """Readers of Iceberg miss at most ``max_behind`` snapshots of a published Paimon table."""

    max_behind: int = 0

    def check(self, name: str, table: Table) -> dict[str, Any] | None:
        """Return the number of snapshots that readers of Iceberg miss; None for more than
        ``max_behind``. Raise ``UnsupportedError`` for a table that cannot be published.
        """
        from lakeformat import publication_lag

        table.require("publish")
        behind = publication_lag(table).snapshots
        if behind > self.max_behind:
            return None
        return {"table": name, "behind": behind}


def fell_behind(name: str, consumer: str, position: Position) -> Exception:
    """Return the ``InvalidRequestError`` for a consumer whose next snapshot has expired.

    ``name`` is the name of the table. The consumer has read up to ``position``.
    """
    from lakeformat import InvalidRequestError

    shown = replace(position, identity=None)
    return InvalidRequestError(
        f"consumer {consumer!r} of {name} cannot continue: it has read up to position {shown}, "
        "and the next snapshot has expired. Read all rows once, and the changes after them: at = "
        f"table.position(); table.scan(snapshot=at); table.consumers.set({consumer!r}, after=at)"
    )


_CONDITIONS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        SnapshotAdvanced,
        WatermarkReached,
        PartitionThere,
        CompactionNeeded,
        ConsumerLag,
        PublicationCurrent,
    )
}


def write_condition(condition: Condition) -> dict[str, Any]:
    """Return a condition as a dict of JSON values, for a trigger."""
    members = asdict(condition)  # type: ignore[call-overload]
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in members.items()}
    return {"condition": type(condition).__name__, **plain}


def read_condition(written: Mapping[str, Any]) -> Condition:
    """Return the condition that ``write_condition`` has written."""
    members = {key: value for key, value in written.items() if key != "condition"}
    kind = _CONDITIONS[written["condition"]]
    plain = {key: tuple(v) if isinstance(v, list) else v for key, v in members.items()}
    found: Condition = kind(**plain)
    return found


def at_least(least: int, what: str, value: object) -> int:
    """Return ``value`` if it is a whole number of at least ``least``; else raise ``ValueError``,
    which names the argument ``what``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"argument {what!r} must be a whole number from {least} on, got {value!r}")
    return value


def check_position(what: str, value: object) -> int | str:
    """Return a snapshot number from 0 on, or the text of a position. Raise ``ValueError``, which
    names the argument ``what``, for anything else.
    """
    if not isinstance(value, str):
        return at_least(0, what, value)
    from lakeformat import InvalidRequestError, Position

    try:
        return str(Position.parse(value))
    except InvalidRequestError as reason:
        raise ValueError(f"argument {what!r}: {reason}") from None


def to_millis(what: str, moment: str | int | datetime) -> int:
    """Return a time as epoch milliseconds. ``moment`` is a number of epoch milliseconds, ISO 8601
    text or a ``datetime``; text and ``datetime`` are in UTC unless they have a zone.

    Raise ``ValueError``, which names the argument ``what``, for anything else.
    """
    if isinstance(moment, int):
        try:
            check_millis(moment)
        except ValueError as reason:
            raise ValueError(
                f"argument {what!r} must be a time in epoch milliseconds, got {moment}: {reason}"
            ) from None
        return moment
    try:
        found = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment.strip())
    except (AttributeError, TypeError, ValueError):
        raise ValueError(
            f"argument {what!r} must be a time such as 2024-01-31T00:00:00+00:00 or epoch "
            f"milliseconds, got {moment!r}"
        ) from None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
