# SPDX-License-Identifier: Apache-2.0
"""Copies row groups of files without deleted rows, instead of decoding and encoding their rows.

A copy costs much less. A file is copied only if the new file is as good as a rewritten one. The new
file must have the wanted size, the current columns and large row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.errors import LakeError
from lakeformat.files.file_format import FileFormat
from lakeformat.files.parquet.join import CannotJoinError, RowGroups, read_row_groups
from lakeformat.files.parquet.thrift_compact import serialize_struct
from lakeformat.iceberg.compact.plan import CompactPlan
from lakeformat.iceberg.compact.settings import CompactSettings
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_each
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.read.file_rows import lineage_of
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.copied_file import CopiedFiles
from lakeformat.iceberg.write.parquet_columns import parquet_schema
from lakeformat.iceberg.write.table_writer import TableWriter

__all__ = ["CopyChoice", "copy_choice"]

_LEAST_GROUP_BYTES = 1 << 20
"""A file with smaller row groups is decoded: small groups cost readers more than the copy saves."""

_Frame: TypeAlias = bytes
"""The footer without its row groups; only files with equal footers can be copied into one file."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A file whose row groups can be copied."""

    file: PlannedFile
    groups: RowGroups
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class CopyChoice:
    """The files that can be copied, according to their manifests; an instance can be pickled."""

    settings: CompactSettings
    entries: pa.Table | None
    """The manifest entries of the files to copy; None if there are no such files."""

    def copy(
        self, loaded: LoadedMetadata, files: Sequence[PlannedFile], writer: TableWriter
    ) -> Iterator[PlannedFile]:
        """Copy the files that can be copied, and yield the files whose rows must be decoded."""
        if self.entries is None:
            return iter(files)
        copier = _Copier(loaded, self.settings, self.entries, writer)
        for file in files:
            copier.add(file)
        copier.finish()
        return iter(copier.left)


def copy_choice(plan: CompactPlan) -> CopyChoice:
    """Return the files of a plan that can be copied; only manifests are read.

    No file is copied if rows are sorted or all files are rewritten.
    """
    units = () if plan.order is not None else plan.units  # sorting changes the places of rows
    chosen = [file.path for unit in units for file in unit.files if _may_copy(file, plan)]
    is_decoded = plan.settings.rewrite_all or plan.order is not None
    if not chosen or is_decoded or plan.snapshot is None:
        return CopyChoice(plan.settings, None)
    places, metadata = plan.loaded.places, plan.loaded.metadata
    manifests = read_manifest_list(places, plan.snapshot)
    is_data = pc.equal(manifests.column("content"), DATA)
    is_current = pc.equal(manifests.column("partition_spec_id"), metadata.default_spec_id)
    wanted, found = pa.array(chosen, pa.string()), []
    for _, entries in read_each(places, metadata, manifests.filter(pc.and_(is_data, is_current))):
        live = live_entries(entries)
        found.append(live.filter(pc.is_in(live.column("file_path"), wanted)))
        if sum(map(len, found)) >= len(chosen):  # manifests of new files come first in the list
            break
    return CopyChoice(plan.settings, pa.concat_tables(found).combine_chunks())


def _may_copy(file: PlannedFile, plan: CompactPlan) -> bool:
    split = file.split
    return (
        split.file.format is FileFormat.PARQUET
        and not split.deletes
        and file.spec_id == plan.loaded.metadata.default_spec_id
        and file.bytes >= _LEAST_GROUP_BYTES
    )


