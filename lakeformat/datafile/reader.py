"""Reads the rows of data files as a table's schema wants them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.arrow_types import to_arrow_schema
from lakeformat.errors import CorruptTableError, NotFoundError, UnsupportedError
from lakeformat.storage import Storage
from lakeformat.type_text import type_to_json
from lakeformat.types import DataField, with_nullability

__all__ = ["read_batches"]

BATCH_ROWS = 128 * 1024


def read_batches(
    storage: Storage,
    path: str,
    *,
    file_fields: tuple[DataField, ...],
    wanted: tuple[DataField, ...],
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of one file; columns are matched by field id, through the file's schema."""
    if not path.endswith(".parquet"):
        raise UnsupportedError(
            f"{storage.uri(path)} is not a Parquet file; this version reads no other"
        )
    sources = [_source(file_fields, field, storage.uri(path)) for field in wanted]
    names = [source.name for source in sources if source is not None]
    target = to_arrow_schema(wanted)
    try:
        with storage.open_input(path) as stream:
            file = pq.ParquetFile(stream)
            # One call for the whole file would keep in memory every row group it has read.
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                    yield _shape(batch, sources, target)
    except NotFoundError:
        raise CorruptTableError(
            f"data file {storage.uri(path)} is missing although a manifest lists it; if its "
            "snapshot was just expired, scan again, else restore the file from a backup"
        ) from None
    except (pa.ArrowException, OSError, KeyError) as reason:
        raise CorruptTableError(
            f"data file {storage.uri(path)} cannot be read: {reason}; "
            "restore it from a backup or roll the table back to an earlier snapshot"
        ) from reason


def _source(file_fields: tuple[DataField, ...], field: DataField, uri: str) -> DataField | None:
    """The column of the file that holds ``field``; None when it was added later."""
    for candidate in file_fields:
        if candidate.id == field.id:
            nullable = {"nullable": True}
            if with_nullability(candidate.type, **nullable) != with_nullability(
                field.type, **nullable
            ):
                raise UnsupportedError(
                    f"column {field.name!r} was {type_to_json(candidate.type)} when {uri} was "
                    f"written and is {type_to_json(field.type)} now; this version does not convert"
                )
            return candidate
    return None


def _shape(
    batch: pa.RecordBatch, sources: list[DataField | None], target: pa.Schema
) -> pa.RecordBatch:
    columns = [
        pa.nulls(batch.num_rows, wanted.type)
        if source is None
        else batch.column(source.name).cast(wanted.type)
        for source, wanted in zip(sources, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)
