# SPDX-License-Identifier: Apache-2.0
"""Deletes rows of an append table: by deletion vectors, or by rewriting files without the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.datafile.file_description import FileOrigin, describe_append_file
from lakeformat.paimon.datafile.rolling_writer import RollingWriter
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.layout import DataFileNames
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.read.instant_zones import rewriting_instants
from lakeformat.paimon.row_changes.find import Found, read_found, read_parts
from lakeformat.paimon.row_changes.plan import ChangeUnit
from lakeformat.paimon.row_changes.vectors import replace_vectors
from lakeformat.paimon.write.assign import Place, bucket_places

__all__ = ["take_out_rows"]

TakeRows = Callable[[pa.RecordBatch], None]
"""A function that is called with batches of deleted rows."""


def take_out_rows(
    handle: TableHandle, unit: ChangeUnit, found: Sequence[Found], take: TakeRows | None
) -> CommitMessage:
    """Delete the rows ``found`` from the files of a bucket, and return the message to commit.

    ``take`` is called with the deleted rows, so that an UPDATE can write them again; for a DELETE,
    ``take`` is None. If ``take_out_rows`` fails, no new file remains.
    """
    marks = handle.options.deletion_vectors_enabled
    work = _BucketRewrite(handle, unit, take)
    try:
        for group in _groups(handle, [each for each in found if not marks and each.left]):
            work.rewrite(group)
        if take is not None:
            work.hand_over([each for each in found if marks or not each.left])
        gone = {each.entry.file.file_name for each in found if not marks or not each.left}
        marked = {
            name: each.positions
            for each in found
            if (name := each.entry.file.file_name) not in gone and each.positions is not None
        }
        new, replaced = replace_vectors(handle, unit, marked, gone)
    except BaseException:
        delete_written(handle, [work.message()])
        raise
    return CommitMessage(
        table=handle.uri,
        partition=unit.partition,
        bucket=unit.bucket,
        total_buckets=unit.files[0].total_buckets,
        base_snapshot=unit.snapshot.id,
        branch=handle.layout.branch,
        new_files=tuple(work.made),
        deleted_files=tuple(each.entry.file for each in found if each.entry.file.file_name in gone),
        new_index_files=new,
        deleted_index_files=replaced,
    )


def _groups(handle: TableHandle, found: Sequence[Found]) -> Iterator[Sequence[Found]]:
    """Return the groups of files to rewrite.

    The rows of a group are written to the same new files. In a table with fixed buckets each file
    is a separate group, so that the rows keep their order.
    """
    if is_unaware(handle):
        return iter([found] if found else [])
    return iter([[each] for each in found])


@dataclass(slots=True)
class _BucketRewrite:
    """Rewrites files of one bucket without the deleted rows."""

    handle: TableHandle
    unit: ChangeUnit
    take: TakeRows | None
    made: list[DataFileMeta] = field(default_factory=list)

    def rewrite(self, group: Sequence[Found]) -> None:
        """Write new files with the rows of the files in ``group`` that are not deleted."""
        unit = self.unit
        entries = [each.entry for each in group]
        handle = rewriting_instants(self.handle, unit.snapshot, entries)
        directory, external = bucket_places(handle, Place(unit.partition, unit.bucket))
        names = DataFileNames(handle.options, handle.environment.new_id())
        fields = handle.schema.fields
        writer = RollingWriter(
            handle.storage, directory, fields, handle.options, names.next_data, external=external
        )
        number = min(each.entry.file.min_sequence_number for each in group)
        try:
            for rows in self._left(group):
                writer.write(rows)
            for file in writer.finish():
                described = describe_append_file(
                    file,
                    fields,
                    FileOrigin.now(handle.schema, handle.environment),
                    first_sequence_number=number,
                    dense=handle.options.statistics_dense_store,
                )
                self.made.append(described)
                number += file.row_count
        except BaseException:
            writer.abort()
            raise

    def hand_over(self, found: Sequence[Found]) -> None:
        """Call ``take`` with the deleted rows of the files ``found``.

        This is for files that are not rewritten; ``rewrite`` itself calls ``take``.
        """
        for each in found:
            for rows in read_found(self.handle, self.unit, each):
                self._give(rows)

    def message(self) -> CommitMessage:
        """Return a message with the files written so far, for their deletion after an error."""
        unit = self.unit
        return CommitMessage(
            partition=unit.partition, bucket=unit.bucket, new_files=tuple(self.made)
        )

    def _left(self, group: Sequence[Found]) -> Iterator[pa.RecordBatch]:
        for each in group:
            for rows, mask in read_parts(self.handle, self.unit, each):
                self._give(rows.filter(pa.array(mask)))
                left = rows.filter(pa.array(~mask))
                if left.num_rows:
                    yield left

    def _give(self, rows: pa.RecordBatch) -> None:
        if self.take is not None and rows.num_rows:
            self.take(rows)