@dataclass(slots=True)
class _Copier:
    """Collects files of the same partition and columns, and copies them into one new file when they
    reach the target size.
    """

    loaded: LoadedMetadata
    settings: CompactSettings
    entries: pa.Table
    writer: TableWriter
    left: list[PlannedFile] = field(default_factory=list)
    parts: dict[tuple[str, _Frame], list[_Source]] = field(default_factory=dict)
    places: dict[str, int] = field(init=False)
    """The index of each data file's row in ``entries``, by the URI of the file."""
    known: dict[_Frame, tuple[Field, ...] | None] = field(default_factory=dict)
    """For each footer the columns of the file; None if they differ from the current columns."""

    def __post_init__(self) -> None:
        paths = self.entries.column("file_path").to_pylist()
        self.places = {path: place for place, path in enumerate(paths)}

    def add(self, file: PlannedFile) -> None:
        """Collect a file, or add it to ``left`` if it must be decoded.

        The files of one partition with equal footers are copied when they reach the target size.
        """
        if file.path not in self.places:
            self.left.append(file)
            return
        try:
            frame, source = self._source(file)
        except CannotJoinError:
            self.left.append(file)
            return
        key = (file.scope, frame)
        part = self.parts.setdefault(key, [])
        part.append(source)
        if _size(part) >= self.settings.target_bytes:
            self._copy(self.parts.pop(key))

    def finish(self) -> None:
        """Copy the remaining files into one file, or add them to ``left`` to be decoded.

        They are only copied if all have the same partition and equal footers, and if ``left`` is
        empty. Otherwise they are decoded together with the files in ``left``, so that no small file
        remains.
        """
        parts = [*self.parts.values()]
        if len(parts) == 1 and not self.left:
            self._copy(parts[0])
        else:
            self.left += [each.file for part in parts for each in part]

    def _source(self, file: PlannedFile) -> tuple[_Frame, _Source]:
        """Read the footer of a file; raise ``CannotJoinError`` if the file must be decoded."""
        try:
            storage, path = self.loaded.places.place(file.path)
            with storage.open_input(path) as stream:
                groups = read_row_groups(stream, file.bytes)
        except LakeError as reason:
            raise CannotJoinError from reason  # decoding the file will raise an error that names it
        *first, last = groups.sizes or [0]
        if min(first or [last]) < _LEAST_GROUP_BYTES or groups.rows != file.split.file.record_count:
            raise CannotJoinError
        frame = serialize_struct(groups.frame)
        if frame not in self.known:
            self.known[frame] = self._fields(groups)
        if (fields := self.known[frame]) is None or not self._keeps_lineage(file, fields, groups):
            raise CannotJoinError
        return frame, _Source(file, groups, fields)

    def _fields(self, groups: RowGroups) -> tuple[Field, ...] | None:
        """Return the columns of a file if they are the current ones, with or without row lineage.

        Return None if the file has other columns. Raise ``CannotJoinError`` if its footer is not
        readable.
        """
        metadata = self.loaded.metadata
        try:
            found = pq.read_schema(BytesIO(groups.empty_file()))
        except (OSError, pa.ArrowException) as reason:
            raise CannotJoinError from reason
        columns = metadata.schema.fields
        for fields in (columns, (*columns, *lineage_of(metadata))):
            if found.equals(_stored_schema(fields), check_metadata=True):
                return fields
        return None

    def _keeps_lineage(
        self, file: PlannedFile, fields: tuple[Field, ...], groups: RowGroups
    ) -> bool:
        """Return True if a copy of ``file`` keeps its row ids.

        This is so if the file stores the ids of all rows, or if its rows have no ids.
        """
        if file.split.file.first_row_id is None:
            return True
        lineage = lineage_of(self.loaded.metadata)
        return all(each in fields and groups.has_no_null(each.name) for each in lineage)

    def _copy(self, part: Sequence[_Source]) -> None:
        files = [each.file for each in part]
        if sum(each.bytes for each in files) > self.settings.max_bytes:
            self.left += files
            return
        rows = [self.places[each.path] for each in files]
        groups = [(each.file.path, each.groups) for each in part]
        try:
            self.writer.copy(CopiedFiles(part[0].fields, groups, self.entries.take(rows)))
        except CannotJoinError:
            self.left += files


def _size(part: Sequence[_Source]) -> int:
    return sum(each.file.bytes for each in part)


def _stored_schema(fields: tuple[Field, ...]) -> pa.Schema:
    """Return the Arrow schema that a reader finds in a file with these columns."""
    stream = BytesIO()
    pq.write_table(parquet_schema(fields).empty_table(), stream, store_schema=False)
    return pq.read_schema(stream)
