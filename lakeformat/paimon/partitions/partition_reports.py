# SPDX-License-Identifier: Apache-2.0
"""Reports of operations on partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.paimon.partitions.live import LivePartition
from lakeformat.tables.report import Report

__all__ = [
    "DonePartition",
    "DropPartitionsPlan",
    "ExpirePartitionsReport",
    "ExpiredPartition",
    "MarkDoneReport",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredPartition:
    """A deleted partition and why it expired; in a dry run, a partition that would be deleted."""

    partition: LivePartition
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**self.partition.to_dict(), "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirePartitionsReport(Report):
    """The result of an expiry of partitions, or of its dry run."""

    table: str
    dry_run: bool
    strategy: str
    older_than: str
    """The time limit as text, in the local time of this machine: older partitions expire."""
    expired: tuple[ExpiredPartition, ...]
    """The expired partitions, in the order of their deletion."""
    left: int
    """The number of expired partitions beyond the limit of one call. Call again to delete them."""
    kept: int
    """The number of partitions that are too young to expire."""
    unknown: tuple[tuple[str, str], ...]
    """The path of each partition that is kept because its age is unknown, and the reason."""
    snapshot_ids: tuple[int, ...]
    reason: str
    """The outcome in one sentence, for the log."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        members = {name: getattr(self, name) for name in _PLAIN}
        expired = [each.to_dict() for each in self.expired]
        unknown = [{"partition": path, "reason": why} for path, why in self.unknown]
        return {**members, "expired": expired, "unknown": unknown, "warning": self.warning}

    @property
    def warning(self) -> str | None:
        """One sentence about partitions of unknown age; None if there are none."""
        if not self.unknown:
            return None
        path, why = self.unknown[0]
        total = len(self.expired) + self.left + self.kept + len(self.unknown)
        remedy = ""
        if NO_MATCH in why:
            remedy = (
                ". Give the format of the values, as timestamp_formatter (--formatter) or as "
                "option 'partition.timestamp-formatter': 'yyyyMMdd' for 20240131, 'yyyy-MM-dd' for "
                "2024-01-31"
            )
            _, *others = (part.partition("=")[0] for part in path.split("/"))
            if others:
                remedy += (
                    ". If another column has the time, give timestamp_pattern (--pattern), too, "
                    f"such as '${others[0]}'"
                )
        never = "never expire because their age is unknown, such as"
        if len(self.unknown) == 1:
            never = "never expires because its age is unknown, namely"
        return f"{len(self.unknown)} of {total} partitions {never} {path}: {why}{remedy}"


NO_MATCH = "does not match the time format"
"""The words in a reason by which ``warning`` recognises that the time format does not fit."""


_PLAIN = ("table", "dry_run", "strategy", "older_than", "left", "kept", "snapshot_ids", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitionsPlan:
    """The partitions that a drop would delete now."""

    table: str
    snapshot_id: int | None
    partitions: tuple[LivePartition, ...]
    missing: tuple[dict[str, Any], ...] = ()
    """The requested specs that match no partition."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "partitions": [partition.to_dict() for partition in self.partitions],
            "missing": [dict(spec) for spec in self.missing],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DonePartition:
    """A partition that was marked as done, or that a dry run would mark."""

    partition: str
    marks: tuple[str, ...]
    """The files and directories that mark the partition as done."""
    rows: int
    repeated: bool
    """True if a readable file ``_SUCCESS`` marked the partition as done before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkDoneReport(Report):
    """The result of marking partitions as done."""

    table: str
    dry_run: bool
    actions: tuple[str, ...]
    partitions: tuple[DonePartition, ...]
    reason: str
    """The outcome in one sentence, for the log."""
