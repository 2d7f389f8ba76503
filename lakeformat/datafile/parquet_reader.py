"""Reads Parquet files in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeformat.casts.floor_division import floor_divide
from lakeformat.datafile.missing_columns import require_columns
from lakeformat.datafile.nested_arrays import map_entries
from lakeformat.errors import UnsupportedError

__all__ = ["read_parquet"]

NANOS_PER_SECOND = 1_000_000_000
SECONDS_OF_A_ROUND = 2**64 // NANOS_PER_SECOND
"""After so many seconds 64-bit nanoseconds start again."""


def read_parquet(
    stream: IO[bytes], columns: list[str], batch_rows: int, rows: range
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the position of their first row; row groups outside ``rows`` are skipped."""
    # Without pre_buffer memory holds one row group of the columns asked for, not the file;
    # extension types would replace what the table's schema says about a column.
    file = pq.ParquetFile(
        stream,
        pre_buffer=False,
        arrow_extensions_enabled=False,
        page_checksum_verification=True,  # of the pages that have one
    )
    require_columns(columns, file.schema_arrow.names)
    groups, position = _row_groups(file.metadata, rows)
    batches = file.iter_batches(batch_rows, row_groups=groups, columns=columns)
    far = _int96_columns(file.schema, columns)
    if far:
        batches = _without_far(stream, batches, batch_rows, groups, far)
    for batch in batches:
        yield position, batch
        position += batch.num_rows


def _row_groups(metadata: pq.FileMetaData, rows: range) -> tuple[list[int], int]:
    """The row groups that hold some of ``rows``, and where the first of them starts."""
    groups: list[int] = []
    first = start = 0
    for number in range(metadata.num_row_groups):
        end = start + metadata.row_group(number).num_rows
        if start < rows.stop and end > rows.start:
            first = first if groups else start
            groups.append(number)
        start = end
    return groups, first


def _int96_columns(schema: pq.ParquetSchema, columns: Sequence[str]) -> list[str]:
    """Those that are INT96, or have it somewhere inside."""
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
    """Refuse timestamps that 64-bit nanoseconds do not reach: Arrow does not notice them.

    An INT96 reaches further than any year there is, so the columns are read in seconds as well.
    """
    coarse = pq.ParquetFile(stream, pre_buffer=False, coerce_int96_timestamp_unit="s")
    seconds = coarse.iter_batches(batch_rows, row_groups=groups, columns=columns)
    for batch, in_seconds in zip(batches, seconds, strict=True):
        for name in columns:
            if _is_far(batch.column(name), in_seconds.column(name)):
                raise UnsupportedError(
                    f"column {name!r} holds timestamps before 1677 or after 2262 in nanoseconds, "
                    "which this version cannot read; change it to TIMESTAMP(6) with another engine"
                )
        yield batch


def _is_far(nanos: pa.Array, seconds: pa.Array) -> bool:
    """Whether some INT96 of a column is; only those come in another type when read in seconds."""
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
    # Java counts back from the end of a day before 1970; Arrow reads that as a round too many.
    is_back = pc.and_(
        pc.less(counts, 0), pc.less_equal(pc.abs(pc.subtract(rounds, SECONDS_OF_A_ROUND)), 1)
    )
    is_far = pc.and_(pc.not_equal(rounds, 0), pc.invert(is_back))
    return bool(pc.any(is_far).as_py())
