# SPDX-License-Identifier: Apache-2.0
"""Finds the rows of a data file that are live in only one of two snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyroaring import FrozenBitMap64

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.read.changed_files import ChangedFile
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.deleted_rows import DeletedRows, EqualityDeletes
from lakeformat.iceberg.read.file_rows import POSITION
from lakeformat.iceberg.read.row_positions import RowPositions
from lakeformat.rows.groups import Mask

__all__ = ["ComparedFile", "compare_file"]


@dataclass(frozen=True)
class _LiveRows:
    split: FileSplit
    vector: DeletionVector
    deletes: Sequence[EqualityDeletes]

    def mask(self, rows: pa.RecordBatch, places: Mapping[int, int]) -> Mask:
        """Return a mask of the live rows of a batch; ``places`` has the index of each column by
        field id.
        """
        positions = rows.column(places[POSITION.id]).to_numpy()
        live = ~self._deleted.holds(positions)
        for each in self.deletes:
            live &= ~each.deleted(rows, places, self.split.file.sequence_number)
        return live

    def may_lack(self, other: _LiveRows) -> bool:
        """Return True if these live rows may lack a row that is live in ``other``."""
        mine, theirs = self.by_value, other.by_value
        return not (mine <= theirs and self.vector.positions <= other.vector.positions)

    @cached_property
    def _deleted(self) -> RowPositions:
        return RowPositions(self.vector.to_numpy())

    @property
    def by_value(self) -> set[tuple[int, str]]:
        """The equality deletes that apply to the data file.

        Each is a pair: the sequence number of the data file, and the URI of the delete file.
        """
        number = self.split.file.sequence_number
        return {(number, each.path) for each in self.split.deletes if each.equality_ids}


@dataclass(frozen=True, slots=True)
class ComparedFile:
    """A changed data file with its deletes in both snapshots.

    The deletes are None for a snapshot that does not have the file.
    """

    changed: ChangedFile
    before: _LiveRows | None
    after: _LiveRows | None

    @property
    def file(self) -> DataFile:
        """The data file itself."""
        return self.changed.file

    @property
    def may_remove(self) -> bool:
        """True if rows of the earlier snapshot may be missing in the later snapshot."""
        return self.before is not None and (self.after is None or self.after.may_lack(self.before))

    @property
    def may_add(self) -> bool:
        """True if rows of the later snapshot may be missing in the earlier snapshot."""
        return self.after is not None and (self.before is None or self.before.may_lack(self.after))

    @property
    def deletes(self) -> list[EqualityDeletes]:
        """The equality deletes of both snapshots."""
        sides = (each for each in (self.before, self.after) if each is not None)
        return [each for side in sides for each in side.deletes]

    @property
    def rows(self) -> RowPositions | None:
        """The positions of rows that may differ; None if any row may differ."""
        if self.before is None or self.after is None:
            return None
        if self.before.by_value != self.after.by_value:
            return None
        differing = self.before.vector.positions ^ self.after.vector.positions
        return RowPositions(DeletionVector(differing).to_numpy())

    def differing(self, rows: pa.RecordBatch, places: Mapping[int, int]) -> tuple[Mask, Mask]:
        """Return two masks for a batch: of removed rows and of added rows.

        ``places`` has the index of each column by field id.
        """
        nothing = np.zeros(rows.num_rows, np.bool_)
        before = nothing if self.before is None else self.before.mask(rows, places)
        after = nothing if self.after is None else self.after.mask(rows, places)
        return before & ~after, after & ~before


def compare_file(changed: ChangedFile, before: DeletedRows, after: DeletedRows) -> ComparedFile:
    """Return a changed data file with its deletes in both snapshots."""
    return ComparedFile(
        changed, _live_rows(changed.before, before), _live_rows(changed.after, after)
    )


def _live_rows(split: FileSplit | None, deleted: DeletedRows) -> _LiveRows | None:
    if split is None:
        return None
    vector = deleted.vector(split) or DeletionVector(FrozenBitMap64())
    return _LiveRows(split, vector, deleted.equality(split))
