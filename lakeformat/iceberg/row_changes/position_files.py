# SPDX-License-Identifier: Apache-2.0
"""Writes position delete files for version 2: one for each data file, or for each partition.

Rows are sorted by path and position. The manifest entry of a delete file for a single data file
names the data file. So readers open the delete file only for that data file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.column_statistics import Detail, StatisticsMode
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.data_paths import require_own_data_path
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import word_property
from lakeformat.iceberg.read.deleted_rows import DELETED_POSITION, FILE_PATH
from lakeformat.iceberg.row_changes.delete_entries import FileWithDeletes, delete_entries
from lakeformat.iceberg.sort_order import SortOrder
from lakeformat.iceberg.write.data_file import DataFile
from lakeformat.iceberg.write.new_entries import NewFile, delete_files
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.iceberg.write.settings import WriteSettings, write_settings
from lakeformat.types.arrow_memory import array_of

__all__ = ["is_by_file", "write_position_files"]

_FORMAT = "write.format.default"
"""The value of this property is ignored, because position delete files are always Parquet."""
_GRANULARITY = "write.delete.granularity"
_COLUMNS = (FILE_PATH, DELETED_POSITION)
_EXACT = {each.id: StatisticsMode(Detail.BOUNDS) for each in _COLUMNS}
NameOf: TypeAlias = Callable[[FileWithDeletes, str, int], str]
"""A function that returns the name of a delete file.

Its arguments are the first data file of the delete file, the id of the operation, and the number of
the delete file.
"""
_GROUP_ROWS = 1 << 20
"""The largest number of rows of a row group; the writer holds one row group in memory."""


def is_by_file(properties: Mapping[str, str]) -> bool:
    """Return True if each delete file is for one data file, False if it is for one partition.

    The property ``write.delete.granularity`` decides: ``file``, the default as in Spark, or
    ``partition``. Raise ``InvalidRequestError`` for another value.
    """
    return word_property(properties, _GRANULARITY, "file", "partition") == "file"


def write_position_files(
    loaded: LoadedMetadata,
    files: Iterable[tuple[FileWithDeletes, DeletionVector]],
    environment: Environment,
    directory: str | None = None,
    *,
    name_of: NameOf | None = None,
) -> list[pa.Table]:
    """Write position delete files; return their entries, one table for each partition spec.

    ``files`` has pairs of a data file and its deleted positions. The delete files are written to
    ``directory``, by default to the directories of their partitions. ``name_of`` returns the name
    of a delete file; the default is a name as in Iceberg's Java library. After any exception no
    file is left.
    """
    metadata = loaded.metadata
    writer = _PositionDeleteWriter(loaded, environment.new_id(), directory, name_of)
    try:
        made = [*map(writer.write, _groups(metadata, files))]
    except BaseException:
        delete_files(loaded.places, writer.uris)
        raise
    return delete_entries(metadata, made)


def _plain_name(file: FileWithDeletes, operation: str, count: int) -> str:
    return f"00000-0-{operation}-{count:05}-deletes.parquet"


_Group = list[tuple[FileWithDeletes, DeletionVector]]


def _groups(
    metadata: TableMetadata, files: Iterable[tuple[FileWithDeletes, DeletionVector]]
) -> Iterator[_Group]:
    """Yield the groups of data files that share one delete file.

    The files of each group are sorted by path.
    """
    if is_by_file(metadata.properties):
        yield from ([each] for each in files)
        return
    by_scope: dict[str, _Group] = {}
    for each in files:
        by_scope.setdefault(each[0].scope, []).append(each)
    # Readers compare paths by their UTF-8 bytes.
    yield from (sorted(each, key=lambda pair: pair[0].path.encode()) for each in by_scope.values())


class _PositionDeleteWriter:
    def __init__(
        self,
        loaded: LoadedMetadata,
        operation: str,
        directory: str | None,
        name_of: NameOf | None,
    ) -> None:
        metadata = loaded.metadata
        if directory is None:
            require_own_data_path(loaded.places, metadata)
        self._loaded, self._operation, self._directory = loaded, operation, directory
        self._name_of = name_of or _plain_name
        as_parquet = {**metadata.properties, _FORMAT: "parquet"}
        settings = write_settings(
            replace(metadata, properties=as_parquet), SortOrder(0), metadata.schema
        )
        self._settings: WriteSettings = replace(settings, modes=_EXACT)
        self.uris: list[str] = []

    def write(self, group: _Group) -> tuple[FileWithDeletes, NewFile]:
        """Write one delete file; return the first data file of the group, and the delete file."""
        first = group[0][0]
        name = self._name_of(first, self._operation, len(self.uris) + 1)
        uri = f"{self._directory_of(first)}{name}"
        self._loaded.places.place(uri)  # raises the reason if no file may be written there
        self.uris.append(uri)
        file = DataFile(self._loaded.places, uri, first.partition, _COLUMNS, self._settings)
        try:
            for rows in _row_groups(group):
                file.write(rows)
        except BaseException:
            file.discard()
            raise
        made = file.close()
        if len(group) == 1:
            made.members["referenced_data_file"] = first.path
        else:  # As in Java, no bounds: those of several paths would exclude few files.
            made.members.update(lower_bounds=None, upper_bounds=None)
        return first, made

    def _directory_of(self, file: FileWithDeletes) -> str:
        """Return the URI of the directory for a delete file, with a final slash."""
        if self._directory is not None:
            return f"{self._directory}/"
        metadata = self._loaded.metadata
        spec = metadata.spec_of(file.spec_id)
        splitter = Splitter(spec, metadata.schema, partition_type(metadata, spec))
        return f"{self._settings.data_location}/{splitter.directory(file.partition)}"


def _row_groups(group: _Group) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    count = 0
    for file, vector in group:
        positions = vector.to_numpy()
        for start in range(0, len(positions), _GROUP_ROWS):
            some = array_of(positions[start : start + _GROUP_ROWS])
            path = pa.repeat(pa.scalar(file.path, pa.string()), len(some))
            if held and count + len(some) > _GROUP_ROWS:
                yield pa.concat_tables(held)
                held, count = [], 0
            held.append(pa.table({FILE_PATH.name: path, DELETED_POSITION.name: some}))
            count += len(some)
    yield pa.concat_tables(held)
