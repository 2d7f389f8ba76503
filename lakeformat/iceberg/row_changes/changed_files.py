# SPDX-License-Identifier: Apache-2.0
"""Finds the rows to change in data files, and writes rows that must be in new files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.read.file_rows import POSITION, lineage_of
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.row_positions import RowPositions
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.row_changes.matched_rows import FileToChange, MatchedFile, MatchPlan
from lakeformat.iceberg.row_changes.new_values import Update
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.prune import Mask
from lakeformat.tables.row_change_report import Method
from lakeformat.types.arrow_memory import array_of

__all__ = ["ChangeUnit", "ChangedUnit", "UnitWork", "units_of"]


@dataclass(frozen=True, slots=True)
class ChangeUnit:
    """Files of one partition that are changed together."""

    files: tuple[FileToChange, ...]

    @property
    def bytes(self) -> int:
        """The size of the files, in bytes."""
        return sum(each.split.file.size_bytes for each in self.files)


@dataclass(frozen=True, slots=True)
class ChangedUnit:
    """The result of one unit; it is not published yet."""

    unit: ChangeUnit
    removed: tuple[MatchedFile, ...] = ()
    """Files to remove: all their rows are deleted, or their remaining rows are in new files."""
    marked: tuple[MatchedFile, ...] = ()
    """Files that are kept, with some rows deleted by position."""
    entries: pa.Table | None = None
    """The manifest entries of new files; None if there are none."""

    @property
    def rows(self) -> int:
        """The number of rows that meet the condition."""
        return sum(each.positions.cardinality for each in (*self.removed, *self.marked))

    @property
    def rewritten(self) -> int:
        """The number of removed files whose remaining rows are in new files."""
        return sum(not each.is_whole for each in self.removed)

    @property
    def paths(self) -> list[str]:
        """The URIs of the new files."""
        found: list[str] = []
        if self.entries is not None:
            found += self.entries.column("file_path").to_pylist()
        return found


def units_of(files: Sequence[FileToChange], most_bytes: int) -> list[ChangeUnit]:
    """Divide ``files`` into units, each of one partition and of about ``most_bytes`` bytes."""
    units: list[list[FileToChange]] = []
    last: dict[str, tuple[list[FileToChange], int]] = {}
    for file in files:
        group, size = last.get(file.scope, ([], most_bytes))
        if size >= most_bytes:
            group, size = [], 0
            units.append(group)
        group.append(file)
        last[file.scope] = group, size + file.split.file.size_bytes
    return [ChangeUnit(tuple(each)) for each in units]


@dataclass(frozen=True)
class UnitWork:
    """Changes the rows in the files of each unit."""

    plan: MatchPlan
    method: Method
    find: Callable[[FileToChange], MatchedFile]
    """Returns a file with the positions of its rows to change."""
    update: Update | None
    """Returns new rows for given rows. For a DELETE, the attribute is None."""
    environment: Environment
    is_dry_run: bool

    def __call__(self, unit: ChangeUnit) -> ChangedUnit:
        """Change the rows of a unit, and return the result for the commit.

        A dry run writes no file. After any exception no new file is left.
        """
        found = [each for each in map(self.find, unit.files) if each.positions.cardinality]
        is_moved = [each.is_whole or self.method is Method.REWRITE for each in found]
        removed = tuple(each for each, moved in zip(found, is_moved, strict=True) if moved)
        marked = tuple(each for each, moved in zip(found, is_moved, strict=True) if not moved)
        moving = [each for each in removed if self.update is not None or not each.is_whole]
        updated = () if self.update is None else marked
        if self.is_dry_run or not (moving or updated):
            return ChangedUnit(unit, removed, marked)
        writer = TableWriter(self.plan.loaded, self.environment, self._lineage)
        try:
            for batch in chain(*map(self._moved, moving), *map(self._updated, updated)):
                writer.write(batch)
            entries = writer.finish()
        except BaseException:
            writer.discard()
            raise
        return ChangedUnit(unit, removed, marked, entries)

    def count(self, files: Sequence[FileToChange]) -> int:
        """Return the number of live rows in the files."""
        rows = 0
        for each in files:
            known = self._live.known_count(each.split)
            rows += sum(map(len, self._live.positions(each.split))) if known is None else known
        return rows

    def _updated(self, matched: MatchedFile) -> Iterator[pa.RecordBatch]:
        assert self.update is not None
        for batch, mask in self._read(self.plan.scan, matched):
            if mask.any():
                yield self.update(batch.filter(array_of(mask)))

    def _moved(self, matched: MatchedFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file after the change, in their order.

        Rows that meet the condition get new values, or are left out if ``update`` is None.
        """
        for batch, mask in self._read(self._live, matched):
            kept = batch.filter(array_of(~mask))
            if self.update is None or not mask.any():
                yield kept
                continue
            changed = self.update(batch.filter(array_of(mask)))
            both = pa.Table.from_batches([kept, changed]).combine_chunks()
            order = np.argsort(np.concatenate([np.flatnonzero(~mask), np.flatnonzero(mask)]))
            yield from both.take(array_of(order)).to_batches()

    def _read(self, scan: Scan, matched: MatchedFile) -> Iterator[tuple[pa.RecordBatch, Mask]]:
        """Yield rows of a file from ``scan``, with a mask of the rows that meet the condition."""
        chosen = RowPositions(matched.positions.to_numpy())
        fields = (*self.plan.loaded.metadata.schema.fields, *self._lineage)
        for batch in scan.read_fields(matched.file.split, (*fields, POSITION)):
            mask = chosen.holds(batch.column(len(fields)).to_numpy())
            yield batch.select(range(len(fields))), mask

    @cached_property
    def _live(self) -> Scan:
        """A scan of all live rows of the planned snapshot."""
        plan = self.plan
        metadata = plan.loaded.metadata
        return Scan(TableState(plan.loaded.places, metadata, plan.snapshot, metadata.schema))

    @property
    def _lineage(self) -> tuple[Field, ...]:
        return lineage_of(self.plan.loaded.metadata)
