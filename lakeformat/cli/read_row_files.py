# SPDX-License-Identifier: Apache-2.0
"""Reads rows from CSV, JSON and Parquet files, with the column types of a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import get_args

import pyarrow as pa

from lakeformat import TableSchema
from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.change_messages import message_format_at
from lakeformat.files.foreign.column_mapping import BY_NAME, ColumnMapping
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect, format_of
from lakeformat.files.foreign.inferred_columns import with_shown_types
from lakeformat.paimon.write.checked_rows import checked_rows
from lakeformat.types.sentence import sentence

__all__ = ["read_rows"]


def read_rows(
    inputs: Sequence[str],
    schema: TableSchema,
    kinds: str | None,
    form: str | None = None,
    dialect: TextDialect = CSV_AND_PLAIN,
    mapping: ColumnMapping = BY_NAME,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, one file after the other, with the columns of ``schema``.

    ``kinds`` is the column with the row kinds. ``form`` is csv, json or parquet; None chooses the
    format by the ending of each name. A missing file, and a row that does not fit the columns,
    raise ``InvalidRequestError``.
    """
    for path in inputs:
        _require_file(path)
    forms = [_format(path, form) for path in inputs]  # before anything is read
    for path, each in zip(inputs, forms, strict=True):
        dialect.require_fits(path, each)
    for path, each in zip(inputs, forms, strict=True):
        shown = with_shown_types(mapping, [path], each, dialect)
        with _naming_messages(path):
            yield from checked_rows(path, each, schema, dialect, kinds, mapping=shown)


@contextmanager
def _naming_messages(path: str) -> Iterator[None]:
    """Add advice to an ``InvalidRequestError`` if the file has change messages, such as Debezium's.

    The advice is to use the job ``ingest``.
    """
    try:
        yield
    except InvalidRequestError as reason:
        with suppress(OSError):
            if (form := message_format_at(path)) is not None:
                reason.args = (
                    f"{sentence(reason)} {path} holds change messages, not rows: to apply them, "
                    f'run the job \'ingest\' with "format": "{form}"',
                )
        raise


def _format(path: str, given: str | None) -> SourceFormat:
    for known in get_args(SourceFormat):
        if given == known:
            return known  # type: ignore[no-any-return]
    if given is not None:
        known = ", ".join(get_args(SourceFormat))
        raise InvalidRequestError(f"--format must be one of {known}, got {given!r}")
    return format_of(path)


def _require_file(path: str) -> None:
    if os.path.isdir(path) or not os.path.exists(path):
        state = "is a directory" if os.path.isdir(path) else "does not exist"
        if "://" in path:
            state = "is not on this machine, and `lake write` reads local files only"
        raise InvalidRequestError(
            f"{path} {state}. Nothing was written: name files that hold rows, such as orders.csv"
        )
