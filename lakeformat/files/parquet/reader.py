# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files as Arrow batches."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.errors import UnsupportedError
from lakeformat.files.column_choice import ColumnChoice, chosen_columns
from lakeformat.files.nested_arrays import map_entries
from lakeformat.files.parquet.dictionary_columns import repeating_texts
from lakeformat.files.parquet.row_groups import (
    CountGroups,
    Footer,
    PickGroups,
    leaves_of,
    stored_size,
)
from lakeformat.files.parquet.sound_footer import (
    require_sound_footer,
    require_sound_rows,
    require_sound_types,
)
from lakeformat.files.parquet.sound_statistics import read_footer
from lakeformat.types.casts.floor_division import floor_divide

__all__ = ["read_parquet"]

FEW_ROWS = 32 * 1024
"""The number of rows up to which decoding is faster than starting a thread."""
NANOS_PER_SECOND = 1_000_000_000
SECONDS_OF_A_ROUND = 2**64 // NANOS_PER_SECOND
"""The number of seconds after which 64-bit nanoseconds wrap around."""


def read_parquet(
    stream: IO[bytes],
    columns: ColumnChoice,
    batch_rows: int,
    rows: range,
    pick: PickGroups | None = None,
    encoded: Collection[str] = (),
    *,
    in_threads: bool = True,
    count: CountGroups | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of ``columns``, each with the position of its first row in the file.

    Row groups are skipped if they are outside of the range ``rows``, or if ``pick`` does not select
    them. Text columns in ``encoded`` may be returned dictionary-encoded. With ``in_threads``, the
    columns of a file of more than ``FEW_ROWS`` rows are decoded in parallel. At the end, ``count``
    is called with the number of row groups of the file and the stored size of ``columns`` in bytes.
    If ``pick`` skipped a row group, an empty batch marks the end of the file.

    Raise ``MissingColumnError`` if the file lacks a column, ``OSError`` or ``ArrowException`` for a
    damaged file, and ``UnsupportedError`` for an INT96 timestamp outside of 1677 to 2262.
    """
    metadata, stored = (None, b"") if pick is None else read_footer(stream)
    file = _open(stream, metadata=metadata)
    columns = chosen_columns(columns, file.schema_arrow)
    if encoded or pick is not None:
        require_sound_footer(file.metadata, stream.seek(0, io.SEEK_END))
    elif count is not None:
        require_sound_rows(file.metadata)
    if few := repeating_texts(file.metadata, file.schema_arrow, encoded):
        file = _open(stream, metadata=file.metadata, read_dictionary=few)
    picked = (
        None if pick is None else pick(Footer(file.metadata, file.schema_arrow, stored), columns)
    )
    far = _int96_columns(file.schema, columns)
    in_threads = in_threads and file.metadata.num_rows > FEW_ROWS
    for position, groups in _stretches(file.metadata, rows, picked):
        batches = file.iter_batches(
            batch_rows, row_groups=groups, columns=columns, use_threads=in_threads
        )
        if far:
            batches = _without_far(stream, batches, batch_rows, groups, far)
        for batch in batches:
            yield position, batch
            position += batch.num_rows
    if count is not None:  # pyarrow can safely describe the chunks that it has read
        groups, leaves = _groups_with_rows(file.metadata), leaves_of(file.metadata, columns)
        require_sound_types(file.metadata, groups, leaves)
        count(file.metadata.num_row_groups, stored_size(file.metadata, groups, leaves))
    if picked is not None and not picked.all():  # an empty batch marks the end of the file
        nothing = file.schema_arrow.empty_table().select(columns).combine_chunks()
        yield (
            file.metadata.num_rows,
            pa.RecordBatch.from_arrays(
                [column.combine_chunks() for column in nothing.columns], schema=nothing.schema
            ),
        )


def _open(stream: IO[bytes], **options: Any) -> pq.ParquetFile:
    # Without pre_buffer, memory holds one row group of the requested columns, not the file;
    # extension types would override the table's schema.
    return pq.ParquetFile(
        stream,
        pre_buffer=False,
        arrow_extensions_enabled=False,
        page_checksum_verification=True,  # of pages that have a checksum
        **options,
    )


def _stretches(
    metadata: pq.FileMetaData, rows: range, picked: npt.NDArray[np.bool_] | None
) -> Iterator[tuple[int, list[int]]]:
    """Yield the start and the group numbers of each series of adjacent row groups to read.

    The start is the position in the file of the first row of the series. A row group is read if it
    overlaps with ``rows`` and is selected in ``picked``. With ``picked=None``, all row groups are
    selected, and the last series may be empty.
    """
    groups: list[int] = []
    first = start = 0
    for number in range(metadata.num_row_groups):
        end = start + metadata.row_group(number).num_rows
        if start < rows.stop and end > rows.start and (picked is None or picked[number]):
            first = first if groups else start
            groups.append(number)
        elif groups:
            yield first, groups
            groups = []
        start = end
    if groups or picked is None:
        yield first, groups


def _groups_with_rows(metadata: pq.FileMetaData) -> list[int]:
    groups = range(metadata.num_row_groups)
    return [number for number in groups if metadata.row_group(number).num_rows]


def _int96_columns(schema: pq.ParquetSchema, columns: Sequence[str]) -> list[str]:
    """Return the top-level ``columns`` that are INT96, or have a nested field of INT96."""
    leaves = (schema.column(number) for number in range(len(schema)))
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [name for name in columns if any(f"{path}.".startswith(f"{name}.") for path in paths)]


def _without_far(
    stream: IO[bytes],
    batches: Iterator[pa.RecordBatch],
    batch_rows: int,
    groups: list[int],
    columns: list[str],
) -> Iterator[pa.RecordBatch]:
    """Yield ``batches``; raise ``UnsupportedError`` for an INT96 timestamp that Arrow misreads.

    Arrow reads INT96 timestamps wrongly if they are outside of 1677 to 2262, the range of 64-bit
    nanoseconds. To find them, this function reads the INT96 ``columns`` of the row groups
    ``groups`` from ``stream`` again, in seconds, and compares the two results.
    """
    coarse = pq.ParquetFile(stream, pre_buffer=False, coerce_int96_timestamp_unit="s")
    seconds = coarse.iter_batches(batch_rows, row_groups=groups, columns=columns)
    for batch, in_seconds in zip(batches, seconds, strict=True):
        for name in columns:
            if _is_far(batch.column(name), in_seconds.column(name)):
                raise UnsupportedError(
                    f"column {name!r} holds INT96 timestamps before 1677 or after 2262, which this "
                    "version cannot read: copy the rows with another engine, such as Spark, to a "
                    "table in which the column is TIMESTAMP(6)"
                )
        yield batch


def _is_far(nanos: pa.Array, seconds: pa.Array) -> bool:
    """Return True if a column has an INT96 timestamp out of the range of 64-bit nanoseconds.

    ``nanos`` and ``seconds`` hold the same column, read in nanoseconds and in seconds. A nested
    field without INT96 has the same type in both.
    """
    if nanos.type == seconds.type:
        return False
    if pa.types.is_struct(nanos.type):
        return any(map(_is_far, nanos.flatten(), seconds.flatten()))
    if pa.types.is_map(nanos.type):
        return any(map(_is_far, map_entries(nanos), map_entries(seconds)))
    if pa.types.is_list(nanos.type):
        return _is_far(nanos.flatten(), seconds.flatten())
    counts = nanos.view(pa.int64())
    rounds = pc.subtract(seconds.view(pa.int64()), floor_divide(counts, NANOS_PER_SECOND))
    # Java stores a time before 1970 as a day and a time counted back from its end, and Arrow reads
    # it one wrap too far.
    is_back = pc.and_(
        pc.less(counts, 0), pc.less_equal(pc.abs(pc.subtract(rounds, SECONDS_OF_A_ROUND)), 1)
    )
    is_far = pc.and_(pc.not_equal(rounds, 0), pc.invert(is_back))
    return bool(pc.any(is_far).as_py())
