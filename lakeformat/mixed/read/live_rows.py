# SPDX-License-Identifier: Apache-2.0
"""Streams the live rows of a node: those without a newer delete of their key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.files.deletion_vector import DeletionVector, keep_mask
from lakeformat.iceberg.read.file_rows import POSITION
from lakeformat.iceberg.types import Field
from lakeformat.mixed.read.key_deletes import KeyDeletes
from lakeformat.mixed.read.node_deletes import DeletePart, offsets_of
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.version_field import version_numbers
from lakeformat.rows.prune import Mask
from lakeformat.tables.read_ahead import read_ahead
from lakeformat.types.arrow_memory import array_of

__all__ = ["live_rows"]

_Numbers = NDArray[np.int64]
ReadFields = Callable[[StoreFile, Sequence[Field]], Iterator[pa.RecordBatch]]
"""A function that streams columns of one file of the node."""
_FEW_ROWS = BATCH_ROWS // 8
"""Batches of changes with fewer rows are joined before their keys are searched."""


def live_rows(
    files: Sequence[StoreFile],
    parts: Iterator[DeletePart],
    key: Sequence[Field],
    wanted: Sequence[Field],
    read: ReadFields,
    *,
    version: Field | None = None,
) -> Iterator[pa.RecordBatch]:
    """Stream the wanted columns of the live rows of some files.

    The keys of all rows are read once for each part of the deletes; the other columns are read
    once. Memory holds one part of the deletes, and the positions of the rows that earlier parts
    delete. ``version`` is the version field of the table; None if it has none. While the caller
    processes a record batch, a thread may read the next rows.
    """
    rows = _NodeRows(files, tuple(key), version, read)
    for part in parts:
        if part.is_last:
            yield from rows.live(part, wanted)
            return
        rows.leave_out(part)
    for file in files:  # nothing is deleted
        yield from read(file, wanted)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one file, or of several small ones."""

    batch: pa.RecordBatch
    transactions: int | _Numbers
    """The transaction of each row, or one transaction for all rows."""
    offsets: _Numbers | None
    """The offsets of changes; None for rows of the base store."""


@dataclass(slots=True)
class _NodeRows:
    files: Sequence[StoreFile]
    key: Sequence[Field]
    version: Field | None
    read: ReadFields
    left_out: dict[str, DeletionVector] = field(default_factory=dict)
    """The positions of the rows that earlier parts delete; each key is the path of a file."""

    def live(self, part: DeletePart, wanted: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``wanted`` of the rows that neither ``part`` nor an earlier part
        deletes.
        """
        fields = self._fields(wanted)
        every = (rows for file in self.files for rows in self._rows(file, fields))
        for rows in read_ahead(_joined(every)):
            deleted = self._deleted(rows, part.deletes, fields)
            left = rows.batch.select([*range(len(wanted))])
            left = left.filter(array_of(~deleted)) if deleted.any() else left
            if left.num_rows:
                yield left

    def leave_out(self, part: DeletePart) -> None:
        """Record the positions of the rows that ``part`` deletes.

        Later reads skip these rows.
        """
        fields = self._fields((POSITION,))
        for file in self.files:
            found = DeletionVector.of_parts(
                rows.batch.column(0).to_numpy()[self._deleted(rows, part.deletes, fields)]
                for rows in read_ahead(self._rows(file, fields))
            )
            known = self.left_out.get(file.path)
            self.left_out[file.path] = found if known is None else known.merged(found)

    def _fields(self, wanted: Sequence[Field]) -> list[Field]:
        """Return the columns to read from a file of changes: first ``wanted``, last the offset.

        Files of the base store have no offset.
        """
        versions = () if self.version is None else (self.version,)
        needed = (*self.key, *versions, *((POSITION,) if self.left_out else ()))
        fields = {each.id: each for each in wanted}
        fields |= {each.id: each for each in needed if each.id not in fields}
        return [*fields.values(), FILE_OFFSET]

    def _rows(self, file: StoreFile, fields: Sequence[Field]) -> Iterator[_Rows]:
        left_out = self.left_out.get(file.path)
        for batch in self.read(file, fields if file.in_change else fields[:-1]):
            rows = batch
            if left_out is not None and left_out.cardinality:
                rows = batch.filter(array_of(_kept(batch.column(fields.index(POSITION)), left_out)))
            offsets = offsets_of(rows.column(-1), file.path) if file.in_change else None
            yield _Rows(rows, file.transaction, offsets)

    def _deleted(self, rows: _Rows, deletes: KeyDeletes, fields: Sequence[Field]) -> Mask:
        places = {each.id: place for place, each in enumerate(fields)}
        keys = [rows.batch.column(places[each.id]) for each in self.key]
        versions = None
        if self.version is not None:
            versions = version_numbers(rows.batch.column(places[self.version.id]))
        return deletes.deleted(keys, rows.transactions, rows.offsets, versions)


def _kept(positions: pa.Array, left_out: DeletionVector) -> Mask:
    if not len(positions):
        return np.ones(0, np.bool_)
    found = positions.to_numpy()
    mask = keep_mask(left_out, int(found[0]), int(found[-1] - found[0]) + 1)
    kept: Mask = mask[found - found[0]]
    return kept


def _joined(every: Iterable[_Rows]) -> Iterator[_Rows]:
    """Yield the rows, with the rows of small files of changes joined.

    Each search of keys has a fixed cost, so fewer searches of more rows are faster.
    """
    held: list[_Rows] = []
    count = 0
    for rows in every:
        if rows.offsets is None or rows.batch.num_rows >= _FEW_ROWS:
            yield from _one(held)
            held, count = [], 0
            yield rows
            continue
        held.append(rows)
        count += rows.batch.num_rows
        if count >= BATCH_ROWS:
            yield from _one(held)
            held, count = [], 0
    yield from _one(held)


def _one(held: Sequence[_Rows]) -> Iterator[_Rows]:
    if len(held) < 2:
        yield from held
        return
    yield _Rows(
        pa.concat_batches([each.batch for each in held]),
        np.concatenate([np.full(each.batch.num_rows, each.transactions) for each in held]),
        np.concatenate([each.offsets for each in held if each.offsets is not None]),
    )
