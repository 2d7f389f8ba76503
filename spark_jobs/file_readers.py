"""Reads source files strictly: a value arrives as it is written, or the file is refused.

Both engines read text files here. Spark's own CSV reader changes values without a word even
when told to fail fast (``""`` becomes NULL, ``1d`` becomes 1.0, a timestamp's time of day is
cut where a date is wanted).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

import lakeformat as lake
from spark_jobs.request import SourceFormat
from spark_jobs.source_files import SourceFiles

__all__ = ["infer_columns", "read_files"]

# A reader needs a whole record in one block; types are inferred from the first one.
BLOCK_BYTES = 8 << 20


def infer_columns(source: SourceFiles) -> pa.Schema:
    """The columns of all files together, for a table that does not exist yet."""
    found = []
    for path in source.paths:
        with _naming(path):
            found.append(_columns_of(path, source.format))
    try:
        merged = pa.unify_schemas(found, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as reason:
        raise lake.InvalidRequestError(f"the files' columns differ in type: {reason}") from None
    empty = [field.name for field in merged if pa.types.is_null(field.type)]
    if empty:
        raise lake.InvalidRequestError(
            f"no value shows the type of column {', '.join(map(repr, empty))}: "
            "create the table first, then ingest"
        )
    return merged


def read_files(
    paths: Sequence[str], source_format: SourceFormat, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Rows of the files, file after file; text is parsed as ``columns`` of the table want it."""
    for path in paths:
        with _naming(path):
            yield from _rows_of(path, source_format, columns)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Say which file could not be read."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as reason:
        raise lake.InvalidRequestError(f"cannot read {path}: {reason}") from None


def _columns_of(path: str, source_format: SourceFormat) -> pa.Schema:
    if source_format == "parquet":
        return pyarrow.parquet.read_schema(path)
    if source_format == "csv":
        with _open_csv(path, {}) as reader:
            return reader.schema
    if _is_empty(path):
        return pa.schema([])
    with _open_json(path, pyarrow.json.ParseOptions()) as reader:
        return _times_as_text(reader.schema)  # text that looks like a time is still text


def _rows_of(
    path: str, source_format: SourceFormat, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    if source_format == "parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from file.iter_batches()
    elif source_format == "csv":
        with _open_csv(path, {field.name: field.type for field in columns}) as reader:
            yield from reader
    elif not _is_empty(path):
        options = pyarrow.json.ParseOptions(
            explicit_schema=_times_as_text(columns), unexpected_field_behavior="error"
        )
        with _open_json(path, options) as reader:
            yield from (batch.cast(columns) for batch in reader)


def _open_csv(path: str, types: dict[str, pa.DataType]) -> pyarrow.csv.CSVStreamingReader:
    """An empty field is NULL and ``""`` an empty text; a quoted text may hold line breaks."""
    return pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _open_json(path: str, options: pyarrow.json.ParseOptions) -> pyarrow.json.JSONStreamingReader:
    """One object per line."""
    read_options = pyarrow.json.ReadOptions(block_size=BLOCK_BYTES)
    return pyarrow.json.open_json(path, read_options=read_options, parse_options=options)


def _is_empty(path: str) -> bool:
    """A file of no lines is one of no rows, though the JSON reader calls it an error."""
    return os.path.getsize(path) == 0


def _times_as_text(columns: pa.Schema) -> pa.Schema:
    """The JSON reader takes no dates, and drops time zones; casting from text is exact."""
    return pa.schema(_time_as_text(field) for field in columns)


def _time_as_text(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.string())
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_time_as_text(kind.value_field)))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_time_as_text(part) for part in kind]))
    return field
