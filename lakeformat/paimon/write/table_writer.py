# SPDX-License-Identifier: Apache-2.0
"""The writer of every table: takes rows, writes durable files, returns commit messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never, TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.datafile.instant_format import keeping_instants
from lakeformat.paimon.expiry_race import rewriting_if_overtaken
from lakeformat.paimon.handle import TableHandle, is_unaware, require_writable
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.schema_file import latest_schema_id
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition_filter import PartitionFilter
from lakeformat.paimon.write.append_bucket import AppendBuckets
from lakeformat.paimon.write.as_of import NumbersAsOf, WrittenAsOf
from lakeformat.paimon.write.assign import NewFiles, PartitionNumbers
from lakeformat.paimon.write.input_columns import input_columns_of
from lakeformat.paimon.write.placement import FindExistingKeys, Placed, placement_of
from lakeformat.paimon.write.row_kinds import RowKinds, written_rows
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.batches import to_batches
from lakeformat.rows.groups import Positions
from lakeformat.rows.row_kinds import Kinds
from lakeformat.storage.creation_proof import ProvesCreation

if TYPE_CHECKING:
    from lakeformat.paimon.write.key_value_bucket import KeyValueBuckets
    from lakeformat.paimon.write.postponed_buckets import PostponedBuckets

__all__ = ["TableWriter"]

_SMALLEST_PIECE_BYTES = 64 << 10
_Conform: TypeAlias = "Callable[[pa.RecordBatch, int], pa.RecordBatch]"


class TableWriter:
    """Writes rows of any partitions and buckets. Use each writer once and in one thread.

    Nothing is visible until the messages of ``prepare`` are committed. If a call raises, or a
    ``with`` block ends with an exception, the writer removes its files and cannot be used again.
    """

    def __init__(
        self,
        handle: TableHandle,
        *,
        replaces: bool = False,
        within: PartitionFilter | None = None,
        is_committed_here: bool = False,
        find_keys: FindExistingKeys,
        as_of: WrittenAsOf | None = None,
    ) -> None:
        """Open a writer at the newest snapshot.

        ``replaces``: the messages are for an overwrite of the partitions ``within``, or of the
        whole table. An overwrite starts at sequence number 0 and writes no changelog.
        ``is_committed_here``: the caller commits the messages itself, at once. ``find_keys``: looks
        up keys that may change partitions. ``as_of``: the rows of a primary-key table count as
        written at an earlier snapshot, and newer rows of their keys are kept.
        """
        require_writable(handle)
        if (schema := keeping_instants(handle.schema)) is not handle.schema:
            handle = replace(handle, schema=schema)
        # Fail before files are written if the store cannot publish commits.
        if isinstance(handle.storage, ProvesCreation):
            handle.storage.prove_creation(handle.layout.snapshot(1))
        base, self._base_snapshot = None, None
        if not (is_committed_here and (replaces or is_unaware(handle))):
            base = latest_snapshot(handle.storage, handle.layout)
            self._base_snapshot = 0 if base is None else base.id
            if base is None:
                _require_existing_table(handle)
        self._base = base
        self._handle = handle
        self._conform = input_columns_of(schema)
        self._rows = 0
        self._is_finished = False
        sequences = SequenceNumbers(handle, None if replaces else base)
        self._as_of = as_of
        self._partitions = partitions = PartitionNumbers(schema, within)
        with self._reading_base():
            self._placement = placement_of(
                handle, None if replaces else base, partitions, sequences, find_keys
            )
        # Appends load neither merging nor sorting.
        self._buckets: AppendBuckets | KeyValueBuckets | PostponedBuckets
        if handle.options.bucket == POSTPONE_BUCKET:
            from lakeformat.paimon.write.postponed_buckets import PostponedBuckets

            self._buckets = PostponedBuckets(handle, self._placement.place)
        elif schema.primary_keys:
            from lakeformat.paimon.write.key_value_bucket import KeyValueBuckets

            if as_of is not None:
                sequences = NumbersAsOf(handle, None if replaces else as_of.snapshot)
            self._buckets = KeyValueBuckets(
                handle, sequences, self._placement.place, with_changelog=not replaces
            )
        else:
            self._buckets = AppendBuckets(handle, sequences, self._placement.place)

    def write(
        self, data: Any, kinds: Any = None, *, checked: bool = False, **unknown: Never
    ) -> None:
        """Add rows: a pyarrow, pandas or polars object, or an iterable of those.

        ``kinds`` gives the kind of each row: '+I', '-U', '+U', '-D' or the numbers 0 to 3. It may
        also be the name of a column of ``data`` with these values. Without ``kinds``, all rows are
        inserted, unless the table option ``rowkind.field`` names a column of kinds. Set ``checked``
        if an ``InputColumns`` of the table has already checked the rows.

        Raise InvalidRequestError for a row that the table cannot store.
        """
        if unknown:
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(self.write, unknown)
        self._require_unfinished()
        conform = self._conform.again if checked else self._conform
        with self._leaving_nothing():
            given = RowKinds(self._handle.schema, kinds)
            for batch in to_batches(data):
                for piece in self._pieces(batch):
                    self._add_counted(piece, given, conform)
            given.finish()

    def write_stored(self, rows: pa.RecordBatch, kinds: Kinds, *, is_newer: bool = False) -> None:
        """Add rows of the table's own files, with their kinds; rows have all columns of the table.

        Rows whose key another commit has changed since ``as_of`` are left out. With ``is_newer``,
        they are added, too.
        """
        self._require_unfinished()
        with self._leaving_nothing(), self._reading_base():
            first, self._rows = self._rows, self._rows + rows.num_rows
            for placed in self._placement.take(rows, kinds, range(first, self._rows)):
                if is_newer:
                    self._buckets.add(*placed)
                else:
                    self._add_placed(placed)

    @property
    def partitions(self) -> Sequence[bytes]:
        """The partitions of the rows so far, as framed binary rows."""
        return self._partitions.rows

    def prepare(self) -> list[CommitMessage]:
        """Finish the files and return the messages, which any process may commit."""
        self._require_unfinished()
        with self._leaving_nothing(), self._reading_base():
            for placed in self._placement.rest():
                self._buckets.add(*placed)
            written = [self._message(files) for files in self._buckets.finish()]
            messages = self._placement.with_index_changes(
                written, lambda place: self._message(NewFiles(place, ()))
            )
        self._is_finished = True
        return messages

    def abort(self) -> None:
        """Delete the files of this writer.

        Do not call this method if a commit may have published these files.
        """
        self._is_finished = True
        self._buckets.abort()
        self._placement.abort()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self.abort()

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the batch in pieces that fit into the buffer."""
        room = max(self._handle.options.write_buffer_size_bytes, _SMALLEST_PIECE_BYTES)
        count = -(-batch.nbytes // room)
        size = max(-(-batch.num_rows // max(count, 1)), 1)
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
        if not batch.num_rows:
            yield batch  # the columns of an empty batch are checked, too

    def _add_counted(self, batch: pa.RecordBatch, given: RowKinds, conform: _Conform) -> None:
        try:
            self._add(batch, given, conform)
        except InvalidRequestError:
            from lakeformat.types.row_numbers import rows_count_from  # only for a message

            with rows_count_from(0):
                raise

    def _add(self, batch: pa.RecordBatch, given: RowKinds, conform: _Conform) -> None:
        first, self._rows = self._rows, self._rows + batch.num_rows
        batch, row_kinds = given.split(batch)
        rows = conform(batch, first)
        kinds = given.read(rows, row_kinds, first)
        numbers: Sequence[int] | Positions = range(first, self._rows)
        if (taken := written_rows(self._handle.schema, kinds, first)) is not None:
            rows, kinds = rows.filter(pa.array(taken)), kinds[taken]
            numbers = first + np.flatnonzero(taken)
        if rows.num_rows:
            with self._reading_base():
                for placed in self._placement.take(rows, kinds, numbers):
                    self._add_placed(placed)

    def _add_placed(self, placed: Placed) -> None:
        rows, kinds, places = placed
        if self._as_of is not None and (newer := self._as_of.is_changed(rows)).any():
            rows, kinds, places = rows.filter(pa.array(~newer)), kinds[~newer], places[~newer]
        if rows.num_rows:
            self._buckets.add(rows, kinds, places)

    def _message(self, files: NewFiles) -> CommitMessage:
        return CommitMessage(
            table=self._handle.uri,
            partition=files.place.partition,
            bucket=files.place.bucket,
            total_buckets=self._handle.options.bucket,
            base_snapshot=self._base_snapshot,
            base_identity=None if self._base is None else self._base.identity,
            branch=self._handle.layout.branch,
            new_files=files.data,
            changelog_files=files.changelog,
        )

    def _require_unfinished(self) -> None:
        if self._is_finished:
            raise InvalidRequestError("this writer is finished; create a new writer for more rows")

    def _reading_base(self) -> AbstractContextManager[None]:
        """Return a context manager for code that reads buckets from the base snapshot.

        If the code cannot read the snapshot because it has expired, raise BucketsChangedError.
        """
        if self._base is None:
            return nullcontext()
        return rewriting_if_overtaken(self._handle, self._base)

    @contextmanager
    def _leaving_nothing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.abort()
            raise


def _require_existing_table(handle: TableHandle) -> None:
    """Raise NotFoundError for a dropped table: writing would create its directory again."""
    if latest_schema_id(handle.storage, handle.layout) is None:
        raise NotFoundError(
            f"{handle.uri} does not exist any more: it was renamed or dropped after it was opened. "
            "Nothing was written; if it was renamed, open it under its new name"
        )
