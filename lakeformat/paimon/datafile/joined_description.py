# SPDX-License-Identifier: Apache-2.0
"""Makes the manifest entry (DataFileMeta) of a file that joins several files."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.files.column_statistics import ColumnStatistics, bounded_by, merge_bounds
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.file_statistics import (
    encode_statistics,
    encode_value_statistics,
    file_statistics,
    key_statistics,
)
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.types.types import DataField

__all__ = ["describe_joined_file"]


def describe_joined_file(
    files: Sequence[DataFileMeta],
    fields: Sequence[DataField],
    key_fields: Sequence[DataField],
    origin: FileOrigin,
    *,
    dense: bool,
) -> DataFileMeta:
    """Return the entry of a file that has the rows of all ``files``.

    The files must be in key order, and must have one schema. The entry has the name and size of the
    first file: the caller replaces them. With ``dense`` the statistics in the entry omit columns
    without statistics.
    """
    counts = [file.row_count for file in files]
    keys = [key_statistics(file, key_fields) for file in files]
    values = [file_statistics(file, fields, fields) for file in files]
    value_stats, covered = encode_value_statistics(fields, _merged(values, counts), dense=dense)
    deleted = [file.delete_row_count for file in files]
    return DataFileMeta(
        file_name=files[0].file_name,
        file_size=files[0].file_size,
        row_count=sum(counts),
        min_key=files[0].min_key,
        max_key=files[-1].max_key,
        key_stats=encode_statistics(key_fields, _merged(keys, counts)),
        value_stats=value_stats,
        value_stats_cols=covered,
        min_sequence_number=min(file.min_sequence_number for file in files),
        max_sequence_number=max(file.max_sequence_number for file in files),
        schema_id=origin.schema_id,
        level=origin.level,
        creation_time=origin.creation_time,
        delete_row_count=None if None in deleted else sum(each or 0 for each in deleted),
        file_source=origin.source,
    )


def _merged(
    of_files: Sequence[Sequence[ColumnStatistics]], counts: Sequence[int]
) -> list[ColumnStatistics]:
    return [_of_column(parts, counts) for parts in zip(*of_files, strict=True)]


def _of_column(parts: Sequence[ColumnStatistics], counts: Sequence[int]) -> ColumnStatistics:
    nulls = [part.null_count for part in parts]
    known = [each for each in nulls if each is not None]
    if len(known) < len(nulls):
        return ColumnStatistics()
    bounds = [
        None if part.minimum is None or part.maximum is None else (part.minimum, part.maximum)
        for part, rows in zip(parts, counts, strict=True)
        if part.null_count != rows  # a column of only nulls has no bounds
    ]
    return bounded_by(merge_bounds(bounds), sum(known))
