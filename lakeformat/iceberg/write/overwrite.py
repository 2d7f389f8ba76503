# SPDX-License-Identifier: Apache-2.0
"""Overwrites and deletes of whole files, such as those of some partitions, without their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.write.append import added_manifest, earlier_commit, publish_rows
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.file_choice import (
    AllFiles,
    FileChoice,
    FilesOfPartitions,
    FilesWhere,
)
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.iceberg.write.remove_files import without_files
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.tables.arguments import Overwritten, Partitions
from lakeformat.tables.commit_id import CommitId

__all__ = ["delete_chosen", "delete_partitions", "overwrite"]

_TABLE = ("table",)
_OF_NEW_ROWS = ("partitions", "dynamic")


def overwrite(
    handle: TableHandle,
    data: Any,
    overwritten: Overwritten,
    *,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteReport:
    """Replace rows by new ones in one commit; the same ``commit`` publishes once.

    The files that are there when the commit is published are replaced, also those of commits that
    were published while the rows were written.
    """
    metadata = handle.load().metadata
    produce = partial(_replacement, metadata, overwritten)
    _check(metadata, overwritten)
    return publish_rows(handle, data, produce, commit=commit, properties=properties)


def delete_partitions(
    handle: TableHandle, partitions: Partitions | None, *, commit: CommitId | None = None
) -> WriteReport:
    """Delete the rows of partitions in one commit; None deletes all rows."""
    return delete_chosen(handle, lambda metadata: _chosen(metadata, partitions), commit=commit)


def delete_chosen(
    handle: TableHandle,
    choose: Callable[[TableMetadata], FileChoice],
    *,
    commit: CommitId | None = None,
) -> WriteReport:
    """Delete whole files in one commit: those that are chosen when it is published."""
    handle.pointer.require_writable()
    loaded = handle.load()
    if (earlier := earlier_commit(handle, loaded, commit)) is not None:
        return write_report(handle.uri, earlier)
    change = _Replace(choose(loaded.metadata))
    return write_report(handle.uri, publish_change(handle, change, commit=commit))


@dataclass(frozen=True, slots=True)
class _Replace:
    """Removes chosen files and adds new ones, in one snapshot."""

    choice: FileChoice
    entries: pa.Table | None = None

    def __call__(self, base: Base) -> FileChange | None:
        left = without_files(base, self.choice)
        added = [] if self.entries is None else [self.entries]
        if not left.removed and not added:
            return None
        manifests = [left.manifests]
        if self.entries is not None:
            manifests.insert(0, added_manifest(base, self.entries))
        return FileChange(
            _operation(has_added=bool(added), has_removed=bool(left.removed)),
            merge_manifests(base.loaded, pa.concat_tables(manifests), base.files, base.snapshot),
            FileCounts.of(added),
            FileCounts.of(left.removed),
            partition_count([*added, *left.removed]),
        )


def _replacement(metadata: TableMetadata, overwritten: Overwritten, entries: pa.Table) -> _Replace:
    """Return the change of an overwrite; new rows outside of its partitions are refused."""
    added = entries if len(entries) else None
    if isinstance(overwritten, str) and overwritten in _OF_NEW_ROWS:
        spec = metadata.spec_of(metadata.default_spec_id)
        choice: FileChoice = FilesOfPartitions(entries) if spec.fields else AllFiles()
        return _Replace(choice, added)
    whole = overwritten in _TABLE if isinstance(overwritten, str) else not overwritten
    choice = _chosen(metadata, None if whole else overwritten)  # type: ignore[arg-type]
    if added is not None:
        spec = metadata.spec_of(added.column("spec_id")[0].as_py())
        inside = choice.mask(metadata, spec, added)
        if not pc.all(inside).as_py():
            path = added.filter(pc.invert(inside)).column("partition")[0].as_py()
            raise InvalidRequestError(
                f"some rows belong to the partition {path}, which is not among those of the "
                f"overwrite, {overwritten!r}: leave them out, or overwrite that partition, too"
            )
    return _Replace(choice, added)


def _check(metadata: TableMetadata, overwritten: object) -> None:
    """Raise if the argument names no rows, before any row is written."""
    words = (*_TABLE, *_OF_NEW_ROWS)
    if isinstance(overwritten, str):
        if overwritten not in words:
            raise InvalidRequestError(
                f"overwrite must be one of {', '.join(words)}, or a dict of partition values such "
                f"as {{'dt': '2024-01-01'}}; got {overwritten!r}"
            )
        spec = metadata.spec_of(metadata.default_spec_id)
        if overwritten == "partitions" and not spec.fields:
            raise InvalidRequestError(
                f"{metadata.location} has no partitions, so overwrite='partitions' names no rows: "
                "use overwrite='table' to replace all rows"
            )
        return
    if not isinstance(overwritten, Mapping):
        raise InvalidRequestError(
            f"overwrite must be one of {', '.join(words)}, or a dict of partition values, got "
            f"{overwritten!r}"
        )
    _chosen(metadata, overwritten or None)


def _chosen(metadata: TableMetadata, partitions: Partitions | None) -> FileChoice:
    if partitions is None:
        return AllFiles()
    condition = row_filter(metadata, metadata.schema, None, partitions)
    assert condition is not None
    return FilesWhere(condition)


def _operation(*, has_added: bool, has_removed: bool) -> str:
    """Return the kind of the commit, as Java names it."""
    if not has_removed:
        return "append"
    return "overwrite" if has_added else "delete"
