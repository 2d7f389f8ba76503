# SPDX-License-Identifier: Apache-2.0
"""Makes the manifest entries (DataFileMeta) of the data files that a writer has finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.datafile.file_statistics import encode_statistics, encode_value_statistics
from lakeformat.paimon.datafile.rolling_writer import WrittenFile
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, FileSource, local_wall_clock
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.types import DataField
from lakeformat.types.values import values_from_arrow

__all__ = ["FileOrigin", "describe_append_file", "describe_key_value_file"]


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The members of a manifest entry that are equal for all files of one writer.

    They are the schema, the time, the kind of work that wrote the file, and the level.
    """

    schema_id: int
    creation_time: datetime
    source: FileSource = FileSource.APPEND
    level: int = 0

    @classmethod
    def now(
        cls,
        schema: TableSchema,
        environment: Environment,
        source: FileSource = FileSource.APPEND,
        level: int = 0,
    ) -> Self:
        """Return the origin of files that are written with ``schema`` at this moment."""
        return cls(schema.id, local_wall_clock(environment.now_millis()), source, level)


def describe_append_file(
    file: WrittenFile,
    fields: Sequence[DataField],
    origin: FileOrigin,
    *,
    first_sequence_number: int,
    dense: bool,
) -> DataFileMeta:
    """Return the manifest entry of a file of an append table.

    ``first_sequence_number`` is the sequence number of the first row. With ``dense`` the statistics
    in the entry omit columns without statistics.
    """
    value_stats, covered = encode_value_statistics(fields, file.statistics, dense=dense)
    return DataFileMeta(
        file_name=file.name,
        file_size=file.size,
        row_count=file.row_count,
        min_sequence_number=first_sequence_number,
        max_sequence_number=first_sequence_number + file.row_count - 1,
        schema_id=origin.schema_id,
        value_stats=value_stats,
        value_stats_cols=covered,
        creation_time=origin.creation_time,
        delete_row_count=0,
        file_source=origin.source,
        external_path=file.external_path,
        embedded_file_index=file.embedded_index,
        extra_files=file.extra_files,
    )


def describe_key_value_file(
    file: WrittenFile,
    fields: Sequence[DataField],
    key_fields: Sequence[DataField],
    origin: FileOrigin,
    *,
    dense: bool,
) -> DataFileMeta:
    """Return the manifest entry of a file of a primary-key table.

    ``key_fields`` is the primary key without partition columns. With ``dense`` the statistics in
    the entry omit columns without statistics.
    """
    rows = file.keys
    assert rows is not None
    assert rows.first is not None
    assert rows.last is not None
    values = file.statistics[-len(fields) :]
    by_id = {field.id: known for field, known in zip(fields, values, strict=True)}
    # The key columns are the first columns of a file. A file without them uses the table's columns.
    has_key_columns = len(file.statistics) == len(key_fields) + 2 + len(fields)
    keys = file.statistics if has_key_columns else [by_id[field.id] for field in key_fields]
    value_stats, covered = encode_value_statistics(fields, values, dense=dense)
    return DataFileMeta(
        file_name=file.name,
        file_size=file.size,
        row_count=file.row_count,
        min_key=_encode_key(rows.first, key_fields),
        max_key=_encode_key(rows.last, key_fields),
        key_stats=encode_statistics(key_fields, keys[: len(key_fields)]),
        value_stats=value_stats,
        value_stats_cols=covered,
        min_sequence_number=rows.min_sequence_number,
        max_sequence_number=rows.max_sequence_number,
        schema_id=origin.schema_id,
        level=origin.level,
        creation_time=origin.creation_time,
        delete_row_count=rows.delete_count,
        file_source=origin.source,
        external_path=file.external_path,
        embedded_file_index=file.embedded_index,
        extra_files=file.extra_files,
    )


def _encode_key(row: pa.Table, key_fields: Sequence[DataField]) -> bytes:
    columns = zip(row.columns, key_fields, strict=True)
    values = [values_from_arrow(column.combine_chunks(), f.type)[0] for column, f in columns]
    return frame_row(encode_row(values, [f.type for f in key_fields]), len(key_fields))
