# SPDX-License-Identifier: Apache-2.0
"""Finds rows that wait for a compaction to write their changelog."""

from __future__ import annotations

from collections.abc import Collection

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.read.changes.files import NO_PRODUCER, changelog_producer
from lakeformat.paimon.read.plan import plan_columns

__all__ = ["check_change_of_producer", "level_without_changelog"]

_INPUT, _LOOKUP, _FULL = "input", "lookup", "full-compaction"


def level_without_changelog(options: TableOptions, levels: Collection[int]) -> int:
    """Return the highest level that may have rows which are not yet in the changelog.

    ``levels`` are the levels of the existing files. The producer must be ``lookup`` or
    ``full-compaction``.
    """
    if options.changelog_producer == _LOOKUP:
        return 0
    return max(options.level_count - 1, *levels) - 1


def check_change_of_producer(before: TableHandle, after: TableHandle) -> None:
    """Raise InvalidRequestError if rows of the table would never be in a changelog.

    A compaction with the old producer has not written their changelog yet, and with the new
    producer it would never be written.
    """
    old, new = changelog_producer(before), changelog_producer(after)
    only_postponed = (old, new) == (_INPUT, NO_PRODUCER)
    if not only_postponed and (old not in (_LOOKUP, _FULL) or new in (old, _FULL)):
        return
    snapshot = latest_snapshot(before.storage, before.layout)
    if snapshot is None:
        return
    files = plan_columns(before, snapshot).columns
    levels = files.level.numbers
    waits = levels <= level_without_changelog(before.options, {0, *levels.tolist()})
    if only_postponed:
        waits &= files.bucket.numbers == POSTPONE_BUCKET
    elif new == _LOOKUP:  # its next compaction writes the changelog of level 0
        waits &= levels > 0
    elif new == _INPUT:  # the compaction of postponed rows writes their changelog
        waits &= files.bucket.numbers != POSTPONE_BUCKET
    if waits.any():
        raise InvalidRequestError(
            f"option 'changelog-producer' of {before.uri} cannot change from {old!r} to {new!r} "
            "yet: the table has rows that its changelog does not contain, and with the new value "
            "no stream would deliver them. Run Table.compact or lake compact first. Nothing was "
            "changed"
        )
