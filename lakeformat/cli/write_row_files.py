# SPDX-License-Identifier: Apache-2.0
"""Writes rows as CSV, JSON lines or Parquet, or prints them as a table."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from pathlib import PurePath
from typing import Any, BinaryIO

import pyarrow as pa
import typer
from pyarrow import csv, parquet

from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.environment import SYSTEM
from lakeformat.errors import InvalidRequestError

__all__ = ["Form", "form_of", "form_of_file", "plain_value", "print_table", "write_rows"]

_LINES_AT_ONCE = 1024
_SHOWN_NAME = 50
"""The name of an unfinished file begins with at most this many characters of the final name."""
_STREAMS = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


class Form(StrEnum):
    """The formats of printed or written rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


_BY_SUFFIX = {
    ".csv": Form.CSV,
    ".json": Form.JSON,
    ".jsonl": Form.JSON,
    ".ndjson": Form.JSON,
    ".parquet": Form.PARQUET,
}


def form_of(given: str | None, output: str | None, *, as_json: bool) -> Form:
    """Return the format that --json, --format or the ending of the file's name chooses.

    Default: a table. An unknown or contradictory choice raises ``InvalidRequestError``.
    """
    if as_json:
        if given not in (None, Form.JSON):
            raise InvalidRequestError(
                f"--json and --format {given} exclude each other: leave one of them out"
            )
        return Form.JSON
    if given is None:
        return Form.TABLE if output is None else form_of_file(output)
    if given not in [*Form]:
        raise InvalidRequestError(f"--format {given!r} is unknown: use one of {', '.join(Form)}")
    if given == Form.PARQUET and output is None:
        raise InvalidRequestError(
            "--format parquet cannot be printed: add --output FILE, or choose another format"
        )
    return Form(given)


def print_table(rows: pa.Table) -> None:
    """Print rows as a table; null is an empty cell."""
    if not rows.num_rows:
        typer.echo("no rows")
        return
    grid = []
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        is_number = any(
            kind(column.type)
            for kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        )
        grid.append(GridColumn(name, [_shown(value) for value in _values(column)], is_number))
    print_grid(grid)


def write_rows(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, form: Form, output: str | None
) -> None:
    """Write rows to the file ``output``, which appears when it is complete; None writes to stdout.

    Rows for a pipe, a device or an open file such as ``/dev/stdout`` are written there directly. A
    symbolic link is followed. A column that CSV cannot hold raises ``InvalidRequestError``.
    """
    if form is Form.CSV:
        _require_flat(schema)
    writer: dict[Form, Callable[[BinaryIO, Iterator[pa.RecordBatch], pa.Schema], None]] = {
        Form.CSV: _write_csv,
        Form.JSON: _write_json,
        Form.PARQUET: _write_parquet,
    }
    if output is None:
        writer[form](sys.stdout.buffer, batches, schema)
        return
    descriptor = _descriptor(output)
    if descriptor is not None or (os.path.exists(output) and not os.path.isfile(output)):
        place = output if descriptor is None else os.dup(descriptor)
        with open(place, "wb") as stream:
            writer[form](stream, batches, schema)
        return
    target = os.path.realpath(output)
    folder, name = os.path.split(target)
    part = os.path.join(folder, f"{name[:_SHOWN_NAME]}.{SYSTEM.new_id()}.part")
    try:
        with open(part, "xb") as stream:
            writer[form](stream, batches, schema)
        os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _descriptor(path: str) -> int | None:
    """Return the file descriptor that a path such as ``/dev/stdout`` names; else None.

    Opening such a path would truncate the file that the descriptor writes to.
    """
    place = os.path.abspath(path)
    found = _OPEN_FILE.fullmatch(_STREAMS.get(place, place))
    return None if found is None else int(found[1])


def form_of_file(path: str) -> Form:
    """Return the format for the ending of a path; an unknown ending raises
    ``InvalidRequestError``.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise InvalidRequestError(
            f"the format of {path!r} is unknown: use a name that ends in "
            f"{', '.join([*_BY_SUFFIX][:-1])} or {[*_BY_SUFFIX][-1]}, or add "
            "--format"
        )
    return _BY_SUFFIX[suffix]


def _require_flat(schema: pa.Schema) -> None:
    for field in schema:
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            raise InvalidRequestError(
                f"CSV cannot hold column {field.name!r} of type {field.type}: leave it out with "
                "--columns, or choose --format json or parquet"
            )


def _write_csv(stream: BinaryIO, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    ends_with_null = False
    with csv.CSVWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            if batch.num_rows:
                ends_with_null = len(schema) == 1 and not batch.column(0)[-1].is_valid
    if ends_with_null:  # an empty line, which is no row as the last line of a file
        stream.write(b"\n")


def _write_json(stream: BinaryIO, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, default=plain_value).encode
    for batch in batches:
        for start in range(0, batch.num_rows, _LINES_AT_ONCE):
            part = batch.slice(start, _LINES_AT_ONCE)
            columns = [_values(column) for column in part.columns]
            rows = (dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True))
            stream.write("".join(f"{encode(row)}\n" for row in rows).encode())
    stream.flush()


def _write_parquet(stream: BinaryIO, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    with parquet.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _values(column: pa.Array) -> list[Any]:
    """Return Python values, but dates and timestamps as text, because Python has no nanoseconds and
    no year 10000.
    """
    kind = _with_text(column.type)
    found: list[Any] = (column if kind == column.type else column.cast(kind)).to_pylist()
    return found


def _with_text(kind: pa.DataType) -> pa.DataType:
    """Return the type with text in place of dates and timestamps, also in lists, maps and rows."""

    def part(field: pa.Field) -> pa.Field:
        return field.with_type(_with_text(field.type))

    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(part(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(part(kind.key_field), part(kind.item_field))
    return pa.struct(map(part, kind)) if pa.types.is_struct(kind) else kind


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=plain_value)
    return str(value).lower() if isinstance(value, bool) else str(plain_value(value))


def plain_value(value: Any) -> Any:
    """Return a value that JSON can hold: a decimal or time as text, bytes in base64. Any other
    value is returned unchanged.
    """
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, time):  # a column of milliseconds takes no more digits
        is_fine = value.microsecond % 1000
        return value.isoformat("auto" if is_fine or not value.microsecond else "milliseconds")
    return value.isoformat() if isinstance(value, date | datetime) else value
