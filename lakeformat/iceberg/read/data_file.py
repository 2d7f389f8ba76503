# SPDX-License-Identifier: Apache-2.0
"""A data file of a scan, and the delete files that apply to it; both can be sent to workers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakeformat.files.file_format import FileFormat

__all__ = ["DataFile", "DeleteFile", "FileSplit"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows, as a manifest describes it."""

    path: str
    format: FileFormat
    record_count: int | None
    """None if the manifest does not know it: old importers of Avro files wrote -1."""
    size_bytes: int
    sequence_number: int
    first_row_id: int | None = None
    constants: tuple[tuple[int, pa.Scalar], ...] = ()
    """The values of identity partitions by the id of their column: files of Hive tables do not
    store them.
    """


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file that deletes rows of data files."""

    path: str
    format: FileFormat | None
    """None for a deletion vector, which is part of a Puffin file."""
    record_count: int
    size_bytes: int
    sequence_number: int
    scope: str
    """The spec and partition that the file belongs to; empty for equality deletes everywhere."""
    equality_ids: tuple[int, ...] = ()
    """The columns whose equal values delete a row; without them the file lists positions."""
    data_file: str | None = None
    """The only data file with deleted rows, if one is known."""
    content_offset: int = 0
    content_size: int = 0

    @property
    def id(self) -> str:
        """The path, with the place of a deletion vector inside of the file."""
        return f"{self.path}@{self.content_offset}"

    @property
    def is_vector(self) -> bool:
        """Return True for a deletion vector."""
        return self.format is None


@dataclass(frozen=True, slots=True)
class FileSplit:
    """One data file with its deletes: it can be read alone, on any machine."""

    snapshot_id: int | None
    """None if the scan reads no snapshot, only files that no snapshot has yet."""
    file: DataFile
    deletes: tuple[DeleteFile, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The size of the data file, to start large splits first."""
        return self.file.size_bytes
