# SPDX-License-Identifier: Apache-2.0
"""Reads the rows that differ between two snapshots, each with the kind of its change.

Rows of removed files, and rows deleted by new deletes, count as removed. Rows of added files count
as added. A removed row that equals an added row counts as copied to another file, and both are left
out. To find copied rows, the files are read twice: first all columns, to calculate a hash of each
row; then the requested columns of the rows that remain. If rows can only be removed, or can only be
added, the files are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.iceberg.read.asked_rows import AskedRows
from lakeformat.iceberg.read.changed_files import ChangedFile, added_files, changed_files
from lakeformat.iceberg.read.condition_fields import condition_fields
from lakeformat.iceberg.read.data_file import DataFile
from lakeformat.iceberg.read.deleted_rows import DeletedRows, read_fields
from lakeformat.iceberg.read.file_rows import (
    POSITION,
    FileRows,
    Lineage,
    RowGroupPruning,
    file_rows_of,
)
from lakeformat.iceberg.read.key_columns import newest_schemas
from lakeformat.iceberg.read.live_rows import ComparedFile, compare_file
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.row_positions import RowPositions
from lakeformat.iceberg.types import Field
from lakeformat.rows.groups import Mask, Positions
from lakeformat.rows.paired_rows import paired_rows
from lakeformat.rows.row_hashes import Hashes, row_hashes
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_memory import array_of

__all__ = ["added_rows", "changed_rows"]

_KINDS = (pa.array(["-D", "-U"]), pa.array(["+I", "+U"]))
"""The kinds of removed rows, then the kinds of added rows. In each array, the second kind is for a
row of an update: a removed and an added row with the same key."""
_Kinds: TypeAlias = npt.NDArray[np.int8]
_PLAIN, _UPDATE, _COPIED = 0, 1, 2


def changed_rows(
    before: TableState, after: TableState, asked: AskedRows
) -> Iterator[pa.RecordBatch]:
    """Stream the changes from one snapshot to another: removed rows, then added rows.

    If rows are only removed or only added, memory holds one batch. Otherwise it holds about 100
    bytes for each removed or added row, copied rows included.
    """
    yield from _rows_of(changed_files(before, after, asked.conditions), after, asked)


def added_rows(after: TableState, asked: AskedRows) -> Iterator[pa.RecordBatch]:
    """Stream the rows that an append added."""
    yield from _rows_of(added_files(after, asked.conditions), after, asked)


def _rows_of(
    changed: Sequence[ChangedFile], state: TableState, asked: AskedRows
) -> Iterator[pa.RecordBatch]:
    stored = file_rows_of(state.places, state.metadata.properties)
    files, reader = _compared(changed, state, stored), _ChangedFileReader(stored, asked)
    if not (any(each.may_remove for each in files) and any(each.may_add for each in files)):
        for each in files:
            yield from reader.differing(each)
        return
    sides = reader.hashed(files)
    for texts, side, kinds in zip(_KINDS, sides, _kinds_of(*sides), strict=True):
        start = 0
        for rows in side:
            own = kinds[start : start + len(rows.positions)]
            yield from reader.rows_at(rows, own, texts)
            start += len(own)


def _compared(
    changed: Sequence[ChangedFile], state: TableState, stored: FileRows
) -> list[ComparedFile]:
    schemas = newest_schemas(state.metadata)
    before, after = DeletedRows(stored, schemas), DeletedRows(stored, schemas)
    before.expect(each.before for each in changed if each.before is not None)
    after.expect(each.after for each in changed if each.after is not None)
    return [compare_file(each, before, after) for each in changed]


@dataclass(frozen=True, slots=True)
class _HashedRows:
    """Rows of one file that are live in only one snapshot, as positions and hashes."""

    file: DataFile
    positions: Positions
    hashes: Hashes
    keys: Hashes | None


def _kinds_of(
    removed: Sequence[_HashedRows], added: Sequence[_HashedRows]
) -> tuple[_Kinds, _Kinds]:
    sides = (removed, added)
    copied = paired_rows(*(_joined([each.hashes for each in side]) for side in sides))
    kinds = tuple(np.where(mask, _COPIED, _PLAIN).astype(np.int8) for mask in copied)
    keys = [
        _joined([each.keys for each in side if each.keys is not None])[~mask]
        for side, mask in zip(sides, copied, strict=True)
        if any(each.keys is not None for each in side)
    ]
    if len(keys) == len(sides):
        updated = paired_rows(*keys)
        for own, mask, update in zip(kinds, copied, updated, strict=True):
            own[~mask] = np.where(update, _UPDATE, _PLAIN)
    return kinds[0], kinds[1]


def _joined(hashes: Sequence[Hashes]) -> Hashes:
    return np.concatenate([np.empty((0, 2), np.uint64), *hashes])


@dataclass(frozen=True, slots=True)
class _ChangedFileReader:
    files: FileRows
    asked: AskedRows

    def differing(self, compared: ComparedFile) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a file that are live in only one snapshot, with the kinds of their
        changes.

        Rows that were only copied to another file are included.
        """
        for rows, *masks in self._read(compared, self.asked.filtered_fields):
            for texts, mask in zip(_KINDS, masks, strict=True):
                if mask.any():
                    found = rows.filter(array_of(mask))
                    kinds = pa.repeat(texts[_PLAIN], found.num_rows)
                    yield self.asked.result(kinds, found)

    def hashed(self, files: Sequence[ComparedFile]) -> tuple[list[_HashedRows], list[_HashedRows]]:
        """Return positions and hashes of the removed and of the added rows of all files."""
        sides: tuple[list[_HashedRows], list[_HashedRows]] = ([], [])
        wanted = self.asked.schema.fields
        places = [wanted.index(each) for each in self.asked.key]
        for compared in files:
            for rows, *masks in self._read(compared, wanted):
                positions = rows.column(len(wanted)).to_numpy()
                hashes = row_hashes(rows.columns[: len(wanted)])
                keys = row_hashes([rows.column(place) for place in places]) if places else None
                for side, mask in zip(sides, masks, strict=True):
                    own = None if keys is None else keys[mask]
                    if mask.any():
                        side.append(_HashedRows(compared.file, positions[mask], hashes[mask], own))
        return sides

    def rows_at(
        self, rows: _HashedRows, kinds: _Kinds, texts: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        """Stream ``rows`` with the kinds of their changes, without rows that were only copied.

        ``kinds`` has the kind of each row as an index into ``texts``. A row was only
        copied if the other snapshot has it in another file.
        """
        left = kinds != _COPIED
        if not left.any():
            return
        named = texts.take(array_of(kinds[left]))
        start = 0
        chosen = RowPositions(rows.positions[left])
        for batch in self._batches(rows.file, self.asked.result_fields, chosen):
            if batch.num_rows:
                yield self.asked.result(named.slice(start, batch.num_rows), batch)
                start += batch.num_rows

    def _read(
        self, compared: ComparedFile, wanted: Sequence[Field]
    ) -> Iterator[tuple[pa.RecordBatch, Mask, Mask]]:
        """Yield the requested columns and positions of rows, with masks of removed and of added
        rows.
        """
        fields = read_fields((*wanted, POSITION), compared.deletes)
        places = {field_id: place for place, field_id in enumerate(fields)}
        rows = compared.rows
        if rows is not None and not len(rows.positions):
            return
        for batch in self._batches(compared.file, list(fields.values()), rows):
            found = batch
            for each in self.asked.filters:
                found = found.filter(each.mask(found))
            if found.num_rows:
                yield found, *compared.differing(found, places)

    def _batches(
        self, file: DataFile, fields: Sequence[Field], rows: RowPositions | None
    ) -> Iterator[pa.RecordBatch]:
        asked = self.asked
        return self.files.read(
            file.path,
            file.format,
            fields,
            row_count=file.record_count,
            constants=dict(file.constants),
            lineage=Lineage(file.first_row_id, file.sequence_number),
            pruning=RowGroupPruning(asked.conditions, condition_fields(asked.schema), ScanReport()),
            rows=rows,
        )
