# SPDX-License-Identifier: Apache-2.0
"""Data files and delete files of a scan; they can be pickled and sent to other processes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakeformat.files.file_format import FileFormat

__all__ = ["DataFile", "DeleteFile", "FileSplit"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, as its manifest describes it."""

    path: str
    format: FileFormat
    record_count: int | None
    """The number of rows; None if the manifest has -1, which Java's import of Avro files wrote."""
    size_bytes: int
    sequence_number: int
    first_row_id: int | None = None
    constants: tuple[tuple[int, pa.Scalar], ...] = ()
    """The values of identity partition fields, by column id. They are needed for data files of Hive
    tables, which do not store these columns.
    """


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A delete file, which deletes rows of data files."""

    path: str
    format: FileFormat | None
    """The format of the file; None for a deletion vector in a Puffin file."""
    record_count: int
    size_bytes: int
    sequence_number: int
    scope: str
    """The partition spec and partition to which the delete file applies; empty for equality deletes
    of all partitions."""
    equality_ids: tuple[int, ...] = ()
    """The ids of the columns whose values are compared; empty if the file lists positions."""
    data_file: str | None = None
    """The data file to which the delete file applies; None if there may be several."""
    content_offset: int = 0
    content_size: int = 0

    @property
    def id(self) -> str:
        """The path with the offset of the deletion vector, such as ``<path>@4``; other files have
        offset 0.
        """
        return f"{self.path}@{self.content_offset}"

    @property
    def is_vector(self) -> bool:
        """True for a deletion vector."""
        return self.format is None


@dataclass(frozen=True, slots=True)
class FileSplit:
    """One data file with its delete files; it can be read alone, on any machine."""

    snapshot_id: int | None
    """The id of the snapshot; None if the scan reads only files that no snapshot has yet."""
    file: DataFile
    deletes: tuple[DeleteFile, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The size of the data file in bytes, by which callers can start large splits first."""
        return self.file.size_bytes
