# SPDX-License-Identifier: Apache-2.0
"""Finds the positions of the rows that meet a condition, and reads files by these positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.paimon.compact.row_positions import PositionedRows
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.row_changes.plan import ChangeUnit
from lakeformat.types.types import DataField

__all__ = ["Found", "find_rows", "positioned_rows", "read_found", "read_parts"]

Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one file that meet a condition."""

    entry: ManifestEntry
    positions: Positions | None
    """The positions of the rows in the file, ascending.

    None: all rows of the file that were not deleted before.
    """
    rows: int
    left: int
    """The number of undeleted rows in the file that do not meet the condition."""

    def mask(self, positions: Positions) -> Mask:
        """Return a mask of row positions in the file: True for a found row."""
        if self.positions is None:
            return np.ones(len(positions), np.bool_)
        there = np.zeros(self.entry.file.row_count, np.bool_)
        there[self.positions] = True
        return there[positions]


def find_rows(handle: TableHandle, unit: ChangeUnit) -> list[Found]:
    """Return the files of a bucket that have rows to change, with the positions of these rows."""
    deleted = positioned_rows(handle, unit)
    files = DataFiles(handle, unit.snapshot, deleted)
    found = []
    for entry in unit.files:
        there = entry.file.row_count - deleted.count(entry)
        positions = None if unit.where is None else _positions(handle, unit, entry, files, deleted)
        rows = there if positions is None else len(positions)
        if rows:
            found.append(Found(entry, None if rows == there else positions, rows, there - rows))
    return found


def read_parts(
    handle: TableHandle, unit: ChangeUnit, found: Found
) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    """Yield all undeleted rows of a file, each batch with a mask of the found rows."""
    deleted = positioned_rows(handle, unit)
    files = DataFiles(handle, unit.snapshot, deleted)
    for batch in files.rows(found.entry, handle.schema.fields):
        yield batch, found.mask(deleted.last)


def read_found(handle: TableHandle, unit: ChangeUnit, found: Found) -> Iterator[pa.RecordBatch]:
    """Yield the rows ``found`` of a file; batches without such a row are left out."""
    deleted = positioned_rows(handle, unit)
    files = DataFiles(handle, unit.snapshot, deleted)
    conditions = () if unit.where is None else unit.where.conditions()
    for batch in files.rows(found.entry, handle.schema.fields, conditions):
        mask = found.mask(deleted.last)
        if mask.any():
            yield batch if mask.all() else batch.filter(pa.array(mask))


def positioned_rows(handle: TableHandle, unit: ChangeUnit) -> PositionedRows:
    """Return the deletion vectors of the unit, with which ``DataFiles`` reads the unit's files.

    After ``DataFiles`` has read a batch, the attribute ``last`` of the returned object has the
    positions of the batch's rows in the file.
    """
    manifest = unit.snapshot.index_manifest
    source = "" if manifest is None else handle.storage.uri(handle.layout.manifest(manifest))
    return PositionedRows(handle, unit.vectors, source)


def _positions(
    handle: TableHandle,
    unit: ChangeUnit,
    entry: ManifestEntry,
    files: DataFiles,
    deleted: PositionedRows,
) -> Positions:
    where = unit.where
    assert where is not None
    fields: tuple[DataField, ...] = tuple(
        field for field in handle.schema.fields if field.name in where.columns
    )
    fields = fields or handle.schema.fields[:1]  # a batch without columns has no rows
    parts = [np.zeros(0, np.int64)]
    for batch in files.rows(entry, fields, where.conditions()):
        mask = where.mask(batch).fill_null(False).to_numpy(zero_copy_only=False)
        parts.append(deleted.last[mask])
    return np.concatenate(parts)
