# SPDX-License-Identifier: Apache-2.0
"""Reads the changes of one commit of the change store, in the order of their offsets.

A delete and an insert with one offset and one key are an update. A batch gets its transaction when
it begins, so commits made while it runs have higher transactions. If one of them has deleted or
replaced a key, the change of the batch to this key has no effect and is left out.

In a table with a version field, changes are in the order of versions. The change of the batch then
has an effect if its version is larger than the version of the change in the other commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.asked_rows import AskedRows
from lakeformat.iceberg.read.entry_columns import spec_of
from lakeformat.iceberg.read.file_rows import FileRows, file_rows_of
from lakeformat.iceberg.read.plan import TableState, plan_added_files, plan_files
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.types import Field
from lakeformat.mixed.file_names import FileKind, parse_file_name
from lakeformat.mixed.read.key_deletes import KeyDeletes
from lakeformat.mixed.read.store_files import StoreFile, change_files
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.version_field import version_numbers
from lakeformat.mixed.write.changes import equals_the_one_before, optional_columns
from lakeformat.rows.prune import Mask
from lakeformat.types.arrow_memory import array_of

__all__ = ["commit_changes"]

_KINDS = pa.array(["-D", "+I", "-U", "+U"], pa.string())
_DELETED, _INSERTED, _BEFORE, _AFTER = range(4)


def commit_changes(
    state: TableState, key: Sequence[Field], version: Field | None, asked: AskedRows
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of the commit that made the snapshot of ``state``, a state of the change
    store.

    ``asked`` has the columns and conditions of the reader. Memory holds the changes of one node.
    """
    assert state.snapshot is not None
    plan = plan_added_files(state, [state.snapshot])
    if not plan.entries:
        return
    files = [*change_files(state, plan)]
    late = [each for each in files if each.transaction < state.snapshot.sequence_number]
    listed = [*change_files(state, plan_files(state))] if late else []
    versions = () if version is None else (version,)
    # Deletes that only make room have values in the columns that were required, or made the
    # partition, when they were written. All files of a commit have one partition spec.
    then = replace(
        state.metadata,
        current_schema_id=state.metadata.schema_at(state.snapshot).schema_id,
        default_spec_id=spec_of(state.metadata, plan.entries[0]).spec_id,
    )
    names = optional_columns(then, (*key, *versions))
    optional = [each for each in then.schema.fields if each.name in names]
    is_sure = not _may_have_been_required(state.metadata, optional)
    footers = None if is_sure else file_rows_of(state.places, state.metadata.properties)
    ids = frozenset(each.id for each in optional)
    scan = Scan(state, None, None)
    reader = _NodeChangesReader(scan, asked, tuple(key), ids, footers, listed, version)
    groups: dict[tuple[object, ...], list[StoreFile]] = {}
    for each in files:
        groups.setdefault(_writer(each), []).append(each)
    for _, group in sorted(groups.items(), key=lambda each: str(each[0])):
        yield from reader.read(group)


def _may_have_been_required(metadata: TableMetadata, optional: Sequence[Field]) -> bool:
    """Return True if a delete that only makes room for an insert may have values in ``optional``.

    The writer of such a delete does not know the values of the old row. It writes nulls into the
    optional columns of the schema that it knows. But ``optional`` has the optional columns of the
    commit's schema, which may be newer. So a column of ``optional`` may have been required when the
    file was written. Or the column was added later, and is read as its initial default.
    """
    every = (field for schema in metadata.schemas for field in schema.fields)
    required = {each.id for each in every if each.required}
    return any(each.id in required or each.initial_default is not None for each in optional)


def _writer(file: StoreFile) -> tuple[object, ...]:
    """Return a key that is equal for files whose offsets form one order: files of one writer,
    transaction, partition and node.
    """
    name = parse_file_name(file.path)
    writer = (name.partition, name.task, name.operation)
    return (file.values, file.node.mask, file.node.index, file.transaction, *writer)


