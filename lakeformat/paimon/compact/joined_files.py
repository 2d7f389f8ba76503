# SPDX-License-Identifier: Apache-2.0
"""Joins small files into one file by copying their row groups undecoded.

The key ranges of the small files do not overlap. The new file has the same rows as after a
rewrite. Files are rewritten instead if a row may change, or if the joined file would be slower to
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from lakeformat.errors import LakeError
from lakeformat.files.codecs import CODECS
from lakeformat.files.file_format import FileFormat, format_of
from lakeformat.files.parquet.join import (
    CannotJoinError,
    JoinedParquet,
    RowGroups,
    read_row_groups,
)
from lakeformat.paimon.compact.steps import Rewrite
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.file_index_writer import wanted_indexes
from lakeformat.paimon.datafile.joined_description import describe_joined_file
from lakeformat.paimon.datafile.key_value_files import KeyValueFiles
from lakeformat.paimon.datafile.rolling_writer import ROW_GROUP_ROWS
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import deleted_rows_of

__all__ = ["FileJoiner"]

_LEAST_GROUP_ROWS = ROW_GROUP_ROWS // 4
_LEAST_GROUP_BYTES = 4 << 20
"""A file's row groups are copied if they have on average this many bytes, or
``_LEAST_GROUP_ROWS`` rows. Smaller row groups cost readers more time than the copy saves.
"""


class FileJoiner:
    """Joins the files of a unit where a rewrite would neither merge nor drop rows."""

    def __init__(self, handle: TableHandle, unit: CompactUnit, names: KeyValueFiles) -> None:
        self._handle, self._unit, self._names = handle, unit, names
        self._files = DataFiles(handle, unit.snapshot, deleted_rows_of(handle, unit.snapshot, ()))
        self._options = handle.options.of_level(unit.output_level)
        self._entries = {entry.file.file_name: entry for entry in unit.files}
        self._started: list[str] = []

    def join(self, step: Rewrite, origin: FileOrigin) -> list[DataFileMeta] | None:
        """Join the files of a step; return the metadata of the new files.

        Return None, without a new file, if the rows must be decoded.
        """
        if not self._may_join(step):
            return None
        before = len(self._started)
        try:
            found = [(file, self._row_groups(file)) for file in step.files]
            return [self._joined(part, origin) for part in self._parts(found)]
        except CannotJoinError:
            self._remove(self._started[before:])
            return None

    def abort(self) -> None:
        """Delete the new files."""
        self._remove(self._started)

    def _may_join(self, step: Rewrite) -> bool:
        options, files = self._options, step.files
        return (
            len(files) > 1
            and all(len(section) == 1 for section in step.sections)
            and not (self._unit.vectors or self._unit.looked_up)
            and not options.compaction_force_rewrite_all_files
            and options.file_format == FileFormat.PARQUET
            and not options.data_file_external_paths
            and not wanted_indexes(self._handle.schema.fields, options)
            and all(self._is_plain(file) for file in files)
        )

    def _is_plain(self, file: DataFileMeta) -> bool:
        return (
            format_of(file.file_name, file.file_name) is FileFormat.PARQUET
            and self._files.has_fields_of_table(file)
            and file.write_cols is None
            and (file.delete_row_count == 0 or not self._unit.drop_delete)
        )

    def _row_groups(self, file: DataFileMeta) -> RowGroups:
        storage, path = self._files.place(self._entries[file.file_name])
        with storage.open_input(path) as stream:
            found = read_row_groups(stream, file.file_size)
        groups = max(found.count, 1)
        is_large = (
            file.row_count >= groups * _LEAST_GROUP_ROWS
            or file.file_size >= groups * _LEAST_GROUP_BYTES
        )
        codec = CODECS[FileFormat.PARQUET][self._options.file_compression]
        if found.rows != file.row_count or not is_large or not found.are_compressed_by(codec):
            raise CannotJoinError
        return found

    def _parts(
        self, found: Sequence[tuple[DataFileMeta, RowGroups]]
    ) -> Iterator[list[tuple[DataFileMeta, RowGroups]]]:
        """Yield groups of files; the files of a group are joined into one output file.

        Each group, except perhaps the last, reaches the target size.
        """
        part: list[tuple[DataFileMeta, RowGroups]] = []
        for each in found:
            part.append(each)
            if sum(file.file_size for file, _ in part) >= self._options.target_file_size_bytes:
                yield part
                part = []
        if part:
            yield part

    def _joined(
        self, part: Sequence[tuple[DataFileMeta, RowGroups]], origin: FileOrigin
    ) -> DataFileMeta:
        name, path = self._names.next_run(self._unit.output_level)
        self._started.append(path)
        with self._handle.storage.open_output(path) as stream:
            made = JoinedParquet(stream)
            for file, groups in part:
                storage, source = self._files.place(self._entries[file.file_name])
                with storage.open_input(source) as stored:
                    made.add(stored, groups)
            made.close()
            size = made.size
        files = [file for file, _ in part]
        schema = self._handle.schema
        dense = self._options.statistics_dense_store
        described = describe_joined_file(
            files, schema.fields, schema.key_fields, origin, dense=dense
        )
        return replace(described, file_name=name, file_size=size)

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(LakeError):
                self._handle.storage.delete(path)
