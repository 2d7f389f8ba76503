# SPDX-License-Identifier: Apache-2.0
"""Runs one unit of a compaction: reads its files, writes new ones, and returns messages to
commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lakeformat.errors import CommitConflictError, LakeError
from lakeformat.paimon.compact.append_unit import compact_append_files
from lakeformat.paimon.compact.key_value_unit import compact_key_values
from lakeformat.paimon.compact.postponed import give_buckets
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.read.instant_zones import rewriting_instants

__all__ = ["UnitOutcome", "UnitWork", "run_messages", "run_unit"]

UnitOutcome: TypeAlias = tuple[CompactUnit, tuple[CommitMessage, ...], LakeError | None, int]
"""A unit, its messages, its error or None, and the milliseconds it took."""


@dataclass(frozen=True, slots=True)
class UnitWork:
    """Compacts a unit of one table; it can be pickled and called in another process."""

    handle: TableHandle

    def __call__(self, unit: CompactUnit) -> UnitOutcome:
        """Compact a unit; a ``LakeError`` is returned, not raised."""
        began = self._now()
        try:
            messages = run_messages(self.handle, unit)
        except LakeError as error:
            return unit, (), error, self._now() - began
        return unit, messages, None, self._now() - began

    def _now(self) -> int:
        return self.handle.environment.now_millis()


def run_messages(handle: TableHandle, unit: CompactUnit) -> tuple[CommitMessage, ...]:
    """Compact a unit; return its message, or several if postponed rows get their buckets.

    If the compaction fails, its new files are deleted. A LakeError names the partition and bucket
    of the unit.
    """
    if unit.buckets is None:
        return (run_unit(handle, unit),)
    where = _require_schema(handle, unit)
    try:
        return give_buckets(rewriting_instants(handle, unit.snapshot, unit.files), unit)
    except LakeError as error:
        raise type(error)(f"{where}: {error}") from error


def run_unit(handle: TableHandle, unit: CompactUnit) -> CommitMessage:
    """Compact a unit, in any thread or process, and return its message.

    If the compaction fails, its new files are deleted. A LakeError names the partition and bucket
    of the unit.
    """
    where = _require_schema(handle, unit)
    try:
        handle = rewriting_instants(handle, unit.snapshot, unit.files)
        if handle.schema.primary_keys:
            return compact_key_values(handle, unit)
        return compact_append_files(handle, unit)
    except LakeError as error:
        raise type(error)(f"{where}: {error}") from error


def _require_schema(handle: TableHandle, unit: CompactUnit) -> str:
    """Raise CommitConflictError if the handle has another schema than the unit, or if a file of
    the unit has a newer schema.

    Otherwise return a text that names the unit, as the beginning of later error messages.
    """
    where = f"compaction of {unit.place} of {handle.uri}, planned at snapshot {unit.snapshot.id}"
    if unit.schema_id != handle.schema.id:
        raise CommitConflictError(
            f"{where} under schema-{unit.schema_id}, cannot run, because the table is opened with "
            f"schema-{handle.schema.id}. Nothing was written; plan again"
        )
    newest = max((entry.file.schema_id for entry in unit.files), default=unit.schema_id)
    if newest > unit.schema_id:
        raise CommitConflictError(
            f"{where} under schema-{unit.schema_id}, cannot run, because some files have "
            f"schema-{newest}, whose new columns would be lost. Nothing was written; plan again"
        )
    return where