@dataclass(frozen=True, slots=True)
class _NodeChangesReader:
    scan: Scan
    asked: AskedRows
    key: tuple[Field, ...]
    optional: frozenset[int]
    """The ids of the columns that are null in a delete that only makes room for an insert, if the
    file of the delete was written with the schema of the commit.
    """
    footers: FileRows | None
    """Finds the nullable columns of a file; None if ``optional`` is correct for every file."""
    listed: Sequence[StoreFile]
    """All files of the change store if a batch made the commit; else none."""
    version: Field | None
    """None in a table without a version field."""

    def read(self, files: Sequence[StoreFile]) -> Iterator[pa.RecordBatch]:
        """Yield the changes of files of one writer, node and transaction."""
        rows, is_insert = self._in_order(files)
        kept = ~self._outdated(rows, files[0])
        rows, is_insert = rows.filter(array_of(kept)), is_insert[kept]
        if not rows.num_rows:
            return
        codes, is_known = self._kinds(rows, is_insert, self._optional_in(files))
        for each in self.asked.filters:
            is_known &= pc.fill_null(each.mask(rows), fill_value=False).to_numpy(
                zero_copy_only=False
            )
        chosen = rows.filter(array_of(is_known))
        kinds = _KINDS.take(pa.array(codes[is_known]))
        names = [each.name for each in self.asked.result_fields]
        found = self.asked.result(kinds, chosen.select(names))
        if found.num_rows:
            yield found

    def _in_order(self, files: Sequence[StoreFile]) -> tuple[pa.RecordBatch, Mask]:
        """Return the rows of files, sorted by version and offset, and a mask of the inserts.

        A delete precedes an insert with the same version and offset.
        """
        fields = (*self.asked.schema.fields, FILE_OFFSET)
        deletes, inserts = (
            self._rows([each for each in files if each.kind is kind], fields)
            for kind in (FileKind.CHANGE_DELETE, FileKind.INSERT)
        )
        rows = pa.concat_tables([deletes, inserts]).combine_chunks()
        is_insert = np.arange(len(rows)) >= len(deletes)
        numbers = [is_insert, rows.column(FILE_OFFSET.name).to_numpy()]
        if (versions := self._versions(rows)) is not None:
            numbers.append(versions)
        order = np.lexsort(numbers)
        ordered = rows.take(pa.array(order))
        [batch] = ordered.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        return batch, is_insert[order]

    def _versions(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64] | None:
        if self.version is None:
            return None
        column = rows.column(self.version.name)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return np.concatenate([np.zeros(0, np.int64), *map(version_numbers, chunks)])

    def _rows(self, files: Sequence[StoreFile], fields: Sequence[Field]) -> pa.Table:
        schema = pa.schema([to_arrow_field(each) for each in fields])
        batches = (batch for each in files for batch in self.scan.read_fields(each.split, fields))
        return pa.Table.from_batches(batches, schema).combine_chunks()

    def _outdated(self, rows: pa.RecordBatch, of: StoreFile) -> Mask:
        """Return a mask of the ``rows`` that have no effect; ``of`` is one of their files.

        A commit with a higher transaction has already deleted or replaced their keys. In a table
        with a version field, a row has an effect if its version is larger than that of its key in
        the other commit. Only the deletes of the other commit are read, because a write that
        replaces rows has a delete for each insert.
        """
        newer = [
            each
            for each in self.listed
            if each.kind is FileKind.CHANGE_DELETE
            and each.transaction > of.transaction
            and each.values == of.values
            and each.node.may_share_keys(of.node)
        ]
        if not newer:
            return np.zeros(rows.num_rows, np.bool_)
        versions = () if self.version is None else (self.version,)
        fields = (*self.key, FILE_OFFSET, *versions)
        tables = [self._rows([each], fields) for each in newer]
        numbers = np.array([each.transaction for each in newer], np.int64)
        transactions = np.repeat(numbers, [len(each) for each in tables])
        every = pa.concat_tables(tables).combine_chunks()
        *keys, offsets = [column.combine_chunks() for column in every.columns[: len(self.key) + 1]]
        changed = KeyDeletes(keys, transactions, offsets.to_numpy(), self._versions(every))
        keys = [rows.column(each.name) for each in self.key]
        return changed.deleted(keys, of.transaction, None, self._versions(rows))

    def _kinds(
        self, rows: pa.RecordBatch, is_insert: Mask, optional: Set[int]
    ) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Mask]:
        """Return the kind of each row as a code, and a mask of the rows to deliver.

        The mask leaves out the old row of an update if its values are unknown.
        """
        codes = np.where(is_insert, _INSERTED, _DELETED)
        is_pair = np.zeros(len(codes), np.bool_)
        is_pair[1:] = is_insert[1:] & ~is_insert[:-1]
        for name in (FILE_OFFSET.name, *(each.name for each in self.key)):
            is_pair[1:] &= equals_the_one_before(rows.column(name))
        codes[is_pair] = _AFTER
        before = np.flatnonzero(is_pair) - 1
        codes[before] = _BEFORE
        is_known = np.ones(len(codes), np.bool_)
        is_known[before[self._is_blank(rows, optional)[before]]] = False
        return codes, is_known

    def _is_blank(self, rows: pa.RecordBatch, optional: Set[int]) -> Mask:
        """Return a mask of the rows that look like a delete which only makes room for the next row.

        Such a delete has a null in every column of ``optional``, and the values of the next row in
        all other columns. Nested columns are not compared.
        """
        found = np.ones(rows.num_rows, np.bool_)
        keys = {each.id for each in self.key}
        for each in self.asked.schema.fields:
            column = rows.column(each.name)
            if each.id in optional:
                found &= column.is_null().to_numpy(zero_copy_only=False)
            elif each.id not in keys and not _is_without_equality(column.type):
                found[:-1] &= equals_the_one_before(column)
        return found

    def _optional_in(self, files: Sequence[StoreFile]) -> Set[int]:
        """Return the ids of the columns of ``optional`` that can be null in the delete files.

        ``files`` are of one writer, so only the first delete file is examined.
        """
        deletes = [each.split.file for each in files if each.kind is FileKind.CHANGE_DELETE]
        if self.footers is None or not deletes:
            return self.optional
        return self.optional & self.footers.nullable_ids(deletes[0].path, deletes[0].format)


def _is_without_equality(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))
