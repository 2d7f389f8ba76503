# SPDX-License-Identifier: Apache-2.0
"""Compares the versions in files of both stores by their bounds in manifests.

A row of the base store hides an insert of its key only if the version of the row is larger. So the
versions of a base file are not read if none is larger than the smallest version of the inserts. A
delete can hide a later insert in the same way. An optimizing then merges both or neither.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from lakeformat.iceberg.read.entry_columns import EntryColumns
from lakeformat.iceberg.read.key_ranges import KeyRange, ranges_of
from lakeformat.iceberg.read.plan import FilePlan
from lakeformat.iceberg.types import Field
from lakeformat.mixed.read.store_files import StoreFile

__all__ = ["VersionRanges"]


@dataclass(frozen=True, slots=True)
class VersionRanges:
    """The range of versions in each file, by path."""

    by_path: dict[str, KeyRange]

    @classmethod
    def of(cls, version: Field | None, plans: Sequence[FilePlan]) -> VersionRanges:
        """Return the ranges of all data files of the plans; none without a version field.

        The plans must have the statistics of the field.
        """
        found: dict[str, KeyRange] = {}
        if version is None:
            return cls(found)
        for entries in (table for plan in plans for table in plan.entries):
            paths = entries.column("file_path").to_pylist()
            ranges = ranges_of(EntryColumns(entries), [version])
            for path, each in zip(paths, ranges, strict=True):
                found[path] = each.by_id[version.id]
        return cls(found)

    def may_be_larger(
        self, files: Iterable[StoreFile], inserts: Sequence[StoreFile]
    ) -> tuple[StoreFile, ...]:
        """Return the files that may have a larger version than one of the inserts.

        There must be at least one insert.
        """
        of_inserts = [self.by_path[each.path] for each in inserts]
        bounds: list[Any] = [None if each.has_nulls else each.lower for each in of_inserts]
        least = None if None in bounds else min(bounds)
        return tuple(each for each in files if _may_exceed(self.by_path[each.path], least))

    def hidden(
        self, deletes: Iterable[StoreFile], inserts: Iterable[StoreFile]
    ) -> Iterator[tuple[int, int]]:
        """Yield two sequence numbers for each delete that may hide a later insert.

        A delete hides inserts with smaller versions. The first number belongs to the delete. The
        second belongs to the last insert that the delete may hide.
        """
        ordered = sorted(inserts, key=lambda each: each.sequence, reverse=True)
        # The smallest version of each insert and all later ones, from the last insert on.
        least = [*accumulate((_least(self.by_path[each.path]) for each in ordered), min)][::-1]
        ordered.reverse()
        for each in deletes:
            of = self.by_path[each.path]
            if not of.has_values:  # a null is the smallest version
                continue
            count = len(least) if of.upper is None else bisect_left(least, (1, of.upper))
            if count and ordered[count - 1].sequence > each.sequence:
                yield each.sequence, ordered[count - 1].sequence


def _least(of: KeyRange) -> tuple[int, Any]:
    """Return a sort key for the smallest version in ``of``, the range of a file.

    An unknown version and null come first.
    """
    return (0, 0) if of.has_nulls or of.lower is None else (1, of.lower)


def _may_exceed(of: KeyRange, least: Any) -> bool:
    """Return True if ``of``, the range of a file, may have a version larger than ``least``.

    ``least=None`` is smaller than every version.
    """
    if not of.has_values:  # a null is the smallest version
        return False
    return least is None or of.upper is None or bool(of.upper > least)
