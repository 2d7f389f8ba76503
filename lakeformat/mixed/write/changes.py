# SPDX-License-Identifier: Apache-2.0
"""Turns rows and their kinds into the rows of the change store: inserts and deletes with offsets.

Offsets number the given rows in their order. A ``-U`` row and the ``+U`` row that directly follows
have the same offset. A delete removes only rows with a smaller offset, so a delete and an insert
with the same offset are an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.equality_keys import comparable
from lakeformat.iceberg.types import Field, Type, inner_fields
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.version_field import require_version_of_deletes
from lakeformat.rows.prune import Mask
from lakeformat.rows.row_kinds import UPDATE_AFTER, UPDATE_BEFORE, Kinds, is_retract
from lakeformat.types.arrow_memory import array_of

__all__ = [
    "Changes",
    "ChangesOf",
    "equals_the_one_before",
    "optional_columns",
    "partition_columns",
    "require_keys",
]

_Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows of one record batch, as the change store has them."""

    inserts: pa.RecordBatch
    deletes: pa.RecordBatch
    next_offset: int


class ChangesOf:
    """Makes the changes of consecutive record batches of a table."""

    def __init__(
        self,
        metadata: TableMetadata,
        key: Sequence[Field],
        *,
        replaces: bool,
        version: Field | None = None,
    ) -> None:
        """Prepare the changes of record batches.

        With ``replaces`` or a ``version`` field, an inserted row first deletes the rows with its
        key. With a ``version`` field, this delete has the version of the inserted row.
        """
        self._version = None if version is None else version.name
        self._held: pa.RecordBatch | None = None
        """The last row of the rows so far if it is a ``-U`` row: the next one may be its ``+U``
        row."""
        self._key = [each.name for each in key]
        self._replaces = replaces or version is not None
        spec = metadata.spec_of(metadata.default_spec_id)
        self._splitter = Splitter(spec, metadata.schema, partition_type(metadata, spec))
        self._optional = optional_columns(metadata, [*key, *([version] if version else [])])

    def __call__(
        self,
        rows: pa.RecordBatch,
        kinds: Kinds,
        numbers: range,
        first_offset: int,
        *,
        of_stored: bool = False,
        is_end: bool = False,
    ) -> Changes:
        """Return the changes of a record batch; ``numbers`` has the row numbers, for errors.

        With ``of_stored`` the rows to delete were read from the table, so they may lack a version.
        In a table with a version field, a ``-U`` row at the end is held back for the next call,
        unless ``is_end``. Raise ``InvalidRequestError`` for a row without a key, or a delete
        without a version.
        """
        if self._version is not None:
            rows, kinds, numbers = self._in_whole_pairs(rows, kinds, numbers, is_end=is_end)
        require_keys(rows, self._key, numbers)
        retracts = is_retract(kinds)
        pairs = np.zeros(len(kinds), np.bool_)
        pairs[1:] = (kinds[1:] == UPDATE_AFTER) & (kinds[:-1] == UPDATE_BEFORE)
        offsets = first_offset - 1 + np.cumsum(~pairs, dtype=np.int64)
        deleting = retracts
        if self._replaces:
            paired = self._deleted_by_its_pair(rows, pairs)
            if self._version is None:
                deleting = ~paired
            else:  # the delete of an update needs the version of the new row
                deleting = ~np.append(paired[1:], np.zeros(min(1, len(paired)), np.bool_))
                if not of_stored:
                    versions = rows.column(self._version)
                    require_version_of_deletes(versions, retracts & deleting, numbers.start)
        return Changes(
            _with_offsets(_chosen(rows, ~retracts), offsets[~retracts]),
            _with_offsets(self._deletes(rows, retracts, deleting), offsets[deleting]),
            int(offsets[-1]) + 1 if len(offsets) else first_offset,
        )

    def held_back(self, count: int, first_offset: int) -> Changes | None:
        """Return the changes of the ``-U`` row that the last call held back; None without one.

        ``count`` is the number of rows given so far, and ``first_offset`` the next offset.
        """
        if self._held is None:
            return None
        nothing, end = self._held.slice(0, 0), range(count, count)
        return self(nothing, np.zeros(0, np.int8), end, first_offset, is_end=True)

    def _in_whole_pairs(
        self, rows: pa.RecordBatch, kinds: Kinds, numbers: range, *, is_end: bool
    ) -> tuple[pa.RecordBatch, Kinds, range]:
        """Return the given rows, kinds and numbers, preceded by the row that the last call held
        back.

        Unless ``is_end``, a ``-U`` row at the end is held back for the next call, because its
        ``+U`` row may begin the next record batch.
        """
        if self._held is not None:
            rows = pa.concat_batches([self._held, rows])
            kinds = np.concatenate([np.array([UPDATE_BEFORE], np.int8), kinds])
            numbers = range(numbers.start - 1, numbers.stop)
            self._held = None
        if is_end or not len(kinds) or kinds[-1] != UPDATE_BEFORE:
            return rows, kinds, numbers
        self._held = rows.slice(len(kinds) - 1)
        return rows.slice(0, len(kinds) - 1), kinds[:-1], numbers[:-1]

    def _deleted_by_its_pair(self, rows: pa.RecordBatch, pairs: Mask) -> Mask:
        """Return a mask of the ``+U`` rows whose ``-U`` row has the same key and partition."""
        found = pairs.copy()
        if not pairs.any():
            return found
        partition = self._splitter.values(pa.Table.from_batches([rows]))
        for column in (*(rows.column(name) for name in self._key), *partition):
            found[1:] &= equals_the_one_before(column)
        return found

    def _deletes(self, rows: pa.RecordBatch, retracts: Mask, deleting: Mask) -> pa.RecordBatch:
        """Return the rows in the mask ``deleting``, as they are written to files of deletes.

        A delete that only makes room for an insert has nulls in all optional columns, because the
        deleted values are unknown.
        """
        chosen = _chosen(rows, deleting)
        if retracts[deleting].all():
            return chosen
        is_known = retracts[deleting]
        columns = [
            _only_known(column, is_known) if name in self._optional else column
            for name, column in zip(chosen.schema.names, chosen.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=chosen.schema)


def require_keys(rows: pa.RecordBatch, key: Sequence[str], numbers: range) -> None:
    """Raise ``InvalidRequestError`` for a null in a key column.

    ``numbers`` has the number of each row, for the error.
    """
    for name in key:
        column = rows.column(name)
        if column.null_count:
            row = numbers[pc.index(column.is_null(), True).as_py()]
            raise InvalidRequestError(
                f"row {row} has a null in the key column {name!r}, so it has no key: fill in a "
                "value, or drop the row"
            )


def optional_columns(metadata: TableMetadata, key: Sequence[Field]) -> set[str]:
    """Return the names of the nullable columns that belong neither to ``key`` nor to the partition.

    They are null in rows of deletes whose values are unknown.
    """
    kept = {each.id for each in key} | _partition_sources(metadata)
    return {
        each.name
        for each in metadata.schema.fields
        if not each.required and kept.isdisjoint((each.id, *_ids(each.type)))
    }


def partition_columns(metadata: TableMetadata) -> list[str]:
    """Return the names of the columns from whose values the partition is derived."""
    sources = _partition_sources(metadata)
    return [
        each.name
        for each in metadata.schema.fields
        if not sources.isdisjoint((each.id, *_ids(each.type)))
    ]


def equals_the_one_before(column: pa.Array) -> Mask:
    """Return a mask for all values except the first: True if the value equals the value before.

    Values are compared as keys are: null equals null, NaN equals NaN, and -0.0 differs from 0.0.
    """
    values = comparable(column)
    before, after = values.slice(0, len(values) - 1), values.slice(1)
    both_null = pc.and_(before.is_null(), after.is_null())
    same = pc.fill_null(pc.equal(before, after), False)
    mask: Mask = pc.or_(same, both_null).to_numpy(zero_copy_only=False)
    return mask


def _only_known(column: pa.Array, is_known: Mask) -> pa.Array:
    if not is_known.any():
        return pa.nulls(len(column), column.type)
    return pc.if_else(array_of(is_known), column, pa.scalar(None, column.type))


def _chosen(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(array_of(mask))


def _with_offsets(rows: pa.RecordBatch, offsets: _Offsets) -> pa.RecordBatch:
    return rows.append_column(FILE_OFFSET.name, array_of(offsets))


def _partition_sources(metadata: TableMetadata) -> set[int]:
    fields = metadata.spec_of(metadata.default_spec_id).fields
    return {source for field in fields for source in field.source_ids}


def _ids(kind: Type) -> Iterator[int]:
    for field in inner_fields(kind):
        yield field.id
        yield from _ids(field.type)
