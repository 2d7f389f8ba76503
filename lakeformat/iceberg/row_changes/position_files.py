# SPDX-License-Identifier: Apache-2.0
"""Files of position deletes, as version 2 has them: one for each data file or each partition.

Rows are sorted by the path and the position. A file about one data file names it, and its bounds
are the same path, so that readers open it for that data file alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.files.column_statistics import Detail, StatisticsMode
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import word_property
from lakeformat.iceberg.read.deleted_rows import DELETED_POSITION, FILE_PATH
from lakeformat.iceberg.row_changes.delete_entries import delete_entries
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.sort_order import SortOrder
from lakeformat.iceberg.write.data_file import DataFile
from lakeformat.iceberg.write.new_entries import NewFile, delete_files
from lakeformat.iceberg.write.partitioned_rows import Splitter
from lakeformat.iceberg.write.settings import WriteSettings, write_settings
from lakeformat.types.arrow_memory import array_of

__all__ = ["is_by_file", "write_position_files"]

_FORMAT = "write.format.default"
"""Deletes are Parquet files, also of data files in other formats."""
_GRANULARITY = "write.delete.granularity"
_COLUMNS = (FILE_PATH, DELETED_POSITION)
_EXACT = {each.id: StatisticsMode(Detail.BOUNDS) for each in _COLUMNS}
_GROUP_ROWS = 1 << 20
"""The most rows of a row group, whose paths are in memory."""


def is_by_file(properties: Mapping[str, str]) -> bool:
    """Return True if each file of deletes is about one data file, as in Spark by default."""
    return word_property(properties, _GRANULARITY, "file", "partition") == "file"


def write_position_files(
    loaded: LoadedMetadata,
    files: Iterable[tuple[FileToChange, DeletionVector]],
    environment: Environment,
) -> list[pa.Table]:
    """Write deleted positions to durable files; return their entries by spec.

    If this raises, no file is left.
    """
    metadata = loaded.metadata
    writer = _Writer(loaded, environment.new_id())
    try:
        made = [*map(writer.write, _groups(metadata, files))]
    except BaseException:
        delete_files(loaded.places, writer.uris)
        raise
    return delete_entries(metadata, made)


_Group = list[tuple[FileToChange, DeletionVector]]


def _groups(
    metadata: TableMetadata, files: Iterable[tuple[FileToChange, DeletionVector]]
) -> Iterator[_Group]:
    """Yield the data files that share a file of deletes, ordered by path."""
    if is_by_file(metadata.properties):
        yield from ([each] for each in files)
        return
    by_scope: dict[str, _Group] = {}
    for each in files:
        by_scope.setdefault(each[0].scope, []).append(each)
    # Readers compare paths as UTF-8.
    yield from (sorted(each, key=lambda pair: pair[0].path.encode()) for each in by_scope.values())


class _Writer:
    """Writes the files of one change."""

    def __init__(self, loaded: LoadedMetadata, operation: str) -> None:
        metadata = loaded.metadata
        self._loaded, self._operation = loaded, operation
        as_parquet = {**metadata.properties, _FORMAT: "parquet"}
        settings = write_settings(
            replace(metadata, properties=as_parquet), SortOrder(0), metadata.schema
        )
        self._settings: WriteSettings = replace(settings, modes=_EXACT)
        self.uris: list[str] = []

    def write(self, group: _Group) -> tuple[FileToChange, NewFile]:
        """Write one file; return it with a data file of its partition."""
        first = group[0][0]
        directory = self._splitter(first.spec_id).directory(first.partition)
        name = f"00000-0-{self._operation}-{len(self.uris) + 1:05}-deletes.parquet"
        uri = f"{self._settings.data_location}/{directory}{name}"
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
        else:  # as in Java: bounds of several paths exclude few files
            made.members.update(lower_bounds=None, upper_bounds=None)
        return first, made

    def _splitter(self, spec_id: int) -> Splitter:
        metadata = self._loaded.metadata
        spec = metadata.spec_of(spec_id)
        return Splitter(spec, metadata.schema, partition_type(metadata, spec))


def _row_groups(group: _Group) -> Iterator[pa.Table]:
    """Yield the rows of a file of deletes."""
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
