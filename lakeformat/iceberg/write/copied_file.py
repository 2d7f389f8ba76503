# SPDX-License-Identifier: Apache-2.0
"""Writes a Parquet data file with the row groups of other files, without decoding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.parquet.end import MAGIC
from lakeformat.files.parquet.join import CannotJoinError, JoinedParquet, RowGroups
from lakeformat.files.parquet.sound_footer import require_sound_footer
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.types import Field
from lakeformat.iceberg.write.file_metrics import FileMetrics
from lakeformat.iceberg.write.new_entries import NewFile
from lakeformat.iceberg.write.parquet_columns import parquet_fields
from lakeformat.iceberg.write.settings import WriteSettings

__all__ = ["CopiedFiles", "write_copies"]


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """Files of one partition whose row groups can be copied into one file."""

    fields: tuple[Field, ...]
    """The columns of the files."""
    groups: Sequence[tuple[str, RowGroups]]
    """The URI and the row groups of each file."""
    entries: pa.Table
    """The manifest entries of the files."""


def write_copies(
    places: FilePlaces, uri: str, files: CopiedFiles, settings: WriteSettings
) -> NewFile:
    """Write a file with the row groups of other files; return the values for its manifest entry.

    Raise ``CannotJoinError`` if a footer is damaged; an incomplete file may be left.
    """
    storage, path = places.place(uri)
    with storage.open_output(path) as stream:
        joined = JoinedParquet(stream)
        for address, groups in files.groups:
            source, place = places.place(address)
            with source.open_input(place) as stored:
                joined.add(stored, groups)
        end = joined.close()
        size = joined.size
        footer = _footer(end, size)
    metrics = FileMetrics(parquet_fields(files.fields), settings.modes)
    metrics.add_files(files.entries)
    members = {
        "file_path": uri,
        "record_count": footer.num_rows,
        "file_size_in_bytes": size,
        **metrics.result(footer),
    }
    partition = files.entries.column("partition").combine_chunks().slice(0, 1)
    return NewFile(partition, members)


def _footer(end: bytes, size: int) -> pq.FileMetaData:
    """Parse the footer of the new file; raise ``CannotJoinError`` if it is damaged.

    One damaged source would make all of the new file unreadable.
    """
    try:
        footer = pq.read_metadata(pa.BufferReader(MAGIC + end))
        require_sound_footer(footer, size)
    except (OSError, pa.ArrowException) as reason:
        raise CannotJoinError from reason
    return footer
