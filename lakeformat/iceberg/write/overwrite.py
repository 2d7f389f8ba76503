# SPDX-License-Identifier: Apache-2.0
"""Overwrites and deletes whole files, such as the files of partitions, without reading rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.entry_columns import is_unpartitioned
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.write.append import earlier_commit, publish_rows
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.file_choice import (
    AllFiles,
    FileChoice,
    FilesOfPartitions,
    FilesWhere,
    files_where,
)
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.iceberg.write.publish import Base, FileChange, PublishedChange, publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.rows.conditions.predicate import Predicate
from lakeformat.tables.arguments import Overwritten, Partitions
from lakeformat.tables.commit_id import CommitId

__all__ = [
    "RowsToOverwrite",
    "check_overwritten",
    "delete_chosen",
    "delete_partitions",
    "overwrite",
    "replacement",
]

RowsToOverwrite: TypeAlias = Overwritten | Predicate
"""The rows that an overwrite replaces: ``"table"``, ``"partitions"``, ``"dynamic"``, a dict of
partition values, or a condition such as ``col("ts") < "2024-01-02"``.
"""
_TABLE = ("table",)
_OF_NEW_ROWS = ("partitions", "dynamic")


def overwrite(
    handle: TableHandle,
    data: Any,
    overwritten: RowsToOverwrite,
    *,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteReport:
    """Replace rows by new rows in one commit.

    A repeated call with the same ``commit`` publishes nothing again. ``overwritten`` also selects
    rows that other commits published while the new rows were written. Raise
    ``InvalidRequestError`` for new rows that do not fit the columns or ``overwritten``, and
    ``UnsupportedError`` if a file may have both rows to replace and rows to keep.
    """
    metadata = handle.load().metadata
    produce = partial(replacement, metadata, overwritten, is_recorded=commit is not None)
    check_overwritten(metadata, overwritten)
    return publish_rows(handle, data, produce, commit=commit, properties=properties)


def delete_partitions(
    handle: TableHandle, partitions: Partitions | None, *, commit: CommitId | None = None
) -> WriteReport:
    """Delete the rows of partitions in one commit; ``partitions=None`` deletes all rows.

    Raise ``InvalidRequestError`` for a column that is not an identity partition, and
    ``UnsupportedError`` if a file also has rows to keep.
    """
    found = delete_chosen(handle, lambda metadata: _chosen(metadata, partitions), commit=commit)
    return write_report(handle.uri, found)


def delete_chosen(
    handle: TableHandle,
    choose: Callable[[TableMetadata], FileChoice],
    *,
    commit: CommitId | None = None,
) -> PublishedChange:
    """Delete whole files in one commit; ``choose`` selects them from the newest metadata.

    A repeated call with the same ``commit`` publishes nothing again.
    """
    handle.pointer.require_writable()
    loaded = handle.load()
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        return earlier

    def change(base: Base) -> FileChange | None:
        metadata = base.loaded.metadata
        return ChangedFiles(
            choice=choose(metadata),
            variant=metadata.current_schema_id,
            is_recorded=commit is not None,
        )(base)

    return publish_change(handle, change, commit=commit, planned=loaded)


def replacement(
    metadata: TableMetadata,
    overwritten: RowsToOverwrite,
    entries: pa.Table,
    *,
    is_recorded: bool = False,
) -> ChangedFiles:
    """Return the change of an overwrite.

    With ``is_recorded`` a snapshot is published even if no file changes, so that a repeated call
    finds it. In a partitioned table, ``is_recorded`` is ignored if ``overwritten`` is
    ``"partitions"`` or ``"dynamic"``. Raise ``InvalidRequestError`` if a new row is outside of the
    overwritten partitions, or if a new file may have rows that do not meet the condition.
    """
    if isinstance(overwritten, str) and overwritten in _OF_NEW_ROWS:
        is_whole = is_unpartitioned(metadata.spec_of(metadata.default_spec_id))
        choice: FileChoice = AllFiles() if is_whole else FilesOfPartitions(entries)
        return ChangedFiles([entries], choice, is_recorded=is_recorded and is_whole)
    if isinstance(overwritten, Predicate):
        return _replacement_where(metadata, overwritten, entries, is_recorded=is_recorded)
    whole = overwritten in _TABLE if isinstance(overwritten, str) else not overwritten
    choice = _chosen(metadata, None if whole else overwritten)  # type: ignore[arg-type]
    if len(entries):
        spec = metadata.spec_of(entries.column("spec_id")[0].as_py())
        inside = choice.mask(metadata, spec, entries)
        if not pc.all(inside).as_py():
            outside = entries.filter(pc.invert(inside)).column("partition").combine_chunks()
            splitter = Splitter(spec, metadata.schema, partition_type(metadata, spec))
            path = splitter.directory(outside.slice(0, 1)).rstrip("/")
            raise InvalidRequestError(
                f"some rows belong to the partition {path!r}, which is not one of the partitions "
                f"to overwrite, {overwritten!r}: leave these rows out, or overwrite that "
                "partition, too"
            )
    return ChangedFiles([entries], choice, is_recorded=is_recorded)


def _replacement_where(
    metadata: TableMetadata, condition: Predicate, entries: pa.Table, *, is_recorded: bool
) -> ChangedFiles:
    """Return the change of an overwrite by a condition.

    Raise ``InvalidRequestError`` unless the partitions and bounds of the new files prove that every
    new row meets the condition.
    """
    choice = files_where(metadata, condition)
    if len(entries):
        spec = metadata.spec_of(entries.column("spec_id")[0].as_py())
        _, inside = choice.masks(metadata, spec, entries)
        if not pc.all(inside).as_py():
            raise InvalidRequestError(
                "the partitions and column bounds of the new files do not prove that every new "
                f"row meets the condition of the overwrite, {condition.to_text()}: leave out rows "
                "that do not meet it, or choose a condition that the bounds can prove, on columns "
                "without nulls"
            )
    return ChangedFiles([entries], choice, is_recorded=is_recorded)


def check_overwritten(metadata: TableMetadata, overwritten: object) -> None:
    """Raise ``InvalidRequestError`` if ``overwritten`` is not valid.

    Call it before rows are written.
    """
    words = (*_TABLE, *_OF_NEW_ROWS)
    if isinstance(overwritten, Predicate):
        files_where(metadata, overwritten)
        return
    if isinstance(overwritten, str):
        if overwritten not in words:
            raise InvalidRequestError(
                f"overwrite must be one of {', '.join(words)}, a dict of partition values such as "
                "{'dt': '2024-01-01'}, or a condition such as col('ts') < '2024-01-02'; got "
                f"{overwritten!r}"
            )
        spec = metadata.spec_of(metadata.default_spec_id)
        if overwritten == "partitions" and is_unpartitioned(spec):
            raise InvalidRequestError(
                f"{metadata.location} has no partitions, so overwrite='partitions' names no rows: "
                "use overwrite='table' to replace all rows"
            )
        return
    if not isinstance(overwritten, Mapping):
        raise InvalidRequestError(
            f"overwrite must be one of {', '.join(words)}, a dict of partition values, or a "
            f"condition made with col, got {overwritten!r}"
        )
    _chosen(metadata, overwritten or None)


def _chosen(metadata: TableMetadata, partitions: Partitions | None) -> FileChoice:
    if partitions is None:
        return AllFiles()
    condition = row_filter(metadata, metadata.schema, None, partitions)
    assert condition is not None
    return FilesWhere(condition)
