# SPDX-License-Identifier: Apache-2.0
"""Compacts a bucket of a primary-key table: merges sorted runs into one run of a level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from lakeformat.files.data_file import BATCH_ROWS
from lakeformat.paimon.compact.carried_columns import carried_columns
from lakeformat.paimon.compact.changelogs.producers import changelog_merge
from lakeformat.paimon.compact.changelogs.rows import ChangelogRows
from lakeformat.paimon.compact.joined_files import FileJoiner
from lakeformat.paimon.compact.steps import FileRuns, Rewrite, Upgrade
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.compact.vectors import write_vectors
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_files import KeyValueFiles
from lakeformat.paimon.datafile.key_value_writer import KeyValueWriter
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from lakeformat.paimon.merge.row_kinds import without_retracts
from lakeformat.paimon.merge.sections import is_interleaved
from lakeformat.paimon.merge.streams import batch_rows_of, merge_runs
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import deleted_rows_of
from lakeformat.paimon.write.assign import Place, bucket_places
from lakeformat.rows.groups import Positions

__all__ = ["compact_key_values"]


def compact_key_values(handle: TableHandle, unit: CompactUnit) -> CommitMessage:
    """Run the steps of a unit; return the message to commit.

    After any error the new files are deleted.
    """
    files = _new_files(handle, unit)
    made: list[DataFileMeta] = []
    changelog = files.new_changelog(unit.output_level)
    rows = _rows(handle, unit, changelog)
    joiner = FileJoiner(handle, unit, files) if isinstance(rows, _MergedUnitRows) else None
    writers: list[KeyValueWriter | FileJoiner] = [changelog, *([joiner] if joiner else [])]
    try:
        for step in unit.steps:
            if isinstance(step, Upgrade):
                rows.move(step)
                made.append(replace(step.file, level=unit.output_level))
                continue
            if joiner is not None and (joined := joiner.join(step, _origin(handle, unit))):
                made += joined
                continue
            writer = files.new_run(unit.output_level)
            writers.append(writer)
            batches = _kept(rows.of(step), drop_delete=unit.drop_delete)
            made += _rewrite(writer, batches, _origin(handle, unit))
        told = changelog.finish(_origin(handle, unit))
        vectors = write_vectors(handle, unit, rows.marked)
    except BaseException:
        for each in writers:
            each.abort()
        raise
    return replace(
        unit.message(handle, made),
        compact_changelog_files=tuple(told),
        compact_new_index_files=vectors.new,
        compact_deleted_index_files=vectors.deleted,
    )


def _rows(handle: TableHandle, unit: CompactUnit, changelog: KeyValueWriter) -> _UnitRows:
    merge = changelog_merge(handle.schema, unit)
    if merge is None:
        return _MergedUnitRows(handle, unit)
    return ChangelogRows(handle, unit, merge, changelog)


class _UnitRows(Protocol):
    """Merges the rows of a unit's files, with all columns of the table."""

    @property
    def marked(self) -> Mapping[str, Positions]:
        """The replaced rows in files of higher levels: row positions by file name."""
        ...

    def of(self, step: Rewrite) -> Iterator[pa.Table]:
        """Yield the merged rows of a step in key order, each key once; rows of kind DELETE are
        included.
        """
        ...

    def move(self, step: Upgrade) -> None:
        """Write the changelog of a file that only changes its level, and find the rows that it
        replaces.

        Each of the two is done only if the unit needs it.
        """
        ...


class _MergedUnitRows:
    """Merges the rows of a unit that needs neither a changelog nor a lookup of old rows."""

    def __init__(self, handle: TableHandle, unit: CompactUnit) -> None:
        self._schema = handle.schema
        self._files = DataFiles(
            handle, unit.snapshot, deleted_rows_of(handle, unit.snapshot, unit.vectors)
        )
        self._entries = {entry.file.file_name: entry for entry in unit.files}
        self.marked: Mapping[str, Positions] = {}
        self._order, self._engine = merge_order(handle.schema), merge_engine(handle.schema)
        self._carried = carried_columns(handle.schema, unit.output_level)

    def of(self, step: Rewrite) -> Iterator[pa.Table]:
        for section in step.sections:
            yield from self._merged(section)

    def move(self, step: Upgrade) -> None:
        """Do nothing: the file keeps its rows, and there is no changelog."""

    def _merged(self, section: FileRuns) -> Iterator[pa.Table]:
        rows = batch_rows_of(len(section)) if len(section) > 1 else BATCH_ROWS
        runs = [self._run([self._entries[file.file_name] for file in run], rows) for run in section]
        return merge_runs(runs, self._order, self._engine, numbered=is_interleaved(section))

    def _run(self, entries: Sequence[ManifestEntry], rows: int) -> Iterator[pa.RecordBatch]:
        for entry in entries:
            yield from self._files.key_values(
                entry, self._schema.fields, batch_rows=rows, encoded=self._carried
            )


def _kept(tables: Iterator[pa.Table], *, drop_delete: bool) -> Iterator[pa.RecordBatch]:
    for table in tables:
        for batch in table.to_batches():
            yield without_retracts(batch) if drop_delete else batch


def _rewrite(
    writer: KeyValueWriter, batches: Iterator[pa.RecordBatch], origin: FileOrigin
) -> list[DataFileMeta]:
    for batch in batches:
        if batch.num_rows:
            writer.write(batch)
    return writer.finish(origin)


def _origin(handle: TableHandle, unit: CompactUnit) -> FileOrigin:
    return FileOrigin.now(handle.schema, handle.environment, FileSource.COMPACT, unit.output_level)


def _new_files(handle: TableHandle, unit: CompactUnit) -> KeyValueFiles:
    directory, external = bucket_places(handle, Place(unit.partition, unit.bucket))
    return KeyValueFiles(
        handle.storage,
        directory,
        handle.schema.fields,
        [field.name for field in handle.schema.key_fields],
        handle.options,
        handle.environment.new_id(),
        external=external,
    )
